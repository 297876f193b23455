//! Changes of variables: guards become extents, nested divisions become digits of fused variables.

use smallvec::SmallVec;

use super::{IterMapError, MapInput, MapLevel};
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::ids::VarId;
use crate::index::product::{Factors, factors_of, product};
use crate::index::{Base, Digit, Index, NO_MODULUS, Ranges, Term, greatest_common_divisor};
use crate::stmt::Guard;
use crate::visit::listed;

/// One term of a sum over the variables: `± scale · (var / divisor % modulus)`.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) var: VarId,
    pub(super) divisor: i64,
    pub(super) modulus: i64,
    /// The number of values of the digit.
    pub(super) extent: Index,
    /// Positive.
    pub(super) scale: Index,
    pub(super) negative: bool,
}

impl Part {
    fn is_whole(&self) -> bool {
        self.divisor == 1 && self.modulus == NO_MODULUS
    }
}

/// The definition of a variable that is no iterator.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// `parent / lower % extent`
    Piece { parent: VarId, lower: Index, extent: Index },
    /// The sum of the parts, plus `base`.
    Fused { parts: Vec<Part>, base: Index },
}

/// A domain, and indices over it, in terms of variables that change during the analysis.
pub(super) struct Space {
    pub(super) level: MapLevel,
    pub(super) indices: Vec<Index>,
    /// The extents of the present variables.
    pub(super) ranges: Ranges,
    /// The present variables, in order of their appearance.
    pub(super) vars: Vec<VarId>,
    /// The variables that were introduced.
    pub(super) origins: Vec<(VarId, Origin)>,
    /// Every iterator in terms of the present variables.
    pub(super) iterators: Vec<(VarId, Index)>,
    /// The last extents of the variables that were replaced.
    pub(super) past: Vec<(VarId, Index)>,
    guards: Vec<PendingGuard>,
    /// The guard to use before all others.
    first_guard: Option<usize>,
}

/// The condition `index < bound`, where `bound` mentions no variable of the space.
struct PendingGuard {
    number: usize,
    index: Index,
    bound: Index,
}

/// An expression that must become a variable before digits can be read from it.
enum Nested {
    /// A sum under a divisor or modulus.
    Sum(Index),
    /// A quotient or remainder by a symbolic expression.
    Symbolic { numerator: Index, divisor: Index },
}

/// Every change removes one guard, one nested sum or one partial digit, unless they are in conflict.
const MAX_CHANGES: usize = 64;

pub(super) type Parts = SmallVec<[Part; 4]>;

impl Space {
    pub(super) fn new(
        indices: &[Index],
        iterators: &[(VarId, Index)],
        guards: &[Guard],
        level: MapLevel,
        first_guard: Option<usize>,
    ) -> Result<Self, IterMapError> {
        let mut space = Space {
            level,
            first_guard,
            indices: Vec::new(),
            ranges: iterators.iter().cloned().collect(),
            vars: iterators.iter().map(|(var, _)| *var).collect(),
            origins: Vec::new(),
            iterators: Vec::new(),
            past: Vec::new(),
            guards: Vec::new(),
        };
        for (number, guard) in guards.iter().enumerate() {
            space.add_guard(number, &guard.index, &guard.bound);
        }
        for (var, extent) in iterators {
            if extent.as_constant().is_some_and(|extent| extent < 1) {
                return Err(IterMapError::EmptyDomain { iterator: *var });
            }
            if space.depends(extent) {
                space.take_extent_as_guard(*var, extent)?;
            }
        }
        space.indices = indices.iter().map(|index| index.simplify(&space.ranges)).collect();
        space.iterators =
            iterators.iter().map(|(var, _)| (*var, Index::var(*var).simplify(&space.ranges))).collect();
        space.forget_unit_variables();
        Ok(space)
    }

    /// Whether an index mentions a variable of the space.
    fn depends(&self, index: &Index) -> bool {
        let mut found = false;
        index.for_each_var(&mut |var| found |= self.ranges.contains(var));
        found
    }

    fn base_depends(&self, base: &Base) -> bool {
        let mut found = false;
        base.for_each_var(&mut |var| found |= self.ranges.contains(var));
        found
    }

    fn value_depends(&self, value: &Expr) -> bool {
        let mut found = false;
        crate::visit::for_each_var(value, &mut |var| found |= self.ranges.contains(var));
        found
    }

    fn forget_unit_variables(&mut self) {
        let ranges = &self.ranges;
        self.vars.retain(|var| ranges.constant_extent(*var) != Some(1));
    }

