//! Bounds of indices under the ranges of their variables.

use rustc_hash::FxHashMap;

use crate::ids::VarId;
use crate::index::Index;

/// What is known of variables: each runs over `0..extent`. A variable without an entry (a dimension)
/// is only known not to be negative.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    extents: FxHashMap<VarId, Index>,
}

impl Ranges {
    /// No variable has a range yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that `var` runs over `0..extent`.
    pub fn insert(&mut self, var: VarId, extent: Index) {
        self.extents.insert(var, extent);
    }

    /// The extent of a variable's range.
    pub fn extent(&self, var: VarId) -> Option<&Index> {
        self.extents.get(&var)
    }
}
