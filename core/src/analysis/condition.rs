//! Conditions on loops and dimensions, as differences.
//!
//! A comparison of indices is kept as one difference that is negative exactly when it holds, so that
//! `a < b`, `b > a` and `a - b + 1 <= 0` are handled alike.

use crate::analysis::access::loads_anything;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind};
use crate::ids::VarId;
use crate::index::{Base, Index, Ranges, Term, greatest_common_divisor};
use crate::simplify::may_fail;
use crate::visit::for_each_var;

/// The difference that is negative exactly when an ordering of indices holds. `None` for other
/// conditions and for those that read memory.
pub(crate) fn difference(condition: &Expr) -> Option<Index> {
    let ExprKind::Binary(op, left, right) = condition.kind() else { return None };
    if left.dtype() != DType::I64 || !is_movable(condition) {
        return None;
    }
    let (left, right) = (Index::value(left.clone()), Index::value(right.clone()));
    match op {
        BinaryOp::Lt => Some(&left - &right),
        BinaryOp::Le => Some((&left - &right).offset(-1)),
        BinaryOp::Gt => Some(&right - &left),
        BinaryOp::Ge => Some((&right - &left).offset(-1)),
        _ => None,
    }
}

/// A difference that is negative exactly when another one is, without the variables of a tile where they change nothing: those of
/// `4·i + j - 8` with `j` below 4, whose sign is that of `4·i - 8`. `None` where they matter, or the difference has none of them.
pub fn without_places_in_tile(
    difference: &Index,
    is_of_tile: &dyn Fn(VarId) -> bool,
    ranges: &Ranges,
) -> Option<Index> {
    let is_of_tile = |term: &&Term| matches!(term.digit.base, Base::Var(var) if is_of_tile(var));
    let (inner, outer): (Vec<&Term>, Vec<&Term>) = difference.terms().iter().partition(is_of_tile);
    let step = outer.iter().fold(0, |step, term| greatest_common_divisor(step, step_of_term(term)));
    if inner.is_empty() || step == 0 {
        return None;
    }
    let within = Index::from_terms(inner.into_iter().cloned(), difference.constant_part());
    let values = within.interval(ranges);
    let (first, last) = (values.min.div_euclid(step), values.max.div_euclid(step));
    let is_bounded = values.is_bounded();
    // The other terms are multiples of the step: only the multiple of it below the rest decides the sign.
    (is_bounded && first == last).then(|| Index::from_terms(outer.into_iter().cloned(), first * step))
}

/// A number that divides all values of a term; 0 if they are all 0.
fn step_of_term(term: &Term) -> i64 {
    let of_digit = match &term.digit.base {
        Base::Value(value) if term.digit.is_whole() => step_of_value(value),
        _ => 1,
    };
    term.coefficient.saturating_abs().saturating_mul(of_digit)
}

fn step_of_value(value: &Expr) -> i64 {
    match value.kind() {
        ExprKind::Constant(Constant::Int(value)) => value.saturating_abs(),
        ExprKind::Index(index) => {
            let terms = index.terms().iter().map(step_of_term);
            terms.fold(index.constant_part().saturating_abs(), greatest_common_divisor)
        }
        ExprKind::Binary(BinaryOp::Min | BinaryOp::Max, a, b) => {
            greatest_common_divisor(step_of_value(a), step_of_value(b))
        }
        _ => 1,
    }
}

/// Whether a condition depends on loops and dimensions only, so that it may be decided elsewhere.
pub(crate) fn is_movable(condition: &Expr) -> bool {
    !loads_anything(condition) && !may_fail(condition)
}

/// Whether an expression mentions a variable, also inside indices.
pub(crate) fn mentions(expr: &Expr, var: VarId) -> bool {
    let mut found = false;
    for_each_var(expr, &mut |other| found |= other == var);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_minima_and_maxima_have_the_step_of_both() {
        let (outer, tile) = (VarId(0), VarId(1));
        let mut ranges = Ranges::new();
        ranges.insert_constant(tile, 4);
        let is_dropped = |step: i64, other: i64| {
            let largest = Index::var(outer).scale(step).maximum(&Index::constant(other));
            let difference = &largest + &Index::var(tile);
            without_places_in_tile(&difference, &|var| var == tile, &ranges).is_some()
        };
        assert!(is_dropped(12, 0) && is_dropped(-12, 4) && is_dropped(8, -12));
        assert!(!is_dropped(6, 4) && !is_dropped(12, 3) && !is_dropped(12, 2));
    }

    #[test]
    fn places_in_a_tile_are_dropped_where_they_change_no_sign() {
        let (outer, tile) = (VarId(0), VarId(1));
        for (step, extent) in [(1, 1), (2, 2), (4, 2), (4, 4), (6, 3), (3, 4)] {
            for constant in -13..13 {
                let difference = &Index::var(outer).scale(step) + &Index::var(tile).offset(constant);
                let mut ranges = Ranges::new();
                ranges.insert_constant(tile, extent);
                let shorter = without_places_in_tile(&difference, &|var| var == tile, &ranges);
                let at = |index: &Index, i: i64, j: i64| {
                    let place = |var| Some(Index::constant(if var == outer { i } else { j }));
                    index.substitute(&place).as_constant().unwrap()
                };
                let is_same = |i: i64| {
                    let signs = (0..extent).map(|j| at(&difference, i, j) < 0);
                    signs.clone().all(|sign| Some(sign) == signs.clone().next())
                };
                let all_same = (-20..20).all(is_same);
                assert_eq!(shorter.is_some(), all_same, "{difference:?}, {extent}");
                for (i, shorter) in (-20..20).flat_map(|i| shorter.as_ref().map(|shorter| (i, shorter))) {
                    assert!(!shorter.mentions(tile));
                    assert_eq!(at(shorter, i, 0) < 0, at(&difference, i, 0) < 0, "{difference:?} at {i}");
                }
            }
        }
    }
}
