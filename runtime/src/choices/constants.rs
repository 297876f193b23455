//! Constants that stand for others.
//!
//! Layers of a quantised model differ in scales and zero points, which are constants in their programs. A choice depends on the kinds of
//! floats alone: whether one leaves an operation out (0, 1), is the neutral element of a reduction, or is negative. An integer that is added,
//! subtracted, multiplied or selected is a zero point; others stay, as instructions for bytes and parts of bytes are recognised by their
//! masks and shifts.

use std::cell::RefCell;

use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind};
use tilewright_core::program::Program;
use tilewright_core::visit::{rewrite_expr, rewrite_stmt};

/// The first float that stands for others; its negative stands for negative ones.
const FIRST: usize = 2;

/// The last number that stands for others. Each float of 16 bits or more has all of them, and each integer.
const LAST: usize = 63;

/// The greatest integer that another one stands for: zero points are bytes.
const GREATEST_BYTE: i64 = 255;

/// The greatest number of `f16`.
const GREATEST_HALF: f64 = 65504.0;

/// A program with representatives for its constants: equal ones have equal ones, different floats of a type and different integers have
/// different ones.
pub(super) fn with_representatives(program: &Program) -> Program {
    let known = RefCell::new(Representatives::default());
    let mut program = program.clone();
    let replace = |expr: &Expr| rewrite_expr(expr, &mut |node| known.borrow_mut().rewrite(node));
    rewrite_stmt(&mut program.body, &|_| None, &replace);
    program
}

/// The constants that have representatives, in the order in which they were met.
#[derive(Default)]
struct Representatives {
    floats: Vec<(DType, Constant)>,
    integers: Vec<i64>,
}

impl Representatives {
    /// A node with representatives for its own constants; `None` where it stays.
    fn rewrite(&mut self, node: &Expr) -> Option<Expr> {
        use BinaryOp::{Add, Mul, Sub};
        match node.kind() {
            ExprKind::Constant(constant) => {
                let own = self.float(node.dtype(), *constant)?;
                Some(Expr::new(node.dtype(), ExprKind::Constant(own)))
            }
            ExprKind::Binary(operation @ (Add | Sub | Mul), a, b) => self
                .operands([a, b])
                .map(|[a, b]| Expr::new(node.dtype(), ExprKind::Binary(*operation, a, b))),
            ExprKind::MulAdd(a, b, c) => {
                self.operands([a, b, c]).map(|[a, b, c]| Expr::new(node.dtype(), ExprKind::MulAdd(a, b, c)))
            }
            ExprKind::Select(condition, a, b) => self
                .operands([a, b])
                .map(|[a, b]| Expr::new(node.dtype(), ExprKind::Select(condition.clone(), a, b))),
            _ => None,
        }
    }

    /// Operands of which some are integers with representatives; `None` where none is.
    fn operands<const N: usize>(&mut self, operands: [&Expr; N]) -> Option<[Expr; N]> {
        let replaced = operands.map(|operand| match operand.kind() {
            ExprKind::Constant(constant) => {
                let own = self.integer(operand.dtype(), *constant)?;
                Some(Expr::new(operand.dtype(), ExprKind::Constant(own)))
            }
            _ => None,
        });
        let is_any = replaced.iter().any(Option::is_some);
        let mut pairs = replaced.into_iter().zip(operands);
        is_any.then(|| {
            std::array::from_fn(|_| {
                let (replaced, operand) = pairs.next().expect("there are as many");
                replaced.unwrap_or_else(|| operand.clone())
            })
        })
    }

    /// The representative of a float; `None` where it stands for itself.
    fn float(&mut self, dtype: DType, constant: Constant) -> Option<Constant> {
        let value = constant.as_f64();
        if !dtype.is_float() || dtype.bytes() < 2 || !is_ordinary_float(value) {
            return None;
        }
        let size = FIRST + place_of(&mut self.floats, (dtype, constant));
        (size <= LAST).then(|| Constant::float(if value < 0.0 { -(size as f64) } else { size as f64 }))
    }

