//! The values of indices in terms of dimensions, for given sizes.

use super::{Base, Index, NO_MODULUS};
use crate::expr::{BinaryOp, Constant, Expr, ExprKind};
use crate::ids::VarId;

impl Index {
    /// The value for given dimensions; `None` on overflow, or when the index mentions anything else.
    pub fn evaluate(&self, dims: &dyn Fn(VarId) -> Option<i64>) -> Option<i64> {
        self.terms().iter().try_fold(self.constant_part(), |sum, term| {
            let base = match &term.digit.base {
                Base::Var(var) => dims(*var)?,
                Base::Sum(sum) => sum.evaluate(dims)?,
                Base::Value(value) => evaluate_value(value, dims)?,
                Base::Lane(_) => return None,
            };
            let mut digit = base.div_euclid(term.digit.divisor);
            if term.digit.modulus != NO_MODULUS {
                digit = digit.rem_euclid(term.digit.modulus);
            }
            sum.checked_add(digit.checked_mul(term.coefficient)?)
        })
    }
}

fn evaluate_value(value: &Expr, dims: &dyn Fn(VarId) -> Option<i64>) -> Option<i64> {
    match value.kind() {
        ExprKind::Constant(Constant::Int(value)) => Some(*value),
        ExprKind::Index(index) => index.evaluate(dims),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (evaluate_value(a, dims)?, evaluate_value(b, dims)?);
            match op {
                BinaryOp::Add => a.checked_add(b),
                BinaryOp::Sub => a.checked_sub(b),
                BinaryOp::Mul => a.checked_mul(b),
                BinaryOp::Div if b == 0 => Some(0),
                BinaryOp::Div => a.checked_div(b),
                BinaryOp::Rem if b == 0 => Some(0),
                BinaryOp::Rem => a.checked_rem(b),
                BinaryOp::Min => Some(a.min(b)),
                BinaryOp::Max => Some(a.max(b)),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: VarId = VarId(0);
    const N: VarId = VarId(1);

    fn of(index: &Index, m: i64, n: i64) -> Option<i64> {
        index.evaluate(&|var| [m, n].get(var.0 as usize).copied())
    }

    #[test]
    fn extents_are_computed() {
        let (m, n) = (Index::var(M), Index::var(N));
        assert_eq!(of(&(&m.scale(3) - &n), 7, 2), Some(19));
        assert_eq!(of(&m.multiply(&n), 7, 6), Some(42));
        assert_eq!(of(&m.ceil_div(4), 9, 0), Some(3));
        assert_eq!(of(&m.offset(5).modulo(4), 9, 0), Some(2));
        assert_eq!(of(&m.minimum(&n), 9, 4), Some(4));
        assert_eq!(of(&m.divide(&n), 9, 0), Some(0));
    }

    #[test]
    fn overflow_is_noticed() {
        let product = Index::var(M).multiply(&Index::var(N));
        assert_eq!(of(&product, i64::MAX, 2), None);
        assert_eq!(of(&Index::var(M).scale(3), i64::MAX / 2, 0), None);
        assert_eq!(of(&Index::var(VarId(7)), 1, 1), None, "an unknown variable");
    }
}
