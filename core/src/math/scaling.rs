//! Recognises the last step of an exponential, for machines that multiply by a power of two in one instruction.

use super::Arithmetic;
use super::exponential::{clamped, rounded_exponent, scaled, whole_exponent};
use crate::expr::{BinaryOp, Expr, ExprKind};

/// A value times a power of two, rounded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// The value.
    pub value: Expr,
    /// The exponent: a float of the same type that is an integer, or NaN where the value is NaN too.
    pub exponent: Expr,
}

/// The scaling that an expression is, if it is the one in which [`exp`](super::exp) ends.
pub fn as_scaling(expr: &Expr) -> Option<Scaling> {
    let (product, half) = factors(expr)?;
    let (value, _) = factors(product)?;
    // Both steps of the way down hold the next in their first operand: the shift to an exponent's place, and the halving.
    let bits = (0..2).try_fold(bitcast_operand(half)?, |node, _| match node.kind() {
        ExprKind::Binary(_, first, _) => Some(first),
        _ => None,
    })?;
    let rounded = bitcast_operand(bits)?;
    let ExprKind::MulAdd(argument, ..) = rounded.kind() else { return None };
    let argument = unclamped(unclamped(argument)?)?;
    let is_whole =
        scaled(value, &rounded.to_bits()) == *expr && rounded_exponent(&clamped(argument)) == *rounded;
    is_whole.then(|| Scaling { value: value.clone(), exponent: whole_exponent(rounded) })
}

fn factors(expr: &Expr) -> Option<(&Expr, &Expr)> {
    match expr.kind() {
        ExprKind::Binary(BinaryOp::Mul, first, second) => Some((first, second)),
        _ => None,
    }
}

fn bitcast_operand(expr: &Expr) -> Option<&Expr> {
    match expr.kind() {
        ExprKind::Bitcast(operand) => Some(operand),
        _ => None,
    }
}

fn unclamped(expr: &Expr) -> Option<&Expr> {
    match expr.kind() {
        ExprKind::Select(_, _, otherwise) => Some(otherwise),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::expr::UnaryOp;
    use crate::math::expand;

    fn argument(dtype: DType) -> Expr {
        Expr::load(dtype, crate::ids::BufferId(0), [])
    }

    #[test]
    fn an_exponential_ends_in_a_scaling() {
        for dtype in [DType::F32, DType::F64] {
            let exponential = expand(&Expr::unary(UnaryOp::Exp, argument(dtype))).unwrap();
            let Scaling { value, exponent } = as_scaling(&exponential).unwrap();
            assert_eq!((value.dtype(), exponent.dtype()), (dtype, dtype));
            assert!(as_scaling(&value).is_none() && as_scaling(&exponent).is_none());
        }
    }

    #[test]
    fn another_product_of_powers_is_none() {
        let exponential = expand(&Expr::unary(UnaryOp::Exp, argument(DType::F32))).unwrap();
        let (product, half) = factors(&exponential).unwrap();
        let (value, rest) = factors(product).unwrap();
        for (first, second) in [(half, half), (rest, rest), (half, rest)] {
            let other = value.mul(first).mul(second);
            assert!(as_scaling(&other).is_none(), "{other:?}");
        }
        // Without bounds, the halves need not be normal numbers.
        let biased = rounded_exponent(&argument(DType::F32)).to_bits();
        assert!(as_scaling(&scaled(value, &biased)).is_none());
    }
}
