//! Compiled code in two parts: what can be computed before a call, from constant tensors alone, and the call.
//!
//! Whoever runs it sees one kernel with the parameters of the definition.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::lower::LoweredKernel;
use tilewright_core::program::Program;
use tilewright_core::target::{Arguments, Backend, BackendError, BufferArgument, CallError, Executable};
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
    backend: &dyn Backend,
    programs: Vec<&LoweredKernel>,
) -> Vec<Result<Compiled, BackendError>> {
    let mut flat: Vec<&Program> = Vec::new();
    for lowered in &programs {
        flat.extend(lowered.prologue.iter().map(|prologue| &prologue.program));
        flat.push(&lowered.main);
    }
    let mut compiled = backend.compile(&flat).into_iter();
    let mut next = || compiled.next().expect("a backend gives one result for each program");
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
    /// Runs the kernel on `threads` threads. What depends on constant tensors alone is computed when it has not been
    /// kept from an earlier call, and kept when all of these tensors have an identity.
    ///
    /// # Errors
    /// As [`Executable::run`].
    #[inline]
    pub(crate) fn run(&self, arguments: &mut Arguments<'_, '_>, threads: usize) -> Result<(), CallError> {
        match &self.prologue {
            None => self.main.run(arguments, threads),
            Some(prologue) => prologue.run(&*self.main, arguments, threads),
        }
    }

    /// Computes now what the first call with these arguments would compute and keep.
    ///
    /// # Errors
    /// As [`Compiled::run`].
    pub(crate) fn prepare(&self, arguments: &Arguments<'_, '_>, threads: usize) -> Result<(), CallError> {
        match &self.prologue {
            None => Ok(()),
            Some(prologue) => prologue.packed(arguments, threads).map(drop),
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
    fn run(
        &self,
        main: &dyn Executable,
        arguments: &mut Arguments<'_, '_>,
        threads: usize,
    ) -> Result<(), CallError> {
        let packed = self.packed(arguments, threads)?;
        let mut buffers: SmallVec<[BufferArgument<'_>; 8]> =
            arguments.buffers.iter_mut().map(reborrow).collect();
        buffers.extend(packed.tensors().iter().map(BufferArgument::from));
        let (dims, scalars) = (arguments.dims, arguments.scalars);
        main.run(&mut Arguments { dims, scalars, buffers: &mut buffers }, threads)
    }

    /// What the main part needs for these arguments.
    fn packed(&self, arguments: &Arguments<'_, '_>, threads: usize) -> Result<ForCall<'_>, CallError> {
        let identities: Option<SmallVec<[&Arc<Identity>; 4]>> =
            self.constants.iter().map(|position| identity(arguments.buffers.get(*position)?)).collect();
        if let Some(identities) = &identities {
            if let Some(packed) = self.owner.find(identities) {
                return Ok(ForCall::Kept(packed));
            }
            let pack = || self.compute(self.allocate()?, arguments, threads);
            if let Some(packed) = self.owner.find_or_pack(identities, self.bytes(), pack)? {
                return Ok(ForCall::Kept(packed));
            }
        }
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        let memory = spare.map_or_else(|| self.allocate(), Ok)?;
        Ok(ForCall::Once(self.compute(memory, arguments, threads)?, self))
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
        threads: usize,
    ) -> Result<Packed, CallError> {
        let given = arguments.buffers.len();
        let last = self.constants.last().map_or(0, |last| last + 1);
        if given < last {
            return Err(CallError::Count { sort: "tensors", expected: last, found: given });
        }
        let constants =
            self.constants.iter().map(|position| BufferArgument::Read(arguments.buffers[*position].bytes()));
        let mut buffers: SmallVec<[BufferArgument<'_>; 8]> = constants.collect();
        buffers.extend(memory.iter_mut().map(BufferArgument::from));
        self.executable.run(&mut Arguments { dims: &[], scalars: &[], buffers: &mut buffers }, threads)?;
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

fn identity<'a>(argument: &'a BufferArgument<'_>) -> Option<&'a Arc<Identity>> {
    match argument {
        BufferArgument::Identified(identified) => Some(identified.identity()),
        BufferArgument::Read(_) | BufferArgument::Write(_) => None,
    }
}

fn reborrow<'a>(argument: &'a mut BufferArgument<'_>) -> BufferArgument<'a> {
    match argument {
        BufferArgument::Read(bytes) => BufferArgument::Read(bytes),
        BufferArgument::Identified(identified) => BufferArgument::Identified(*identified),
        BufferArgument::Write(bytes) => BufferArgument::Write(bytes),
    }
}
