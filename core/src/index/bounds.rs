//! Bounds of indices under the ranges of their variables.
//!
//! [`Index::lower_bound`] and [`Index::upper_bound`] eliminate variables and stay symbolic in the
//! others (regions of a tile in terms of the loops around it). They are sound and not complete.
//! Numeric intervals are in [`super::interval`], comparisons in [`super::comparison`].

use smallvec::SmallVec;

use super::{Base, Digit, Index, NO_MODULUS, Ranges, Term};
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::ids::VarId;

/// Which of the two bounds is sought.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Lower,
    Upper,
}

/// Whether a bound holds where the range of a variable is empty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EmptyRanges {
    /// It does: the extent of a shape is at least 0, although no index reaches into it.
    Bounded,
    /// It need not: the index that it bounds is never computed then.
    Ignored,
}

impl Side {
    /// The bound of a factor that this bound of its product with `coefficient` needs.
    fn under(self, coefficient: i64) -> Side {
        match (self, coefficient >= 0) {
            (side, true) => side,
            (Side::Lower, false) => Side::Upper,
            (Side::Upper, false) => Side::Lower,
        }
    }
}

type Vars = SmallVec<[VarId; 8]>;

/// Elimination of the variables of `over` that are not in `waiting`.
struct Elimination<'a> {
    over: &'a Ranges,
    /// Variables that the extent of another variable still mentions: they go in a later pass, so that
    /// `8·i + j` with `j < min(8, M - 8·i)` is bounded by `M - 1`.
    waiting: Vars,
    empty: EmptyRanges,
}

impl Index {
    /// A value that the index never falls below, free of the variables that have a range in `over`
    /// and symbolic in the others. `None` when there is none or it is not found.
    pub fn lower_bound(&self, over: &Ranges) -> Option<Index> {
        bound(self, Side::Lower, over)
    }

    /// A value that the index never exceeds, free of the variables that have a range in `over` and
    /// symbolic in the others. `None` when there is none or it is not found.
    pub fn upper_bound(&self, over: &Ranges) -> Option<Index> {
        bound(self, Side::Upper, over)
    }
}

/// The variables of `over` in an index, each once.
fn present(index: &Index, over: &Ranges) -> Vars {
    let mut vars = Vars::new();
    index.for_each_var(&mut |var| {
        if over.contains(var) && !vars.contains(&var) {
            vars.push(var);
        }
    });
    vars
}

/// How many times extents that depend on other variables may be put in before giving up.
const MAX_PASSES: usize = 32;

fn bound(index: &Index, side: Side, over: &Ranges) -> Option<Index> {
    let mut bounded = eliminate_once(index, side, over, EmptyRanges::Bounded)?;
    for _ in 0..MAX_PASSES {
        if present(&bounded, over).is_empty() {
            return Some(bounded);
        }
        bounded = eliminate_once(&bounded, side, over, EmptyRanges::Bounded)?;
    }
    None
}

/// Eliminates the variables that no other present variable's extent mentions.
pub(super) fn eliminate_once(index: &Index, side: Side, over: &Ranges, empty: EmptyRanges) -> Option<Index> {
    let vars = present(index, over);
    if vars.is_empty() && !index_reads_memory(index) {
        return Some(index.clone());
    }
    let waiting: Vars = vars
        .iter()
        .copied()
        .filter(|&var| {
            let outlives = |other: &VarId| *other != var && over.extent_mentions(*other, var);
            vars.iter().any(outlives)
        })
        .collect();
    if waiting.len() == vars.len() && !vars.is_empty() {
        return None;
    }
    Elimination { over, waiting, empty }.bound_sum(index, side)
}

