//! A call: look up, or make, and run.

use std::sync::Arc;

use smallvec::SmallVec;
use tilewright_core::device::{Arguments, BufferArgument};
use tilewright_core::expr::Constant;

use super::Kernel;
use super::compile::{Passed, Version};
use super::fault::locate;
use super::state::State;
use super::versions::DeviceGeneration;
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
        let (state, at) = (self.state()?, DeviceGeneration::now(device));
        let version = match state.versions.get(dims, at) {
            Some(version) => version,
            None => self.version(dims, at)?,
        };
        state.run(&version, dims, scalars, buffers)
    }

    /// The version that a call with these dimensions runs, made now if none is at hand.
    #[cold]
    fn version(&self, dims: &[i64], at: DeviceGeneration) -> Result<Arc<Version>, Error> {
        self.origin.check_dims(dims)?;
        self.state()?.version(dims, at)
    }
}

impl State {
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
