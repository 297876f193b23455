//! Simplification of indices under the ranges of their variables.
//!
//! The canonical form holds for all values of the variables. This module uses their ranges as well, to
//! drop moduli and divisions that have no effect and to split dividends:
//!
//! | with | from | to |
//! |---|---|---|
//! | `x < 8` | `x % 8`, `x / 8` | `x`, `0` |
//! | `y < 8` | `(8·x + y) / 16` | `x / 2` |
//! | `y < 8` | `(8·x + y) % 16` | `8·(x % 2) + y` |
//! | `j < M` | `(i·M + j) / M`, `(i·M + j) % M` | `i`, `j` |

use smallvec::SmallVec;

use super::{Base, Digit, Index, NO_MODULUS, Ranges, Term, greatest_common_divisor};
use crate::expr::{BinaryOp, Expr, ExprKind};

/// The number of rounds of rewriting. Each removes a division, a modulus or a
/// variable, so that real indices need two or three.
const MAX_ROUNDS: usize = 16;

impl Index {
    /// An equal index, for all values of the variables in their ranges, without redundant divisions,
    /// moduli and variables of a single value. Simplifying twice changes nothing more.
    pub fn simplify(&self, ranges: &Ranges) -> Index {
        self.simplified(ranges).unwrap_or_else(|| self.clone())
    }

    /// As [`Index::simplify`], with `None` when nothing changes.
    pub fn simplified(&self, ranges: &Ranges) -> Option<Index> {
        let mut current = simplify_terms(self, ranges)?;
        for _ in 0..MAX_ROUNDS {
            match simplify_terms(&current, ranges) {
                Some(next) if next != current => current = next,
                _ => break,
            }
        }
        (current != *self).then_some(current)
    }
}

/// One round over the terms; `None` when no rule applies.
fn simplify_terms(index: &Index, ranges: &Ranges) -> Option<Index> {
    let first = index.terms.iter().position(|term| may_simplify(&term.digit, ranges))?;
    let mut kept: SmallVec<[Term; 4]> = index.terms[..first].iter().cloned().collect();
    let mut sum = Index::constant(index.constant);
    let mut changed = false;
    for term in &index.terms[first..] {
        match simplify_digit(&term.digit, ranges) {
            Some(digit) => {
                changed = true;
                sum = sum.add_scaled(&digit, term.coefficient);
            }
            None => kept.push(term.clone()),
        }
    }
    if !changed {
        return recombine(index);
    }
    Some(Index::from_terms(kept.into_iter().chain(sum.terms), sum.constant))
}

/// `g / 3 + (4·v + g % 3) / 3 = (4·v + g) / 3`: terms that were divided separately are joined where their
/// digits join.
fn recombine(index: &Index) -> Option<Index> {
    for (at, term) in index.terms.iter().enumerate() {
        let (Base::Sum(sum), NO_MODULUS) = (&term.digit.base, term.digit.modulus) else { continue };
        for (other_at, other) in index.terms.iter().enumerate() {
            let shares = |part: &Term| part.digit.base == other.digit.base;
            let whole = other.coefficient.checked_rem(term.coefficient) == Some(0);
            if other_at == at || !whole || !sum.terms.iter().any(shares) {
                continue;
            }
            let factor = term.digit.divisor.checked_mul(other.coefficient / term.coefficient)?;
            let joined = sum.add_scaled(&Index::digit(other.digit.clone()), factor);
            if joined.terms.len() <= sum.terms.len() {
                let rest = index.without_term(at.max(other_at)).without_term(at.min(other_at));
                return Some(rest.add_scaled(&joined.floor_div(term.digit.divisor), term.coefficient));
            }
        }
    }
    None
}

/// A quick exclusion of the common case, a whole variable of more than one value.
fn may_simplify(digit: &Digit, ranges: &Ranges) -> bool {
    match &digit.base {
        Base::Var(var) if digit.is_whole() => ranges.interval(*var).as_constant().is_some(),
        Base::Lane(_) if digit.is_whole() => false,
        _ => true,
    }
}