/// The extent of a range that is not empty: `max(0, x)` is `x` there.
fn where_it_runs(extent: &Index) -> Index {
    let [term] = extent.terms() else { return extent.clone() };
    let Base::Value(value) = &term.digit.base else { return extent.clone() };
    if term.coefficient != 1 || extent.constant_part() != 0 || !term.digit.is_whole() {
        return extent.clone();
    }
    let index = |operand: &Expr| Index::value(operand.clone());
    let is_none = |operand: &Expr| index(operand).as_constant().is_some_and(|constant| constant <= 0);
    match value.kind() {
        ExprKind::Binary(BinaryOp::Max, a, b) if is_none(a) => where_it_runs(&index(b)),
        ExprKind::Binary(BinaryOp::Max, a, b) if is_none(b) => where_it_runs(&index(a)),
        ExprKind::Binary(BinaryOp::Min, a, b) => where_it_runs(&index(a)).minimum(&where_it_runs(&index(b))),
        _ => extent.clone(),
    }
}

impl Elimination<'_> {
    fn eliminates(&self, var: VarId) -> bool {
        self.over.contains(var) && !self.waiting.contains(&var)
    }

    fn touches(&self, digit: &Digit) -> bool {
        match &digit.base {
            Base::Var(var) => self.eliminates(*var),
            Base::Lane(_) => false,
            Base::Sum(sum) => sum.terms.iter().any(|term| self.touches(&term.digit)),
            Base::Value(value) => {
                let mut found = reads_memory(value);
                crate::visit::for_each_var(value, &mut |var| found |= self.eliminates(var));
                found
            }
        }
    }

    fn bound_sum(&self, index: &Index, side: Side) -> Option<Index> {
        let alternatives = index
            .terms
            .iter()
            .position(|term| self.touches(&term.digit) && operands_to_choose(term, side).is_some());
        if let Some(at) = alternatives {
            return self.bound_alternatives(index, at, side);
        }
        let mut kept = Index::constant(index.constant);
        let mut bounded: Option<Index> = None;
        for term in &index.terms {
            if !self.touches(&term.digit) {
                // The remaining terms are a canonical sum, because the digits of one base stay or go together.
                kept.terms.push(term.clone());
                continue;
            }
            let digit = self.bound_digit(&term.digit, side.under(term.coefficient))?;
            match digit.as_constant() {
                Some(value) => {
                    kept.constant = kept.constant.saturating_add(value.saturating_mul(term.coefficient));
                }
                None => {
                    let sum = bounded.unwrap_or_default();
                    bounded = Some(sum.add_scaled(&digit, term.coefficient));
                }
            }
        }
        Some(match bounded {
            Some(bounded) => &kept + &bounded,
            None => kept,
        })
    }

    /// The upper bound of `rest + min(a, b)` is that of `rest + a` and that of `rest + b`: whichever
    /// cancels better. Likewise for the lower bound of a maximum.
    fn bound_alternatives(&self, index: &Index, at: usize, side: Side) -> Option<Index> {
        let term = &index.terms[at];
        let (a, b) = operands_to_choose(term, side)?;
        let rest = index.without_term(at);
        let choose = |operand: &Expr| {
            bound(&rest.add_scaled(&Index::value(operand.clone()), term.coefficient), side, self.over)
        };
        match (choose(a), choose(b)) {
            (Some(a), Some(b)) if side == Side::Upper => Some(a.minimum(&b)),
            (Some(a), Some(b)) => Some(a.maximum(&b)),
            (a, b) => a.or(b),
        }
    }

    fn bound_digit(&self, digit: &Digit, side: Side) -> Option<Index> {
        if digit.modulus == NO_MODULUS {
            return Some(self.bound_base(&digit.base, side)?.floor_div(digit.divisor));
        }
        let quotient = digit.base.interval(self.over).floor_div(digit.divisor);
        match quotient.period(digit.modulus) {
            Some(period) => {
                let bounded = self.bound_base(&digit.base, side)?.floor_div(digit.divisor);
                Some(bounded.offset(-(period * digit.modulus)))
            }
            None => Some(Index::constant(if side == Side::Lower { 0 } else { digit.modulus - 1 })),
        }
    }

    fn bound_base(&self, base: &Base, side: Side) -> Option<Index> {
        match base {
            Base::Var(var) => match (self.eliminates(*var), side) {
                (false, _) => Some(Index::var(*var)),
                (true, Side::Lower) => Some(Index::constant(0)),
                (true, Side::Upper) => {
                    let extent = self.over.extent(*var)?;
                    let extent =
                        if self.empty == EmptyRanges::Bounded { extent } else { where_it_runs(&extent) };
                    Some(extent.offset(-1))
                }
            },
            Base::Lane(lanes) => Some(Index::lane(*lanes)),
            Base::Sum(sum) => self.bound_sum(sum, side),
            Base::Value(value) => self.bound_value(value, side).or_else(|| {
                let interval = super::interval::value_interval(value, self.over);
                match side {
                    Side::Lower => (interval.min != i64::MIN).then(|| Index::constant(interval.min)),
                    Side::Upper => (interval.max != i64::MAX).then(|| Index::constant(interval.max)),
                }
            }),
        }
    }

    /// The bound of a value that is not affine, where its structure gives one.
    fn bound_value(&self, value: &Expr, side: Side) -> Option<Index> {
        if !self.touches(&Digit::whole(Base::Value(value.clone()))) {
            return Some(Index::value(value.clone()));
        }
        let of = |operand: &Expr, side: Side| self.bound_sum(&Index::value(operand.clone()), side);
        match value.kind() {
            ExprKind::Index(index) => self.bound_sum(index, side),
            ExprKind::Bounded(_, _) if side == Side::Lower => Some(Index::constant(0)),
            ExprKind::Bounded(_, extent) => Some(self.bound_sum(extent, side)?.offset(-1)),
            ExprKind::Binary(BinaryOp::Min, a, b) => Some(of(a, side)?.minimum(&of(b, side)?)),
            ExprKind::Binary(BinaryOp::Max, a, b) => Some(of(a, side)?.maximum(&of(b, side)?)),
            ExprKind::Select(_, a, b) if side == Side::Lower => Some(of(a, side)?.minimum(&of(b, side)?)),
            ExprKind::Select(_, a, b) => Some(of(a, side)?.maximum(&of(b, side)?)),
            ExprKind::Binary(BinaryOp::Mul, a, b) => self.bound_product(a, b, side),
            ExprKind::Binary(BinaryOp::Div, a, b) => self.bound_quotient(a, b, side),
            ExprKind::Binary(BinaryOp::Rem, a, b) => {
                if !self.is_nonnegative(a) || !self.is_nonnegative(b) {
                    return None;
                }
                match side {
                    Side::Lower => Some(Index::constant(0)),
                    Side::Upper if self.is_positive_divisor(a, b) => Some(of(b, side)?.offset(-1)),
                    // A remainder by zero is zero.
                    Side::Upper => Some(of(b, side)?.offset(-1).maximum(&Index::constant(0))),
                }
            }
            _ => None,
        }
    }

    fn is_nonnegative(&self, operand: &Expr) -> bool {
        Index::value(operand.clone()).is_provably_nonnegative(self.over)
    }

    /// Whether `b`, which is not negative, is at least 1 wherever the variables of `a` have values: because
    /// of its interval, or because it is a factor of the number of values that one of them has.
    fn is_positive_divisor(&self, a: &Expr, b: &Expr) -> bool {
        let divisor = Index::value(b.clone());
        let mut positive = divisor.interval(self.over).min >= 1;
        crate::visit::for_each_var(a, &mut |var| {
            let extent = self.over.extent(var);
            positive |= extent.is_some_and(|extent| extent.divide_by_factor(&divisor).is_some());
        });
        positive
    }

    fn bound_product(&self, a: &Expr, b: &Expr, side: Side) -> Option<Index> {
        if !self.is_nonnegative(a) || !self.is_nonnegative(b) {
            return None;
        }
        let of = |operand: &Expr| {
            let bounded = self.bound_sum(&Index::value(operand.clone()), side)?;
            let usable = side == Side::Upper || bounded.is_provably_nonnegative(self.over);
            Some(if usable { bounded } else { Index::constant(0) })
        };
        Some(of(a)?.multiply(&of(b)?))
    }

    /// The bound of `a / b`, which is zero when `b` is.
    fn bound_quotient(&self, a: &Expr, b: &Expr, side: Side) -> Option<Index> {
        if !self.is_nonnegative(a) || !self.is_nonnegative(b) {
            return None;
        }
        let numerator = self.bound_sum(&Index::value(a.clone()), side)?;
        let divisor = Index::value(b.clone());
        let steady = !divisor.terms.iter().any(|term| self.touches(&term.digit));
        match side {
            Side::Lower if steady && numerator.is_provably_nonnegative(self.over) => {
                Some(numerator.divide(&divisor))
            }
            Side::Lower => Some(Index::constant(0)),
            Side::Upper if steady => Some(match numerator.offset(1).divide_by_factor(&divisor) {
                // `a < q·b` means `a / b < q`.
                Some(quotient) => quotient.offset(-1),
                None => numerator.divide(&divisor),
            }),
            Side::Upper => Some(numerator),
        }
    }
}

