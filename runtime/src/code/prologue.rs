//! The computation on constant tensors alone: run once where the tensors have an identity, otherwise with each call.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use tilewright_core::device::{
    Arguments, BufferArgument, CallError, Device, DeviceBuffer, DeviceError, Executable,
};
use tilewright_core::dtype::DType;
use tilewright_core::lower::LoweredPrologue;
use tilewright_core::target::RunOptions;
use tilewright_core::tensor::{Identity, Loaded};

use super::packed::{Owner, Packed};

/// A compiled prologue and its memory.
pub(super) struct Prologue {
    device: Arc<dyn Device>,
    executable: Box<dyn Executable>,
    /// The tensors that it takes, by their position in a call.
    constants: Vec<usize>,
    /// The sizes of the tensors that it computes, in bytes.
    results: Vec<usize>,
    owner: Owner,
    /// Memory for the next call with tensors that have no identity.
    spare: Mutex<Option<Packed>>,
}

/// Packed tensors for one call.
enum ForCall<'p> {
    Kept(Arc<Packed>),
    /// Gives its memory back for the next call.
    Once(Packed, &'p Prologue),
}

impl Prologue {
    pub(super) fn new(
        device: Arc<dyn Device>,
        executable: Box<dyn Executable>,
        lowered: &LoweredPrologue,
    ) -> Self {
        Prologue {
            owner: Owner::of(&device, &lowered.text),
            device,
            executable,
            constants: lowered.constants.clone(),
            results: lowered.results.iter().map(|(dtype, shape)| bytes(*dtype, shape)).collect(),
            spare: Mutex::new(None),
        }
    }

    /// The compiled code.
    pub(super) fn executable(&self) -> &dyn Executable {
        &*self.executable
    }

    /// Whether the results for tensors with these identities are kept.
    #[cfg(test)]
    pub(super) fn has_results_for(&self, identities: &[&Arc<Identity>]) -> bool {
        self.owner.find(identities).is_some()
    }

    /// Runs a closure that takes the arguments with the results of the prologue appended.
    pub(super) fn with_packed<T>(
        &self,
        arguments: &mut Arguments<'_, '_>,
        options: RunOptions,
        run: impl FnOnce(&mut Arguments<'_, '_>) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let packed = self.packed(arguments, options)?;
        let mut buffers: SmallVec<[BufferArgument<'_>; 8]> =
            arguments.buffers.iter_mut().map(BufferArgument::reborrow).collect();
        buffers.extend(packed.buffers().iter().map(|buffer| BufferArgument::DeviceRead(buffer.as_slice())));
        let (dims, scalars) = (arguments.dims, arguments.scalars);
        run(&mut Arguments { dims, scalars, buffers: &mut buffers })
    }

    /// The arguments that the main part needs in addition.
    fn packed(&self, arguments: &Arguments<'_, '_>, options: RunOptions) -> Result<ForCall<'_>, CallError> {
        let identities: Option<SmallVec<[&Arc<Identity>; 4]>> =
            self.constants.iter().map(|position| arguments.buffers.get(*position)?.identity()).collect();
        if let Some(identities) = &identities {
            if let Some(packed) = self.owner.find(identities) {
                return Ok(ForCall::Kept(packed));
            }
            self.refuse_recording()?;
            let pack = || self.compute_once(arguments, options);
            if let Some(packed) = self.owner.find_or_pack(identities, self.bytes(), pack)? {
                return Ok(ForCall::Kept(packed));
            }
        }
        self.refuse_recording()?;
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        let memory = spare.map_or_else(|| self.allocate(), Ok)?;
        // Elements that lie elsewhere stay in memory from now on: the next call needs them again.
        Ok(ForCall::Once(self.compute(memory, arguments, &[], options)?, self))
    }

    /// Refuses to compute while runs are recorded: the results would be there after the first launch alone.
    fn refuse_recording(&self) -> Result<(), DeviceError> {
        if !self.device.is_recording() {
            return Ok(());
        }
        let problem = "the results of constant tensors are not there yet: call the kernel with them before it is recorded";
        Err(DeviceError::Failed { device: self.device.label().to_owned(), problem: problem.to_owned() })
    }

    fn bytes(&self) -> usize {
        self.results.iter().fold(0, |sum: usize, bytes| sum.saturating_add(*bytes))
    }

    fn allocate(&self) -> Result<Packed, CallError> {
        Ok(self.results.iter().map(|bytes| self.device.allocate(*bytes)).collect::<Result<_, _>>()?)
    }

    /// Computes results that are kept. Elements that lie elsewhere are in memory only meanwhile.
    fn compute_once(&self, arguments: &Arguments<'_, '_>, options: RunOptions) -> Result<Packed, CallError> {
        let load = |position: &usize| match arguments.buffers.get(*position) {
            Some(BufferArgument::Stored(stored)) if stored.resident().is_none() => stored.load().map(Some),
            _ => Ok(None),
        };
        let loaded = self.constants.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        self.compute(self.allocate()?, arguments, &loaded, options)
    }

    /// Runs the prologue. `loaded` has the elements of constants that are in memory for this run alone.
    fn compute(
        &self,
        mut memory: Packed,
        arguments: &Arguments<'_, '_>,
        loaded: &[Option<Loaded>],
        options: RunOptions,
    ) -> Result<Packed, CallError> {
        let given = arguments.buffers.len();
        let last = self.constants.last().map_or(0, |last| last + 1);
        if given < last {
            return Err(CallError::Count { sort: "tensors", expected: last, found: given });
        }
        let mut buffers: SmallVec<[BufferArgument<'_>; 8]> = SmallVec::new();
        for (place, position) in self.constants.iter().enumerate() {
            buffers.push(match (&arguments.buffers[*position], loaded.get(place)) {
                (_, Some(Some(loaded))) => BufferArgument::Read(loaded.bytes()),
                (BufferArgument::Stored(stored), _) => BufferArgument::Identified(stored.make_resident()?),
                (argument, _) => argument.to_read(),
            });
        }
        buffers.extend(memory.iter_mut().map(|buffer| BufferArgument::DeviceWrite(buffer.as_mut_slice())));
        self.executable.run(&mut Arguments { dims: &[], scalars: &[], buffers: &mut buffers }, options)?;
        drop(buffers);
        Ok(memory)
    }
}

/// The size of a tensor in bytes. A size beyond the address space saturates: the allocation then fails on any device.
fn bytes(dtype: DType, shape: &[usize]) -> usize {
    let elements = shape.iter().fold(1, |elements: usize, extent| elements.saturating_mul(*extent));
    dtype.storage_bytes(elements).unwrap_or(usize::MAX)
}

impl ForCall<'_> {
    fn buffers(&self) -> &[DeviceBuffer] {
        match self {
            ForCall::Kept(packed) => packed,
            ForCall::Once(packed, _) => packed,
        }
    }
}

impl Drop for ForCall<'_> {
    fn drop(&mut self) {
        if let ForCall::Once(packed, prologue) = self {
            *prologue.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::mem::take(packed));
        }
    }
}
