//! Comparisons of indices that hold for every value of their variables.
//!
//! [`Index::is_provably_nonnegative`] and the methods that use it eliminate the variables that have a range
//! ([`super::bounds`]), and decide the rest, which mentions dimensions only: choices are split into cases, and
//! quotients are replaced by rational ones so that they cancel. Where that fails, choices are split before the variables in them are
//! eliminated, so that these cancel, too: peeled loops begin at `max(0, 3 - i)`. Sound and not complete.

use super::bounds::{EmptyRanges, Side, eliminate_once};
use super::{Base, Digit, Index, NO_MODULUS, Ranges, Term};
use crate::expr::{BinaryOp, Expr, ExprKind};

/// The number of quotients and choices that a proof may split.
const MAX_RELAXATIONS: u32 = 4;

impl Index {
    /// Whether the index is at least 0 for all values of its variables. `false` means "not proved".
    pub fn is_provably_nonnegative(&self, ranges: &Ranges) -> bool {
        is_nonnegative_after_elimination(self, ranges)
            || (may_hold_choice(self, ranges) && is_nonnegative_in_cases(self, ranges, MAX_RELAXATIONS))
    }

    /// Whether the index is less than `other` for all values of the variables. `false` means "not proved".
    pub fn is_provably_less(&self, other: &Index, ranges: &Ranges) -> bool {
        if let (Some(a), Some(b)) = (self.as_constant(), other.as_constant()) {
            return a < b;
        }
        (other - self).offset(-1).is_provably_nonnegative(ranges)
    }

    /// Whether the index is at most `other` for all values of the variables. `false` means "not proved".
    pub fn is_provably_at_most(&self, other: &Index, ranges: &Ranges) -> bool {
        if let (Some(a), Some(b)) = (self.as_constant(), other.as_constant()) {
            return a <= b;
        }
        (other - self).is_provably_nonnegative(ranges)
    }
}

/// Whether the index is at least 0, decided when all variables with a range have been eliminated.
fn is_nonnegative_after_elimination(index: &Index, ranges: &Ranges) -> bool {
    if index.interval(ranges).min >= 0 {
        return true;
    }
    if index.terms.is_empty() {
        return false;
    }
    match index.lower_bound(ranges) {
        Some(lower) => is_nonnegative_in_dims(&lower, ranges, MAX_RELAXATIONS),
        None => false,
    }
}

/// Whether an index or the extent of a range has parts that are no sums; without these, there are no cases to tell apart.
fn may_hold_choice(index: &Index, ranges: &Ranges) -> bool {
    holds_value(index) || ranges.symbolic_extents().any(holds_value)
}

fn holds_value(index: &Index) -> bool {
    index.terms.iter().any(|term| match &term.digit.base {
        Base::Value(_) => true,
        Base::Sum(sum) => holds_value(sum),
        Base::Var(_) | Base::Lane(_) => false,
    })
}

/// Whether the index is at least 0, decided by the cases of choices that still mention variables with a range.
fn is_nonnegative_in_cases(index: &Index, ranges: &Ranges, depth: u32) -> bool {
    if depth == 0 {
        return false;
    }
    let holds = |case: &Index| {
        is_nonnegative_after_elimination(case, ranges) || is_nonnegative_in_cases(case, ranges, depth - 1)
    };
    if let Some(decided) = split_on_choice(index, holds) {
        return decided;
    }
    match eliminate_once(index, Side::Lower, ranges, EmptyRanges::Ignored) {
        Some(next) if next != *index => is_nonnegative_in_cases(&next, ranges, depth - 1),
        _ => false,
    }
}

/// Whether an index over dimensions alone is at least 0 for all their values.
fn is_nonnegative_in_dims(index: &Index, ranges: &Ranges, depth: u32) -> bool {
    if index.interval(ranges).min >= 0 {
        return true;
    }
    if depth == 0 {
        return false;
    }
    if let Some(decided) = split_on_choice(index, |case| is_nonnegative_in_dims(case, ranges, depth - 1)) {
        return decided;
    }
    cancel_quotients(index).is_some_and(|lower| is_nonnegative_in_dims(&lower, ranges, depth - 1))
        || relax_quotients(index).is_some_and(|relaxed| is_nonnegative_in_dims(&relaxed, ranges, depth - 1))
}

