//! What a branch knows: the comparisons of indices that it is taken for.
//!
//! ```text
//! if 0 < 2·h & 2·h < 110 { … x[7168·h + 64·v - 3616] … }
//! ```
//!
//! Over all iterations the first row lies before the tensor; in the branch `h - 1` is not negative, and the index is
//! `7168·(h - 1) + 64·v + 3552`.

use tilewright_core::expr::{BinaryOp, Expr, ExprKind};
use tilewright_core::index::{Base, Index, Ranges};

use super::truth::as_index;

/// Indices that are not negative where code is built, innermost branch last.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts(Vec<Index>);

impl Facts {
    /// Adds what a condition says where it holds, or where it fails. Gives how many facts there were.
    pub(super) fn assume(
        &mut self,
        condition: &Expr,
        holds: bool,
        resolve: &impl Fn(&Index) -> Index,
    ) -> usize {
        let before = self.0.len();
        self.add(condition, holds, resolve);
        before
    }

    /// Forgets all but the first facts.
    pub(super) fn forget(&mut self, before: usize) {
        self.0.truncate(before);
    }

    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Both lists.
    pub(super) fn with(&self, others: &Facts) -> Facts {
        Facts(self.0.iter().chain(&others.0).cloned().collect())
    }

    fn add(&mut self, condition: &Expr, holds: bool, resolve: &impl Fn(&Index) -> Index) {
        let ExprKind::Binary(op, a, b) = condition.kind() else { return };
        match (op, holds) {
            (BinaryOp::And, true) | (BinaryOp::Or, false) => {
                self.add(a, holds, resolve);
                self.add(b, holds, resolve);
            }
            _ => {
                let (Some(a), Some(b)) = (as_index(a), as_index(b)) else { return };
                let (a, b) = (resolve(&a), resolve(&b));
                let is_known = |index: &Index| index.lanes() == 1 && is_small(index) && stays(index);
                if is_known(&a) && is_known(&b) {
                    self.0.extend(nonnegative(*op, holds, &a, &b).filter(is_small).map(tightened));
                }
            }
        }
    }

    /// Whether an index is never negative: alone, or less a multiple of what is not negative either.
    pub(super) fn prove_nonnegative(&self, index: &Index, ranges: &Ranges) -> bool {
        if index.is_provably_nonnegative(ranges) {
            return true;
        }
        if self.0.is_empty() || !is_small(index) {
            return false;
        }
        let mut rest = index.clone();
        for fact in &self.0 {
            let Some(times) = multiple(&rest, fact) else { continue };
            let less = rest.add_scaled(fact, -times);
            if is_small(&less) && less.interval(ranges).min > rest.interval(ranges).min {
                rest = less;
            }
        }
        rest.is_provably_nonnegative(ranges)
    }
}

/// What is not negative exactly where a comparison of indices holds, or fails.
fn nonnegative(op: BinaryOp, holds: bool, a: &Index, b: &Index) -> Option<Index> {
    match (op, holds) {
        (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => Some(a - b),
        (BinaryOp::Le, true) | (BinaryOp::Gt, false) => Some(b - a),
        (BinaryOp::Gt, true) | (BinaryOp::Le, false) => Some((a - b).offset(-1)),
        (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => Some((b - a).offset(-1)),
        _ => None,
    }
}

/// The same fact in the smallest numbers: of `2·h - 1` that it is not negative says so of `h - 1`.
fn tightened(fact: Index) -> Index {
    let common = fact.terms().iter().fold(0, |common, term| gcd(common, term.coefficient.unsigned_abs()));
    let Some(common) = i64::try_from(common).ok().filter(|common| *common > 1) else { return fact };
    let terms = fact.terms().iter().cloned().map(|mut term| {
        term.coefficient /= common;
        term
    });
    Index::from_terms(terms, fact.constant_part().div_euclid(common))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether an index is the same all through a branch: made of variables, and not of what is in memory.
fn stays(index: &Index) -> bool {
    index.terms().iter().all(|term| match &term.digit.base {
        Base::Var(_) => true,
        Base::Sum(sum) => stays(sum),
        Base::Lane(_) | Base::Value(_) => false,
    })
}

/// Whether a multiple of an index can be taken from another without an overflow.
fn is_small(index: &Index) -> bool {
    let is_small = |number: i64| number.unsigned_abs() < 1 << 30;
    is_small(index.constant_part()) && index.terms().iter().all(|term| is_small(term.coefficient))
}

/// How many times a fact is in an index: as often as its first term that occurs there is.
fn multiple(index: &Index, fact: &Index) -> Option<i64> {
    let shared = fact.terms().iter().find_map(|own| {
        let other = index.terms().iter().find(|other| other.digit == own.digit)?;
        other.coefficient.checked_div(own.coefficient)
    });
    shared.filter(|times| *times > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::dtype::DType;
    use tilewright_core::ids::{BufferId, VarId};

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
        let before = facts.assume(&inside, true, &Index::clone);
        assert!(facts.prove_nonnegative(&first, &ranges));
        assert!(facts.prove_nonnegative(&last, &ranges));
        assert!(!facts.prove_nonnegative(&first.offset(-3584), &ranges), "a row more is too many");
        facts.forget(before);
        assert!(!facts.prove_nonnegative(&first, &ranges));
    }

    #[test]
    fn sums_of_loops_are_compared_as_a_whole() {
        let (h, v, ranges) = vars();
        let row = &h.scale(8) + &v.scale(2);
        let mut facts = Facts::default();
        facts.assume(&compare(BinaryOp::Ge, &row, 1), true, &Index::clone);
        assert!(facts.prove_nonnegative(&row.scale(112).offset(-224), &ranges), "it is even");
        assert!(!facts.prove_nonnegative(&row.scale(112).offset(-225), &ranges));
    }

    #[test]
    fn what_fails_says_the_opposite_and_either_says_nothing() {
        let (h, _, ranges) = vars();
        let mut facts = Facts::default();
        facts.assume(&compare(BinaryOp::Lt, &h, 3), false, &Index::clone);
        assert!(facts.prove_nonnegative(&h.offset(-3), &ranges));
        let mut facts = Facts::default();
        let either = Expr::binary(BinaryOp::Or, compare(BinaryOp::Ge, &h, 3), compare(BinaryOp::Ge, &h, 5));
        facts.assume(&either, true, &Index::clone);
        assert!(!facts.prove_nonnegative(&h.offset(-3), &ranges));
        facts.assume(&either, false, &Index::clone);
        assert!(facts.prove_nonnegative(&h.scale(-1).offset(2), &ranges));
    }

    #[test]
    fn numbers_that_may_overflow_say_nothing() {
        let (h, _, ranges) = vars();
        let mut facts = Facts::default();
        let far = Expr::index(h.offset(i64::MAX));
        let condition = Expr::binary(BinaryOp::Ge, far, Expr::index(Index::constant(2 - i64::MAX)));
        facts.assume(&condition, true, &Index::clone);
        assert!(facts.is_empty());
        assert!(!facts.prove_nonnegative(&h.offset(-4), &ranges));
    }

    #[test]
    fn what_is_read_from_memory_may_change_in_the_branch() {
        let (h, _, ranges) = vars();
        let loaded = Expr::load(DType::I64, BufferId(0), [h.clone()]);
        let mut facts = Facts::default();
        let condition = Expr::binary(BinaryOp::Ge, loaded.clone(), Expr::index(Index::constant(3)));
        facts.assume(&condition, true, &Index::clone);
        assert!(!facts.prove_nonnegative(&Index::value(loaded).offset(-3), &ranges));
    }
}