    /// The representative of an integer; `None` where it stands for itself. Equal integers of different types have the same one: a zero point
    /// is a byte where it pads, and a wider integer where it is subtracted.
    fn integer(&mut self, dtype: DType, constant: Constant) -> Option<Constant> {
        let Constant::Int(value) = constant else { return None };
        if !dtype.is_int() || !is_ordinary_integer(value) {
            return None;
        }
        let place = place_of(&mut self.integers, value);
        let mut ordinary = (FIRST as i64..=LAST as i64).filter(|&number| is_ordinary_integer(number));
        Some(Constant::Int(ordinary.nth(place)? * value.signum()))
    }
}

/// The place of a constant among those that were met.
fn place_of<T: PartialEq>(known: &mut Vec<T>, constant: T) -> usize {
    known.iter().position(|own| *own == constant).unwrap_or_else(|| {
        known.push(constant);
        known.len() - 1
    })
}

/// Whether a float is neither 0, 1 or -1 nor near the least or greatest number of a type.
fn is_ordinary_float(value: f64) -> bool {
    value != 0.0 && value.abs() != 1.0 && value.abs() < GREATEST_HALF
}

/// Whether an integer is a byte that is no power of 2, which shifts, and no neighbour of one, which masks or is the end of a range.
fn is_ordinary_integer(value: i64) -> bool {
    let size = value.unsigned_abs();
    let is_near_power = |size: u64| size == 0 || size.is_power_of_two();
    size <= GREATEST_BYTE as u64 && !is_near_power(size) && !is_near_power(size + 1)
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
    fn layers_that_differ_in_scales_and_zero_points_are_alike() {
        let same = with_representatives(&program("103i32", "0.25")).to_string();
        for (zero, scale) in [("103i32", "0.0625"), ("98i32", "0.25"), ("200i32", "7.5")] {
            assert_eq!(with_representatives(&program(zero, scale)).to_string(), same, "{zero} {scale}");
        }
        let others = [
            ("128i32", "0.25"),
            ("127i32", "0.25"),
            ("1i32", "0.25"),
            ("300i32", "0.25"),
            ("103i32", "1.0"),
            ("103i32", "-0.25"),
            ("103i32", "65504.0"),
        ];
        for (zero, scale) in others {
            assert_ne!(with_representatives(&program(zero, scale)).to_string(), same, "{zero} {scale}");
        }
    }

    #[test]
    fn equal_floats_stay_equal_and_others_different() {
        let mut known = Representatives::default();
        let mut of = |value| known.float(DType::F32, Constant::float(value));
        let [first, second, again] = [of(7.5), of(9.0), of(7.5)];
        assert_eq!(first, again);
        assert_ne!(first, second);
        for value in 10..200 {
            assert!(of(f64::from(value)).is_none_or(|own| own != first.unwrap()), "{value}");
        }
        assert_eq!(of(f64::NEG_INFINITY), None);
    }

    #[test]
    fn zero_points_are_alike_in_all_types() {
        let mut known = Representatives::default();
        let mut of = |dtype, value| known.integer(dtype, Constant::Int(value));
        let padding = of(DType::U8, 103);
        assert!(padding.is_some_and(|own| own != Constant::Int(103)));
        assert_eq!(of(DType::I32, 103), padding);
        assert_ne!(of(DType::I32, 104), padding);
        assert_eq!([of(DType::I32, 0), of(DType::I32, 64), of(DType::I32, 255)], [None; 3]);
        let all: Vec<_> = (0..=255).filter_map(|value| of(DType::I32, value)).collect();
        let mut different = all.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!((all.len(), different.len()), (different.len(), all.len()));
        assert!(all.iter().all(|own| matches!(own, Constant::Int(2..=63))));
    }
}