/// A lower bound of the index without a difference of quotients: `a / d + k - b / d` is at least 0 where `b - a <= k·d`.
fn cancel_quotients(index: &Index) -> Option<Index> {
    if !index.has_small_numbers() {
        return None;
    }
    let quotients = || {
        let is_quotient = |term: &&Term| term.digit.modulus == NO_MODULUS && term.digit.divisor > 1;
        index.terms.iter().filter(is_quotient).map(|term| (term, term.digit.base.to_index()))
    };
    for (subtracted, b) in quotients().filter(|(term, _)| term.coefficient < 0) {
        let divisor = subtracted.digit.divisor;
        for (added, a) in
            quotients().filter(|(term, _)| term.coefficient > 0 && term.digit.divisor == divisor)
        {
            if !a.has_small_numbers() || !b.has_small_numbers() {
                continue;
            }
            let Some(more) = (&b - &a).as_constant() else { continue };
            let count = added.coefficient.min(-subtracted.coefficient);
            let steps = more.max(0) / divisor + i64::from(more.max(0) % divisor > 0);
            let difference = &Index::digit(added.digit.clone()) - &Index::digit(subtracted.digit.clone());
            return Some(index.add_scaled(&difference, -count).offset(-(steps * count)));
        }
    }
    None
}

/// Splits a minimum or maximum into cases: a positive minimum needs both cases, a positive maximum one. `None` without one.
fn split_on_choice(index: &Index, holds: impl Fn(&Index) -> bool) -> Option<bool> {
    let (at, needs_both, a, b) = index.terms.iter().enumerate().find_map(|(at, term)| {
        let Base::Value(value) = &term.digit.base else { return None };
        match value.kind() {
            ExprKind::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) if term.digit.is_whole() => {
                Some((at, (*op == BinaryOp::Min) == (term.coefficient > 0), a, b))
            }
            _ => None,
        }
    })?;
    let coefficient = index.terms[at].coefficient;
    let rest = index.without_term(at);
    let holds = |operand: &Expr| holds(&rest.add_scaled(&Index::value(operand.clone()), coefficient));
    Some(if needs_both { holds(a) && holds(b) } else { holds(a) || holds(b) })
}

/// A multiple of a lower bound of the index, in which a quotient `b / d` is replaced by the rational
/// `b / d` (for a negative coefficient) or `(b - d + 1) / d`, so that it can cancel against `b`.
fn relax_quotients(index: &Index) -> Option<Index> {
    // The outermost quotient first: `2·((X + 1) / 2) - X` is settled without looking into `X`.
    let quotients = index
        .terms
        .iter()
        .enumerate()
        .filter(|(_, term)| term.digit.modulus == NO_MODULUS && term.digit.divisor > 1);
    let (at, _) = quotients.max_by_key(|(_, term)| nesting(&term.digit))?;
    let Term { digit, coefficient } = &index.terms[at];
    let common = super::greatest_common_divisor(digit.divisor, *coefficient);
    let (factor, weight) = (digit.divisor / common, coefficient / common);
    let largest = index.terms.iter().map(|term| term.coefficient.unsigned_abs()).max().unwrap_or(0);
    // Beyond this, products of coefficients could overflow.
    if largest.max(digit.divisor as u64).max(index.constant.unsigned_abs()) > 1 << 30 {
        return None;
    }
    let rest = index.without_term(at);
    let base = digit.base.to_index();
    let base = if *coefficient > 0 { base.offset(1 - digit.divisor) } else { base };
    Some(rest.scale(factor).add_scaled(&base, weight))
}

