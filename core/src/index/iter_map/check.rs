//! Reads the map from the changed indices: sums of digits of independent variables.
//!
//! A sum of digits, ordered by scale, takes different values for different digits when each scale exceeds the greatest sum
//! of the digits below, and takes all values of a range when it exceeds that sum by one step at most. A
//! variable's digits determine it when they are contiguous from its lowest to its highest digit, and are independent
//! when their largest values together are still a value of the variable.

use std::sync::Arc;

use super::change::{Origin, Part, Space, order};
use super::{AtomDigit, IterMap, IterMapError, IterSplit, IterSum, MapInput, MapLevel, Source};
use crate::ids::VarId;
use crate::index::{Index, NO_MODULUS};

/// Checks the indices after all changes of variables, and assembles the result.
pub(super) fn read_off(space: &Space) -> Result<IterMap, IterMapError> {
    let mut used: Vec<(Part, MapInput)> = Vec::new();
    let mut sources = Sources { space, fused: Vec::new() };
    let mut outputs = Vec::with_capacity(space.indices.len());
    let mut digits = Vec::with_capacity(space.indices.len());
    for (at, index) in space.indices.iter().enumerate() {
        let place = MapInput::Index(at);
        let (mut parts, base) = space.parts(index, place)?;
        order(&mut parts);
        let steps = check_scales(space, &parts, place)?;
        outputs.push(sources.sum(&parts, base, steps));
        digits.push(parts.iter().map(AtomDigit::from).collect());
        used.extend(parts.into_iter().map(|part| (part, place)));
    }
    check_usage(space, &mut used)?;
    Ok(IterMap {
        level: space.level,
        outputs,
        digits,
        atoms: space.vars.iter().map(|var| (*var, space.extent(*var))).collect(),
        iterators: space.iterators.clone(),
    })
}

impl From<&Part> for AtomDigit {
    fn from(part: &Part) -> Self {
        AtomDigit {
            var: part.var,
            divisor: part.divisor,
            extent: part.extent.clone(),
            scale: part.scale.clone(),
            negative: part.negative,
        }
    }
}

/// The number of values of the sum, in steps of its lowest scale; nothing when it has gaps.
fn check_scales(space: &Space, parts: &[Part], place: MapInput) -> Result<Option<Index>, IterMapError> {
    let mut steps = Some(Index::constant(1));
    let Some(first) = parts.first() else { return Ok(steps) };
    let mut next = first.scale.clone();
    for (at, part) in parts.iter().enumerate() {
        let joined = || overlapped(&first.scale, steps.as_ref()?, part);
        if part.scale == next {
            steps = steps.map(|steps| steps.multiply(&part.extent));
            next = part.scale.multiply(&part.extent);
        } else if let Some(joined) = joined().filter(|_| space.level == MapLevel::Surjective) {
            next = first.scale.multiply(&joined);
            steps = Some(joined);
        } else {
            let span = span(&parts[..at]);
            if space.level.is_surjective() || !span.is_provably_at_most(&part.scale, &space.ranges) {
                let (var, found) = (part.var, Box::new(part.scale.clone()));
                return Err(IterMapError::NotFused { place, var, found, expected: Box::new(next) });
            }
            steps = None;
            next = part.scale.multiply(&part.extent);
        }
    }
    Ok(steps)
}

/// The number of values of `steps` steps plus a digit that advances by at most as many of them, as overlapping
/// windows do: `7·x + y` with `y < 8`. Different digits then may have one sum.
fn overlapped(step: &Index, steps: &Index, part: &Part) -> Option<Index> {
    let (step, steps) = (step.as_constant()?, steps.as_constant()?);
    let (scale, extent) = (part.scale.as_constant()?, part.extent.as_constant()?);
    let advance = scale / step;
    let count = advance.checked_mul(extent - 1)?.checked_add(steps)?;
    (scale % step == 0 && advance <= steps).then(|| Index::constant(count))
}

/// One more than the greatest sum of some digits, all taken as counting upwards.
fn span(parts: &[Part]) -> Index {
    parts.iter().fold(Index::constant(1), |span, part| &span + &part.scale.multiply(&part.extent.offset(-1)))
}

fn check_usage(space: &Space, used: &mut [(Part, MapInput)]) -> Result<(), IterMapError> {
    used.sort_by_key(|(part, place)| {
        let at = match place {
            MapInput::Index(at) | MapInput::Guard(at) => *at,
        };
        (part.var, part.divisor, at)
    });
    let mut rest = &used[..];
    while let Some((first, _)) = rest.first() {
        let count = rest.iter().take_while(|(part, _)| part.var == first.var).count();
        check_digits(space, &rest[..count])?;
        rest = &rest[count..];
    }
    if space.level.is_injective()
        && let Some(var) = space.vars.iter().find(|var| !used.iter().any(|(part, _)| part.var == **var))
    {
        return Err(IterMapError::Unused { var: *var, extent: space.extent(*var) });
    }
    Ok(())
}

