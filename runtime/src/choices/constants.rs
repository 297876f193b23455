//! Constants that stand for others.
//!
//! Layers of a quantised model differ in scales, which are floats in their programs. A choice depends on the kinds of floats alone: whether
//! one leaves an operation out (0, 1), is the neutral element of a reduction, or is negative. Integers stay: instructions
//! for bytes and parts of bytes are recognised by their masks and shifts.

use std::cell::RefCell;

use tilewright_core::dtype::DType;
use tilewright_core::expr::{Constant, Expr, ExprKind};
use tilewright_core::program::Program;
use tilewright_core::visit::{rewrite_expr, rewrite_stmt};

/// The first number that stands for others; its negative stands for negative ones.
const FIRST: usize = 2;

/// The last number that stands for others. Each float of 16 bits or more has all of them.
const LAST: usize = 63;

/// A program with representatives for its floats: equal floats have equal ones, different floats of a type have different ones.
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
    let value = constant.as_f64();
    if !dtype.is_float() || dtype.bytes() < 2 || !is_ordinary(value) {
        return None;
    }
    let place = known.iter().position(|own| *own == (dtype, constant)).unwrap_or_else(|| {
        known.push((dtype, constant));
        known.len() - 1
    });
    let size = FIRST + place;
    (size <= LAST).then(|| Constant::float(if value < 0.0 { -(size as f64) } else { size as f64 }))
}

/// Whether a float is neither 0, 1 or -1 nor near the least or greatest number of a type.
fn is_ordinary(value: f64) -> bool {
    /// The greatest number of `f16`.
    const GREATEST: f64 = 65504.0;
    value != 0.0 && value.abs() != 1.0 && value.abs() < GREATEST
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
    fn layers_that_differ_in_scales_are_alike() {
        let same = with_representatives(&program("103i32", "0.25")).to_string();
        assert_eq!(with_representatives(&program("103i32", "0.0625")).to_string(), same);
        for (zero, scale) in
            [("98i32", "0.25"), ("103i32", "1.0"), ("103i32", "-0.25"), ("103i32", "65504.0")]
        {
            assert_ne!(with_representatives(&program(zero, scale)).to_string(), same, "{zero} {scale}");
        }
    }

    #[test]
    fn equal_constants_stay_equal_and_others_different() {
        let mut known = Vec::new();
        let mut of = |value| representative(&mut known, DType::F32, Constant::float(value));
        let [first, second, again] = [of(7.5), of(9.0), of(7.5)];
        assert_eq!(first, again);
        assert_ne!(first, second);
        for value in 10..200 {
            assert!(of(f64::from(value)).is_none_or(|own| own != first.unwrap()), "{value}");
        }
        assert_eq!(of(f64::NEG_INFINITY), None);
    }
}
