//! Facts about indices that conditions state, and proofs from them.

use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind, UnaryOp};
use crate::ids::VarId;
use crate::index::bounds::index_reads_memory;
use crate::index::{Base, Index, NO_MODULUS, Ranges, Term};
use crate::visit::substitute_expr;

/// The number of facts that a proof may combine.
const MAX_STEPS: u32 = 3;

/// Indices known not to be negative, besides the ranges of the variables.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    nonnegative: Vec<Index>,
}

impl Facts {
    /// Adds the facts that follow when `condition` has the value `holds`.
    pub fn assume(&mut self, condition: &Expr, holds: bool, ranges: &Ranges) {
        match condition.kind() {
            ExprKind::Unary(UnaryOp::Not, inner) => self.assume(inner, !holds, ranges),
            ExprKind::Binary(BinaryOp::And, a, b) if holds && a.dtype() == DType::Bool => {
                self.assume(a, true, ranges);
                self.assume(b, true, ranges);
            }
            ExprKind::Binary(BinaryOp::Or, a, b) if !holds && a.dtype() == DType::Bool => {
                self.assume(a, false, ranges);
                self.assume(b, false, ranges);
            }
            // `a && b` and `a || b` whose right side is evaluated only when it matters.
            ExprKind::Select(a, b, otherwise) if holds && is_constant(otherwise, 0) => {
                self.assume(a, true, ranges);
                self.assume(b, true, ranges);
            }
            ExprKind::Select(a, then, b) if !holds && is_constant(then, 1) => {
                self.assume(a, false, ranges);
                self.assume(b, false, ranges);
            }
            ExprKind::Binary(op, a, b) if op.is_comparison() => {
                if let (Some(a), Some(b)) = (as_index(a), as_index(b)) {
                    self.compare(*op, &a, &b, holds, ranges);
                }
            }
            _ => {}
        }
    }

