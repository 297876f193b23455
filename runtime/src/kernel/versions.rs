//! The compiled versions of one kernel.
//!
//! A version is found by the device and the dimensions of a call. Finding takes a shared lock for the time of one look-up;
//! making one holds no lock, and calls that need the same version meanwhile wait for it instead of making it
//! again. The number of versions is bounded.
//!
//! | entry | calls run |
//! |---|---|
//! | own version made | that one |
//! | a version at hand | that one, until the own version is made: beside calls, or by a call once calls have taken long enough |
//! | neither | nothing: the first call makes the own version |

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use rustc_hash::FxHashMap;

use super::compile::Version;
use crate::devices::DeviceId;
use crate::error::Error;
use crate::settings;

/// How many shapes' versions are kept; the oldest goes when there are more.
const MAX_SHAPES: usize = 256;

/// A version that is made, being made, or could not be made.
pub(super) type Slot = OnceLock<Result<Arc<Version>, Error>>;

/// The versions for the dimensions of a call.
#[derive(Default)]
pub(super) struct Entry {
    /// The best that there is without further measurements.
    pub(super) own: Slot,
    /// The version at hand at the first call, which runs until the own version is made.
    pub(super) at_hand: OnceLock<Arc<Version>>,
    /// How long calls have run the version at hand, in nanoseconds.
    pub(super) provisional_ns: AtomicU64,
    /// Whether the compiler panicked when it made the own version beside calls: no call tries that again.
    pub(super) is_given_up: AtomicBool,
}

/// The version that a call runs now.
pub(super) struct Current {
    pub(super) version: Arc<Version>,
    /// The entry, where this is the version at hand.
    pub(super) provisional: Option<Arc<Entry>>,
}

impl Current {
    /// A version that stays.
    pub(super) fn settled(version: Arc<Version>) -> Self {
        Current { version, provisional: None }
    }
}

impl Entry {
    /// The version that calls run now, if there is one.
    #[inline]
    fn current(self: &Arc<Self>) -> Option<Current> {
        if let Some(Ok(own)) = self.own.get() {
            return Some(Current::settled(Arc::clone(own)));
        }
        let version = Arc::clone(self.at_hand.get()?);
        let is_settled = self.own.get().is_some() || self.is_given_up.load(Ordering::Relaxed);
        Some(Current { version, provisional: (!is_settled).then(|| Arc::clone(self)) })
    }
}

/// The circumstances that a version is made for, besides dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceGeneration {
    /// The device that they run on.
    pub(super) device: DeviceId,
    /// The value of [`settings::generation`] at that time.
    pub(super) generation: u64,
}

impl DeviceGeneration {
    /// That of a call that begins now.
    #[inline]
    pub(super) fn now(device: DeviceId) -> Self {
        DeviceGeneration { device, generation: settings::generation() }
    }
}

/// The compiled versions of one kernel.
pub(super) struct Versions {
    tables: RwLock<Tables>,
}

/// The versions of one generation.
struct Tables {
    generation: u64,
    /// By the device's position among all devices.
    devices: Vec<Table>,
}

/// The versions for one device.
#[derive(Default)]
struct Table {
    shapes: FxHashMap<Box<[i64]>, Arc<Entry>>,
    /// The keys of `shapes`, oldest first.
    order: VecDeque<Box<[i64]>>,
    /// Versions with symbolic dimensions for all shapes, by the `usize` arguments: they are at hand when a new shape comes.
    general: FxHashMap<Box<[i64]>, Arc<Slot>>,
    /// Versions with symbolic dimensions for shapes that have no version of their own, by the shape that they are scheduled for.
    classes: FxHashMap<Box<[i64]>, Arc<Slot>>,
    /// Versions for buckets, by their bounds.
    buckets: FxHashMap<Box<[i64]>, Arc<Slot>>,
    /// How many shapes without a record of their own have been given code of their own.
    specialized: usize,
}

impl Tables {
    const fn new(generation: u64) -> Self {
        Tables { generation, devices: Vec::new() }
    }

    /// The table of a device, which is empty at first.
    fn of(&mut self, device: DeviceId) -> &mut Table {
        let place = device.index();
        if self.devices.len() <= place {
            self.devices.resize_with(place + 1, Table::default);
        }
        &mut self.devices[place]
    }
}

impl Versions {
    pub(super) const fn new() -> Self {
        Versions { tables: RwLock::new(Tables::new(0)) }
    }

    /// The version that calls with these dimensions run, if it is made and up to date.
    #[inline]
    pub(super) fn get(&self, dims: &[i64], at: DeviceGeneration) -> Option<Current> {
        let tables = self.read();
        if tables.generation != at.generation {
            return None;
        }
        let table = tables.devices.get(at.device.index())?;
        table.shapes.get(dims)?.current()
    }

    /// The entry for these dimensions.
    pub(super) fn entry(&self, dims: &[i64], at: DeviceGeneration) -> Arc<Entry> {
        self.change(at, |table| {
            if let Some(entry) = table.shapes.get(dims) {
                return Arc::clone(entry);
            }
            if table.order.len() >= MAX_SHAPES
                && let Some(oldest) = table.order.pop_front()
            {
                table.shapes.remove(&oldest);
            }
            let entry = Arc::new(Entry::default());
            table.order.push_back(dims.into());
            table.shapes.insert(dims.into(), Arc::clone(&entry));
            entry
        })
    }

