//! From a statement to instructions on virtual registers.
//!
//! | module | holds |
//! |---|---|
//! | [`nest`] | statements |
//! | [`tile`] | intermediates in registers |
//! | [`value`], [`arith`], [`convert`], [`truth`] | values of expressions, one group of lanes at a time |
//! | [`memory`], [`lanewise`] | loads and stores |
//! | [`turns`] | groups of lanes that take turns |
//! | [`hints`], [`beside`] | prefetches and stores around the caches |
//! | [`across`], [`transpose`] | loads of lanes that lie apart, several at once |
//! | [`copy`] | copies of bytes and pairs of bytes |
//! | [`intrinsic`] | marked statements |
//! | [`sums`] | sums of products of tiles in registers |
//! | [`address`], [`linear`] | indices and addresses |
//! | [`scope`] | where instructions go, and what is computed already |

mod across;
mod address;
mod arith;
mod beside;
mod chosen;
mod condition;
mod convert;
mod copy;
mod group;
mod hints;
pub(super) mod intrinsic;
mod lanewise;
mod linear;
mod memory;
mod nest;
mod scope;
mod sums;
mod tile;
mod transpose;
mod truth;
mod turns;
mod value;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Facts, Ranges};
use tilewright_core::program::Program;
use tilewright_core::stmt::Stmt;

use super::ir::{Base, Code, Constant, Mem, Reg};
use super::{INPUTS, Input, Level, Limits, Refusal, Surroundings};
use crate::translate::number::{Number, Numbers};
use across::Across;
use group::Group;
use hints::Ahead;
use scope::Scope;
use sums::Sum;
use tile::Tile;

type Outcome<T> = Result<T, Refusal>;

/// The most instructions of a leaf.
const MOST_INSTRUCTIONS: usize = 30_000;

/// What a variable of the leaf stands for.
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
    /// What becomes the leaf.
    whole: &'a Stmt,
    numbers: &'a mut Numbers,
    features: Level,
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
    tiles: FxHashMap<BufferId, Tile>,
    /// For each intermediate of the leaf, the number of scopes around its allocation.
    allocated: FxHashMap<BufferId, usize>,
    /// The sums that are in tile registers while the loop around runs.
    sums: Vec<Sum>,
    /// Expressions computed in the current statement.
    memos: Vec<FxHashMap<(Number, Group), Reg>>,
    /// The lanes whose loads may be made; all of them when absent.
    guard: Option<Reg>,
    /// What the branches say in which the code is built.
    facts: Facts,
    /// The same and what holds in the lanes of the guard, where there is one.
    wanted: Facts,
    /// The buffers that are written around the caches in the code that is being built.
    streamed: FxHashSet<BufferId>,
    /// The loads across rows of the statements that are being built.
    across: Vec<Across>,
    /// The loops around whose later iterations are prefetched.
    ahead: Vec<Ahead>,
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
        numbers,
        features: around.level,
        limits,
        code: Code::default(),
        instructions: 0,
        scopes: vec![Scope::default()],
        hoisted_to: None,
        constants: FxHashMap::default(),
        inputs: Vec::new(),
        variables: constants.collect(),
        ranges: around.ranges.clone(),
        tiles: FxHashMap::default(),
        allocated: FxHashMap::default(),
        sums: Vec::new(),
        memos: vec![FxHashMap::default()],
        guard: None,
        facts: Facts::default(),
        wanted: Facts::default(),
        streamed: FxHashSet::default(),
        across: Vec::new(),
        ahead: Vec::new(),
    };
    builder.leaf(stmt)?;
    Ok(builder.finish())
}

impl Builder<'_> {
    /// Forgets what was computed in the statement before.
    fn new_statement(&mut self) {
        self.memos.iter_mut().for_each(FxHashMap::clear);
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
