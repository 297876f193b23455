//! The backend: from programs to callable kernels.

use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, ModuleError, default_libcall_names};
use tilewright_core::program::Program;
use tilewright_core::target::{Backend, BackendError, CpuTarget, Executable, Target};
use tilewright_core::verify::{Level, verify};

use super::executable::{Code, Kernel, Parts};
use super::leaf;
use super::machine::{Feature, FeatureOverrideError, Machine};
use super::support;
use super::translate::{MachineFacts, Need, Translation, name_leaves, parallel_bodies, plan, translate};

/// The width of Cranelift's vectors in bits, for code that is not in [leaves](leaf).
const NARROW_BITS: u32 = 128;

/// The alignment of leaves in bytes: a cache line.
const LEAF_ALIGNMENT: u64 = 64;

/// The CPU backend.
pub struct CpuBackend {
    target: Target,
    compiler: Result<Arc<Compiler>, BackendError>,
}

/// What compiles: the machine's settings.
pub(super) struct Compiler {
    isa: OwnedTargetIsa,
    facts: MachineFacts,
}

/// The text of a kernel's machine code.
pub(super) struct Listing {
    /// One instruction a line.
    pub(super) text: String,
}

/// A program as functions that are not compiled yet.
struct Translated {
    translation: Translation,
    main: FuncId,
    bodies: Vec<FuncId>,
    leaves: Vec<FuncId>,
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

impl CpuBackend {
    /// The backend for the running machine.
    ///
    /// # Errors
    /// When the environment variable that takes features away is malformed.
    pub fn host() -> Result<Self, FeatureOverrideError> {
        Ok(Self::for_machine(Machine::host()?))
    }

    /// The backend for the running machine without the features in `removals`, a list such as `-fma,-avx`.
    ///
    /// # Errors
    /// When an entry is unknown or lacks its minus sign.
    pub fn without_features(removals: &str) -> Result<Self, FeatureOverrideError> {
        let machine = Machine::host()?.clone().without_features(removals)?;
        Ok(Self::for_machine(&machine))
    }

    /// The code runs on this machine, so `machine` must offer no more than it does.
    fn for_machine(machine: &Machine) -> Self {
        let compiler = Compiler::new(machine).map(Arc::new);
        let vector_bits = leaf::Level::of(machine).map_or(NARROW_BITS, |level| 8 * level.bytes());
        let cpu = CpuTarget { intrinsics: leaf::intrinsics(machine), ..machine.target(vector_bits) };
        CpuBackend { target: cpu.into(), compiler }
    }
}

impl Backend for CpuBackend {
    fn target(&self) -> &Target {
        &self.target
    }

    fn compile(&self, programs: &[&Program]) -> Vec<Result<Box<dyn Executable>, BackendError>> {
        match &self.compiler {
            Ok(compiler) => compiler.compile(programs),
            Err(error) => programs.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

impl Compiler {
    fn new(machine: &Machine) -> Result<Self, BackendError> {
        if machine.architecture == "x86_64" && !machine.features.contains(Feature::Sse41) {
            return Err(BackendError::Unsupported {
                target: "CPU",
                what: "for x86-64 without SSE4.1".into(),
            });
        }
        let mut builder = cranelift_native::builder_with_options(false).map_err(failed)?;
        for feature in machine.features.iter() {
            for flag in cranelift_flags(feature) {
                builder.enable(flag).map_err(failed)?;
            }
        }
        let folds_unaligned_loads =
            machine.architecture != "x86_64" || machine.features.contains(Feature::Avx);
        let mut flags = settings::builder();
        let verifier = if cfg!(debug_assertions) { "true" } else { "false" };
        for (name, value) in [
            // The optimiser moves the instructions of unrolled kernels so far apart that they spill.
            ("opt_level", "none"),
            // Allocation in a single pass takes hardly less time for kernels, and they run at a third of the speed.
            ("regalloc_algorithm", "backtracking"),
            ("enable_verifier", verifier),
            ("is_pic", "false"),
            ("use_colocated_libcalls", "false"),
            ("unwind_info", "false"),
            ("enable_probestack", "true"),
            ("probestack_strategy", "inline"),
            ("log2_min_function_alignment", "6"),
        ] {
            flags.set(name, value).map_err(failed)?;
        }
        let isa = builder.finish(settings::Flags::new(flags)).map_err(failed)?;
        let facts = MachineFacts {
            call_conv: isa.default_call_conv(),
            frontend: isa.frontend_config(),
            folds_unaligned_loads,
            leaves: leaf::Level::of(machine),
            features: machine.features,
        };
        Ok(Compiler { isa, facts })
    }

    fn compile(self: &Arc<Self>, programs: &[&Program]) -> Vec<Result<Box<dyn Executable>, BackendError>> {
        let mut module = self.module();
        let mut context = Context::new();
        let placed: Vec<Result<Placed, BackendError>> =
            programs.iter().map(|program| self.place(&mut module, &mut context, program)).collect();
        if let Err(error) = module.finalize_definitions() {
            let error = failed(error);
            return placed
                .into_iter()
                .map(|placed| Err(placed.err().unwrap_or_else(|| error.clone())))
                .collect();
        }
        let entries: Vec<Result<*const u8, BackendError>> = placed
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
                compiler: Arc::clone(self),
            };
            // SAFETY: `entry` is the finalized main function of this program, with the signature that `translate`
            // gives it, in the module that `code` owns.
            Ok(Box::new(unsafe { Kernel::new(parts) }) as Box<dyn Executable>)
        });
        kernels.collect()
    }