/// Checks the digits of one variable, in order of their divisors.
fn check_digits(space: &Space, digits: &[(Part, MapInput)]) -> Result<(), IterMapError> {
    let var = digits[0].0.var;
    let extent = space.extent(var);
    let unused = || IterMapError::Unused { var, extent: extent.clone() };
    let mut end = 1;
    let mut greatest = Index::constant(0);
    for (at, (part, place)) in digits.iter().enumerate() {
        if at > 0 && (end == NO_MODULUS || part.divisor % end != 0) {
            return Err(IterMapError::Overlap { var, first: digits[at - 1].1, second: *place });
        }
        if space.level.is_injective() && part.divisor != end {
            return Err(unused());
        }
        greatest = greatest.add_scaled(&part.extent.offset(-1), part.divisor);
        end = if part.modulus == NO_MODULUS { NO_MODULUS } else { part.divisor.saturating_mul(part.modulus) };
    }
    let (last, place) = &digits[digits.len() - 1];
    if space.level.is_injective()
        && end != NO_MODULUS
        && !extent.is_provably_at_most(&Index::constant(end), &space.ranges)
    {
        return Err(unused());
    }
    if space.level.is_surjective() && !greatest.is_provably_less(&extent, &space.ranges) {
        let factor = Box::new(Index::constant(if last.divisor > 1 { last.divisor } else { last.modulus }));
        return Err(IterMapError::NotDivisible { place: *place, var, extent: Box::new(extent), factor });
    }
    Ok(())
}

/// The values of variables in terms of the iterators.
struct Sources<'a> {
    space: &'a Space,
    fused: Vec<(VarId, Arc<IterSum>)>,
}

impl Sources<'_> {
    /// The sum of some digits; `steps` is the number of its values, when it has no gaps.
    fn sum(&mut self, parts: &[Part], base: Index, steps: Option<Index>) -> IterSum {
        let negative = parts.iter().filter(|part| part.negative);
        let min = negative.fold(base.clone(), |min, part| {
            min.add_scaled(&part.scale.multiply(&part.extent.offset(-1)), -1)
        });
        let (extent, scale) = match (steps, parts.first()) {
            (Some(steps), Some(first)) => (steps, first.scale.clone()),
            (Some(steps), None) => (steps, Index::constant(1)),
            (None, _) => (span(parts), Index::constant(1)),
        };
        let splits = parts.iter().map(|part| self.split(part)).collect();
        IterSum { splits, base, min, extent, scale }
    }

    fn split(&mut self, part: &Part) -> IterSplit {
        let (source, lower_factor) = self.digit(part.var, Index::constant(part.divisor), &part.extent);
        let scale = if part.negative { part.scale.scale(-1) } else { part.scale.clone() };
        IterSplit { source, lower_factor, extent: part.extent.clone(), scale }
    }

    /// The digit `var / lower % extent` as a digit of the variable's source: that source and the lower factor.
    fn digit(&mut self, var: VarId, lower: Index, extent: &Index) -> (Source, Index) {
        let origin = self.space.origins.iter().find(|(other, _)| *other == var).map(|(_, origin)| origin);
        match origin {
            None => (Source::Iter(var), lower),
            Some(Origin::Piece { parent, lower: below, extent: full }) => {
                let upper = lower.multiply(extent);
                let divides = upper == *full
                    || upper.as_constant().is_some_and(|upper| full.floor_div(upper).scale(upper) == *full);
                if divides && self.extent(var) == *full {
                    return self.digit(*parent, below.multiply(&lower), extent);
                }
                // A digit of `x % 7` is no digit of `x`, and a narrowed `x % 7` is no smaller remainder of `x`.
                let (source, lower_factor) = self.digit(*parent, below.clone(), full);
                let one = Index::constant(1);
                let whole = IterSplit { source, lower_factor, extent: full.clone(), scale: one.clone() };
                let (base, min, extent) = (Index::constant(0), Index::constant(0), self.extent(var));
                let sum = IterSum { splits: vec![whole], base, min, extent, scale: one };
                (Source::Fused(Arc::new(sum)), lower)
            }
            Some(Origin::Fused { parts, base }) => {
                if let Some((_, sum)) = self.fused.iter().find(|(other, _)| *other == var) {
                    return (Source::Fused(sum.clone()), lower);
                }
                let steps = self.extent(var);
                let sum = Arc::new(self.sum(parts, base.clone(), Some(steps)));
                self.fused.push((var, sum.clone()));
                (Source::Fused(sum), lower)
            }
        }
    }

    /// The last extent of a variable.
    fn extent(&self, var: VarId) -> Index {
        let past = self.space.past.iter().find(|(other, _)| *other == var);
        past.map_or_else(|| self.space.extent(var), |(_, extent)| extent.clone())
    }
}
