//! Code: lowered kernels compiled for a device, in two parts.
//!
//! Lowering separates the computation that depends on constant tensors alone, the prologue, from the rest. The caller sees one
//! kernel with the parameters of the definition. [`compile`] makes code for calls, for tuning and for tools alike.
//!
//! | module | does |
//! |---|---|
//!
//! `prologue`
//! runs the prologue when its results are not kept yet
//!
//! | `packed` | keeps these results |

mod packed;
mod prologue;

use std::sync::Arc;
use std::time::Duration;

use tilewright_core::device::{Arguments, CallError, CompileError, Device, Executable};
use tilewright_core::lower::LoweredKernel;
use tilewright_core::program::Program;
use tilewright_core::target::RunOptions;

use prologue::Prologue;

/// Compiled code.
pub struct Compiled {
    main: Box<dyn Executable>,
    prologue: Option<Prologue>,
}

/// Compiles programs for a device, one result each. Several at once share the fixed costs.
pub fn compile(device: &Arc<dyn Device>, programs: &[&LoweredKernel]) -> Vec<Result<Compiled, CompileError>> {
    let mut flat: Vec<&Program> = Vec::new();
    for lowered in programs {
        flat.extend(lowered.prologue.iter().map(|prologue| &prologue.program));
        flat.push(&lowered.main);
    }
    let mut compiled = device.compile(&flat).into_iter();
    let mut next = || compiled.next().expect("a device gives one result for each program");
    programs
        .iter()
        .map(|lowered| {
            let prologue = lowered.prologue.as_ref().map(|prologue| (prologue, next()));
            let main = next()?;
            let prologue = prologue
                .map(|(lowered, executable)| Ok(Prologue::new(Arc::clone(device), executable?, lowered)));
            Ok(Compiled { main, prologue: prologue.transpose()? })
        })
        .collect()
}

impl Compiled {
    /// Runs the kernel. The prologue runs unless its results were kept from an earlier call; its results are
    /// kept when all of the constant tensors have an identity.
    ///
    /// # Errors
    /// As [`Executable::run`].
    #[inline]
    pub fn run(&self, arguments: &mut Arguments<'_, '_>, options: RunOptions) -> Result<(), CallError> {
        match &self.prologue {
            None => self.main.run(arguments, options),
            Some(prologue) => {
                prologue.with_packed(arguments, options, |arguments| self.main.run(arguments, options))
            }
        }
    }

    /// Runs the kernel several times in a row and gives the time of all runs together, by the device's clock. The
    /// prologue runs before, once.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn time(
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

    /// Runs the kernel once, with its operands and the results of constant tensors evicted from the caches of the device before, and
    /// gives the time by the device's clock; `None` where the device cannot evict.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn time_cold(
        &self,
        device: &dyn Device,
        arguments: &mut Arguments<'_, '_>,
        options: RunOptions,
    ) -> Result<Option<Duration>, CallError> {
        let run = |arguments: &mut Arguments<'_, '_>| match device.evict(arguments.buffers) {
            true => self.main.time(arguments, options, 1).map(Some),
            false => Ok(None),
        };
        match &self.prologue {
            None => run(arguments),
            Some(prologue) => prologue.with_packed(arguments, options, run),
        }
    }

    /// The size of the machine code, in bytes.
    pub fn code_bytes(&self) -> usize {
        self.parts().map(Executable::code_bytes).sum()
    }

    /// The machine code as text for people.
    pub fn disassembly(&self) -> String {
        self.parts().map(Executable::disassembly).collect()
    }

    fn parts(&self) -> impl Iterator<Item = &dyn Executable> {
        self.prologue.iter().map(Prologue::executable).chain([&*self.main])
    }
}
