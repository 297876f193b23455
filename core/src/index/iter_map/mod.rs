//! Detection of iterator maps: do these indices enumerate a box, and each point once?
//!
//! An iterator map takes the points of a domain (loops, narrowed by guards) to tuples of indices. The analysis
//! understands maps that are composed of *fusing* (`5·x + y` with `y < 5`) and *splitting* (`z / 4`,
//! `z % 4`), as loop transformations make them. The idea is that of TVM's `DetectIterMap` (Feng et al.,
//! "TensorIR", ASPLOS 2023, §3.3); the method here is another one. It changes variables until
//! no nested division is left (`change`):
//!
//! - A guard `4·o + i < 10`, or a division of `4·o + i`, introduces `z = 4·o + i` with `o = z / 4` and
//!   `i = z % 4` everywhere, which the canonical form of indices joins to digits of `z` alone. The
//!   guard then is just the extent of `z`.
//! - A digit that has to be a variable of its own splits its variable: `x = x0 + 8·x1`.
//!
//! The result is sums of digits of independent variables, whose coverage follows from their factors (`check`).
//!
//! Extents and bounds may be symbolic in variables that are no iterators. The answer "not an iterator map"
//! may be wrong (the method is not complete); a map that is returned has the required properties.

mod change;
mod check;
mod inverse;

pub use inverse::InverseError;

use std::sync::Arc;

use super::Index;
use crate::ids::VarId;
use crate::stmt::Guard;

/// The properties that a caller requires of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapLevel {
    /// Different points of the domain have different images.
    Injective,
    /// The image is the whole box of [`IterSum`] ranges.
    Surjective,
    /// Both: each point of the box is the image of exactly one point of the domain.
    Bijective,
}

impl MapLevel {
    fn is_injective(self) -> bool {
        self != MapLevel::Surjective
    }

    fn is_surjective(self) -> bool {
        self != MapLevel::Injective
    }
}

/// A map from iterators to indices, decomposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterMap {
    /// The properties that the map is known to have.
    pub level: MapLevel,
    /// One sum per index.
    pub outputs: Vec<IterSum>,
    /// The variables that the digits of `outputs` are taken of, with their extents.
    atoms: Vec<(VarId, Index)>,
    /// Per index, its digits in terms of atoms, lowest first.
    digits: Vec<Vec<AtomDigit>>,
    /// Every iterator in terms of the atoms.
    iterators: Vec<(VarId, Index)>,
}

/// `base + Σ scale · split`. Over the domain it takes the values `min + scale · k` for `k` in `0..extent`:
/// all of them at the surjective levels, some of them in an injective map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterSum {
    /// The digits, lowest first.
    pub splits: Vec<IterSplit>,
    /// The value when all digits are zero.
    pub base: Index,
    /// The least value. Differs from `base` when a scale is negative.
    pub min: Index,
    /// The number of steps. When it is symbolic, values of the dimensions for which it is not positive leave the
    /// domain empty.
    pub extent: Index,
    /// The size of a step: the scale of the lowest digit, 1 when there are gaps.
    pub scale: Index,
}

impl IterSum {
    /// Whether the values are exactly `0..extent`, given a surjective map.
    pub fn covers(&self, extent: &Index) -> bool {
        self.min.is(0) && (self.scale.is(1) || self.splits.is_empty()) && self.extent == *extent
    }
}

/// `scale · (source / lower_factor % extent)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterSplit {
    /// The iterator or sum that is split.
    pub source: Source,
    /// The product of the extents of the digits below this one.
    pub lower_factor: Index,
    /// The number of values of this digit.
    pub extent: Index,
    /// The factor of the digit in its sum; negative when the digit counts downwards.
    pub scale: Index,
}

/// The source of a digit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// An iterator.
    Iter(VarId),
    /// A sum of digits that acts as one iterator, its extent narrowed by guards where there are any.
    Fused(Arc<IterSum>),
}

/// `scale · (atom / divisor % extent)`, or `scale · (extent - 1 - …)` plus a constant when reversed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AtomDigit {
    var: VarId,
    divisor: i64,
    extent: Index,
    scale: Index,
    negative: bool,
}

/// The part of the input that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapInput {
    /// The index with this number.
    Index(usize),
    /// The guard with this number; guards that stand for extents which depend on other iterators follow
    /// those that were passed.
    Guard(usize),
}

