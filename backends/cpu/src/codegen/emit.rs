//! Where instructions go: scopes, hoisting, and the table of values already computed.
//!
//! Cranelift is used without its optimiser, which would move the instructions of an unrolled kernel
//! far apart and make it spill. So this module handles common subexpressions and loop invariants: a value that
//! depends only on outer loops is placed before the inner loop, and remembered there.

use cranelift_codegen::ir::{
    Block, DataFlowGraph, Function, InsertBuilder, Inst, InstBuilder, InstInserterBase, Type, Value,
};
use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::ids::BufferId;
use tilewright_core::index::Digit;

use super::Generator;
use super::memory::bounds::InsideKey;
use super::value::lanes::{Lanes, Width};

/// The number of loaded vectors that are kept for reuse: enough for the operands that an unrolled register
/// tile shares, few enough to leave most of sixteen registers to accumulators.
const KEPT_LOADS: usize = 12;

/// A region of code that is entered at one place: a function, the body of a loop, a branch.
pub(super) struct Scope {
    /// The instruction that leads here, before which values of the enclosing scope can still be placed.
    entry: Option<Inst>,
    is_loop: bool,
    values: FxHashMap<Key, Value>,
    loads: Vec<(LoadKey, Lanes)>,
    inside: FxHashSet<InsideKey>,
}

/// Identifies a value without side effects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A digit of an index.
    Digit(Digit),
    /// A digit times a constant.
    Scaled(Digit, i64),
    /// A sum of scaled digits.
    Sum(Vec<(Digit, i64)>),
    /// A buffer's address plus a sum of digits scaled to bytes.
    Pointer(BufferId, Vec<(Digit, i64)>),
    /// A word of the caller's frame, at a byte offset.
    Frame(i32, Type),
    /// The address of an intermediate on the stack.
    Stack(BufferId),
}

/// Identifies a load, as long as nothing is stored to its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoadKey {
    pub(super) buffer: BufferId,
    pub(super) base: Value,
    pub(super) offset: i32,
    pub(super) width: Width,
    /// Whether it is one element in every lane.
    pub(super) is_broadcast: bool,
}

/// A place in a function: before an instruction, or at the end of a block.
pub(super) struct Point<'f> {
    function: &'f mut Function,
    before: Option<Inst>,
    block: Block,
}

impl Point<'_> {
    fn place(&mut self, inst: Inst) {
        match self.before {
            Some(before) => self.function.layout.insert_inst(inst, before),
            None => self.function.layout.append_inst(inst, self.block),
        }
    }
}

impl<'f> InstInserterBase<'f> for Point<'f> {
    fn data_flow_graph(&self) -> &DataFlowGraph {
        &self.function.dfg
    }

    fn data_flow_graph_mut(&mut self) -> &mut DataFlowGraph {
        &mut self.function.dfg
    }

    fn insert_built_inst(mut self, inst: Inst) -> &'f mut DataFlowGraph {
        self.place(inst);
        &mut self.function.dfg
    }

    fn insert_aux_inst(&mut self, inst: Inst) {
        self.place(inst);
    }
}

