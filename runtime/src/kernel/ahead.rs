//! Ahead of calls: which version a call runs while better ones are made, and versions that are made before they are needed.
//!
//! A kernel's first call makes a version for its shape. One with symbolic dimensions, which serves every other shape at once, is made
//! [beside calls](crate::background), or by the first call of another shape if that comes sooner. Another shape begins with that
//! one; its own version is made beside calls and then takes its place. Where that takes [too long](super::patience), a call makes it.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::Kernel;
use super::compile::Version;
use super::select::Source;
use super::state::State;
use super::versions::{Current, DeviceGeneration, Entry};
use crate::background::{self, Priority};
use crate::devices::DeviceId;
use crate::error::Error;
use crate::settings;

/// The most blocks for which a good schedule is chosen in the time that a first call may take.
const FEW_BLOCKS: usize = 2;

impl Kernel {
    /// Makes what calls with these shapes run, ahead of them, so that none of them waits; values for the dimensions and `usize`
    /// arguments are given by name. Shapes are prepared at the same time, on all cores.
    ///
    /// ```ignore
    /// attention::kernel().prepare(&[&[("Q", 1), ("KV", 128)], &[("Q", 1), ("KV", 256)]])?;
    /// ```
    ///
    /// # Errors
    /// [`Error::DimensionNames`] when the names are not the kernel's, or why it cannot be compiled for one of the shapes; the
    /// others are prepared nevertheless.
    pub fn prepare(&self, shapes: &[&[(&str, i64)]]) -> Result<(), Error> {
        let dims = shapes.iter().map(|shape| self.dims_by_name(shape)).collect::<Result<Vec<_>, _>>()?;
        self.prepare_on(DeviceId::DEFAULT, &dims)
    }

    /// As [`Kernel::prepare`], on any device, with the values in the order of the definition.
    ///
    /// # Errors
    /// As [`Kernel::prepare`], and when the device cannot be opened.
    pub fn prepare_on(&self, device: DeviceId, shapes: &[Vec<i64>]) -> Result<(), Error> {
        let at = DeviceGeneration::now(device);
        let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
        let work = || {
            while let Some(dims) = shapes.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = self.best_version(dims, at) {
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        };
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        thread::scope(|scope| {
            for _ in 1..cores.min(shapes.len()) {
                scope.spawn(work);
            }
            work();
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// As [`Kernel::prepare_on`] for one shape, in less time where both kernels get default schedules: the schedule is chosen near that of `other` for its
    /// `other_shape`, whose program should differ in sizes alone. A schedule that is known already is used as it is.
    ///
    /// # Errors
    /// As [`Kernel::prepare_on`].
    pub fn prepare_near(
        &self,
        device: DeviceId,
        shape: &[i64],
        other: &Kernel,
        other_shape: &[i64],
    ) -> Result<(), Error> {
        let at = DeviceGeneration::now(device);
        if let Ok(version) = other.best_version(other_shape, at)
            && version.source == Source::Default
        {
            self.origin.check_dims(shape)?;
            self.state()?.choose_near(shape, at, &version.trace)?;
        }
        self.prepare_on(device, &[shape.to_vec()])
    }

    /// Where the schedule comes from that calls with these dimensions run now; `None` before the first one, and when what
    /// was made is out of date.
    pub fn current_source(&self, dims: &[i64]) -> Option<Source> {
        self.current_source_on(DeviceId::DEFAULT, dims)
    }

    /// As [`Kernel::current_source`], on any device.
    pub fn current_source_on(&self, device: DeviceId, dims: &[i64]) -> Option<Source> {
        let current = self.state().ok()?.versions.get(dims, DeviceGeneration::now(device))?;
        Some(current.version.source.clone())
    }

    /// The version that calls with these dimensions run in the end.
    pub(super) fn best_version(&self, dims: &[i64], at: DeviceGeneration) -> Result<Arc<Version>, Error> {
        self.origin.check_dims(dims)?;
        let state = self.state()?;
        let entry = state.versions.entry(dims, at);
        let own = state.own(&entry, dims, at);
        match entry.at_hand.get() {
            Some(at_hand) if own.is_err() => Ok(Arc::clone(at_hand)),
            _ => own,
        }
    }
}

/// An attempt to make the own version of an entry. No call repeats one that panics.
struct Attempt<'e>(&'e Entry);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.is_given_up.store(true, Ordering::Relaxed);
        }
    }
}

