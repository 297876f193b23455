//! SIMD code generation: the innermost parts of a program as machine code at the machine's full vector width.
//!
//! Cranelift has no vectors of more than 128 bits. A leaf is a statement of the flat level without parallel loops (a whole
//! nest if possible) that is compiled here, placed in the same module and called from the code around it. It
//! is no template: any statement can be one whose operations have vector forms and whose vectors fit into registers.
//!
//! | module | holds |
//! |---|---|
//! | [`eligibility`] | which statements cannot be leaves |
//! | [`build`] | from a statement to instructions on virtual registers |
//! | [`ir`] | those instructions |
//! | [`fold`] | loads folded into the instructions that use them, and removal of unused instructions |
//! | [`liveness`], [`allocate`] | machine registers |
//! | [`x86`] | machine code |
//! | [`extension`] | the instruction sets that leaves are made of |
//! | [`refusal`] | why statements are no leaves, and how many there were |
//!
//! # The contract of a leaf
//! A leaf is a function of one argument, the address of 8-byte words: two for a report, then its [inputs](Input). It
//! gives 0, or 1 when it ended because an index was out of bounds, which is then in the first word, with the
//! extent that it had to be below in the second. It makes no call, uses no encoding other than VEX and EVEX for
//! vectors, clears their upper halves before it returns (Cranelift's moves become hundreds of times slower
//! otherwise), saves the general registers that the C calling convention says, and touches no byte outside
//! the buffers it is given; prefetched lines may lie behind them, but are not accessed. Its streaming stores are visible to
//! every thread when it returns. One that uses tile registers (AMX) configures them at its beginning and releases them at its end,
//! however it ends; the process must have been permitted to use them, which [`Machine`] sees to before it has the feature.

mod allocate;
mod build;
mod eligibility;
mod extension;
mod fold;
mod ir;
mod liveness;
mod refusal;
#[cfg(test)]
mod tests;
mod x86;

use rustc_hash::FxHashSet;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Facts, Ranges};
use tilewright_core::program::Program;
use tilewright_core::stmt::{Stmt, Symbol};

use crate::flat::value_number::Numbers;
use crate::machine::{FeatureSet, Machine};

pub(crate) use eligibility::Eligibility;
pub(crate) use extension::VectorExtension;
pub use refusal::refusals;
pub(crate) use refusal::{Refusal, count};
pub(crate) use x86::listing;

/// The names of the tensor intrinsics that leaves on a machine can hold.
pub(crate) fn intrinsics(machine: &Machine) -> Vec<Symbol> {
    VectorExtension::of(machine)
        .map_or_else(Vec::new, |extension| build::intrinsic::names(extension, machine.features))
}

/// An argument of a leaf: one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Input {
    /// The address of a buffer.
    Buffer(BufferId),
    /// A dimension, or the variable of a loop around.
    Var(VarId),
    /// A run-time scalar.
    Scalar(VarId),
}

/// The byte offset of the first input; before it is the report.
pub(crate) const INPUTS: i32 = 16;

/// The context of a statement.
pub(crate) struct Surroundings<'a> {
    pub(crate) program: &'a Program,
    pub(crate) extension: VectorExtension,
    /// The machine's features.
    pub(crate) features: FeatureSet,
    pub(crate) constants: Vec<(VarId, i64)>,
    pub(crate) ranges: Ranges,
    /// Facts from the conditions of the branches around.
    pub(crate) facts: Facts,
    /// The variable of the innermost loop around.
    pub(crate) innermost: Option<VarId>,
    /// The intermediates around that have no address.
    pub(crate) in_registers: FxHashSet<BufferId>,
}

/// A compiled leaf.
pub(crate) struct Leaf {
    /// Position-independent machine code.
    pub(crate) code: Vec<u8>,
    /// How much of it is instructions; constants follow.
    pub(crate) instruction_bytes: usize,
    pub(crate) inputs: Vec<Input>,
    /// Whether it can end with a report.
    pub(crate) can_fail: bool,
    /// Why products of tiles in it are executed as statements, if they are.
    pub(crate) without_tiles: Option<Refusal>,
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
    /// The number of groups of lanes whose instructions are interleaved.
    interleaved_groups: usize,
    /// The intermediates that may be in registers.
    intermediates: Intermediates,
}

/// Which intermediates may be in registers; others are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Intermediates {
    All,
    /// Only those that a statement adds to.
    Sums,
    None,
}

/// The most groups of lanes whose instructions are interleaved. Two chains of dependent operations keep two ports busy if they
/// have side branches, four chains do without.
const MOST_INTERLEAVED_GROUPS: usize = 4;

/// The limits where registers suffice.
const GENEROUS: Limits = Limits {
    shared_loads: 24,
    by_group: false,
    tiles: true,
    column_parts: 1,
    interleaved_groups: MOST_INTERLEAVED_GROUPS,
    intermediates: Intermediates::All,
};