    fn module(&self) -> JITModule {
        let mut builder = JITBuilder::with_isa(Arc::clone(&self.isa), default_libcall_names());
        builder.symbols(support::symbols());
        JITModule::new(builder)
    }

    /// Compiles the functions of one program into the module.
    fn place(
        &self,
        module: &mut JITModule,
        context: &mut Context,
        program: &Program,
    ) -> Result<Placed, BackendError> {
        let (mut code_bytes, mut leaf_bytes) = (0, 0);
        let mut define = |module: &mut JITModule, context: &mut Context, id| {
            let outcome = module.define_function(id, context).map_err(failed_module);
            code_bytes += context.compiled_code().map_or(0, |code| code.code_info().total_size as usize);
            outcome
        };
        let Translated { translation, main, bodies, leaves, needs } = self.translate(module, program)?;
        for (id, leaf) in leaves.into_iter().zip(&translation.leaves) {
            module.define_function_bytes(id, LEAF_ALIGNMENT, &leaf.code, &[]).map_err(failed_module)?;
            leaf_bytes += leaf.code.len();
        }
        // Bodies first: a kernel whose body could not be compiled must not refer to it.
        for (id, function) in bodies.into_iter().zip(translation.bodies) {
            context.clear();
            context.func = function;
            define(module, context, id)?;
        }
        context.clear();
        context.func = translation.main;
        define(module, context, main)?;
        Ok(Placed { main, code_bytes: code_bytes + leaf_bytes, needs })
    }

    /// Translates a program whose functions will belong to the module.
    fn translate(&self, module: &mut JITModule, program: &Program) -> Result<Translated, BackendError> {
        verify(program, Level::Flat).map_err(|errors| BackendError::Unsupported {
            target: "CPU",
            what: format!("`{}`, which is not a valid program of the flat level: {errors}", program.name),
        })?;
        let plan = plan(program)?;
        let needs = Needs { main: plan.main.clone(), body: plan.body.clone() };
        let mut signature = module.make_signature();
        let parameter = cranelift_codegen::ir::AbiParam::new(cranelift_codegen::ir::types::I64);
        signature.params = vec![parameter];
        let main = module.declare_anonymous_function(&signature).map_err(failed_module)?;
        signature.params = vec![parameter; 3];
        let mut bodies = Vec::new();
        for _ in 0..parallel_bodies(program) {
            bodies.push(module.declare_anonymous_function(&signature).map_err(failed_module)?);
        }
        let mut translation = translate(program, plan, self.facts, &bodies)?;
        signature.params = vec![parameter];
        signature.returns = vec![parameter];
        let mut leaves = Vec::new();
        for _ in &translation.leaves {
            leaves.push(module.declare_anonymous_function(&signature).map_err(failed_module)?);
        }
        for function in [&mut translation.main].into_iter().chain(&mut translation.bodies) {
            name_leaves(function, &leaves);
        }
        Ok(Translated { translation, main, bodies, leaves, needs })
    }

    /// The machine code of a program as text.
    pub(super) fn list(&self, program: &Program) -> Result<Listing, BackendError> {
        let mut module = self.module();
        let result = self.translate(&mut module, program).and_then(|Translated { translation, .. }| {
            let mut text = String::new();
            let mut functions = vec![("kernel".to_owned(), translation.main)];
            let bodies = translation.bodies.into_iter().enumerate();
            functions.extend(bodies.map(|(position, body)| (format!("parallel body {position}"), body)));
            for (name, function) in functions {
                let mut context = Context::for_function(function);
                context.set_disasm(true);
                let code = context.compile(&*self.isa, &mut Default::default());
                let code = code.map_err(|error| failed(error.inner))?;
                text.push_str(&format!("; {name} of `{}`\n", program.name));
                text.push_str(code.vcode.as_deref().unwrap_or_default());
            }
            for (position, own) in translation.leaves.iter().enumerate() {
                text.push_str(&format!("; leaf {position} of `{}`\n{}", program.name, leaf::listing(own)));
            }
            for (refusal, count) in &translation.refusals {
                text.push_str(&format!("; {count} statements are no leaves: {refusal}\n"));
            }
            Ok(Listing { text })
        });
        // SAFETY: nothing was defined in the module.
        unsafe { module.free_memory() };
        result
    }
}

/// Cranelift's names for a feature.
fn cranelift_flags(feature: Feature) -> &'static [&'static str] {
    match feature {
        Feature::Sse41 => &["has_sse3", "has_ssse3", "has_sse41", "has_cmpxchg16b"],
        Feature::Sse42 => &["has_sse42"],
        Feature::Popcnt => &["has_popcnt"],
        Feature::Avx => &["has_avx"],
        Feature::Avx2 => &["has_avx2"],
        Feature::Fma => &["has_fma"],
        Feature::Bmi1 => &["has_bmi1"],
        Feature::Bmi2 => &["has_bmi2"],
        Feature::Lzcnt => &["has_lzcnt"],
        Feature::Avx512f => &["has_avx512f"],
        Feature::Avx512dq => &["has_avx512dq"],
        Feature::Avx512vl => &["has_avx512vl"],
        _ => &[],
    }
}

#[cold]
fn failed(error: impl std::fmt::Display) -> BackendError {
    BackendError::CodeGeneration(error.to_string())
}

#[cold]
fn failed_module(error: ModuleError) -> BackendError {
    match error {
        // The error's own text leaves out what is wrong.
        ModuleError::Compilation(error) => BackendError::CodeGeneration(format!("{error:?}")),
        error => failed(error),
    }
}
