//! Leaves: the innermost parts of a program, as machine code at the machine's full vector width.
//!
//! Cranelift has no vectors of more than 128 bits. A leaf is a statement of the flat level without parallel loops (a whole
//! nest if possible) that is compiled here, placed in the same module and called from the code around it. It
//! is no template: any statement can be one whose operations have vector forms and whose vectors fit into registers.
//!
//! | module | holds |
//! |---|---|
//! | [`claim`] | which statements cannot be leaves |
//! | [`build`] | from a statement to instructions on virtual registers |
//! | [`ir`] | those instructions |
//! | [`fold`] | loads into the instructions that use them, and removal of what is not used |
//! | [`live`], [`allocate`] | machine registers |
//! | [`encode`] | machine code |
//! | [`tally`] | how many statements were no leaves, and why |
//!
//! # The contract of a leaf
//! A leaf is a function of one argument, the address of 8-byte words: two for a report, then its [inputs](Input). It
//! gives 0, or 1 when it ended because an index was out of bounds, which is then in the first word, with the
//! extent that it had to be below in the second. It makes no call, uses no encoding other than VEX and EVEX for
//! vectors, clears their upper halves before it returns (Cranelift's moves become hundreds of times slower
//! otherwise), saves the general registers that the C calling convention says, and touches no byte outside
//! the buffers it is given; lines that it asks for ahead may lie behind them, but are not accessed. What it stores around the caches
//! is in memory, for every thread, when it returns. One that uses tile registers (AMX) configures them at its beginning and releases them at its end,
//! however it ends; the process must have been permitted to use them, which [`Machine`] sees to before it has the feature.

mod allocate;
mod build;
mod claim;
#[cfg(test)]
mod contract;
#[cfg(all(test, target_arch = "x86_64", unix))]
mod contract_run;
#[cfg(test)]
mod contract_tiles;
mod encode;
mod fold;
mod ir;
mod live;
mod tally;

use rustc_hash::FxHashSet;
use thiserror::Error;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Ranges;
use tilewright_core::program::Program;
use tilewright_core::stmt::{Stmt, Symbol};

use super::machine::{Feature, FeatureSet, Machine};
use super::translate::number::Numbers;

pub(super) use claim::Claims;
pub(super) use encode::listing;
pub(super) use tally::count;
pub use tally::refusals;

/// The instructions that leaves are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// 256-bit vectors.
    Avx2,
    /// 512-bit vectors and masks.
    Avx512,
}

impl Level {
    /// The widest that a machine has, if any, for the C calling convention that leaves have.
    pub(super) fn of(machine: &Machine) -> Option<Self> {
        let has = |features: &[Feature]| features.iter().all(|feature| machine.features.contains(*feature));
        if !cfg!(all(target_arch = "x86_64", unix)) {
            return None;
        }
        use Feature::{Avx2, Avx512bw, Avx512dq, Avx512f, Avx512vl, Bmi2, F16c, Fma};
        if has(&[Avx512f, Avx512bw, Avx512dq, Avx512vl, Bmi2]) {
            return Some(Level::Avx512);
        }
        has(&[Avx2, Fma, F16c, Bmi2]).then_some(Level::Avx2)
    }

    /// The width of a vector in bytes.
    pub(super) const fn bytes(self) -> u32 {
        match self {
            Level::Avx2 => 32,
            Level::Avx512 => 64,
        }
    }

    /// The number of vector registers.
    pub(super) const fn registers(self) -> u32 {
        match self {
            Level::Avx2 => 16,
            Level::Avx512 => 32,
        }
    }
}

/// The names of the tensor intrinsics that leaves on a machine can hold.
pub(super) fn intrinsics(machine: &Machine) -> Vec<Symbol> {
    Level::of(machine).map_or_else(Vec::new, |level| build::intrinsic::names(level, machine.features))
}

/// Why a statement is no leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Error)]
pub(super) enum Refusal {
    #[error("an operation without a vector form: {0}")]
    Operation(&'static str),
    #[error("an access without a vector form")]
    Access,
    #[error("an index that depends on data")]
    DataIndex,
    #[error("lanes that do not fit together")]
    Lanes,
    #[error("an intermediate that is in registers of the code around")]
    OuterRegisters,
    #[error("a variable that is not bound")]
    Unbound,
    #[error("an offset that is too large")]
    Offset,
    #[error("a parallel loop, or a statement that is not of the flat level")]
    Statement,
    #[error("too many instructions")]
    Size,
    #[error("spills")]
    Spills,
    #[error("a tensor intrinsic that is not emitted here: {0}")]
    Intrinsic(&'static str),
    #[error("a marked statement that is not what its intrinsic computes")]
    Mark,
    #[error("tile products whose sums cannot stay in tile registers; they are executed as statements")]
    Accumulators,
    #[error("an instruction that could not be encoded")]
    Encoding,
}

/// What a leaf is called with, one word each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Input {
    /// The address of a buffer.
    Buffer(BufferId),
    /// A dimension, or the variable of a loop around.
    Var(VarId),
    /// A run-time scalar.
    Scalar(VarId),
}

/// The byte offset of the first input; before it is the report.
pub(super) const INPUTS: i32 = 16;

/// What is around a statement.
pub(super) struct Surroundings<'a> {
    pub(super) program: &'a Program,
    pub(super) level: Level,
    /// What the machine offers besides the level.
    pub(super) features: FeatureSet,
    pub(super) constants: Vec<(VarId, i64)>,
    pub(super) ranges: Ranges,
    /// The variable of the innermost loop around.
    pub(super) innermost: Option<VarId>,
    /// The intermediates around that have no address.
    pub(super) in_registers: FxHashSet<BufferId>,
}

