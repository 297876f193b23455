//! Kernels that can be called in this process.

use std::sync::{Arc, Mutex, PoisonError};

use cranelift_codegen::Context;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::default_libcall_names;
use tilewright_core::device::{CompileError, Executable};
use tilewright_core::program::Program;

use super::isa::LinkMode;
use super::{Compiler, Placed, failed};
use crate::executable::{Kernel, Parts};
use crate::machine::Machine;
use crate::runtime::{RuntimeFunction, library_functions};

/// The memory of the kernels that were compiled together. It is freed with the last of them.
pub(crate) struct Code(Mutex<Option<JITModule>>);

impl Code {
    /// Takes charge of a module.
    fn new(module: JITModule) -> Self {
        Code(Mutex::new(Some(module)))
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let module = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(module) = module {
            // SAFETY: every kernel of the module holds an `Arc` of this, so none is left that could run or be
            // called.
            unsafe { module.free_memory() }
        }
    }
}

impl Compiler {
    /// A compiler of kernels for this process. `machine` offers no more than the running machine does.
    ///
    /// # Errors
    /// When Cranelift has no code generator for the machine.
    pub(crate) fn new(machine: &Machine) -> Result<Self, CompileError> {
        Self::new_for(machine, LinkMode::InProcess)
    }

    /// Compiles programs into one module, one result each.
    pub(crate) fn compile(
        self: &Arc<Self>,
        programs: &[&Program],
    ) -> Vec<Result<Box<dyn Executable>, CompileError>> {
        let mut module = self.module();
        let mut context = Context::new();
        let placed: Vec<Result<Placed, CompileError>> =
            programs.iter().map(|program| self.place(&mut module, &mut context, program, None)).collect();
        if let Err(error) = module.finalize_definitions() {
            let error = failed(error);
            return placed
                .into_iter()
                .map(|placed| Err(placed.err().unwrap_or_else(|| error.clone())))
                .collect();
        }
        let entries: Vec<Result<*const u8, CompileError>> = placed
            .iter()
            .map(|placed| match placed {
                Ok(placed) => Ok(module.get_finalized_function(placed.main)),
                Err(error) => Err(error.clone()),
            })
            .collect();
        let code = Arc::new(Code::new(module));
        let kernels = programs.iter().zip(placed).zip(entries).map(|((program, placed), entry)| {
            let (placed, entry) = (placed?, entry?);
            let parts = Parts {
                program: (*program).clone(),
                entry,
                code: Arc::clone(&code),
                code_bytes: placed.code_bytes,
                main: placed.needs.main,
                body: placed.needs.body,
            };
            // SAFETY: `entry` is the finalized main function of this program, with the signature that `generate`
            // gives it, in the module that `code` owns.
            Ok(Box::new(unsafe { Kernel::new(parts) }) as Box<dyn Executable>)
        });
        kernels.collect()
    }

    fn module(&self) -> JITModule {
        let mut builder = JITBuilder::with_isa(Arc::clone(&self.isa), default_libcall_names());
        builder.symbols(RuntimeFunction::ALL.map(|function| (function.name(), function.address())));
        builder.symbols(library_functions());
        JITModule::new(builder)
    }
}