    fn compare(&mut self, op: BinaryOp, a: &Index, b: &Index, holds: bool, ranges: &Ranges) {
        if !is_small(a) || !is_small(b) {
            return;
        }
        let difference = a - b;
        match (op, holds) {
            (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => self.add(difference),
            (BinaryOp::Gt, true) | (BinaryOp::Le, false) => self.add(difference.offset(-1)),
            (BinaryOp::Le, true) | (BinaryOp::Gt, false) => self.add(difference.scale(-1)),
            (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => self.add(difference.scale(-1).offset(-1)),
            (BinaryOp::Eq, true) | (BinaryOp::Ne, false) => {
                self.add(difference.scale(-1));
                self.add(difference);
            }
            // Different and not less is greater.
            (BinaryOp::Ne, true) | (BinaryOp::Eq, false) => {
                for side in [difference.clone(), difference.scale(-1)] {
                    if self.prove_nonnegative(&side, ranges) {
                        self.add(side.offset(-1));
                    }
                }
            }
            _ => {}
        }
    }

    /// The facts in a branch that is taken when `condition` has the value `holds`. `constants` gives the value of variables that have a
    /// single one. What the condition read from memory is no fact, since a store in the branch may change it.
    pub fn in_branch(
        &self,
        condition: &Expr,
        holds: bool,
        constants: &dyn Fn(VarId) -> Option<Index>,
        ranges: &Ranges,
    ) -> Facts {
        let mut facts = self.clone();
        facts.assume(&substitute_expr(condition, constants), holds, ranges);
        facts.forget_memory();
        facts
    }

    /// Forgets facts about values in memory, which may change.
    pub fn forget_memory(&mut self) {
        self.nonnegative.retain(|fact| !index_reads_memory(fact));
    }

    fn add(&mut self, fact: Index) {
        // If `2·h - 1` is not negative, neither is `h - 1`.
        let common = fact.common_factor(0);
        let fact = if common > 1 { fact.floor_div(common) } else { fact };
        if let Some(without_quotient) = clear_quotient(&fact) {
            self.nonnegative.push(without_quotient);
        }
        self.nonnegative.push(fact);
    }

    /// Whether the index is at least 0 wherever the facts hold. `false` means "not proved".
    pub fn prove_nonnegative(&self, index: &Index, ranges: &Ranges) -> bool {
        self.prove(index, ranges, MAX_STEPS)
    }

    fn prove(&self, index: &Index, ranges: &Ranges, steps: u32) -> bool {
        if index.is_provably_nonnegative(ranges) {
            return true;
        }
        if steps == 0 {
            return false;
        }
        if clear_quotient(index).is_some_and(|cleared| self.prove(&cleared, ranges, steps - 1)) {
            return true;
        }
        self.nonnegative.iter().any(|fact| {
            // `m·index >= k·fact >= 0` is enough, with positive factors that make a term cancel.
            cancelling_factors(index, fact)
                .is_some_and(|(m, k)| self.prove(&index.scale(m).add_scaled(fact, -k), ranges, steps - 1))
        })
    }
}

/// Positive factors `m` and `k` for which a term cancels in `m·index - k·fact`.
fn cancelling_factors(index: &Index, fact: &Index) -> Option<(i64, i64)> {
    let shared = index.terms().iter().find_map(|term| {
        let other = fact.terms().iter().find(|other| other.digit == term.digit)?;
        ((other.coefficient > 0) == (term.coefficient > 0)).then_some((term.coefficient, other.coefficient))
    });
    let (own, other) = shared?;
    let (own, other) = (own.checked_abs()?, other.checked_abs()?);
    let common = crate::index::greatest_common_divisor(own, other);
    let (m, k) = (other / common, own / common);
    // Beyond this, coefficients could overflow.
    (m < 1 << 20 && k < 1 << 20 && is_small(index) && is_small(fact)).then_some((m, k))
}

/// Whether sums of an index and another do not overflow, nor do multiples by small factors.
fn is_small(index: &Index) -> bool {
    let is_small = |number: i64| number.unsigned_abs() < 1 << 40;
    is_small(index.constant_part()) && index.terms().iter().all(|term| is_small(term.coefficient))
}

/// An index that is not negative exactly when `rest ± base / d` is not, without the quotient.
fn clear_quotient(index: &Index) -> Option<Index> {
    let is_quotient = |term: &&Term| {
        term.digit.divisor > 1 && term.digit.modulus == NO_MODULUS && term.coefficient.abs() == 1
    };
    let term = index.terms().iter().find(is_quotient)?;
    let divisor = term.digit.divisor;
    if divisor >= 1 << 30 || !index.has_small_numbers() {
        return None;
    }
    let rest = index.add_scaled(&Index::digit(term.digit.clone()), -term.coefficient);
    let base = match &term.digit.base {
        Base::Sum(sum) => Index::clone(sum),
        other => Index::digit(crate::index::Digit::whole(other.clone())),
    };
    Some(if term.coefficient > 0 {
        // `base / d >= -rest` is `base >= -rest·d`.
        base.add_scaled(&rest, divisor)
    } else {
        // `base / d <= rest` is `base <= rest·d + d - 1`.
        rest.scale(divisor).offset(divisor - 1).add_scaled(&base, -1)
    })
}

fn is_constant(expr: &Expr, value: i64) -> bool {
    expr.as_constant() == Some(Constant::Int(value))
}

/// An operand of a comparison as an index, when it is index arithmetic.
fn as_index(operand: &Expr) -> Option<Index> {
    if operand.dtype() != DType::I64 {
        return None;
    }
    match operand.kind() {
        ExprKind::Index(index) => Some(index.clone()),
        ExprKind::Constant(Constant::Int(value)) => Some(Index::constant(*value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::BufferId;

    fn vars() -> (Index, Index, Ranges) {
        let mut ranges = Ranges::new();
        ranges.insert_constant(VarId(0), 56);
        ranges.insert_constant(VarId(1), 4);
        (Index::var(VarId(0)), Index::var(VarId(1)), ranges)
    }

    fn compare(op: BinaryOp, a: &Index, b: i64) -> Expr {
        Expr::binary(op, Expr::index(a.clone()), Expr::index(Index::constant(b)))
    }

    #[test]
    fn a_row_is_inside_where_the_branch_says_so() {
        let (h, v, ranges) = vars();
        let first = &h.scale(7168) + &v.scale(64).offset(-3616);
        let last = (&Index::constant(401_408) - &first).offset(-7232 - 3616 - 8);
        let mut facts = Facts::default();
        assert!(!facts.prove_nonnegative(&first, &ranges));
        assert!(!facts.prove_nonnegative(&last, &ranges));
        let inside = Expr::binary(
            BinaryOp::And,
            compare(BinaryOp::Gt, &h.scale(2), 0),
            compare(BinaryOp::Lt, &h.scale(2), 110),
        );
        facts.assume(&inside, true, &ranges);
        assert!(facts.prove_nonnegative(&first, &ranges));
        assert!(facts.prove_nonnegative(&last, &ranges));
        assert!(!facts.prove_nonnegative(&first.offset(-3584), &ranges), "a row more is too many");
    }

    #[test]
    fn sums_of_loops_are_compared_as_a_whole() {
        let (h, v, ranges) = vars();
        let row = &h.scale(8) + &v.scale(2);
        let mut facts = Facts::default();
        facts.assume(&compare(BinaryOp::Ge, &row, 1), true, &ranges);
        assert!(facts.prove_nonnegative(&row.scale(112).offset(-224), &ranges), "it is even");
        assert!(!facts.prove_nonnegative(&row.scale(112).offset(-225), &ranges));
    }

    #[test]
    fn what_fails_says_the_opposite_and_either_says_nothing() {
        let (h, _, ranges) = vars();
        let mut facts = Facts::default();
        facts.assume(&compare(BinaryOp::Lt, &h, 3), false, &ranges);
        assert!(facts.prove_nonnegative(&h.offset(-3), &ranges));
        let mut facts = Facts::default();
        let either = Expr::binary(BinaryOp::Or, compare(BinaryOp::Ge, &h, 3), compare(BinaryOp::Ge, &h, 5));
        facts.assume(&either, true, &ranges);
        assert!(!facts.prove_nonnegative(&h.offset(-3), &ranges));
        facts.assume(&either, false, &ranges);
        assert!(facts.prove_nonnegative(&h.scale(-1).offset(2), &ranges));
    }

    #[test]
    fn numbers_that_may_overflow_say_nothing() {
        let (h, _, ranges) = vars();
        let mut facts = Facts::default();
        let far = Expr::index(h.offset(i64::MAX));
        let condition = Expr::binary(BinaryOp::Ge, far, Expr::index(Index::constant(2 - i64::MAX)));
        facts.assume(&condition, true, &ranges);
        assert!(!facts.prove_nonnegative(&h.offset(-4), &ranges));
    }

    #[test]
    fn what_was_said_of_memory_can_be_forgotten() {
        let (h, _, ranges) = vars();
        // A sum, since what is read alone is a load and no index.
        let loaded = Index::value(Expr::load(DType::I64, BufferId(0), [h.clone()])).offset(1);
        let mut facts = Facts::default();
        let condition = compare(BinaryOp::Ge, &loaded, 3);
        facts.assume(&condition, true, &ranges);
        assert!(facts.prove_nonnegative(&loaded.offset(-3), &ranges));
        facts.forget_memory();
        assert!(!facts.prove_nonnegative(&loaded.offset(-3), &ranges));
    }
}
