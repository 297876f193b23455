//! From a program of the `Flat` level to functions in Cranelift's representation.
//!
//! | module | holds |
//! |---|---|
//! | [`nest`], [`sequence`] | statements: loops, conditionals, stores; stores in the order that registers suit |
//! | [`parallel`] | parallel loops, whose bodies become functions of their own |
//! | [`callee`] | calls of these bodies, of leaves and of the run time |
//! | [`leaf_call`] | statements that the [SIMD code generator](super::simd) compiles |
//! | [`value`] | values of expressions |
//! | [`memory`] | where intermediates live, and accesses |
//! | [`emit`] | where instructions go, and which values are computed already |
//!
//! Every statement is first offered to SIMD code generation, the outermost ones first. Cranelift compiles the statements that
//! it refuses, with vectors of 128 bits.

mod callee;
mod emit;
mod leaf_call;
mod memory;
mod nest;
mod parallel;
mod sequence;
mod value;

use std::rc::Rc;
use std::sync::Arc;

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, Block, Function, InstBuilder, MemFlagsData, Signature, Type, Value};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::device::CompileError;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Facts, Index, Ranges};
use tilewright_core::program::Program;
use tilewright_core::stmt::For;

use crate::flat::value_number::{Number, Numbers};
use crate::machine::FeatureSet;
use crate::runtime::frame::FrameLayout;
use crate::simd::{Eligibility, Leaf, Refusal, VectorExtension};

pub(super) use callee::{Callee, link};
use emit::{Key, Scope};
use memory::promote::Registers;
pub(super) use memory::storage::{Need, StoragePlan, plan_storage};
use parallel::Captures;
use value::lanes::{Group, Lanes};
use value::select::{Guard, LaneCondition};

/// The result of generating code.
type Outcome<T> = Result<T, CompileError>;

/// The facts about the machine that code generation needs.
#[derive(Clone, Copy)]
pub(super) struct MachineFacts {
    /// The calling convention of ordinary C functions.
    pub(super) call_conv: CallConv,
    /// Facts that building functions needs.
    pub(super) frontend: TargetFrontendConfig,
    /// Whether vector instructions take operands from memory that is not aligned, as all but those of x86-64
    /// before AVX do.
    pub(super) folds_unaligned_loads: bool,
    /// The instructions that leaves are made of, if there can be any.
    pub(super) leaves: Option<VectorExtension>,
    /// The machine's features.
    pub(super) features: FeatureSet,
}

/// The code of a program.
pub(super) struct GeneratedCode {
    /// The kernel: a function of the [frame](super::runtime::frame)'s address.
    pub(super) main: Function,
    /// The bodies of the parallel loops that are in no other.
    pub(super) bodies: Vec<Function>,
    /// The leaves that the functions call.
    pub(super) leaves: Vec<Leaf>,
    /// The statements that are no leaves, and why; parts of them may be.
    pub(super) refusals: Vec<(Refusal, u32)>,
}

/// Generates the code of a program.
///
/// # Errors
/// [`CompileError::Unsupported`] when the program contains what this backend cannot do, or is not of the
/// `Flat` level.
pub(super) fn generate(
    program: &Program,
    plan: StoragePlan,
    machine: MachineFacts,
) -> Outcome<GeneratedCode> {
    let mut unit = Unit {
        program: program.clone(),
        plan,
        frame: FrameLayout::of(program),
        machine,
        numbers: Numbers::default(),
        bodies: Vec::new(),
        eligibility: machine.leaves.map(|level| Eligibility::of(&program.body, level, machine.features)),
        leaves: Vec::new(),
        refusals: Vec::new(),
    };
    let mut context = FunctionBuilderContext::new();
    let signature = signature(machine.call_conv, 1);
    let main = build_function(&mut unit, &mut context, signature, |generator, arguments| {
        generator.frame = arguments[0];
        let body = generator.unit.program.body.clone();
        generator.stmt(&body)
    })?;
    let mut functions = Vec::new();
    for body in std::mem::take(&mut unit.bodies) {
        functions.push(parallel::generate_body(&mut unit, &mut context, &body)?);
    }
    let (leaves, refusals) = (unit.leaves, unit.refusals);
    Ok(GeneratedCode { main, bodies: functions, leaves, refusals })
}

/// The signature of a function of some addresses or integers without a result.
fn signature(call_conv: CallConv, parameters: usize) -> Signature {
    let mut signature = Signature::new(call_conv);
    signature.params = vec![AbiParam::new(I64); parameters];
    signature
}

