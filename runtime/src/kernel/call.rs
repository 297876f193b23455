//! A call: look up, or make, and run.

use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;
use tilewright_core::device::{Arguments, BufferArgument};
use tilewright_core::expr::Constant;

use super::Kernel;
use super::compile::{Passed, Version};
use super::fault::locate;
use super::state::State;
use super::versions::{DeviceGeneration, Entry};
use crate::devices::{DeviceId, run_options};
use crate::error::Error;

impl Kernel {
    /// Runs the kernel on the default device: a value for each dimension, the scalars, and the tensors (arguments, then results), each in
    /// the order of the definition. The first call for given dimensions chooses a schedule and compiles it.
    ///
    /// # Errors
    /// When an argument does not fit, the program cannot be compiled, or an index that depends on data is out of
    /// bounds. The tensors that are written may then have been written in part.
    pub fn run(
        &self,
        dims: &[i64],
        scalars: &[Constant],
        buffers: &mut [BufferArgument<'_>],
    ) -> Result<(), Error> {
        self.run_on(DeviceId::DEFAULT, dims, scalars, buffers)
    }

    /// As [`Kernel::run`], on any device.
    ///
    /// # Errors
    /// As [`Kernel::run`], and when the device cannot be opened.
    pub fn run_on(
        &self,
        device: DeviceId,
        dims: &[i64],
        scalars: &[Constant],
        buffers: &mut [BufferArgument<'_>],
    ) -> Result<(), Error> {
        let at = DeviceGeneration::now(device);
        self.state()?.call(dims, at, || self.origin.check_dims(dims), scalars, buffers)
    }
}

impl State {
    /// Runs the version for these dimensions, which is made now if none is at hand. `check` checks dimensions that are new.
    #[inline]
    pub(super) fn call(
        self: &Arc<Self>,
        dims: &[i64],
        at: DeviceGeneration,
        check: impl FnOnce() -> Result<(), Error>,
        scalars: &[Constant],
        buffers: &mut [BufferArgument<'_>],
    ) -> Result<(), Error> {
        let current = match self.versions.get(dims, at) {
            Some(current) => current,
            None => {
                check()?;
                self.version(dims, at)?
            }
        };
        match &current.provisional {
            None => self.run(&current.version, dims, scalars, buffers),
            Some(entry) => self.run_at_hand(entry, &current.version, dims, at, scalars, buffers),
        }
    }

    /// Runs the version at hand, unless it is time to make the own one.
    #[cold]
    fn run_at_hand(
        self: &Arc<Self>,
        entry: &Entry,
        at_hand: &Version,
        dims: &[i64],
        at: DeviceGeneration,
        scalars: &[Constant],
        buffers: &mut [BufferArgument<'_>],
    ) -> Result<(), Error> {
        if self.has_waited_long(entry)
            && let Ok(own) = self.own(entry, dims, at)
        {
            return self.run(&own, dims, scalars, buffers);
        }
        let start = Instant::now();
        let result = self.run(at_hand, dims, scalars, buffers);
        entry.count_provisional(start.elapsed());
        result
    }

    /// Runs a version for these dimensions.
    #[inline]
    pub(super) fn run(
        &self,
        version: &Version,
        dims: &[i64],
        scalars: &[Constant],
        buffers: &mut [BufferArgument<'_>],
    ) -> Result<(), Error> {
        let picked: SmallVec<[i64; 4]>;
        let passed = match &version.passed {
            Passed::First(count) => &dims[..*count],
            Passed::These(positions) => {
                picked = positions.iter().map(|position| dims[*position]).collect();
                &picked[..]
            }
        };
        let mut arguments = Arguments { dims: passed, scalars, buffers };
        let called = version.code.run(&mut arguments, run_options()?);
        Ok(called.map_err(|error| locate(error, self.name(), [&self.program, &version.scheduled], dims))?)
    }
}