/// The limits where few loaded vectors can be kept.
const FRUGAL: Limits = Limits { shared_loads: 1, by_group: true, ..GENEROUS };

/// The same, row by row: what a row shares with the next one stays in registers, and what it shares with later ones does not.
const FRUGAL_BY_ROW: Limits = Limits { shared_loads: 4, ..GENEROUS };

/// The limits where registers suffice for loaded vectors, but not for every intermediate besides.
const SUMS_ALONE: Limits = Limits { intermediates: Intermediates::Sums, ..GENEROUS };

/// The limits that are tried, one after the other, until the vectors fit into registers; of alternatives, those with which code loads least.
const FRUGAL_ATTEMPTS: [&[Limits]; 5] = [
    &[Limits { shared_loads: 8, ..FRUGAL }, FRUGAL_BY_ROW],
    &[FRUGAL, Limits { shared_loads: 2, ..FRUGAL_BY_ROW }],
    &[Limits { column_parts: 0, ..FRUGAL }],
    &[Limits { column_parts: 0, intermediates: Intermediates::Sums, ..FRUGAL }],
    &[Limits { column_parts: 0, intermediates: Intermediates::None, ..FRUGAL }],
];

/// Compiles a statement, or says why it is no leaf.
pub(crate) fn compile(
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
    let mut within = |limits: Limits| fit(stmt, around, numbers, Limits { tiles, ..limits });
    match within(GENEROUS) {
        Err(Refusal::Spills) => {}
        outcome => return outcome?.encode(around),
    }
    let generous = within(SUMS_ALONE);
    let mut frugal = Err(Refusal::Spills);
    for alternatives in FRUGAL_ATTEMPTS {
        frugal = alternatives
            .iter()
            .map(|limits| within(*limits))
            .reduce(with_fewer_accesses)
            .expect("there is one");
        if !matches!(frugal, Err(Refusal::Spills)) {
            break;
        }
    }
    // A tile of sums that is copied from and to another one, which would fit into registers by itself, leaves no registers for the vectors
    // that its products share.
    with_fewer_accesses(frugal, generous)?.encode(around)
}

/// The code that accesses memory less; the first one, where both do as often or neither has been built.
fn with_fewer_accesses(
    first: Result<Allocated, Refusal>,
    second: Result<Allocated, Refusal>,
) -> Result<Allocated, Refusal> {
    match (first, second) {
        (Ok(first), Ok(second)) if second.code.accesses() < first.code.accesses() => Ok(second),
        (Err(_), Ok(second)) => Ok(second),
        (first, _) => first,
    }
}

/// Builds and allocates with as many interleaved groups of lanes as fit into registers.
fn fit(
    stmt: &Stmt,
    around: &Surroundings<'_>,
    numbers: &mut Numbers,
    limits: Limits,
) -> Result<Allocated, Refusal> {
    let mut allocated = allocated(stmt, around, numbers, limits)?;
    // Addresses live longer where groups are interleaved; code that waits for the stack gains nothing by it.
    if allocated.code.is_interleaved && allocated.registers.slots > 0 {
        let one_by_one = Limits { interleaved_groups: 1, ..limits };
        allocated = match self::allocated(stmt, around, numbers, one_by_one) {
            Ok(other) if other.registers.slots < allocated.registers.slots => other,
            _ => allocated,
        };
    }
    Ok(allocated)
}

/// Instructions, and where their registers are.
struct Allocated {
    code: ir::Code,
    registers: allocate::Allocation,
    inputs: Vec<Input>,
}

impl Allocated {
    fn encode(self, around: &Surroundings<'_>) -> Result<Leaf, Refusal> {
        let encoded = x86::encode(&self.code, &self.registers, around.extension)?;
        Ok(Leaf {
            code: encoded.bytes,
            instruction_bytes: encoded.instruction_bytes,
            inputs: self.inputs,
            can_fail: encoded.can_fail,
            without_tiles: None,
        })
    }
}

/// Builds with fewer interleaved groups of lanes, until the vectors fit into registers or no group is interleaved.
fn allocated(
    stmt: &Stmt,
    around: &Surroundings<'_>,
    numbers: &mut Numbers,
    limits: Limits,
) -> Result<Allocated, Refusal> {
    let (mut code, inputs) = build::build(stmt, around, numbers, limits)?;
    fold::fold(&mut code, around.extension);
    match allocate::allocate(&mut code, around.extension) {
        Err(Refusal::Spills) if code.is_interleaved => {
            let fewer = Limits { interleaved_groups: limits.interleaved_groups / 2, ..limits };
            allocated(stmt, around, numbers, fewer)
        }
        registers => Ok(Allocated { registers: registers?, code, inputs }),
    }
}
