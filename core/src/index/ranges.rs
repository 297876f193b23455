//! The ranges of variables.

use smallvec::SmallVec;

use super::{Index, Interval};
use crate::ids::VarId;
use crate::stmt::For;

/// The ranges of variables: each runs over `0..extent`. A variable without an entry (a dimension)
/// is only known not to be negative.
///
/// Facts derived from ranges hold where every variable has a value: an empty range makes no claim.
///
/// The ranges are those of a nest of loops, which are few, and are built anew for every query of a primitive: a
/// list is faster than a map, and a list of constants, as most extents are, takes no memory of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranges {
    vars: SmallVec<[VarId; 16]>,
    /// The extents, in the order of `vars`.
    extents: SmallVec<[Extent; 16]>,
}

/// The number of values of a variable.
#[derive(Clone, Debug, PartialEq)]
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

    /// Sets the range of `var` to `0..extent`; returns the earlier extent.
    pub fn insert(&mut self, var: VarId, extent: Index) -> Option<Index> {
        self.set(var, Extent::new(extent)).map(Extent::into_index)
    }

    /// Sets the range of `var` to `0..extent`.
    pub fn insert_constant(&mut self, var: VarId, extent: i64) {
        self.set(var, Extent::Constant(extent));
    }

    /// Sets the range of a loop's variable.
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

    /// The extents that are no numbers.
    pub(super) fn symbolic_extents(&self) -> impl Iterator<Item = &Index> {
        self.extents.iter().filter_map(|extent| match extent {
            Extent::Symbolic(extent) => Some(&**extent),
            Extent::Constant(_) => None,
        })
    }

    /// Whether the extent of a variable's range mentions another variable.
    pub(super) fn extent_mentions(&self, var: VarId, other: VarId) -> bool {
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