/// The operands of a minimum of which an upper bound may choose, or of a maximum for a lower bound.
fn operands_to_choose(term: &Term, side: Side) -> Option<(&Expr, &Expr)> {
    let Base::Value(value) = &term.digit.base else { return None };
    match (value.kind(), side.under(term.coefficient)) {
        (ExprKind::Binary(BinaryOp::Min, a, b), Side::Upper)
        | (ExprKind::Binary(BinaryOp::Max, a, b), Side::Lower)
            if term.digit.is_whole() =>
        {
            Some((a, b))
        }
        _ => None,
    }
}

/// Whether a value depends on the contents of a buffer, which no symbolic bound may mention.
fn reads_memory(value: &Expr) -> bool {
    let mut found = false;
    crate::visit::for_each_expr(value, &mut |node| match node.kind() {
        ExprKind::Load(..) => found = true,
        ExprKind::Index(index) | ExprKind::Bounded(_, index) => found |= index_reads_memory(index),
        _ => {}
    });
    found
}

pub(super) fn index_reads_memory(index: &Index) -> bool {
    index.terms.iter().any(|term| match &term.digit.base {
        Base::Var(_) | Base::Lane(_) => false,
        Base::Sum(sum) => index_reads_memory(sum),
        Base::Value(value) => reads_memory(value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const I: VarId = VarId(0);
    const J: VarId = VarId(1);

    fn m() -> Index {
        Index::var(VarId(8))
    }

    fn over(entries: &[(VarId, Index)]) -> Ranges {
        entries.iter().cloned().collect()
    }

    fn eight() -> Index {
        Index::constant(8)
    }

    #[test]
    fn only_variables_with_a_range_are_eliminated() {
        let flat = Index::var(I).scale(8).add_scaled(&Index::var(J), 1);
        let inner = over(&[(J, eight())]);
        assert_eq!(flat.lower_bound(&inner), Some(Index::var(I).scale(8)));
        assert_eq!(flat.upper_bound(&inner), Some(Index::var(I).scale(8).offset(7)));
        let reversed = Index::var(I).add_scaled(&Index::var(J), -1);
        assert_eq!(reversed.lower_bound(&inner), Some(Index::var(I).offset(-7)));
        assert_eq!(reversed.upper_bound(&inner), Some(Index::var(I)));
    }

    #[test]
    fn values_from_memory_bound_nothing_unless_they_are_checked() {
        use crate::dtype::DType;
        use crate::ids::BufferId;
        let loaded = Expr::load(DType::I64, BufferId(0), [Index::var(I)]);
        let ranges = over(&[(I, eight())]);
        assert_eq!(Index::value(loaded.clone()).upper_bound(&ranges), None);
        let checked = Index::value(Expr::new(DType::I64, ExprKind::Bounded(loaded, m())));
        assert_eq!(checked.lower_bound(&ranges), Some(Index::constant(0)));
        assert_eq!(checked.upper_bound(&ranges), Some(m().offset(-1)));
        let byte = Expr::cast(DType::I64, Expr::load(DType::U8, BufferId(1), [Index::var(I)]));
        assert_eq!(Index::value(byte).upper_bound(&ranges), Some(Index::constant(255)));
    }
}
