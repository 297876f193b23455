//! Where instructions go: scopes, hoisting, and what is computed already.
//!
//! A scope is a region entered at one place: the leaf, the body of a loop, a branch. A value that depends on outer
//! loops only is placed at the end of an enclosing scope's code so far, which is before the loop that is
//! being built, and remembered there.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::stmt::{For, Stmt};

use crate::simd::build::memory::linear::{Atom, Product};
use crate::simd::build::memory::prefetch::Line;
use crate::simd::build::{Builder, Input};
use crate::simd::ir::{
    Class, Code, Constant, GeneralOp, Inst, Item, Loop, Mem, Op, Operand, Order, Reg, Width,
};

/// A region of code.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) items: Vec<Item>,
    pub(super) around: Option<Around>,
    pub(super) values: FxHashMap<Key, Reg>,
    pub(super) loads: Vec<(LoadKey, Reg)>,
    /// Accesses that are known to stay inside their buffers.
    pub(super) inside: FxHashSet<(BufferId, Index)>,
    /// The lines that were prefetched.
    pub(super) prefetched_lines: FxHashSet<Line>,
    /// The number of loops around the code.
    pub(super) depth: u32,
}

/// The loop whose body a scope is.
pub(super) struct Around {
    pub(super) var: VarId,
    pub(super) counter: Reg,
    /// Whether there is at least one iteration.
    pub(super) runs: bool,
    /// The body of the loop.
    pub(super) body: Stmt,
    /// At the end of each iteration.
    pub(super) latch: Vec<Inst>,
}

/// Identifies a value of a general register or mask without side effects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Atom(Atom),
    Product(Vec<Atom>, i64),
    Sum(Vec<Product>, i64),
    Pointer(BufferId, Vec<Product>),
    Input(Input),
    /// How a value compares with a constant.
    Comparison(Order, Reg, i64),
    /// Two conditions, joined by an operation.
    Joined(GeneralOp, Reg, Reg),
    /// The address of constants at this place behind the code.
    Constants(u32),
    /// A mask register with these bits.
    Mask(u32),
}

/// Identifies a load, as long as nothing is stored to its buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LoadKey {
    pub(super) op: Op,
    pub(super) width: Width,
    pub(super) mem: Mem,
    /// The number of lanes; of a tile, the number of the operand.
    pub(super) lanes: u32,
}