    /// An own version of any shape with these `usize` arguments, which follow the other dimensions, and its dimensions.
    pub(super) fn own_of_sizes(
        &self,
        sizes: &[i64],
        at: DeviceGeneration,
    ) -> Option<(Arc<Version>, Box<[i64]>)> {
        self.change(at, |table| {
            table.shapes.iter().filter(|(dims, _)| dims.ends_with(sizes)).find_map(|(dims, entry)| {
                let version = entry.own.get()?.as_ref().ok()?;
                Some((Arc::clone(version), dims.clone()))
            })
        })
    }

    /// The slot of the version for all shapes with these `usize` arguments.
    pub(super) fn general_slot(&self, sizes: &[i64], at: DeviceGeneration) -> Arc<Slot> {
        self.change(at, |table| slot_of(&mut table.general, sizes))
    }

    /// The slot of the version for the shapes that are treated like this one; `None` when there are `limit` others.
    pub(super) fn class_slot(
        &self,
        typical: &[i64],
        limit: usize,
        at: DeviceGeneration,
    ) -> Option<Arc<Slot>> {
        self.change(at, |table| {
            let has_room = table.classes.len() < limit || table.classes.contains_key(typical);
            has_room.then(|| slot_of(&mut table.classes, typical))
        })
    }

    /// The slot of the version for the bucket with these bounds among its dimensions.
    pub(super) fn bucket_slot(&self, bounds: &[i64], at: DeviceGeneration) -> Arc<Slot> {
        self.change(at, |table| slot_of(&mut table.buckets, bounds))
    }

    /// Takes one of the `limit` places for shapes that get code of their own without a record; false when there is
    /// none left.
    pub(super) fn take_place(&self, limit: usize, at: DeviceGeneration) -> bool {
        self.change(at, |table| {
            let free = table.specialized < limit;
            table.specialized += usize::from(free);
            free
        })
    }

    /// Edits the table of a device in a generation, which replaces that of an older one. Late comers of an older generation work
    /// on a table of their own that nobody sees.
    fn change<T>(&self, at: DeviceGeneration, edit: impl FnOnce(&mut Table) -> T) -> T {
        let DeviceGeneration { device, generation } = at;
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        if tables.generation > generation {
            return edit(&mut Table::default());
        }
        if tables.generation < generation {
            *tables = Tables::new(generation);
        }
        edit(tables.of(device))
    }

    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        // No code that could panic runs while the table is changed.
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of a key. As many are kept as of shapes; when there are more, all are made anew.
fn slot_of(slots: &mut FxHashMap<Box<[i64]>, Arc<Slot>>, key: &[i64]) -> Arc<Slot> {
    if slots.len() >= MAX_SHAPES && !slots.contains_key(key) {
        slots.clear();
    }
    Arc::clone(slots.entry(key.into()).or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: DeviceGeneration = DeviceGeneration { device: DeviceId::DEFAULT, generation: 0 };
    const SECOND: DeviceGeneration = DeviceGeneration { generation: 1, ..FIRST };

    #[test]
    fn one_shape_has_one_entry_and_the_oldest_goes() {
        let versions = Versions::new();
        let first = versions.entry(&[0], FIRST);
        assert!(Arc::ptr_eq(&first, &versions.entry(&[0], FIRST)));
        for dim in 1..MAX_SHAPES as i64 {
            versions.entry(&[dim], FIRST);
        }
        assert!(Arc::ptr_eq(&first, &versions.entry(&[0], FIRST)), "as many as are kept");
        versions.entry(&[-1], FIRST);
        assert!(!Arc::ptr_eq(&first, &versions.entry(&[0], FIRST)), "one more pushed the oldest out");
        assert_eq!(versions.read().devices[0].shapes.len(), MAX_SHAPES);
    }

    #[test]
    fn a_new_generation_starts_empty() {
        let versions = Versions::new();
        let (old, general) = (versions.entry(&[1], FIRST), versions.general_slot(&[], FIRST));
        assert!(versions.take_place(1, FIRST) && !versions.take_place(1, FIRST));
        assert!(!Arc::ptr_eq(&old, &versions.entry(&[1], SECOND)));
        assert!(!Arc::ptr_eq(&general, &versions.general_slot(&[], SECOND)));
        assert!(versions.take_place(1, SECOND));
        let late = versions.entry(&[1], FIRST);
        assert!(!Arc::ptr_eq(&late, &versions.entry(&[1], SECOND)), "a late comer changes nothing");
    }

    #[test]
    fn devices_share_nothing() {
        let versions = Versions::new();
        let other = DeviceGeneration { device: DeviceId::at(2), generation: 0 };
        let (here, there) = (versions.entry(&[1], FIRST), versions.entry(&[1], other));
        assert!(!Arc::ptr_eq(&here, &there));
        assert!(Arc::ptr_eq(&there, &versions.entry(&[1], other)));
        assert!(
            versions.take_place(1, FIRST) && versions.take_place(1, other) && !versions.take_place(1, other)
        );
        assert!(versions.get(&[1], DeviceGeneration { device: DeviceId::at(9), generation: 0 }).is_none());
    }
}