fn simplify_digit(digit: &Digit, ranges: &Ranges) -> Option<Index> {
    let rebased = match &digit.base {
        Base::Var(_) | Base::Lane(_) => None,
        Base::Sum(sum) => simplify_terms(sum, ranges),
        Base::Value(value) => simplify_value(value, ranges),
    };
    if let Some(base) = rebased {
        return Some(base.take_digit(digit.divisor, digit.modulus));
    }
    let base = digit.base.interval(ranges);
    if let Some(value) = digit.interval_over(base).as_constant() {
        // A check of an index that depends on data must stay.
        let checked = matches!(&digit.base, Base::Value(value) if crate::simplify::may_fail(value));
        return (!checked).then(|| Index::constant(value));
    }
    if digit.modulus != NO_MODULUS
        && let Some(period) = base.floor_div(digit.divisor).period(digit.modulus)
    {
        let quotient = digit.base.to_index().floor_div(digit.divisor);
        return Some(quotient.offset(-(period * digit.modulus)));
    }
    match &digit.base {
        Base::Sum(sum) => split_sum(sum, digit, ranges).or_else(|| drop_inner_moduli(sum, digit)),
        _ => None,
    }
}

/// `(4·v + g % 3) % 3 = (4·v + g) % 3`: a remainder does not change multiples of the modulus.
fn drop_inner_moduli(sum: &Index, digit: &Digit) -> Option<Index> {
    if digit.modulus == NO_MODULUS {
        return None;
    }
    let period = digit.divisor.checked_mul(digit.modulus)?;
    // Beside other digits of its base it keeps its place in the mixed-radix number.
    let is_alone =
        |term: &Term| sum.terms.iter().filter(|other| other.digit.base == term.digit.base).count() == 1;
    let has_no_effect = |term: &Term| {
        term.digit.modulus != NO_MODULUS
            && is_alone(term)
            && term.digit.modulus.checked_mul(term.coefficient).is_some_and(|step| step % period == 0)
    };
    if !sum.terms.iter().any(has_no_effect) {
        return None;
    }
    let free = sum.terms.iter().fold(Index::constant(sum.constant), |free, term| {
        let modulus = if has_no_effect(term) { NO_MODULUS } else { term.digit.modulus };
        free.add_scaled(&term.digit.base.to_index().take_digit(term.digit.divisor, modulus), term.coefficient)
    });
    Some(free.take_digit(digit.divisor, digit.modulus))
}

/// Splits `sum = g·A + R`, where `R` stays within one period of `g` and `g` divides the divisor
/// (`sum / d = A / (d / g)`) or, without divisor, the modulus (`sum % m = g·(A % (m / g)) + R`).
fn split_sum(sum: &Index, digit: &Digit, ranges: &Ranges) -> Option<Index> {
    let whole = if digit.divisor > 1 { digit.divisor } else { digit.modulus };
    let mut factors: SmallVec<[i64; 4]> =
        sum.terms.iter().map(|term| greatest_common_divisor(term.coefficient, whole)).collect();
    factors.sort_unstable_by(|a, b| b.cmp(a));
    factors.dedup();
    for factor in factors.into_iter().filter(|factor| *factor > 1) {
        let (multiple, rest) = sum.split_multiples(factor);
        let Some(period) = rest.interval(ranges).period(factor) else { continue };
        let multiple = multiple.divide_exactly(factor).offset(period);
        if digit.divisor > 1 {
            return Some(multiple.take_digit(digit.divisor / factor, digit.modulus));
        }
        let high = multiple.modulo(digit.modulus / factor);
        return Some(rest.offset(-(period * factor)).add_scaled(&high, factor));
    }
    None
}