impl Generator<'_> {
    /// A builder of instructions other than branches, at the current place.
    pub(super) fn ins(&mut self) -> InsertBuilder<'_, Point<'_>> {
        let block = self.builder.current_block().expect("a block is being filled");
        let before = match self.hoisted_to {
            Some(level) => self.scopes[level + 1].entry,
            None => None,
        };
        InsertBuilder::new(Point { function: self.builder.func, before, block })
    }

    /// The innermost scope's number.
    pub(super) fn level(&self) -> usize {
        self.hoisted_to.unwrap_or(self.scopes.len() - 1)
    }

    /// Continues in another block.
    pub(super) fn switch_to(&mut self, block: Block) {
        self.builder.switch_to_block(block);
        self.builder.ensure_inserted_block();
    }

    /// Opens the scope of a function's body.
    pub(super) fn open_function(&mut self) {
        self.open(None, false);
    }

    /// Opens a scope that is entered by the branch `entry`.
    pub(super) fn open_scope(&mut self, entry: Inst, is_loop: bool) {
        self.open(Some(entry), is_loop);
    }

    fn open(&mut self, entry: Option<Inst>, is_loop: bool) {
        self.scopes.push(Scope {
            entry,
            is_loop,
            values: FxHashMap::default(),
            loads: Vec::new(),
            inside: FxHashSet::default(),
        });
        self.memos.push(FxHashMap::default());
    }

    /// Closes the innermost scope.
    pub(super) fn close_scope(&mut self) {
        self.scopes.pop();
        self.memos.pop();
    }

    /// The value of `key`, computed by `compute` in the scope `level` unless that was done before.
    pub(super) fn value_at<E>(
        &mut self,
        level: usize,
        key: Key,
        compute: impl FnOnce(&mut Self) -> Result<Value, E>,
    ) -> Result<Value, E> {
        if let Some(value) = self.scopes[level].values.get(&key) {
            return Ok(*value);
        }
        let value = if level < self.level() { self.hoist(level, compute)? } else { compute(self)? };
        self.scopes[level].values.insert(key, value);
        Ok(value)
    }

    /// Runs `compute` with instructions going to the end of an enclosing scope's code so far. Nothing that was
    /// computed in inner scopes may be used there, so that the memory of computed expressions is set aside.
    fn hoist<R>(&mut self, level: usize, compute: impl FnOnce(&mut Self) -> R) -> R {
        let outer = self.hoisted_to.replace(level);
        let memos = std::mem::replace(&mut self.memos, vec![FxHashMap::default()]);
        let result = compute(self);
        self.memos = memos;
        self.hoisted_to = outer;
        result
    }

    /// Whether lanes of an index are known to lie inside its buffer here.
    pub(super) fn is_known_inside(&self, key: &InsideKey) -> bool {
        self.scopes.iter().rev().any(|scope| scope.inside.contains(key))
    }

    /// Remembers that lanes of an index lie inside their buffer in the rest of the scope.
    pub(super) fn remember_inside(&mut self, key: InsideKey) {
        self.scopes.last_mut().expect("a scope is open").inside.insert(key);
    }

    /// A load made before in this iteration of the innermost loop.
    pub(super) fn known_load(&mut self, key: LoadKey) -> Option<Lanes> {
        for scope in self.scopes.iter_mut().rev() {
            if let Some(position) = scope.loads.iter().position(|(known, _)| *known == key) {
                let found = scope.loads.remove(position);
                scope.loads.push(found);
                return Some(found.1);
            }
            if scope.is_loop {
                break;
            }
        }
        None
    }

    /// Remembers a load; the one unused for longest is forgotten.
    pub(super) fn remember_load(&mut self, key: LoadKey, lanes: Lanes) {
        let loads = &mut self.scopes.last_mut().expect("a scope is open").loads;
        if loads.len() == KEPT_LOADS {
            loads.remove(0);
        }
        loads.push((key, lanes));
    }

    /// Forgets loads of a buffer that is written.
    pub(super) fn forget_loads(&mut self, buffer: BufferId) {
        for scope in &mut self.scopes {
            scope.loads.retain(|(key, _)| key.buffer != buffer);
        }
    }

    /// Forgets every load.
    pub(super) fn forget_all_loads(&mut self) {
        self.scopes.iter_mut().for_each(|scope| scope.loads.clear());
    }

    /// An integer constant.
    pub(super) fn iconst(&mut self, ty: Type, value: i64) -> Value {
        // Cranelift wants the unused upper bits of a narrow constant to be zero.
        let masked = if ty.bits() < 64 { value & ((1 << ty.bits()) - 1) } else { value };
        self.ins().iconst(ty, masked)
    }
}
