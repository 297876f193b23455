//! Bounds of indices under the ranges of their variables.
//!
//! [`Index::lower_bound`] and [`Index::upper_bound`] eliminate variables and stay symbolic in the
//! others (regions of a tile in terms of the loops around it); [`Index::is_provably_less`] decides
//! comparisons that hold for every value of the dimensions. All of them are sound and none is
//! complete. Numeric intervals are in [`super::interval`].

use smallvec::SmallVec;

use super::{Base, Digit, Index, Interval, NO_MODULUS, Term};
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::ids::VarId;
use crate::stmt::For;

/// What is known of variables: each runs over `0..extent`. A variable without an entry (a dimension)
/// is only known not to be negative.
///
/// Whatever is derived from ranges holds where every variable has a value: an empty range makes no claim.
///
/// They are those of a nest of loops, which are few, and are made anew for every question that a primitive asks: a
/// list is faster than a map, and one of constants, as most extents are, takes no memory of its own.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    vars: SmallVec<[VarId; 16]>,
    /// The extents, in the order of `vars`.
    extents: SmallVec<[Extent; 16]>,
}

/// How many values a variable has.
#[derive(Clone, Debug)]
enum Extent {
    Constant(i64),
    Symbolic(Box<Index>),
}

impl Extent {
    fn new(extent: Index) -> Self {
        match extent.as_constant() {
            Some(extent) => Extent::Constant(extent),
            None => Extent::Symbolic(Box::new(extent)),
        }
    }

    fn into_index(self) -> Index {
        match self {
            Extent::Constant(extent) => Index::constant(extent),
            Extent::Symbolic(extent) => *extent,
        }
    }

    fn mentions(&self, var: VarId) -> bool {
        matches!(self, Extent::Symbolic(extent) if extent.mentions(var))
    }
}

impl Ranges {
    /// No variable has a range yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The ranges of the variables of some loops.
    pub fn from_loops<'a>(loops: impl IntoIterator<Item = &'a For>) -> Self {
        let mut ranges = Ranges::new();
        loops.into_iter().for_each(|node| ranges.insert_loop(node));
        ranges
    }

    /// Says that `var` runs over `0..extent`; gives back what was known before.
    pub fn insert(&mut self, var: VarId, extent: Index) -> Option<Index> {
        self.set(var, Extent::new(extent)).map(Extent::into_index)
    }

    /// Says that `var` runs over `0..extent`.
    pub fn insert_constant(&mut self, var: VarId, extent: i64) {
        self.set(var, Extent::Constant(extent));
    }

    /// Says over what the variable of a loop runs.
    pub fn insert_loop(&mut self, node: &For) {
        match node.extent.as_constant() {
            Some(extent) => self.insert_constant(node.var, extent),
            None => drop(self.insert(node.var, node.extent.clone())),
        }
    }

    fn set(&mut self, var: VarId, extent: Extent) -> Option<Extent> {
        match self.position(var) {
            Some(position) => Some(std::mem::replace(&mut self.extents[position], extent)),
            None => {
                self.vars.push(var);
                self.extents.push(extent);
                None
            }
        }
    }

    /// Forgets the range of a variable.
    pub fn remove(&mut self, var: VarId) -> Option<Index> {
        let position = self.position(var)?;
        self.vars.swap_remove(position);
        Some(self.extents.swap_remove(position).into_index())
    }

    /// The extent of a variable's range.
    pub fn extent(&self, var: VarId) -> Option<Index> {
        self.position(var).map(|position| self.extents[position].clone().into_index())
    }

    /// The extent of a variable's range, where it is a number.
    pub fn constant_extent(&self, var: VarId) -> Option<i64> {
        match self.extents[self.position(var)?] {
            Extent::Constant(extent) => Some(extent),
            Extent::Symbolic(_) => None,
        }
    }

    /// The values of a variable.
    pub fn interval(&self, var: VarId) -> Interval {
        match self.position(var).map(|position| &self.extents[position]) {
            None => Interval::NONNEGATIVE,
            Some(Extent::Constant(extent)) => Interval::below(*extent),
            Some(Extent::Symbolic(extent)) => Interval::below(extent.interval(self).max),
        }
    }

    /// Whether the extent of a variable's range mentions another variable.
    fn extent_mentions(&self, var: VarId, other: VarId) -> bool {
        self.position(var).is_some_and(|position| self.extents[position].mentions(other))
    }

    /// Whether a variable has a range.
    pub fn contains(&self, var: VarId) -> bool {
        self.position(var).is_some()
    }

    /// Whether no variable has a range.
    pub fn is_empty(&self) -> bool {
        self.vars.is_empty()
    }

    fn position(&self, var: VarId) -> Option<usize> {
        self.vars.iter().position(|known| *known == var)
    }
}