/// Builds one function; `fill` gets its arguments.
fn build_function(
    unit: &mut Unit,
    context: &mut FunctionBuilderContext,
    signature: Signature,
    fill: impl FnOnce(&mut Generator<'_>, &[Value]) -> Outcome<()>,
) -> Outcome<Function> {
    let mut function = Function::with_name_signature(Default::default(), signature);
    let frontend = unit.machine.frontend;
    let mut builder = FunctionBuilder::new(&mut function, context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.ensure_inserted_block();
    builder.seal_block(entry);
    let arguments = builder.block_params(entry).to_vec();
    let mut generator = Generator {
        unit,
        builder,
        scopes: Vec::new(),
        memos: Vec::new(),
        hoisted_to: None,
        variables: FxHashMap::default(),
        ranges: Ranges::new(),
        facts: Facts::default(),
        storage: FxHashMap::default(),
        frame: arguments[0],
        workspace: None,
        in_body: false,
        innermost: None,
        active: None,
        guard: None,
        shared_loads: FxHashSet::default(),
        exit: None,
        is_for_one_group: false,
    };
    generator.open_function();
    let outcome = fill(&mut generator, &arguments);
    if outcome.is_ok() {
        generator.write_exit();
    }
    let Generator { mut builder, .. } = generator;
    match outcome {
        Ok(()) => {
            builder.ins().return_(&[]);
            builder.finalize(frontend);
            Ok(function)
        }
        Err(error) => {
            // It still refers to the function that is given up here.
            *context = FunctionBuilderContext::new();
            Err(error)
        }
    }
}

/// The state that the functions of a program share while their code is generated.
struct Unit {
    program: Program,
    plan: StoragePlan,
    frame: FrameLayout,
    machine: MachineFacts,
    numbers: Numbers,
    bodies: Vec<ParallelBody>,
    /// The statements of the program that cannot be leaves, where there are leaves at all.
    eligibility: Option<Eligibility>,
    leaves: Vec<Leaf>,
    refusals: Vec<(Refusal, u32)>,
}

/// A parallel loop whose body has no code yet.
struct ParallelBody {
    node: Arc<For>,
    captures: Captures,
}

/// The value of a variable.
#[derive(Clone, Copy, Debug)]
enum Binding {
    Constant(i64),
    Value { value: Value, level: usize },
}

/// The storage of a buffer.
#[derive(Clone)]
enum Storage {
    /// In memory from `base + offset` on; `base` is known in the scope `level`.
    Memory { base: Value, offset: i64, level: usize },
    /// In registers.
    Registers(Rc<Registers>),
}

/// The part of the workspace that is not in use.
#[derive(Clone, Copy)]
struct FreeWorkspace {
    base: Value,
    offset: i64,
    level: usize,
}

/// Translates one function.
struct Generator<'a> {
    unit: &'a mut Unit,
    builder: FunctionBuilder<'a>,
    scopes: Vec<Scope>,
    /// Expressions computed in the current statement.
    memos: Vec<FxHashMap<(Number, Group), Lanes>>,
    /// The scope to which instructions are hoisted at the moment.
    hoisted_to: Option<usize>,
    variables: FxHashMap<VarId, Binding>,
    ranges: Ranges,
    /// Facts from the conditions of the branches around.
    facts: Facts,
    storage: FxHashMap<BufferId, Storage>,
    /// The address of the kernel's frame.
    frame: Value,
    workspace: Option<FreeWorkspace>,
    /// Whether this is the body of a parallel loop, in which parallel loops are serial.
    in_body: bool,
    /// The variable of the innermost loop around that is no part of a leaf.
    innermost: Option<VarId>,
    /// The lanes for which statements are executed; all of them when absent.
    active: Option<LaneCondition>,
    /// The lanes of the current group whose loads may be made; all of them when absent.
    guard: Option<Guard>,
    /// Loads that several of the statements in the innermost sequence make.
    shared_loads: FxHashSet<(BufferId, Index)>,
    /// Where a failed check of an index leads.
    exit: Option<Block>,
    /// Whether the code is reached under a condition on the lanes of the current group.
    is_for_one_group: bool,
}

impl Generator<'_> {
    /// A word of the kernel's frame.
    fn frame_word(&mut self, offset: i32, ty: Type) -> Outcome<Value> {
        let frame = self.frame;
        self.value_at(0, Key::Frame(offset, ty), |this| {
            Ok(this.ins().load(ty, memory_flags(), frame, offset))
        })
    }

    /// The error for what this backend lacks.
    fn unsupported(&self, what: impl Into<String>) -> CompileError {
        CompileError::Unsupported { target: "CPU", what: what.into() }
    }

    /// The error for a program that the verifier should have refused.
    fn broken(&self, what: String) -> CompileError {
        CompileError::CodeGeneration(format!("`{}`: {what}", self.unit.program.name))
    }

    /// The only index of an access.
    fn single_index(&self, indices: &[Index]) -> Outcome<Index> {
        match indices {
            [] => Ok(Index::constant(0)),
            [index] => Ok(index.clone()),
            _ => Err(self.unsupported(format!("an access with {} indices", indices.len()))),
        }
    }
}

/// The flags of every access: bounds are checked before a call, so none can fault. Alignment to the
/// element is not promised, because vectors start anywhere.
fn memory_flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}