impl std::fmt::Display for MapInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MapInput::Index(at) => write!(f, "index {at}"),
            MapInput::Guard(at) => write!(f, "guard {at}"),
        }
    }
}

/// Why indices are no iterator map of the required level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IterMapError {
    /// An iterator has no values at all.
    #[error("iterator {iterator:?} has no values, so that nothing is enumerated")]
    EmptyDomain {
        /// The iterator.
        iterator: VarId,
    },
    /// An extent mentions another iterator, other than as a minimum with something that does not.
    #[error("the extent of iterator {iterator:?} depends on another iterator; bound it by a guard instead")]
    DependentExtent {
        /// The iterator with that extent.
        iterator: VarId,
    },
    /// The index contains an expression other than sums, quotients and remainders of iterators.
    #[error("{place} is not quasi-affine in the iterators")]
    NotQuasiAffine {
        /// The part of the input.
        place: MapInput,
    },
    /// A sum of digits is not a mixed-radix number: the scale of a digit must be the product of the extents
    /// of those below it (at least as large for an injective index).
    #[error(
        "in {place}, a digit of {var:?} has the scale {found:?}, expected {expected:?} after the digits below it"
    )]
    NotFused {
        /// The part of the input.
        place: MapInput,
        /// The variable whose digit has the wrong scale.
        var: VarId,
        /// The scale.
        found: Box<Index>,
        /// The number that a compact sum needs.
        expected: Box<Index>,
    },
    /// The dividend starts neither at zero nor at a multiple of the divisor.
    #[error("{place} divides a sum that starts at {offset:?}; split an iterator that starts at 0 instead")]
    Offset {
        /// The part of the input.
        place: MapInput,
        /// The offset.
        offset: Index,
    },
    /// The parts of an iterator do not divide it evenly, so that its digits are not independent.
    #[error("the extent {extent:?} of {var:?} is not a multiple of {factor:?}, at which {place} splits it")]
    NotDivisible {
        /// The part of the input.
        place: MapInput,
        /// The iterator, or a fused one.
        var: VarId,
        /// Its extent.
        extent: Box<Index>,
        /// The split.
        factor: Box<Index>,
    },
    /// Two digits share a part of an iterator, so that they are not independent.
    #[error("{first} and {second} use the same part of {var:?}")]
    Overlap {
        /// The iterator, or a fused one.
        var: VarId,
        /// The part of the input with one digit.
        first: MapInput,
        /// The part of the input with the other one.
        second: MapInput,
    },
    /// A part of an iterator is used by no index, so that different points have equal images.
    #[error("no index depends on all of {var:?}; its extent is {extent:?}")]
    Unused {
        /// The iterator, or a part of one.
        var: VarId,
        /// Its extent.
        extent: Index,
    },
    /// A guard restricts the domain in a way that leaves no box.
    #[error("guard {guard} is not a bound of one fused iterator")]
    GuardNotFused {
        /// The guard.
        guard: usize,
    },
    /// The splits and fusions do not terminate.
    #[error("the indices split and fuse the same iterators in conflicting ways")]
    Conflict,
}

/// Decomposes the map from `iterators` (each with its extent) to `indices`, on the points of the
/// domain where every guard `index < bound` holds, and checks that it has the properties of `level`.
/// Variables that are not among the iterators are symbolic constants that are at least 0.
///
/// # Errors
/// When the map is not understood or does not have the properties.
pub fn detect(
    indices: &[Index],
    iterators: &[(VarId, Index)],
    guards: &[Guard],
    level: MapLevel,
) -> Result<IterMap, IterMapError> {
    let attempt = |first_guard: Option<usize>| {
        let mut space = change::Space::new(indices, iterators, guards, level, first_guard)?;
        space.resolve()?;
        check::read_off(&space)
    };
    let found = attempt(None);
    // Guards that share iterators must be used in the right order, which is nearly always found at once.
    match &found {
        Err(error) if guards.len() >= 2 && !matches!(error, IterMapError::EmptyDomain { .. }) => {
            (0..guards.len()).find_map(|guard| attempt(Some(guard)).ok()).ok_or(()).or(found)
        }
        _ => found,
    }
}
