//! From programs to functions in a module of Cranelift.
//!
//! A [`Compiler`] fills any [`Module`]: one [in memory](jit) for calls in this process, or an object file.
//!
//! | module | holds |
//! |---|---|
//! | [`isa`] | the machine as Cranelift and code generation see it |
//! | [`jit`] | kernels that can be called in this process |
//! | [`listing`] | machine code as text |

mod isa;
mod jit;
mod listing;
#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod object_tests;

pub(crate) use jit::Code;

use cranelift_codegen::Context;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, Signature};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_module::{FuncId, Linkage, Module, ModuleError};
use tilewright_core::device::CompileError;
use tilewright_core::program::Program;
use tilewright_core::verify::{Level, verify};

use crate::codegen::{Callee, GeneratedCode, MachineFacts, Need, generate, link, plan_storage};

/// The alignment of leaves in bytes: a cache line.
const LEAF_ALIGNMENT: u64 = 64;

/// Compiles programs for one machine.
pub(crate) struct Compiler {
    isa: OwnedTargetIsa,
    facts: MachineFacts,
}

/// A program as functions that are not compiled yet.
struct Generated {
    code: GeneratedCode,
    needs: Needs,
}

/// A program as functions in a module.
struct Placed {
    main: FuncId,
    code_bytes: usize,
    needs: Needs,
}

/// The amounts of workspace that a kernel needs.
struct Needs {
    main: Need,
    body: Need,
}

/// The functions of a program that its own functions refer to.
struct Declared {
    bodies: Vec<FuncId>,
    leaves: Vec<FuncId>,
}

impl Compiler {
    /// Generates the code of a program.
    fn generate(&self, program: &Program) -> Result<Generated, CompileError> {
        verify(program, Level::Flat).map_err(|errors| CompileError::Unsupported {
            target: "CPU",
            what: format!("`{}`, which is not a valid program of the flat level: {errors}", program.name),
        })?;
        let plan = plan_storage(program)?;
        let needs = Needs { main: plan.main.clone(), body: plan.body.clone() };
        Ok(Generated { code: generate(program, plan, self.facts)?, needs })
    }

    /// Compiles the functions of one program into a module. The kernel's function is exported under `name`, if there is one;
    /// all others are local.
    fn place<M: Module>(
        &self,
        module: &mut M,
        context: &mut Context,
        program: &Program,
        name: Option<&str>,
    ) -> Result<Placed, CompileError> {
        let Generated { code, needs } = self.generate(program)?;
        let mut code_bytes = 0;
        let declared = self.declare(module, &code)?;
        for (id, leaf) in declared.leaves.iter().zip(&code.leaves) {
            module.define_function_bytes(*id, LEAF_ALIGNMENT, &leaf.code, &[]).map_err(failed_module)?;
            code_bytes += leaf.code.len();
        }
        let mut define = |module: &mut M, id, mut function| {
            link(&mut function, |callee| self.declared(module, &declared, callee))?;
            context.clear();
            context.func = function;
            let outcome = module.define_function(id, context).map_err(failed_module);
            code_bytes += context.compiled_code().map_or(0, |code| code.code_info().total_size as usize);
            outcome
        };
        // Bodies first: a kernel whose body could not be compiled must not refer to it.
        for (id, function) in declared.bodies.iter().zip(code.bodies) {
            define(module, *id, function)?;
        }
        let signature = self.signature(1, 0);
        let main = match name {
            Some(name) => module.declare_function(name, Linkage::Export, &signature),
            None => module.declare_anonymous_function(&signature),
        };
        let main = main.map_err(failed_module)?;
        define(module, main, code.main)?;
        Ok(Placed { main, code_bytes, needs })
    }

    /// Declares the leaves and the bodies of parallel loops.
    fn declare<M: Module>(&self, module: &mut M, code: &GeneratedCode) -> Result<Declared, CompileError> {
        let mut declare = |count: usize, signature: Signature| -> Result<Vec<FuncId>, CompileError> {
            let declare = |_| module.declare_anonymous_function(&signature).map_err(failed_module);
            (0..count).map(declare).collect()
        };
        let bodies = declare(code.bodies.len(), self.signature(3, 0))?;
        let leaves = declare(code.leaves.len(), self.signature(1, 1))?;
        Ok(Declared { bodies, leaves })
    }

    /// The function of a module that a callee is; functions of the run time are imported.
    fn declared<M: Module>(
        &self,
        module: &mut M,
        declared: &Declared,
        callee: Callee,
    ) -> Result<FuncId, CompileError> {
        match callee {
            Callee::Body(position) => Ok(declared.bodies[position]),
            Callee::Leaf(position) => Ok(declared.leaves[position]),
            Callee::Runtime(function) => {
                let signature = function.signature(self.facts.call_conv);
                module.declare_function(function.name(), Linkage::Import, &signature).map_err(failed_module)
            }
        }
    }

    /// The signature of a function of addresses and integers.
    fn signature(&self, params: usize, returns: usize) -> Signature {
        let mut signature = Signature::new(self.facts.call_conv);
        signature.params = vec![AbiParam::new(I64); params];
        signature.returns = vec![AbiParam::new(I64); returns];
        signature
    }
}

#[cold]
fn failed(error: impl std::fmt::Display) -> CompileError {
    CompileError::CodeGeneration(error.to_string())
}

#[cold]
fn failed_module(error: ModuleError) -> CompileError {
    match error {
        // The error's own text leaves out what is wrong.
        ModuleError::Compilation(error) => CompileError::CodeGeneration(format!("{error:?}")),
        error => failed(error),
    }
}