impl State {
    /// The version that a call with these dimensions runs now. The dimensions have been checked.
    pub(super) fn version(self: &Arc<Self>, dims: &[i64], at: DeviceGeneration) -> Result<Current, Error> {
        let entry = self.versions.entry(dims, at);
        if background::is_enabled()?
            && entry.own.get().is_none()
            && !self.has_bucket(dims, at)
            && !self.is_long(dims)
            && let Some(version) = self.at_hand(&entry, dims, at)?
        {
            return Ok(Current { version, provisional: Some(entry) });
        }
        self.own(&entry, dims, at).map(Current::settled)
    }

    /// Whether the code of the bucket of these dimensions is compiled: the own version is then made in no time.
    fn has_bucket(&self, dims: &[i64], at: DeviceGeneration) -> bool {
        let bounds = self.buckets().raise(dims);
        bounds.is_some_and(|bounds| matches!(self.versions.bucket_slot(&bounds, at).get(), Some(Ok(_))))
    }

    /// The version for all shapes, if it is made or the own one would take long to choose. The own one is then made beside calls.
    fn at_hand(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        dims: &[i64],
        at: DeviceGeneration,
    ) -> Result<Option<Arc<Version>>, Error> {
        // A shape for which the definition leaves a tensor is refused, whichever version is there.
        self.check_bounds(dims)?;
        let Some(version) = self.general(dims, at) else { return Ok(None) };
        let begin = || {
            let (entry, own_dims) = (Arc::clone(entry), dims.to_vec());
            self.beside(Priority::Ordinary, dims, at, move |state| {
                let _attempt = Attempt(&entry);
                state.own(&entry, &own_dims, at).map(drop)
            });
            Arc::clone(&version)
        };
        Ok(Some(Arc::clone(entry.at_hand.get_or_init(begin))))
    }

    /// The version for all shapes. Where there is none yet, it is made at once if the kernel is one of many blocks, among whose
    /// schedules a good one takes long to choose, or if there is one for another shape. A kernel with a record does not wait for it:
    /// its own version takes no longer.
    fn general(&self, dims: &[i64], at: DeviceGeneration) -> Option<Arc<Version>> {
        let slot = self.versions.general_slot(&dims[self.symbols..], at);
        if slot.get().is_none() && self.blocks > FEW_BLOCKS {
            // Where this fails, the own version may still be made, or say why not.
            let Ok(Some(version)) = self.make_quick(dims, at) else { return None };
            // Of several threads, the first one counts.
            drop(slot.set(Ok(version)));
        }
        if slot.get().is_none()
            && let Some((version, own_dims)) = self.versions.own_of_sizes(&dims[self.symbols..], at)
            && !version.has_record()
        {
            slot.get_or_init(|| self.make_general(&version, &own_dims, at));
        }
        slot.get().and_then(|version| version.as_ref().ok().cloned())
    }

    /// The own version of an entry, made now if there is none; one for all shapes follows beside calls.
    pub(super) fn own(
        self: &Arc<Self>,
        entry: &Entry,
        dims: &[i64],
        at: DeviceGeneration,
    ) -> Result<Arc<Version>, Error> {
        let version = entry.own.get_or_init(|| self.cost.measure(|| self.make_own(dims, at))).clone()?;
        if self.symbols > 0 && background::is_enabled()? {
            self.provide_general(&version, dims, at);
        }
        Ok(version)
    }

    /// Makes the version for all shapes from that of one beside calls, unless there is one: most kernels never meet another shape.
    fn provide_general(self: &Arc<Self>, version: &Arc<Version>, dims: &[i64], at: DeviceGeneration) {
        let slot = self.versions.general_slot(&dims[self.symbols..], at);
        if slot.get().is_some() {
            return;
        }
        let (version, own_dims) = (Arc::clone(version), dims.to_vec());
        self.beside(Priority::Urgent, dims, at, move |state| {
            slot.get_or_init(|| state.make_general(&version, &own_dims, at)).clone().map(drop)
        });
    }

    /// Does something beside calls, unless what is made is out of date or the kernel is gone by then.
    fn beside(
        self: &Arc<Self>,
        priority: Priority,
        dims: &[i64],
        at: DeviceGeneration,
        make: impl FnOnce(&Arc<State>) -> Result<(), Error> + Send + 'static,
    ) {
        let (state, what) = (Arc::downgrade(self), self.describe(dims));
        background::submit(priority, what.clone(), move || {
            let Some(state) = state.upgrade() else { return };
            if settings::generation() != at.generation {
                return;
            }
            if let Err(error) = make(&state) {
                tracing::warn!(%error, what, "no better version was made beside calls");
            }
        });
    }
}