    fn add_guard(&mut self, number: usize, index: &Index, bound: &Index) {
        let difference = index - bound;
        let (left, right): (Vec<Term>, Vec<Term>) =
            difference.terms().iter().cloned().partition(|term| self.base_depends(&term.digit.base));
        let bound = Index::from_terms(right, difference.constant_part()).scale(-1);
        let index = Index::from_terms(left, 0).simplify(&self.ranges);
        self.guards.push(PendingGuard { number, index, bound });
    }

    /// `i` in `0..min(8, M - 8·o)` is `i` in `0..8` with the guard `8·o + i < M`.
    fn take_extent_as_guard(&mut self, var: VarId, extent: &Index) -> Result<(), IterMapError> {
        let dependent = || IterMapError::DependentExtent { iterator: var };
        let [term] = extent.terms() else { return Err(dependent()) };
        let Base::Value(value) = &term.digit.base else { return Err(dependent()) };
        let ExprKind::Binary(BinaryOp::Min, a, b) = value.kind() else { return Err(dependent()) };
        if !term.digit.is_whole() || term.coefficient != 1 {
            return Err(dependent());
        }
        let (a, b) = (Index::value(a.clone()), Index::value(b.clone()));
        let (free, other) = if self.depends(&a) { (b, a) } else { (a, b) };
        if self.depends(&free) {
            return Err(dependent());
        }
        let constant = extent.constant_part();
        let number = self.guards.len();
        self.add_guard(number, &Index::var(var), &other.offset(constant));
        self.ranges.insert(var, free.offset(constant));
        Ok(())
    }

    pub(super) fn fresh_var(&mut self, extent: Index, origin: Origin) -> VarId {
        // Programs number their variables from 0.
        let var = VarId(u32::MAX - self.origins.len() as u32);
        self.ranges.insert(var, extent);
        self.vars.push(var);
        self.origins.push((var, origin));
        var
    }

    /// Changes variables until guards are gone and all divisions are of variables.
    pub(super) fn resolve(&mut self) -> Result<(), IterMapError> {
        for _ in 0..MAX_CHANGES {
            let failed = match self.apply_guard() {
                Ok(true) => continue,
                Ok(false) => None,
                Err(error @ IterMapError::EmptyDomain { .. }) => return Err(error),
                Err(error) => Some(error),
            };
            match (self.find_nested(), failed) {
                (Some((place, Nested::Sum(sum))), _) => self.resolve_sum(&sum, place)?,
                (Some((place, Nested::Symbolic { numerator, divisor })), _) => {
                    self.resolve_symbolic(&numerator, &divisor, place)?;
                }
                // A larger domain that is mapped injectively contains the guarded one.
                (None, Some(_)) if self.level == MapLevel::Injective => {
                    self.guards.clear();
                    return Ok(());
                }
                (None, Some(error)) => return Err(error),
                (None, None) => return Ok(()),
            }
        }
        Err(IterMapError::Conflict)
    }

