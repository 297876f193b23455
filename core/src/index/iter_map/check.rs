//! Reading the map off: sums of digits of independent variables.
//!
//! A sum of digits, ordered by scale, takes different values for different digits when each scale exceeds what
//! the digits below can add up to, and takes all values of a range when it exceeds it by exactly one
//! step. A variable's digits determine it when they are contiguous from its lowest to its highest digit,
//! and are independent when their largest values together are still a value of the variable.

use std::sync::Arc;

use super::change::{Origin, Part, Space, order};
use super::{AtomDigit, IterMap, IterMapError, IterSum, Place, Source, Split};
use crate::ids::VarId;
use crate::index::{Index, NO_MODULUS};

/// Checks what remains after all changes of variables, and puts the answer together.
pub(super) fn read_off(space: &Space) -> Result<IterMap, IterMapError> {
    let mut used: Vec<(Part, Place)> = Vec::new();
    let mut sources = Sources { space, fused: Vec::new() };
    let mut outputs = Vec::with_capacity(space.indices.len());
    let mut digits = Vec::with_capacity(space.indices.len());
    for (at, index) in space.indices.iter().enumerate() {
        let place = Place::Index(at);
        let (mut parts, base) = space.parts(index, place)?;
        order(&mut parts);
        let compact = check_scales(space, &parts, place)?;
        outputs.push(sources.sum(&parts, base, compact));
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

/// Whether the sum has no gaps.
fn check_scales(space: &Space, parts: &[Part], place: Place) -> Result<bool, IterMapError> {
    let Some(first) = parts.first() else { return Ok(true) };
    let mut compact = true;
    let mut next = first.scale.clone();
    for (at, part) in parts.iter().enumerate() {
        if part.scale != next {
            compact = false;
            let span = span(&parts[..at]);
            if space.level.is_surjective() || !span.is_provably_at_most(&part.scale, &space.ranges) {
                let (var, found) = (part.var, Box::new(part.scale.clone()));
                return Err(IterMapError::NotFused { place, var, found, expected: Box::new(next) });
            }
        }
        next = part.scale.multiply(&part.extent);
    }
    Ok(compact)
}

/// One more than the greatest sum of some digits, all taken as counting upwards.
fn span(parts: &[Part]) -> Index {
    parts.iter().fold(Index::constant(1), |span, part| &span + &part.scale.multiply(&part.extent.offset(-1)))
}

fn check_usage(space: &Space, used: &mut [(Part, Place)]) -> Result<(), IterMapError> {
    used.sort_by_key(|(part, place)| {
        let at = match place {
            Place::Index(at) | Place::Guard(at) => *at,
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
fn check_digits(space: &Space, digits: &[(Part, Place)]) -> Result<(), IterMapError> {
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

/// What variables stand for, in terms of the iterators.
struct Sources<'a> {
    space: &'a Space,
    fused: Vec<(VarId, Arc<IterSum>)>,
}

impl Sources<'_> {
    fn sum(&mut self, parts: &[Part], base: Index, compact: bool) -> IterSum {
        let negative = parts.iter().filter(|part| part.negative);
        let min = negative.fold(base.clone(), |min, part| {
            min.add_scaled(&part.scale.multiply(&part.extent.offset(-1)), -1)
        });
        let scale = match parts.first() {
            Some(first) if compact => first.scale.clone(),
            _ => Index::constant(1),
        };
        let extent = if compact {
            parts.iter().fold(Index::constant(1), |extent, part| extent.multiply(&part.extent))
        } else {
            span(parts)
        };
        let splits = parts.iter().map(|part| self.split(part)).collect();
        IterSum { splits, base, min, extent, scale }
    }

    fn split(&mut self, part: &Part) -> Split {
        let (source, lower_factor) = self.digit(part.var, Index::constant(part.divisor), &part.extent);
        let scale = if part.negative { part.scale.scale(-1) } else { part.scale.clone() };
        Split { source, lower_factor, extent: part.extent.clone(), scale }
    }

    /// The digit `var / lower % extent` as a digit of what the variable comes from: its source and lower factor.
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
                let whole = Split { source, lower_factor, extent: full.clone(), scale: one.clone() };
                let (base, min, extent) = (Index::constant(0), Index::constant(0), self.extent(var));
                let sum = IterSum { splits: vec![whole], base, min, extent, scale: one };
                (Source::Fused(Arc::new(sum)), lower)
            }
            Some(Origin::Fused { parts, base }) => {
                if let Some((_, sum)) = self.fused.iter().find(|(other, _)| *other == var) {
                    return (Source::Fused(sum.clone()), lower);
                }
                let mut sum = self.sum(parts, base.clone(), true);
                sum.extent = self.extent(var);
                let sum = Arc::new(sum);
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