impl FromIterator<(VarId, Index)> for Ranges {
    fn from_iter<I: IntoIterator<Item = (VarId, Index)>>(entries: I) -> Self {
        let mut ranges = Ranges::new();
        ranges.extend(entries);
        ranges
    }
}

impl Extend<(VarId, Index)> for Ranges {
    fn extend<I: IntoIterator<Item = (VarId, Index)>>(&mut self, entries: I) {
        for (var, extent) in entries {
            self.insert(var, extent);
        }
    }
}

/// Which of the two bounds is sought.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Lower,
    Upper,
}

impl Side {
    /// The bound of a factor that is needed for this bound of its product with `coefficient`.
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

    /// Whether the index is at least 0 for all values of its variables. `false` means "not proved".
    pub fn is_provably_nonnegative(&self, ranges: &Ranges) -> bool {
        if self.interval(ranges).min >= 0 {
            return true;
        }
        if self.terms.is_empty() {
            return false;
        }
        match self.lower_bound(ranges) {
            Some(lower) => is_nonnegative_in_dims(&lower, ranges, MAX_RELAXATIONS),
            None => false,
        }
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

/// How many quotients and choices a proof may take apart.
const MAX_RELAXATIONS: u32 = 4;

/// How many times extents that depend on other variables may be put in before giving up.
const MAX_PASSES: usize = 32;

fn bound(index: &Index, side: Side, over: &Ranges) -> Option<Index> {
    let mut bounded = eliminate_once(index, side, over)?;
    for _ in 0..MAX_PASSES {
        if present(&bounded, over).is_empty() {
            return Some(bounded);
        }
        bounded = eliminate_once(&bounded, side, over)?;
    }
    None
}

/// Eliminates the variables that no other present variable's extent mentions.
fn eliminate_once(index: &Index, side: Side, over: &Ranges) -> Option<Index> {
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
    Elimination { over, waiting }.bound_sum(index, side)
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
                // What is left of a canonical sum is one: the digits of one base stay or go together.
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
                (true, Side::Upper) => Some(self.over.extent(*var)?.offset(-1)),
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

    /// The bound of a value that is not affine, where its structure tells one.
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

fn index_reads_memory(index: &Index) -> bool {
    index.terms.iter().any(|term| match &term.digit.base {
        Base::Var(_) | Base::Lane(_) => false,
        Base::Sum(sum) => index_reads_memory(sum),
        Base::Value(value) => reads_memory(value),
    })
}

/// Whether an index over dimensions alone is at least 0 for all their values.
fn is_nonnegative_in_dims(index: &Index, ranges: &Ranges, depth: u32) -> bool {
    if index.interval(ranges).min >= 0 {
        return true;
    }
    if depth == 0 {
        return false;
    }
    if let Some(decided) = split_on_choice(index, ranges, depth) {
        return decided;
    }
    relax_quotients(index).is_some_and(|relaxed| is_nonnegative_in_dims(&relaxed, ranges, depth - 1))
}

/// Takes a minimum or maximum apart: a positive minimum needs both cases, a positive maximum one.
fn split_on_choice(index: &Index, ranges: &Ranges, depth: u32) -> Option<bool> {
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
    let holds = |operand: &Expr| {
        let case = rest.add_scaled(&Index::value(operand.clone()), coefficient);
        is_nonnegative_in_dims(&case, ranges, depth - 1)
    };
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

/// How many sums stand inside one another.
fn nesting(digit: &Digit) -> u32 {
    match &digit.base {
        Base::Sum(sum) => 1 + sum.terms.iter().map(|term| nesting(&term.digit)).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn quotients_by_a_dimension() {
        let ranges = over(&[(K, m().multiply(&n()))]);
        assert!(Index::var(K).divide(&n()).is_provably_less(&m(), &ranges));
        assert!(!Index::var(K).divide(&m()).is_provably_less(&m(), &ranges));
        assert!(Index::var(K).remainder(&m()).is_provably_less(&m(), &ranges));
        let unrelated = over(&[(K, eight())]);
        assert!(!Index::var(K).remainder(&m()).is_provably_less(&m(), &unrelated), "0 % 0 is 0");
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