    /// Takes one step with one guard; `false` when there is none that can be used now.
    ///
    /// # Errors
    /// That of the first guard, when no guard can be used in the way that it must be.
    fn apply_guard(&mut self) -> Result<bool, IterMapError> {
        self.guards.retain(|guard| !guard.index.is_provably_less(&guard.bound, &self.ranges));
        let ready: SmallVec<[(usize, Index, Index); 4]> = self
            .guards
            .iter()
            .filter(|guard| self.nested_in(&guard.index).is_none())
            .map(|guard| (guard.number, guard.index.clone(), guard.bound.clone()))
            .collect();
        // A variable at the top of a narrowed sum no longer runs over all its values for each of the others;
        // so first comes the guard that needs it whole. Smaller guards go before larger ones, which may be
        // about what they narrow.
        let tops: SmallVec<[Option<VarId>; 4]> = ready.iter().map(|(_, index, _)| top_var(index)).collect();
        let mut order: SmallVec<[usize; 4]> = (0..ready.len()).collect();
        order.sort_by_key(|&at| {
            let needed_whole = ready.iter().enumerate().any(|(other, (_, index, _))| {
                other != at && tops[other] != tops[at] && tops[at].is_some_and(|top| index.mentions(top))
            });
            let (number, index, _) = &ready[at];
            (self.first_guard != Some(*number), needed_whole, index.terms().len(), !is_quotient(index))
        });
        let mut failed = None;
        for at in order {
            let (number, index, bound) = &ready[at];
            match self.apply(*number, index, bound) {
                Ok(()) => return Ok(true),
                Err(error @ IterMapError::EmptyDomain { .. }) => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(false), Err)
    }

    fn apply(&mut self, number: usize, index: &Index, bound: &Index) -> Result<(), IterMapError> {
        let place = MapInput::Guard(number);
        let constant = index.constant_part();
        let common = index.terms().iter().fold(0, |c, term| greatest_common_divisor(c, term.coefficient));
        if common == 0 {
            return Err(IterMapError::GuardNotFused { guard: number });
        }
        let bound = bound.offset(constant.wrapping_neg()).ceil_div(common);
        let index = index.offset(constant.wrapping_neg()).divide_exactly(common);
        if let [
            Term { digit: Digit { base: Base::Var(var), divisor, modulus: NO_MODULUS }, coefficient: 1 },
        ] = index.terms()
        {
            self.narrow(*var, &bound.scale(*divisor))?;
            self.guards.retain(|guard| guard.number != number);
            return Ok(());
        }
        self.fuse(&index, place)
    }

    /// Lowers the extent of a variable.
    fn narrow(&mut self, var: VarId, bound: &Index) -> Result<(), IterMapError> {
        let extent = self.extent(var);
        let narrowed = if bound.is_provably_at_most(&extent, &self.ranges) {
            bound.clone()
        } else if extent.is_provably_at_most(bound, &self.ranges) {
            extent
        } else {
            extent.minimum(bound)
        };
        if narrowed.as_constant().is_some_and(|extent| extent < 1) {
            return Err(IterMapError::EmptyDomain { iterator: var });
        }
        self.ranges.insert(var, narrowed);
        self.replace(&[]);
        Ok(())
    }

    /// Substitutes variables everywhere, and simplifies.
    fn replace(&mut self, substitution: &[(VarId, Index)]) {
        let put = listed(substitution);
        self.vars.retain(|var| !substitution.iter().any(|(old, _)| old == var));
        for (old, _) in substitution {
            self.past.extend(self.ranges.remove(*old).map(|extent| (*old, extent)));
        }
        let ranges = &self.ranges;
        let rewrite = |index: &mut Index| {
            if !substitution.is_empty() {
                *index = index.substitute(&put);
            }
            if let Some(simple) = index.simplified(ranges) {
                *index = simple;
            }
        };
        self.indices.iter_mut().for_each(rewrite);
        self.guards.iter_mut().for_each(|guard| rewrite(&mut guard.index));
        self.iterators.iter_mut().for_each(|(_, index)| rewrite(index));
        self.forget_unit_variables();
    }

    fn find_nested(&self) -> Option<(MapInput, Nested)> {
        let indices = self.indices.iter().enumerate().map(|(at, index)| (MapInput::Index(at), index));
        let guards = self.guards.iter().map(|guard| (MapInput::Guard(guard.number), &guard.index));
        indices.chain(guards).find_map(|(place, index)| Some((place, self.nested_in(index)?)))
    }

    /// An innermost sum or symbolic quotient.
    fn nested_in(&self, index: &Index) -> Option<Nested> {
        index.terms().iter().find_map(|term| match &term.digit.base {
            Base::Var(_) | Base::Lane(_) => None,
            Base::Sum(sum) if self.depends(sum) => {
                Some(self.nested_in(sum).unwrap_or_else(|| Nested::Sum(Index::clone(sum))))
            }
            Base::Sum(_) => None,
            Base::Value(value) => self.nested_in_value(value),
        })
    }

    fn nested_in_value(&self, value: &Expr) -> Option<Nested> {
        if !self.value_depends(value) {
            return None;
        }
        match value.kind() {
            ExprKind::Index(index) => self.nested_in(index),
            ExprKind::Binary(BinaryOp::Mul, a, b) => {
                self.nested_in_value(a).or_else(|| self.nested_in_value(b))
            }
            ExprKind::Binary(BinaryOp::Div | BinaryOp::Rem, a, b) if !self.value_depends(b) => {
                let numerator = Index::value(a.clone());
                Some(
                    self.nested_in(&numerator)
                        .unwrap_or_else(|| Nested::Symbolic { numerator, divisor: Index::value(b.clone()) }),
                )
            }
            _ => None,
        }
    }

    fn resolve_sum(&mut self, sum: &Index, place: MapInput) -> Result<(), IterMapError> {
        let (parts, base) = self.parts(sum, place)?;
        if let [part] = &parts[..]
            && part.is_whole()
            && !part.negative
            && part.scale.is(1)
        {
            return self.shift(part, base, place);
        }
        self.fuse(sum, place)
    }

    /// Replaces `x` by `z - base`. The values of `z` below `base` do not occur.
    fn shift(&mut self, part: &Part, base: Index, place: MapInput) -> Result<(), IterMapError> {
        if self.level.is_surjective() || !base.is_provably_nonnegative(&self.ranges) {
            return Err(IterMapError::Offset { place, offset: base });
        }
        let extent = &part.extent + &base;
        let fused = self.fresh_var(extent, Origin::Fused { parts: vec![part.clone()], base: base.clone() });
        self.replace(&[(part.var, &Index::var(fused) - &base)]);
        Ok(())
    }

    /// Makes the sum, apart from its base, a variable. When one of its digits is not a variable yet, only
    /// makes that one.
    fn fuse(&mut self, sum: &Index, place: MapInput) -> Result<(), IterMapError> {
        let (mut parts, _) = self.parts(sum, place)?;
        order(&mut parts);
        if let Some(part) = parts.iter().find(|part| !part.is_whole()) {
            return self.cut(
                part.var,
                &[part.divisor, part.divisor.saturating_mul(part.modulus.max(1))],
                place,
            );
        }
        let mut expected = Index::constant(1);
        let mut substitution: SmallVec<[(VarId, Index, Index); 4]> = SmallVec::new();
        for part in &parts {
            if part.scale != expected {
                let (var, found) = (part.var, Box::new(part.scale.clone()));
                return Err(IterMapError::NotFused { place, var, found, expected: Box::new(expected) });
            }
            substitution.push((part.var, expected.clone(), part.extent.clone()));
            expected = expected.multiply(&part.extent);
        }
        let count = parts.len();
        let signs: SmallVec<[bool; 4]> = parts.iter().map(|part| part.negative).collect();
        let base = parts.iter().filter(|part| part.negative).fold(Index::constant(0), |base, part| {
            base.add_scaled(&part.scale.multiply(&part.extent.offset(-1)), 1)
        });
        let fused = self.fresh_var(expected, Origin::Fused { parts: parts.into_vec(), base });
        let mut replacement: SmallVec<[(VarId, Index); 4]> = SmallVec::new();
        for (at, (var, lower, extent)) in substitution.into_iter().enumerate() {
            let digit = Index::var(fused).divide(&lower);
            let digit = if at + 1 == count { digit } else { digit.remainder(&extent) };
            let digit = if signs[at] { &extent.offset(-1) - &digit } else { digit };
            replacement.push((var, digit));
        }
        self.replace(&replacement);
        Ok(())
    }

    /// Replaces a variable by one per digit between the cuts.
    fn cut(&mut self, var: VarId, cuts: &[i64], place: MapInput) -> Result<(), IterMapError> {
        let extent = self.extent(var);
        let mut lower = 1;
        let mut whole = Index::constant(0);
        for &cut in cuts {
            if cut <= lower || extent.is_provably_at_most(&Index::constant(cut), &self.ranges) {
                continue;
            }
            self.require_multiple(var, &extent, cut, place)?;
            let digit = Index::constant(cut / lower);
            let origin = Origin::Piece { parent: var, lower: Index::constant(lower), extent: digit.clone() };
            let piece = self.fresh_var(digit, origin);
            whole = whole.add_scaled(&Index::var(piece), lower);
            lower = cut;
        }
        let top = extent.ceil_div(lower);
        let origin = Origin::Piece { parent: var, lower: Index::constant(lower), extent: top.clone() };
        let piece = self.fresh_var(top, origin);
        whole = whole.add_scaled(&Index::var(piece), lower);
        self.replace(&[(var, whole)]);
        Ok(())
    }

    fn require_multiple(
        &self,
        var: VarId,
        extent: &Index,
        factor: i64,
        place: MapInput,
    ) -> Result<(), IterMapError> {
        // For an injective map the pieces may have more values than the variable.
        if self.level == MapLevel::Injective || extent.floor_div(factor).scale(factor) == *extent {
            return Ok(());
        }
        let factor = Box::new(Index::constant(factor));
        Err(IterMapError::NotDivisible { place, var, extent: Box::new(extent.clone()), factor })
    }

    /// Makes a symbolic quotient and remainder variables: `f = f1·M + f0` when the extent of `f` has the factor `M`.
    fn resolve_symbolic(
        &mut self,
        numerator: &Index,
        divisor: &Index,
        place: MapInput,
    ) -> Result<(), IterMapError> {
        let Some(var) = numerator.as_var() else { return self.fuse(numerator, place) };
        let extent = self.extent(var);
        let Some(top) = extent.divide_by_factor(divisor) else {
            let (extent, factor) = (Box::new(extent), Box::new(divisor.clone()));
            return Err(IterMapError::NotDivisible { place, var, extent, factor });
        };
        let low = Origin::Piece { parent: var, lower: Index::constant(1), extent: divisor.clone() };
        let low = Index::var(self.fresh_var(divisor.clone(), low));
        let high = Origin::Piece { parent: var, lower: divisor.clone(), extent: top.clone() };
        let high = Index::var(self.fresh_var(top, high));
        self.replace(&[(var, &high.multiply(divisor) + &low)]);
        Ok(())
    }

    pub(super) fn extent(&self, var: VarId) -> Index {
        self.ranges.extent(var).unwrap_or_else(|| Index::constant(1))
    }

    /// The digits of a sum, and the terms that mention no variable of the space.
    pub(super) fn parts(&self, sum: &Index, place: MapInput) -> Result<(Parts, Index), IterMapError> {
        let mut parts = Parts::new();
        let mut free: SmallVec<[Term; 2]> = SmallVec::new();
        for term in sum.terms() {
            if matches!(term.digit.base, Base::Lane(_)) {
                return Err(IterMapError::NotQuasiAffine { place });
            } else if self.base_depends(&term.digit.base) {
                parts.push(self.part(term).ok_or(IterMapError::NotQuasiAffine { place })?);
            } else {
                free.push(term.clone());
            }
        }
        Ok((parts, Index::from_terms(free, sum.constant_part())))
    }

    fn part(&self, term: &Term) -> Option<Part> {
        let (digit, factor) = match &term.digit.base {
            Base::Var(_) => (term.digit.clone(), Index::constant(1)),
            Base::Value(_) if term.digit.is_whole() => self.scaled_digit(&term.digit)?,
            _ => return None,
        };
        let Base::Var(var) = digit.base else { return None };
        let quotient = self.extent(var).ceil_div(digit.divisor);
        let limit = Index::constant(digit.modulus);
        let (extent, modulus) =
            if digit.modulus == NO_MODULUS || quotient.is_provably_at_most(&limit, &self.ranges) {
                (quotient, NO_MODULUS)
            } else {
                (limit, digit.modulus)
            };
        let scale = factor.scale(term.coefficient.saturating_abs());
        Some(Part { var, divisor: digit.divisor, modulus, extent, scale, negative: term.coefficient < 0 })
    }

    /// Splits a product into one digit and symbolic factors.
    fn scaled_digit(&self, digit: &Digit) -> Option<(Digit, Index)> {
        let (dependent, free): (Factors, Factors) =
            factors_of(digit).into_iter().partition(|factor| self.value_depends(factor));
        let [factor] = &dependent[..] else { return None };
        let ExprKind::Index(index) = factor.kind() else { return None };
        let [Term { digit, coefficient: 1 }] = index.terms() else { return None };
        (index.constant_part() == 0).then(|| (digit.clone(), product(free)))
    }
}

/// Whether this is `var / divisor`, positive and not reduced.
fn is_quotient(index: &Index) -> bool {
    matches!(
        index.terms(),
        [Term { digit: Digit { base: Base::Var(_), modulus: NO_MODULUS, .. }, coefficient: 1.. }]
    )
}

/// The variable of the term with the greatest constant coefficient, in a sum of several terms.
fn top_var(index: &Index) -> Option<VarId> {
    let top = index.terms().iter().max_by_key(|term| term.coefficient)?;
    match top.digit.base {
        Base::Var(var) if index.terms().len() > 1 => Some(var),
        _ => None,
    }
}

/// Sorts by scale, where constants come first and a symbolic scale follows those that divide it.
pub(super) fn order(parts: &mut [Part]) {
    parts.sort_by_key(|part| (part.scale.as_constant().is_none(), part.scale.as_constant()));
    let symbolic = parts.iter().position(|part| part.scale.as_constant().is_none()).unwrap_or(parts.len());
    for at in symbolic..parts.len() {
        let divides_all = |candidate: &Part| {
            parts[at..].iter().all(|other| other.scale.divide_by_factor(&candidate.scale).is_some())
        };
        if let Some(lowest) = (at..parts.len()).find(|&i| divides_all(&parts[i])) {
            parts.swap(at, lowest);
        }
    }
}
