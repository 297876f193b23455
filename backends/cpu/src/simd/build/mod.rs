//! From a statement to instructions on virtual registers.
//!
//! | module | holds |
//! |---|---|
//! | [`scope`] | where instructions go, and which values are computed already |
//! | [`stmt`] | statements |
//! | [`value`] | values of expressions, one group of lanes at a time |
//! | [`memory`] | loads, stores and prefetches |
//! | [`copy`] | copies of elements of one or two bytes |
//! | [`packed`] | statements that compute bytes from bytes alone |
//! | [`intrinsic`] | marked statements |

mod copy;
pub(super) mod intrinsic;
mod memory;
mod packed;
mod scope;
mod stmt;
mod value;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::analysis::block::stores;
use tilewright_core::expr::Expr;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Facts, Ranges};
use tilewright_core::program::Program;
use tilewright_core::stmt::Stmt;

use crate::flat::access::for_each_access;
use crate::flat::value_number::{Number, Numbers};
use crate::simd::ir::{Base, Code, Constant, Mem, Reg};
use crate::simd::{INPUTS, Input, Limits, Refusal, Surroundings, VectorExtension};
use intrinsic::tile_sums::Sum;
use memory::prefetch::PrefetchedLoop;
use memory::transposed_loads::TransposedLoad;
use scope::Scope;
use stmt::registers::RegisterBuffer;
use value::group::Group;

type Outcome<T> = Result<T, Refusal>;

/// The most instructions of a leaf.
const MOST_INSTRUCTIONS: usize = 30_000;

/// The value of a variable of the leaf.
#[derive(Clone, Copy, Debug)]
enum Binding {
    Constant(i64),
    /// The counter of the loop whose body is this scope.
    Loop(usize),
}

/// Builds the code of a leaf.
struct Builder<'a> {
    program: &'a Program,
    around: &'a Surroundings<'a>,
    /// The whole statement of the leaf.
    whole: &'a Stmt,
    /// The buffers that the leaf writes.
    written: FxHashSet<BufferId>,
    numbers: &'a mut Numbers,
    extension: VectorExtension,
    /// Whether the leaf accesses elements of fewer than 32 bits.
    has_narrow_elements: bool,
    limits: Limits,
    code: Code,
    instructions: usize,
    scopes: Vec<Scope>,
    /// The scope to which instructions are hoisted at the moment.
    hoisted_to: Option<usize>,
    constants: FxHashMap<Constant, Reg>,
    inputs: Vec<Input>,
    variables: FxHashMap<VarId, Binding>,
    ranges: Ranges,
    register_buffers: FxHashMap<BufferId, RegisterBuffer>,
    /// The intermediates of the leaf that are allocated around the current statement.
    allocated: FxHashSet<BufferId>,
    /// The sums that are in tile registers while the loop around runs.
    sums: Vec<Sum>,
    /// Expressions computed in the current statement.
    memos: Vec<FxHashMap<(Number, Group), Reg>>,
    /// The value that the current statement stores, where it stores one.
    statement: Option<Expr>,
    /// The intermediates of bytes whose elements are not [packed].
    widened: FxHashSet<BufferId>,
    /// The active lanes, whose loads may be made; all lanes when absent.
    guard: Option<Reg>,
    /// Facts from the conditions of the branches around the code that is being built.
    facts: Facts,
    /// These facts and those that hold in the lanes of the guard, where there is one.
    wanted: Facts,
    /// The buffers that are written around the caches in the code that is being built.
    streamed: FxHashSet<BufferId>,
    /// The transposed loads of the statements that are being built.
    transposed_loads: Vec<TransposedLoad>,
    /// The loops around whose later iterations are prefetched.
    prefetched_loops: Vec<PrefetchedLoop>,
}

/// Builds the code for a statement; also gives what it has to be called with.
pub(super) fn build(
    stmt: &Stmt,
    around: &Surroundings<'_>,
    numbers: &mut Numbers,
    limits: Limits,
) -> Outcome<(Code, Vec<Input>)> {
    let constants = around.constants.iter().map(|(var, value)| (*var, Binding::Constant(*value)));
    let mut builder = Builder {
        program: around.program,
        around,
        whole: stmt,
        written: stores(stmt).iter().map(|store| store.buffer).collect(),
        numbers,
        extension: around.extension,
        has_narrow_elements: accesses_narrow_elements(around.program, stmt),
        limits,
        code: Code::default(),
        instructions: 0,
        scopes: vec![Scope::default()],
        hoisted_to: None,
        constants: FxHashMap::default(),
        inputs: Vec::new(),
        variables: constants.collect(),
        ranges: around.ranges.clone(),
        register_buffers: FxHashMap::default(),
        allocated: FxHashSet::default(),
        sums: Vec::new(),
        memos: vec![FxHashMap::default()],
        statement: None,
        widened: FxHashSet::default(),
        guard: None,
        facts: around.facts.clone(),
        wanted: around.facts.clone(),
        streamed: FxHashSet::default(),
        transposed_loads: Vec::new(),
        prefetched_loops: Vec::new(),
    };
    builder.widened = builder.widened_intermediates(stmt);
    builder.leaf(stmt)?;
    Ok(builder.finish())
}

/// Whether a statement accesses elements of fewer than 32 bits.
fn accesses_narrow_elements(program: &Program, stmt: &Stmt) -> bool {
    let mut found = false;
    for_each_access(stmt, &mut |access| found |= program.buffer(access.buffer).dtype.bytes() < 4);
    found
}

impl Builder<'_> {
    /// Forgets what was computed in the statement before.
    fn new_statement(&mut self) {
        self.memos.iter_mut().for_each(FxHashMap::clear);
        self.statement = None;
    }

    /// The place of a word that the leaf is called with.
    fn input_place(&mut self, input: Input) -> Mem {
        let position = self.inputs.iter().position(|known| *known == input).unwrap_or_else(|| {
            self.inputs.push(input);
            self.inputs.len() - 1
        });
        Mem { base: Base::Context, index: None, offset: INPUTS + 8 * position as i32, buffer: None }
    }
}