/// Simplifies a value that is not affine, whole or in its operands.
fn simplify_value(value: &Expr, ranges: &Ranges) -> Option<Index> {
    if let ExprKind::Binary(op @ (BinaryOp::Div | BinaryOp::Rem), a, b) = value.kind()
        && let Some(simple) = divide_symbolically(*op, a, b, ranges)
    {
        return Some(simple);
    }
    // The factors of a product may be quotients, which only this file simplifies.
    if let ExprKind::Binary(BinaryOp::Mul, a, b) = value.kind()
        && !crate::simplify::may_fail(value)
    {
        let simple = |factor: &Expr| simplify_value(factor, ranges);
        let (left, right) = (simple(a), simple(b));
        return (left.is_some() || right.is_some()).then(|| {
            let left = left.unwrap_or_else(|| Index::value(a.clone()));
            left.multiply(&right.unwrap_or_else(|| Index::value(b.clone())))
        });
    }
    crate::simplify::simplify_expr(value, ranges).map(Index::value)
}

/// `(q·b + r) / b = q` and `(q·b + r) % b = r` where `0 <= r < b`.
fn divide_symbolically(op: BinaryOp, a: &Expr, b: &Expr, ranges: &Ranges) -> Option<Index> {
    let (numerator, divisor) = (Index::value(a.clone()), Index::value(b.clone()));
    let mut quotient = Index::constant(0);
    let mut rest = Index::constant(numerator.constant);
    for term in &numerator.terms {
        let term = Index::from_terms([term.clone()], 0);
        match term.divide_by_factor(&divisor) {
            Some(part) => quotient = &quotient + &part,
            None => rest = &rest + &term,
        }
    }
    let fits = quotient.is_provably_nonnegative(ranges)
        && rest.is_provably_nonnegative(ranges)
        && rest.is_provably_less(&divisor, ranges);
    fits.then(|| if op == BinaryOp::Div { quotient } else { rest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::VarId;

    fn x() -> Index {
        Index::var(VarId(0))
    }

    fn y() -> Index {
        Index::var(VarId(1))
    }

    fn ranges(x: Index, y: Index) -> Ranges {
        [(VarId(0), x), (VarId(1), y)].into_iter().collect()
    }

    #[track_caller]
    fn check(index: Index, extents: (i64, i64), expected: Index) {
        let ranges = ranges(Index::constant(extents.0), Index::constant(extents.1));
        assert_eq!(index.simplify(&ranges), expected, "from {index:?}");
    }

    #[test]
    fn redundant_digits_go() {
        check(x().modulo(8), (8, 1), x());
        check(x().floor_div(8), (8, 1), Index::constant(0));
        check(x().offset(8).modulo(16), (8, 1), x().offset(8));
        check(x().offset(17).floor_div(16), (8, 1), Index::constant(1));
        check(&x().modulo(8) + &y(), (5, 1), x());
        check(x().floor_div(4).modulo(2), (8, 1), x().floor_div(4));
    }

    #[test]
    fn sums_are_split() {
        let tile = x().scale(8).add_scaled(&y(), 1);
        check(tile.floor_div(8), (9, 8), x());
        check(tile.modulo(8), (9, 8), y());
        check(tile.floor_div(16), (9, 8), x().floor_div(2));
        check(tile.modulo(16), (9, 8), x().modulo(2).scale(8).add_scaled(&y(), 1));
        check(tile.floor_div(4), (9, 8), x().scale(2).add_scaled(&y().floor_div(4), 1));
        check(tile.floor_div(16).modulo(3), (9, 8), x().floor_div(2).modulo(3));
    }

    #[test]
    fn quotients_by_a_dimension_are_split() {
        let m = Index::var(VarId(9));
        let flat = &x().multiply(&m) + &y();
        let ranges = ranges(Index::constant(6), m.clone());
        assert_eq!(flat.divide(&m).simplify(&ranges), x());
        assert_eq!(flat.remainder(&m).simplify(&ranges), y());
        assert_eq!(flat.divide(&m).multiply(&m).simplify(&ranges), x().multiply(&m));
    }

    #[test]
    fn what_was_divided_apart_is_joined() {
        let apart = x().floor_div(3).add_scaled(&y().scale(4).add_scaled(&x().modulo(3), 1).floor_div(3), 1);
        check(apart, (9, 9), y().scale(4).add_scaled(&x(), 1).floor_div(3));
        check(x().modulo(4).add_scaled(&x().floor_div(4).modulo(3), 4), (12, 1), x());
    }
}