impl Builder<'_> {
    /// The scope to which instructions go at the moment.
    pub(super) fn level(&self) -> usize {
        self.hoisted_to.unwrap_or(self.scopes.len() - 1)
    }

    pub(super) fn scope(&mut self) -> &mut Scope {
        let level = self.level();
        &mut self.scopes[level]
    }

    /// A new register of the current scope.
    pub(super) fn register(&mut self, class: Class) -> Reg {
        let depth = self.scope().depth;
        self.code.register(class, depth)
    }

    /// Adds an instruction.
    pub(super) fn push(&mut self, inst: Inst) {
        self.instructions += 1;
        self.scope().items.push(Item::Inst(inst));
    }

    /// Adds an instruction whose result is a new register.
    pub(super) fn emit(
        &mut self,
        class: Class,
        op: Op,
        width: Width,
        args: impl IntoIterator<Item = Operand>,
    ) -> Reg {
        let dst = self.register(class);
        self.push(Inst::new(op, width, Some(dst), args));
        dst
    }

    /// An operation on general registers.
    pub(super) fn general(&mut self, op: GeneralOp, args: impl IntoIterator<Item = Operand>) -> Reg {
        self.emit(Class::General, Op::General(op), Width::Xmm, args)
    }

    /// The value of `key`, computed by `compute` in the scope `level` unless that was done before.
    pub(super) fn value_at<E>(
        &mut self,
        level: usize,
        key: Key,
        compute: impl FnOnce(&mut Self) -> Result<Reg, E>,
    ) -> Result<Reg, E> {
        if let Some(reg) = self.scopes[level].values.get(&key) {
            return Ok(*reg);
        }
        let outer = self.hoisted_to;
        if level < self.level() {
            self.hoisted_to = Some(level);
        }
        let reg = compute(self);
        self.hoisted_to = outer;
        let reg = reg?;
        self.scopes[level].values.insert(key, reg);
        Ok(reg)
    }

    /// A word that the leaf is called with.
    pub(super) fn input(&mut self, input: Input) -> Reg {
        let mem = self.input_place(input);
        let value = self.value_at(0, Key::Input(input), |this| {
            Ok::<_, std::convert::Infallible>(this.general(GeneralOp::Copy, [Operand::Mem(mem)]))
        });
        value.unwrap_or_else(|never| match never {})
    }

    /// A constant in every lane.
    pub(super) fn same(&mut self, bits: u64, bytes: u8) -> Reg {
        self.constant(Constant::Same(bits, bytes))
    }

    pub(super) fn constant(&mut self, constant: Constant) -> Reg {
        if let Some(reg) = self.constants.get(&constant) {
            return *reg;
        }
        let reg = self.code.register(Class::Vector, 0);
        self.code.registers[reg.0 as usize].constant = Some(constant);
        self.constants.insert(constant, reg);
        reg
    }

    /// A constant with different lanes.
    pub(super) fn bytes_constant(&mut self, bytes: &[u8]) -> Reg {
        let mut padded = [0; 64];
        padded[..bytes.len()].copy_from_slice(bytes);
        let start = self.pool_bytes(&padded);
        self.constant(Constant::Bytes(start))
    }

    /// The place of bytes behind the code.
    pub(super) fn pool_bytes(&mut self, bytes: &[u8; 64]) -> u32 {
        let pool = &mut self.code.pool;
        let known = pool.chunks_exact(64).position(|chunk| chunk == bytes);
        let chunk = known.unwrap_or_else(|| {
            pool.extend_from_slice(bytes);
            pool.len() / 64 - 1
        });
        64 * chunk as u32
    }

    /// A load made before in this iteration of the innermost loop.
    pub(super) fn known_load(&mut self, key: LoadKey) -> Option<Reg> {
        let level = self.level();
        for scope in self.scopes[..=level].iter_mut().rev() {
            if let Some(position) = scope.loads.iter().position(|(known, _)| *known == key) {
                let found = scope.loads.remove(position);
                scope.loads.push(found);
                return Some(found.1);
            }
            if scope.around.is_some() {
                break;
            }
        }
        None
    }

    /// Remembers a load; the one unused for longest is forgotten.
    pub(super) fn remember_load(&mut self, key: LoadKey, reg: Reg) {
        let most = self.limits.shared_loads;
        let loads = &mut self.scope().loads;
        if loads.len() >= most {
            loads.remove(0);
        }
        loads.push((key, reg));
    }

    /// Forgets loads of a buffer that is written.
    pub(super) fn forget_loads(&mut self, buffer: BufferId) {
        for scope in &mut self.scopes {
            scope.loads.retain(|(key, _)| key.mem.buffer != Some(buffer));
        }
    }

    /// Opens the scope of a branch. A hoisted value goes to a scope outside of all branches.
    pub(super) fn open_branch(&mut self) {
        debug_assert!(self.hoisted_to.is_none(), "a branch of a hoisted value would always run");
        let depth = self.scope().depth;
        self.scopes.push(Scope { depth, ..Scope::default() });
    }

    /// Closes the scope of a branch and gives what is in it.
    pub(super) fn close_branch(&mut self) -> Vec<Item> {
        self.scopes.pop().map(|scope| scope.items).unwrap_or_default()
    }

    /// Adds what is done only where a condition holds.
    pub(super) fn push_branch(&mut self, condition: Reg, then: Vec<Item>) {
        self.push_branches(condition, then, Vec::new());
    }

    /// Adds two ways to go on.
    pub(super) fn push_branches(&mut self, condition: Reg, then: Vec<Item>, otherwise: Vec<Item>) {
        let items = &mut self.scope().items;
        items.push(Item::If(condition));
        items.extend(then);
        if !otherwise.is_empty() {
            items.push(Item::Else);
            items.extend(otherwise);
        }
        items.push(Item::EndIf);
    }

    /// Opens the scope of a loop's body.
    pub(super) fn open_loop(&mut self, node: &For, runs: bool) {
        debug_assert!(self.hoisted_to.is_none(), "a loop in a hoisted value");
        let counter = self.register(Class::General);
        let depth = self.scope().depth + 1;
        let around =
            Some(Around { var: node.var, counter, runs, body: node.body.clone(), latch: Vec::new() });
        self.scopes.push(Scope { depth, around, ..Scope::default() });
    }

    /// Closes the scope of a loop's body, and adds the loop to the scope around it.
    pub(super) fn close_loop(&mut self, extent: Operand) {
        let Some(Scope { items, around: Some(around), .. }) = self.scopes.pop() else { return };
        let number = self.code.loops.len();
        self.code.loops.push(Loop { counter: around.counter, extent, runs: around.runs });
        let own = &mut self.scope().items;
        own.push(Item::LoopBegin(number));
        own.extend(items);
        own.extend(around.latch.into_iter().map(Item::Inst));
        own.push(Item::LoopEnd(number));
    }

    /// The code so far, which is then complete.
    pub(super) fn finish(mut self) -> (Code, Vec<Input>) {
        let root = self.scopes.swap_remove(0);
        self.code.items = root.items;
        (self.code, self.inputs)
    }
}