/// A compiled leaf.
pub(super) struct Leaf {
    /// Position-independent machine code.
    pub(super) code: Vec<u8>,
    /// How much of it is instructions; constants follow.
    pub(super) instruction_bytes: usize,
    pub(super) inputs: Vec<Input>,
    /// Whether it can end with a report.
    pub(super) can_fail: bool,
    /// Why products of tiles in it are executed as statements, if they are.
    pub(super) without_tiles: Option<Refusal>,
}

/// How much the builder may keep in registers.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// How many loaded vectors are kept for other uses.
    shared_loads: usize,
    /// Whether stores to a register tile are made group by group instead of row by row.
    by_group: bool,
    /// Whether products of tiles are instructions.
    tiles: bool,
    /// In how many parts the columns of a block are cut that is transposed in registers; 0 when none is.
    column_parts: usize,
    /// How many groups of lanes take turns.
    at_once: usize,
}

/// The most groups of lanes that take turns. Two chains of dependent operations keep two ports busy if they have side branches, four do
/// without.
const MOST_AT_ONCE: usize = 4;

/// What is kept in registers where they suffice.
const GENEROUS: Limits =
    Limits { shared_loads: 24, by_group: false, tiles: true, column_parts: 1, at_once: MOST_AT_ONCE };

/// What is tried, one after the other, until the vectors fit into registers.
const ATTEMPTS: [Limits; 4] = [
    GENEROUS,
    Limits { shared_loads: 8, by_group: true, ..GENEROUS },
    Limits { shared_loads: 1, by_group: true, ..GENEROUS },
    Limits { shared_loads: 1, by_group: true, column_parts: 0, ..GENEROUS },
];

/// Compiles a statement, or says why it is no leaf.
pub(super) fn compile(
    stmt: &Stmt,
    around: &Surroundings<'_>,
    numbers: &mut Numbers,
) -> Result<Leaf, Refusal> {
    let tiles = build::intrinsic::holds_tiles(stmt);
    let refusal = match attempt(stmt, around, numbers, tiles) {
        Err(refusal) if tiles => refusal,
        outcome => return outcome,
    };
    let leaf = attempt(stmt, around, numbers, false)?;
    let refusal = if refusal == Refusal::Spills { Refusal::Accumulators } else { refusal };
    Ok(Leaf { without_tiles: Some(refusal), ..leaf })
}

fn attempt(
    stmt: &Stmt,
    around: &Surroundings<'_>,
    numbers: &mut Numbers,
    tiles: bool,
) -> Result<Leaf, Refusal> {
    let mut refusal = Refusal::Spills;
    for limits in ATTEMPTS {
        match compile_within(stmt, around, numbers, Limits { tiles, ..limits }) {
            Err(Refusal::Spills) => refusal = Refusal::Spills,
            outcome => return outcome,
        }
    }
    Err(refusal)
}

/// Compiles with as many groups of lanes in turns as fit into registers.
fn compile_within(
    stmt: &Stmt,
    around: &Surroundings<'_>,
    numbers: &mut Numbers,
    limits: Limits,
) -> Result<Leaf, Refusal> {
    let mut allocated = allocated(stmt, around, numbers, limits)?;
    // Addresses live longer where groups take turns; what waits for the stack gains nothing by it.
    if allocated.code.has_turns && allocated.registers.slots > 0 {
        let one_by_one = Limits { at_once: 1, ..limits };
        allocated = match self::allocated(stmt, around, numbers, one_by_one) {
            Ok(other) if other.registers.slots < allocated.registers.slots => other,
            _ => allocated,
        };
    }
    let encoded = encode::encode(&allocated.code, &allocated.registers, around.level)?;
    Ok(Leaf {
        code: encoded.bytes,
        instruction_bytes: encoded.instruction_bytes,
        inputs: allocated.inputs,
        can_fail: encoded.can_fail,
        without_tiles: None,
    })
}

/// Instructions, and where their registers are.
struct Allocated {
    code: ir::Code,
    registers: allocate::Places,
    inputs: Vec<Input>,
}

/// Builds with fewer groups of lanes in turns, until the vectors fit into registers or none take turns any more.
fn allocated(
    stmt: &Stmt,
    around: &Surroundings<'_>,
    numbers: &mut Numbers,
    limits: Limits,
) -> Result<Allocated, Refusal> {
    let (mut code, inputs) = build::build(stmt, around, numbers, limits)?;
    fold::fold(&mut code, around.level);
    match allocate::allocate(&mut code, around.level) {
        Err(Refusal::Spills) if code.has_turns => {
            let fewer = Limits { at_once: limits.at_once / 2, ..limits };
            allocated(stmt, around, numbers, fewer)
        }
        registers => Ok(Allocated { registers: registers?, code, inputs }),
    }
}
