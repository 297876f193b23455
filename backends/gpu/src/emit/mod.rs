//! From programs of the `Flat` level to PTX.
//!
//! Each nest of a program becomes a kernel. Buffers of one thread are registers where every access is to a known element;
//! buffers that threads share lie one behind the other in shared memory.
//!
//! | module | holds |
//! |---|---|
//! | [`nest`] | the grids of a program |
//! | [`stmt`] | statements: loops, conditionals, stores |
//! | [`value`] | values of expressions |
//! | [`index`] | index arithmetic |
//! | [`memory`] | where buffers are, and accesses |
//! | [`shuffle`] | exchanges between the lanes of a warp |
//! | [`warp`] | statements of whole warps, on fragments |
//! | [`argument`] | arguments of kernels |
//! | [`builder`] | where instructions go |

mod argument;
mod builder;
mod index;
mod memory;
mod nest;
mod shuffle;
mod stmt;
mod value;
mod warp;

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::device::CompileError;
use tilewright_core::expr::Expr;
use tilewright_core::flat::value_number::{Number, Numbers};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Index, Ranges};
use tilewright_core::program::Program;
use tilewright_core::render::statement_text;
use tilewright_core::stmt::Stmt;
use tilewright_core::swizzle::Exchange;
use tilewright_core::target::GpuTarget;
use tilewright_core::verify::{Level, verify};

use self::builder::Builder;
#[cfg(test)]
pub(crate) use self::builder::bits_of;
use self::index::Width;
use self::nest::{Nest, Nests};
use crate::launch::{GpuCode, Launch, LaunchArgument, Workspace, check_extents};
use crate::ptx::kernel::{Kernel, Module, SharedMemory};
use crate::ptx::operand::{Operand, Register, Special, Symbol};
use crate::ptx::table::{Op, Space};
use crate::ptx::types::{Class, Type};

type Outcome<T> = Result<T, CompileError>;

/// Emits the kernels of a program of the `Flat` level. Equal programs give equal text.
///
/// # Errors
/// [`CompileError::Unsupported`] when the program exceeds a limit of the target, contains what cannot be emitted, or is not of the
/// `Flat` level.
pub fn emit(program: &Program, target: &GpuTarget) -> Result<GpuCode, CompileError> {
    emit_kernels(program, target, false)
}

/// As [`emit`], with a comment in front of the instructions of each statement: the first line of its text.
///
/// # Errors
/// As [`emit`].
pub fn emit_with_comments(program: &Program, target: &GpuTarget) -> Result<GpuCode, CompileError> {
    emit_kernels(program, target, true)
}

fn emit_kernels(program: &Program, target: &GpuTarget, has_comments: bool) -> Result<GpuCode, CompileError> {
    verify(program, Level::Flat).map_err(|errors| {
        unsupported(format!("`{}`, which is not a valid program of the flat level: {errors}", program.name))
    })?;
    let nests = Nests::of(program)?;
    let mut module = Module { architecture: target.architecture(), kernels: Vec::new() };
    let mut launches = Vec::new();
    for (number, nest) in nests.nests.iter().enumerate() {
        let name = entry_name(program, number);
        let (kernel, launch) =
            Generator::kernel(program, nest, &nests.workspaces, name, target, has_comments)?;
        check_extents(&launch, target.max_threads_per_block)?;
        crate::ptx::verify::verify(&kernel).map_err(CompileError::CodeGeneration)?;
        module.kernels.push(kernel);
        launches.push(launch);
    }
    let workspaces = nests.workspaces.iter().map(|id| {
        let buffer = program.buffer(*id);
        Workspace {
            name: buffer.name.to_string(),
            element_bytes: buffer.dtype.bytes(),
            shape: buffer.shape.clone(),
        }
    });
    Ok(GpuCode {
        ptx: module.to_string(),
        launches,
        workspaces: workspaces.collect(),
        dims: program.dims().map(|(var, _)| var).collect(),
    })
}

/// The name of a kernel: that of the program, in the letters that PTX allows, and the kernel's number.
fn entry_name(program: &Program, number: usize) -> String {
    let is_allowed = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
    let name: String =
        program.name.chars().map(|letter| if is_allowed(&letter) { letter } else { '_' }).collect();
    format!("tw_{name}_{number}")
}

