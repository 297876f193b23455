//! Constants that stand for others.
//!
//! Layers of a quantised model differ in scales and zero points, which are constants of their programs. A choice depends on the kinds
//! of constants alone: whether one leaves an operation out (0, 1), is the neutral element of a reduction, or is negative.

use std::cell::RefCell;

use tilewright_core::dtype::DType;
use tilewright_core::expr::{Constant, Expr, ExprKind};
use tilewright_core::program::Program;
use tilewright_core::visit::{rewrite_expr, rewrite_stmt};

/// The first constant that stands for others; its negative stands for negative ones.
const FIRST: i64 = 2;

/// The last constant that stands for others: a number of each integer type of 8 bits and each float of 16 bits.
const LAST: i64 = 63;

/// A program with representatives for its constants: equal constants have equal ones, different constants of a type have different ones.
pub(super) fn with_representatives(program: &Program) -> Program {
    let known = RefCell::new(Vec::new());
    let mut program = program.clone();
    let replace = |expr: &Expr| {
        rewrite_expr(expr, &mut |node| match node.kind() {
            ExprKind::Constant(constant) => representative(&mut known.borrow_mut(), node.dtype(), *constant)
                .map(|own| Expr::new(node.dtype(), ExprKind::Constant(own))),
            _ => None,
        })
    };
    rewrite_stmt(&mut program.body, &|_| None, &replace);
    program
}

/// The representative of a constant; `None` where it stands for itself.
fn representative(known: &mut Vec<(DType, Constant)>, dtype: DType, constant: Constant) -> Option<Constant> {
    let value = match constant {
        Constant::Int(value) => value as f64,
        Constant::Float(_) => constant.as_f64(),
    };
    let has_all = dtype.is_float() && dtype.bytes() >= 2 || !dtype.is_float() && dtype != DType::Bool;
    if !has_all || !is_ordinary(dtype, value) {
        return None;
    }
    let place = known.iter().position(|own| *own == (dtype, constant)).unwrap_or_else(|| {
        known.push((dtype, constant));
        known.len() - 1
    });
    let size = i64::try_from(place).ok().map(|place| FIRST + place).filter(|size| *size <= LAST)?;
    let signed = if value < 0.0 { -size } else { size };
    Some(match constant {
        Constant::Int(_) => Constant::Int(signed),
        Constant::Float(_) => Constant::float(signed as f64),
    })
}

/// Whether a constant is neither 0, 1 or -1 nor the least or greatest value of a type.
fn is_ordinary(dtype: DType, value: f64) -> bool {
    let is_small = value.abs() == 1.0 || value == 0.0;
    let is_extreme = match dtype.is_float() {
        true => !value.is_finite() || value.abs() >= 65504.0,
        // The extremes of integers are powers of two, or one less.
        false => {
            [value, -value, value + 1.0].into_iter().any(|near| near >= 127.0 && near.log2().fract() == 0.0)
        }
    };
    !is_small && !is_extreme
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(zero: &str, scale: &str) -> Program {
        let text = format!(
            "kernel scaled(in x: i8[8], out y: f32[8]) {{
  for i in 0..8 {{
    block y(vi: spatial 8 = i) {{ y[vi] = (x[vi] as i32 - {zero}) as f32 * {scale} }}
  }}
}}"
        );
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn layers_that_differ_in_constants_are_alike() {
        let same = with_representatives(&program("103i32", "0.25")).to_string();
        assert_eq!(with_representatives(&program("98i32", "0.0625")).to_string(), same);
        for (zero, scale) in [("0i32", "0.25"), ("-103i32", "0.25"), ("103i32", "1.0"), ("127i32", "0.25")] {
            assert_ne!(with_representatives(&program(zero, scale)).to_string(), same, "{zero} {scale}");
        }
    }

    #[test]
    fn equal_constants_stay_equal_and_others_different() {
        let mut known = Vec::new();
        let mut of = |value| representative(&mut known, DType::I32, Constant::Int(value));
        let [first, second, again] = [of(7), of(9), of(7)];
        assert_eq!(first, again);
        assert_ne!(first, second);
        assert_eq!(of(i64::from(i32::MIN)), None);
        for value in 10..200 {
            assert!(of(value).is_none_or(|own| own != first.unwrap()), "{value}");
        }
    }
}