/// The number of sums that are nested in one another.
fn nesting(digit: &Digit) -> u32 {
    match &digit.base {
        Base::Sum(sum) => 1 + sum.terms.iter().map(|term| nesting(&term.digit)).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::VarId;

    const I: VarId = VarId(0);
    const J: VarId = VarId(1);
    const K: VarId = VarId(2);

    fn m() -> Index {
        Index::var(VarId(8))
    }

    fn n() -> Index {
        Index::var(VarId(9))
    }

    fn over(entries: &[(VarId, Index)]) -> Ranges {
        entries.iter().cloned().collect()
    }

    fn eight() -> Index {
        Index::constant(8)
    }

    #[test]
    fn symbolic_extents_are_compared() {
        let ranges = over(&[(I, m()), (J, n())]);
        assert!(Index::var(I).is_provably_less(&m(), &ranges));
        assert!(!Index::var(I).is_provably_less(&n(), &ranges));
        let flat = &Index::var(I).multiply(&n()) + &Index::var(J);
        assert!(flat.is_provably_less(&m().multiply(&n()), &ranges));
        assert!(!flat.offset(1).is_provably_less(&m().multiply(&n()), &ranges));
        assert!(m().offset(-1).add_scaled(&Index::var(I), -1).is_provably_nonnegative(&ranges));
    }

    #[test]
    fn tiles_of_a_symbolic_extent() {
        let tile = Index::var(I).scale(8).add_scaled(&Index::var(J), 1);
        let whole = over(&[(I, m().floor_div(8)), (J, eight())]);
        assert!(tile.is_provably_less(&m(), &whole));
        let padded = over(&[(I, m().ceil_div(8)), (J, eight())]);
        assert!(!tile.is_provably_less(&m(), &padded));
        assert!(tile.is_provably_less(&m().offset(7), &padded));
        assert!(tile.is_provably_less(&m().ceil_div(8).scale(8), &padded));
        let tail = eight().minimum(&m().add_scaled(&Index::var(I), -8));
        let exact = over(&[(I, m().ceil_div(8)), (J, tail)]);
        assert!(tile.is_provably_less(&m(), &exact), "{:?}", tile.upper_bound(&exact));
    }

    #[test]
    fn the_last_tile_and_what_is_left_of_it() {
        let row = &Index::var(I).scale(8) + &Index::var(J);
        let ranges = over(&[(I, m().ceil_div(8)), (J, m().modulo(8))]);
        assert!(row.is_provably_less(&m(), &ranges));
        assert!(!row.offset(1).is_provably_less(&m(), &ranges));
        let ranges = over(&[(I, m().offset(8).ceil_div(8)), (J, m().modulo(8))]);
        assert!(!row.is_provably_less(&m(), &ranges), "a tile more");
        assert!(row.is_provably_less(&m().offset(8), &ranges));
    }

    #[test]
    fn quotients_by_a_dimension() {
        let ranges = over(&[(K, m().multiply(&n()))]);
        assert!(Index::var(K).divide(&n()).is_provably_less(&m(), &ranges));
        assert!(!Index::var(K).divide(&m()).is_provably_less(&m(), &ranges));
        assert!(Index::var(K).remainder(&m()).is_provably_less(&m(), &ranges));
        let unrelated = over(&[(K, eight())]);
        assert!(!Index::var(K).remainder(&m()).is_provably_less(&m(), &unrelated), "0 % 0 is 0");
    }

    /// Tile `I` of 56 rows, of a plane of 224 with three rows of padding around it, of which the loop over `J` leaves out the padding.
    #[test]
    fn rows_behind_padding_that_was_peeled() {
        let tile = Index::var(I).scale(56);
        let padding = Index::constant(0).maximum(&Index::constant(3).add_scaled(&tile, -1));
        let rows = Index::constant(227).add_scaled(&tile, -1).add_scaled(&padding, -1);
        let rows = rows.minimum(&Index::constant(61).add_scaled(&padding, -1));
        let ranges = over(&[(I, Index::constant(4)), (J, rows)]);
        let row = (&(&tile + &padding) + &Index::var(J)).offset(-3);
        assert!(row.is_provably_nonnegative(&ranges));
        assert!(row.is_provably_less(&Index::constant(224), &ranges));
        assert!(row.scale(224).is_provably_less(&Index::constant(224 * 223 + 1), &ranges));
        assert!(!row.offset(-1).is_provably_nonnegative(&ranges));
        assert!(!row.is_provably_less(&Index::constant(223), &ranges));
    }

    /// As above, for a plane of 14 and padding of 12, which may leave a tile no row at all.
    #[test]
    fn rows_of_tiles_that_may_be_padding_as_a_whole() {
        let tile = &Index::var(I).scale(7) + &Index::var(K).scale(12);
        let zero = Index::constant(0);
        let padding = zero.maximum(&Index::constant(12).add_scaled(&tile, -1));
        let inside = Index::constant(26).add_scaled(&tile, -1).add_scaled(&padding, -1);
        let rows = zero.maximum(&inside).minimum(&zero.maximum(&Index::constant(7).add_scaled(&padding, -1)));
        let two = Index::constant(2);
        let ranges = over(&[(I, two.clone()), (K, two.offset(1)), (J, rows)]);
        let row = (&(&tile + &padding) + &Index::var(J)).offset(-12);
        assert!(row.is_provably_nonnegative(&ranges));
        assert!(row.is_provably_less(&Index::constant(14), &ranges));
        assert!(!row.is_provably_less(&Index::constant(13), &ranges));
    }
}