/// The error for what this backend lacks.
pub(crate) fn unsupported(what: impl Into<String>) -> CompileError {
    CompileError::Unsupported { target: "GPU", what: what.into() }
}

/// The value of a variable.
#[derive(Clone, Copy, Debug)]
enum Variable {
    Constant(i64),
    Register(Register),
}

/// Memory: a base address and a distance from it.
#[derive(Clone, Copy, Debug)]
struct Place {
    base: Register,
    offset: u32,
    space: Space,
    /// Whether it is written past the caches.
    is_streamed: bool,
}

/// The storage of a buffer.
#[derive(Clone, Debug)]
enum Storage {
    Memory(Place),
    /// One register for each element.
    Registers(Rc<[Register]>),
    /// Registers of all lanes of a warp.
    Fragment(Rc<warp::Fragment>),
}

/// The parts of an address: a base, the distance from there in bytes, and the exchange of pieces of rows.
type AddressKey = (Register, Index, Option<Exchange>);

/// The values that a part of the code has computed, and the facts that hold in it.
#[derive(Default)]
struct Known {
    indices: FxHashMap<(Index, Width), Operand>,
    addresses: FxHashMap<AddressKey, Register>,
    /// The elements of each buffer in memory that this part has loaded, by expression and lane, and that are still there.
    elements: FxHashMap<BufferId, FxHashMap<(Number, u32), Operand>>,
    /// The elements that the statements here load.
    ahead: memory::Ahead,
}

/// Translates one nest.
struct Generator<'p> {
    program: &'p Program,
    workspaces: &'p [BufferId],
    builder: Builder,
    scopes: Vec<Known>,
    /// Values computed in the current statement, by lane.
    memos: Vec<FxHashMap<(Number, u32), Operand>>,
    numbers: Numbers,
    /// Whether values can be computed where they are not asked for.
    safe: FxHashMap<Number, bool>,
    variables: FxHashMap<VarId, Variable>,
    ranges: Ranges,
    storage: FxHashMap<BufferId, Storage>,
    /// The buffers that are kept in registers.
    in_registers: FxHashSet<BufferId>,
    /// The arguments of the kernel so far, and the registers that hold them.
    arguments: Vec<(LaunchArgument, Type, Operand)>,
    /// The addresses among them.
    pointers: FxHashMap<LaunchArgument, Register>,
    local_bytes: u64,
    local_base: Option<Register>,
    /// Whether the code is executed for one lane of a vector alone.
    is_single_lane: bool,
    /// The number of the thread in its warp, in nests with fragments.
    lane: Option<VarId>,
    /// The condition that the thread is the first lane, where the program has it and the code does not.
    first_lane: Option<Expr>,
    shapes: FxHashMap<BufferId, warp::Shape>,
    /// The statements in front of which threads wait for each other, because buffers share bytes.
    added_barriers: FxHashSet<*const Stmt>,
    /// Whether each statement's text stands in front of its instructions.
    has_comments: bool,
}

impl<'p> Generator<'p> {
    fn kernel(
        program: &'p Program,
        nest: &Nest<'p>,
        workspaces: &'p [BufferId],
        name: String,
        target: &GpuTarget,
        has_comments: bool,
    ) -> Outcome<(Kernel, Launch)> {
        let mut generator = Generator {
            program,
            workspaces,
            builder: Builder::default(),
            scopes: vec![Known::default()],
            memos: Vec::new(),
            numbers: Numbers::default(),
            safe: FxHashMap::default(),
            variables: FxHashMap::default(),
            ranges: Ranges::new(),
            storage: FxHashMap::default(),
            in_registers: memory::find_registers(program, nest.body),
            arguments: Vec::new(),
            pointers: FxHashMap::default(),
            local_bytes: 0,
            local_base: None,
            is_single_lane: false,
            lane: warp::lane_variable(nest),
            first_lane: None,
            shapes: warp::find_shapes(program, nest.body),
            added_barriers: FxHashSet::default(),
            has_comments,
        };
        let shared = generator.share(nest, target)?;
        let threads = generator.bind(nest)?;
        generator.stmt(nest.body)?;
        let (lines, registers) = generator.builder.finish();
        let params = generator.arguments.iter().map(|(_, ty, _)| *ty).collect();
        let local_bytes = generator.local_bytes;
        let dynamic = match shared {
            SharedMemory::Static(_) => 0,
            SharedMemory::Dynamic(bytes) => bytes,
        };
        let launch = Launch {
            entry: name.clone(),
            grid: nest.grid(),
            threads,
            shared_bytes: shared.bytes(),
            dynamic_shared_bytes: dynamic,
            arguments: generator.arguments.iter().map(|(argument, ..)| *argument).collect(),
        };
        Ok((Kernel { name, params, threads, shared, local_bytes, lines, registers }, launch))
    }

