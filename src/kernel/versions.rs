//! The compiled versions of one kernel.
//!
//! A version is found by the dimensions of a call. Finding takes a shared lock for the time of one look-up;
//! making one holds no lock, and calls that need the same version meanwhile wait for it instead of making it
//! again. The number of versions is bounded.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::compile::Version;
use crate::error::Error;

/// How many shapes' versions are kept; the oldest goes when there are more.
const MAX_SHAPES: usize = 256;

/// A version that is made, being made, or could not be made.
pub(super) type Slot = OnceLock<Result<Arc<Version>, Error>>;

/// The compiled versions of one kernel.
pub(super) struct Versions {
    table: RwLock<Table>,
}

struct Table {
    /// What [`generation`](crate::settings::generation) was when the first of these versions was made.
    generation: u64,
    shapes: FxHashMap<Box<[i64]>, Arc<Slot>>,
    /// The keys of `shapes`, oldest first.
    order: VecDeque<Box<[i64]>>,
    /// Versions with symbolic dimensions, by the `usize` arguments.
    symbolic: FxHashMap<Box<[i64]>, Arc<Slot>>,
    /// Versions for buckets, by their bounds.
    buckets: FxHashMap<Box<[i64]>, Arc<Slot>>,
    /// How many shapes without a record of their own have been given code of their own.
    specialized: usize,
}

impl Table {
    const fn new(generation: u64) -> Self {
        Table {
            generation,
            shapes: FxHashMap::with_hasher(FxBuildHasher),
            order: VecDeque::new(),
            symbolic: FxHashMap::with_hasher(FxBuildHasher),
            buckets: FxHashMap::with_hasher(FxBuildHasher),
            specialized: 0,
        }
    }
}

impl Versions {
    pub(super) const fn new() -> Self {
        Versions { table: RwLock::new(Table::new(0)) }
    }

    /// The version for these dimensions, if it is made and up to date.
    #[inline]
    pub(super) fn get(&self, dims: &[i64], generation: u64) -> Option<Arc<Version>> {
        let table = self.read();
        if table.generation != generation {
            return None;
        }
        table.shapes.get(dims)?.get()?.as_ref().ok().cloned()
    }

    /// The slot for these dimensions.
    pub(super) fn slot(&self, dims: &[i64], generation: u64) -> Arc<Slot> {
        self.change(generation, |table| {
            if let Some(slot) = table.shapes.get(dims) {
                return Arc::clone(slot);
            }
            if table.order.len() >= MAX_SHAPES
                && let Some(oldest) = table.order.pop_front()
            {
                table.shapes.remove(&oldest);
            }
            let slot = Arc::new(Slot::new());
            table.order.push_back(dims.into());
            table.shapes.insert(dims.into(), Arc::clone(&slot));
            slot
        })
    }

    /// The slot of the version with symbolic dimensions for these `usize` arguments.
    pub(super) fn symbolic_slot(&self, sizes: &[i64], generation: u64) -> Arc<Slot> {
        self.change(generation, |table| Arc::clone(table.symbolic.entry(sizes.into()).or_default()))
    }

    /// The slot of the version for the bucket with these bounds among its dimensions. As many are kept as of shapes; when there
    /// are more, all are made anew.
    pub(super) fn bucket_slot(&self, bounds: &[i64], generation: u64) -> Arc<Slot> {
        self.change(generation, |table| {
            if table.buckets.len() >= MAX_SHAPES && !table.buckets.contains_key(bounds) {
                table.buckets.clear();
            }
            Arc::clone(table.buckets.entry(bounds.into()).or_default())
        })
    }

    /// Takes one of the `limit` places for shapes that get code of their own without a record; false when there is
    /// none left.
    pub(super) fn take_place(&self, limit: usize, generation: u64) -> bool {
        self.change(generation, |table| {
            let free = table.specialized < limit;
            table.specialized += usize::from(free);
            free
        })
    }

    /// Edits the table of a generation, which replaces that of an older one. Late comers of an older generation work
    /// on a table of their own that nobody sees.
    fn change<T>(&self, generation: u64, edit: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if table.generation > generation {
            return edit(&mut Table::new(generation));
        }
        if table.generation < generation {
            *table = Table::new(generation);
        }
        edit(&mut table)
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        // No code that could panic runs while the table is changed.
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shape_has_one_slot_and_the_oldest_goes() {
        let versions = Versions::new();
        let first = versions.slot(&[0], 0);
        assert!(Arc::ptr_eq(&first, &versions.slot(&[0], 0)));
        for dim in 1..MAX_SHAPES as i64 {
            versions.slot(&[dim], 0);
        }
        assert!(Arc::ptr_eq(&first, &versions.slot(&[0], 0)), "as many as are kept");
        versions.slot(&[-1], 0);
        assert!(!Arc::ptr_eq(&first, &versions.slot(&[0], 0)), "one more pushed the oldest out");
        assert_eq!(versions.read().shapes.len(), MAX_SHAPES);
    }

    #[test]
    fn a_new_generation_starts_empty() {
        let versions = Versions::new();
        let (old, symbolic) = (versions.slot(&[1], 0), versions.symbolic_slot(&[], 0));
        assert!(versions.take_place(1, 0) && !versions.take_place(1, 0));
        assert!(!Arc::ptr_eq(&old, &versions.slot(&[1], 1)));
        assert!(!Arc::ptr_eq(&symbolic, &versions.symbolic_slot(&[], 1)));
        assert!(versions.take_place(1, 1));
        let late = versions.slot(&[1], 0);
        assert!(!Arc::ptr_eq(&late, &versions.slot(&[1], 1)), "a late comer changes nothing");
    }
}
