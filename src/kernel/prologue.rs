//! Compiled code in two parts: what can be computed before a call, from constant tensors alone, and the call.
//!
//! Whoever runs it sees one kernel with the parameters of the definition.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use smallvec::SmallVec;
use tilewright_core::device::{Arguments, BufferArgument, CallError, CompileError, Device, Executable};
use tilewright_core::dtype::DType;
use tilewright_core::lower::LoweredKernel;
use tilewright_core::program::Program;
use tilewright_core::target::RunOptions;
use tilewright_core::tensor::{AnyTensor, Identity};
use tilewright_cpu::pages::prefer_huge_pages;

use super::packed::{Owner, Packed};

/// Compiled code.
pub(crate) struct Compiled {
    main: Box<dyn Executable>,
    prologue: Option<Prologue>,
}

struct Prologue {
    executable: Box<dyn Executable>,
    constants: Vec<usize>,
    results: Vec<(DType, Vec<usize>)>,
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

/// Compiles programs, one result each.
pub(crate) fn compile(
    device: &dyn Device,
    programs: Vec<&LoweredKernel>,
) -> Vec<Result<Compiled, CompileError>> {
    let mut flat: Vec<&Program> = Vec::new();
    for lowered in &programs {
        flat.extend(lowered.prologue.iter().map(|prologue| &prologue.program));
        flat.push(&lowered.main);
    }
    let mut compiled = device.compile(&flat).into_iter();
    let mut next = || compiled.next().expect("a device gives one result for each program");
    programs
        .into_iter()
        .map(|lowered| {
            let prologue = lowered.prologue.as_ref().map(|prologue| (prologue, next()));
            let main = next()?;
            let prologue = prologue.map(|(lowered, executable)| {
                Ok(Prologue {
                    executable: executable?,
                    constants: lowered.constants.clone(),
                    results: lowered.results.clone(),
                    owner: Owner::default(),
                    spare: Mutex::new(None),
                })
            });
            Ok(Compiled { main, prologue: prologue.transpose()? })
        })
        .collect()
}

impl Compiled {
    /// Runs the kernel. What depends on constant tensors alone is computed when it has not been
    /// kept from an earlier call, and kept when all of these tensors have an identity.
    ///
    /// # Errors
    /// As [`Executable::run`].
    #[inline]
    pub(crate) fn run(
        &self,
        arguments: &mut Arguments<'_, '_>,
        options: RunOptions,
    ) -> Result<(), CallError> {
        match &self.prologue {
            None => self.main.run(arguments, options),
            Some(prologue) => {
                prologue.with_packed(arguments, options, |arguments| self.main.run(arguments, options))
            }
        }
    }

    /// Runs the kernel several times in a row and gives the time that all runs took together, by the device's clock. What
    /// depends on constant tensors alone is computed before, once.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub(crate) fn time(
        &self,
        arguments: &mut Arguments<'_, '_>,
        options: RunOptions,
        repetitions: u64,
    ) -> Result<Duration, CallError> {
        match &self.prologue {
            None => self.main.time(arguments, options, repetitions),
            Some(prologue) => prologue
                .with_packed(arguments, options, |arguments| self.main.time(arguments, options, repetitions)),
        }
    }

    /// The size of the machine code, in bytes.
    pub(crate) fn code_bytes(&self) -> usize {
        self.parts().map(Executable::code_bytes).sum()
    }

    /// The machine code as text for people.
    pub(crate) fn disassembly(&self) -> String {
        self.parts().map(Executable::disassembly).collect()
    }

    fn parts(&self) -> impl Iterator<Item = &dyn Executable> {
        self.prologue.iter().map(|prologue| &*prologue.executable).chain([&*self.main])
    }
}

impl Prologue {
    /// Runs what takes the arguments and the results of the prologue behind them.
    fn with_packed<T>(
        &self,
        arguments: &mut Arguments<'_, '_>,
        options: RunOptions,
        run: impl FnOnce(&mut Arguments<'_, '_>) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let packed = self.packed(arguments, options)?;
        let mut buffers: SmallVec<[BufferArgument<'_>; 8]> =
            arguments.buffers.iter_mut().map(BufferArgument::reborrow).collect();
        buffers.extend(packed.tensors().iter().map(BufferArgument::from));
        let (dims, scalars) = (arguments.dims, arguments.scalars);
        run(&mut Arguments { dims, scalars, buffers: &mut buffers })
    }

    /// What the main part needs for these arguments.
    fn packed(&self, arguments: &Arguments<'_, '_>, options: RunOptions) -> Result<ForCall<'_>, CallError> {
        let identities: Option<SmallVec<[&Arc<Identity>; 4]>> =
            self.constants.iter().map(|position| arguments.buffers.get(*position)?.identity()).collect();
        if let Some(identities) = &identities {
            if let Some(packed) = self.owner.find(identities) {
                return Ok(ForCall::Kept(packed));
            }
            let pack = || self.compute(self.allocate()?, arguments, options);
            if let Some(packed) = self.owner.find_or_pack(identities, self.bytes(), pack)? {
                return Ok(ForCall::Kept(packed));
            }
        }
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        let memory = spare.map_or_else(|| self.allocate(), Ok)?;
        Ok(ForCall::Once(self.compute(memory, arguments, options)?, self))
    }

    fn bytes(&self) -> usize {
        let bytes = |(dtype, shape): &(DType, Vec<usize>)| shape.iter().product::<usize>() * dtype.bytes();
        self.results.iter().map(bytes).sum()
    }

    fn allocate(&self) -> Result<Packed, CallError> {
        let allocate = |(dtype, shape): &(DType, Vec<usize>)| {
            let name = "what is computed from constant tensors".to_owned();
            AnyTensor::zeros_prepared(*dtype, shape, prefer_huge_pages)
                .map_err(|_| CallError::Dimension { name, value: shape.iter().product::<usize>() as i64 })
        };
        self.results.iter().map(allocate).collect()
    }

    fn compute(
        &self,
        mut memory: Packed,
        arguments: &Arguments<'_, '_>,
        options: RunOptions,
    ) -> Result<Packed, CallError> {
        let given = arguments.buffers.len();
        let last = self.constants.last().map_or(0, |last| last + 1);
        if given < last {
            return Err(CallError::Count { sort: "tensors", expected: last, found: given });
        }
        let constants = self.constants.iter().map(|position| arguments.buffers[*position].to_read());
        let mut buffers: SmallVec<[BufferArgument<'_>; 8]> = constants.collect();
        buffers.extend(memory.iter_mut().map(BufferArgument::from));
        self.executable.run(&mut Arguments { dims: &[], scalars: &[], buffers: &mut buffers }, options)?;
        drop(buffers);
        Ok(memory)
    }
}

impl ForCall<'_> {
    fn tensors(&self) -> &[AnyTensor] {
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