    /// Writes the first line of a statement's text as a comment, where comments are asked for.
    fn comment_on(&mut self, stmt: &Stmt) {
        if self.has_comments && !matches!(stmt, Stmt::Seq(_)) {
            self.builder.comment(statement_text(self.program, stmt));
        }
    }

    /// Gives the buffers that threads share their places.
    fn share(&mut self, nest: &Nest<'_>, target: &GpuTarget) -> Outcome<SharedMemory> {
        let (plan, memory) = memory::place_shared(self.program, nest, target)?;
        self.added_barriers = plan.barriers;
        if nest.shared.is_empty() {
            return Ok(memory);
        }
        let symbol = Operand::Symbol(Symbol::Shared);
        let base = self.builder.compute_at_entry(Op::MoveSpecial, Type::U32, &[symbol]);
        let base = self.register_of(base)?;
        for (buffer, offset) in nest.shared.iter().zip(plan.offsets) {
            let place = Place { base, offset: offset as u32, space: Space::Shared, is_streamed: false };
            self.storage.insert(*buffer, Storage::Memory(place));
        }
        Ok(memory)
    }

    /// Gives the variables of loops over blocks and threads their values; the answer is the threads of a block.
    fn bind(&mut self, nest: &Nest<'_>) -> Outcome<[u32; 3]> {
        for (axis, node) in &nest.loops {
            let number = axis.number();
            let special = if axis.is_of_block() { Special::Thread(number) } else { Special::Block(number) };
            let variable = if node.extent.is(1) {
                Variable::Constant(0)
            } else {
                let operand = Operand::Special(special);
                let value = self.builder.compute_at_entry(Op::MoveSpecial, Type::U32, &[operand]);
                Variable::Register(self.register_of(value)?)
            };
            self.variables.insert(node.var, variable);
            self.ranges.insert_loop(node);
        }
        let [Some(x), Some(y), Some(z)] = nest.threads() else {
            return Err(unsupported(format!("`{}`, whose blocks have no constant size", self.program.name)));
        };
        Ok([x, y, z])
    }

    fn open_scope(&mut self) {
        self.scopes.push(Known::default());
        self.memos.push(FxHashMap::default());
    }

    /// Forgets the elements of a buffer in memory, one of which changes.
    fn forget_elements(&mut self, buffer: BufferId) {
        self.scopes.iter_mut().for_each(|known| drop(known.elements.remove(&buffer)));
    }

    /// Forgets all elements in memory: other threads may have changed them.
    fn forget_all_elements(&mut self) {
        self.scopes.iter_mut().for_each(|known| known.elements.clear());
    }

    fn close_scope(&mut self) {
        self.scopes.pop();
        self.memos.pop();
    }

    /// The operand in a register of its own class.
    fn in_register(&mut self, class: Class, operand: Operand) -> Operand {
        match operand {
            Operand::Register(_) => operand,
            _ => self.builder.compute(Op::Move, value::bits_type(class), &[operand]),
        }
    }

    /// The register of a result.
    fn register_of(&self, operand: Operand) -> Outcome<Register> {
        operand.register().ok_or_else(|| self.broken("a result is in no register"))
    }

    /// The error for a program that the verifier should have refused.
    fn broken(&self, problem: &str) -> CompileError {
        CompileError::CodeGeneration(format!("`{}`: {problem}", self.program.name))
    }
}
