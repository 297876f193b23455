//! Statements: loops, conditionals, stores.

use smallvec::SmallVec;
use tilewright_core::flat::access::for_each_access;
use tilewright_core::index::Index;
use tilewright_core::program::Scope;
use tilewright_core::stmt::{Alloc, Copies, For, If, Stmt, Store};

use super::builder::{unless, when};
use super::index::Width;
use super::memory;
use super::value::{bits_type, class_of};
use super::warp::accesses_fragment;
use super::{Generator, Outcome, Place, Storage, Variable, unsupported};
use crate::ptx::operand::Operand;
use crate::ptx::table::{Op, Space};
use crate::ptx::types::{Class, Type};

/// The assembler writes loops out on its own. That makes products on tensor cores faster by up to 15 % (H100, tiles of 64 × 64 a warp), where
/// it is done to the few steps inside of a tile; registers are spilled where it is done to loops around them, or where fragments take more
/// registers than these.
const MOST_UNROLLED: usize = 176;
const MOST_ITERATIONS: i64 = 4;

impl Generator<'_> {
    /// Writes the code of a statement.
    pub(super) fn stmt(&mut self, stmt: &Stmt) -> Outcome<()> {
        if self.added_barriers.contains(&std::ptr::from_ref(stmt)) {
            self.barrier();
        }
        self.comment_on(stmt);
        match stmt {
            Stmt::Seq(stmts) => self.sequence(stmts),
            Stmt::For(node) => self.for_loop(node),
            Stmt::Store(store) => match self.first_lane.take() {
                Some(condition) => self.by_first_lane(condition, stmt),
                None if store.is_async() => match self.statement_values(|this| this.copy_async(store))? {
                    true => Ok(()),
                    false => self.store_stmt(store),
                },
                None if store.is_atomic() => match self.statement_values(|this| this.update(store))? {
                    true => Ok(()),
                    false => self.store_stmt(store),
                },
                None => self.store_stmt(store),
            },
            Stmt::If(node) => match self.conditional_of_warp(node)? {
                true => Ok(()),
                false => self.conditional(node),
            },
            Stmt::Alloc(node) => self.alloc(node),
            Stmt::Intrinsic(node) if accesses_fragment(self.program, &node.body) => self.by_warp(node),
            Stmt::Intrinsic(node) => self.stmt(&node.body),
            Stmt::Barrier => {
                self.barrier();
                Ok(())
            }
            Stmt::Copies(Copies::Commit) => {
                self.builder.push(Op::CommitCopies, None, []);
                Ok(())
            }
            Stmt::Copies(Copies::Wait(left)) => {
                self.forget_all_elements();
                self.builder.push(Op::WaitForCopies, None, [Operand::Integer(i64::from(*left))]);
                Ok(())
            }
            Stmt::Shuffle(node) => self.shuffle(node),
            Stmt::Block(_) => Err(self.broken("a block is left in the flat program")),
        }
    }

    /// Computes values that are shared in one statement.
    fn statement_values<T>(&mut self, write: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.memos.push(Default::default());
        let outcome = write(self);
        self.memos.pop();
        outcome
    }

    /// Lets the threads of a block wait for each other.
    fn barrier(&mut self) {
        self.forget_all_elements();
        self.builder.push(Op::Barrier, None, []);
    }

    fn store_stmt(&mut self, store: &Store) -> Outcome<()> {
        let of_indices = store.indices.iter().map(Index::lanes).max().unwrap_or(1);
        let number = self.numbers.of(&store.value);
        let lanes = of_indices.max(self.numbers.lanes(number));
        self.memos.push(Default::default());
        let values: Outcome<SmallVec<[Operand; 8]>> =
            (0..lanes).map(|lane| self.value(&store.value, lane)).collect();
        let outcome = values.and_then(|values| self.store(store.buffer, &store.indices, &values));
        self.memos.pop();
        outcome
    }

    fn conditional(&mut self, node: &If) -> Outcome<()> {
        self.memos.push(Default::default());
        let condition = self.value(&node.condition, 0);
        self.memos.pop();
        let condition = condition?;
        if let Some(constant) = condition.integer() {
            let chosen = if constant != 0 { Some(&node.then) } else { node.otherwise.as_ref() };
            return chosen.map_or(Ok(()), |stmt| self.in_scope(|this| this.stmt(stmt)));
        }
        let predicate = self.register_of(condition)?;
        let end = self.builder.label();
        match &node.otherwise {
            None => {
                self.builder.branch(unless(predicate), end);
                self.in_scope(|this| this.stmt(&node.then))?;
            }
            Some(otherwise) => {
                let other = self.builder.label();
                self.builder.branch(unless(predicate), other);
                self.in_scope(|this| this.stmt(&node.then))?;
                self.builder.branch(None, end);
                self.builder.place(other);
                self.in_scope(|this| this.stmt(otherwise))?;
            }
        }
        self.builder.place(end);
        Ok(())
    }

    /// A loop whose test is at its end, after one in front of it where it may have no iteration.
    fn for_loop(&mut self, node: &For) -> Outcome<()> {
        let extent = self.resolve(&node.extent);
        match extent.as_constant() {
            Some(..=0) => return Ok(()),
            Some(1) => return self.iteration(node, Variable::Constant(0)),
            Some(count) if self.chooses_elements(node) => {
                let unrolled = |this: &mut Self, value| this.iteration(node, Variable::Constant(value));
                return (0..count).try_for_each(|value| unrolled(self, value));
            }
            _ => {}
        }
        let is_word = extent.interval(&self.ranges).max <= i64::from(i32::MAX);
        let (class, ty) = if is_word { (Class::Word, Type::S32) } else { (Class::Double, Type::S64) };
        self.memos.push(Default::default());
        let end = self.extent(&extent, is_word);
        self.memos.pop();
        let end = end?;
        let variable = self.builder.register(class);
        let (again, behind) = (self.builder.label(), self.builder.label());
        self.builder.assign(variable, Operand::Integer(0));
        if extent.as_constant().is_none() {
            let is_empty = self.builder.compute(Op::LessEqual, ty, &[end, Operand::Integer(0)]);
            let is_empty = self.register_of(is_empty)?;
            self.builder.branch(when(is_empty), behind);
        }
        self.builder.place(again);
        let begin = self.builder.here();
        self.iteration(node, Variable::Register(variable))?;
        if accesses_fragment(self.program, &node.body) {
            let is_short = extent.as_constant().is_some_and(|count| count <= MOST_ITERATIONS);
            let fits = self.fragment_registers() <= MOST_UNROLLED;
            if !(is_short && fits && self.builder.is_straight_from(begin)) {
                self.builder.keep_loop(begin);
            }
        }
        let own = Operand::Register(variable);
        self.builder.push(Op::Add, Some(ty), [own, own, Operand::Integer(1)]);
        let goes_on = self.builder.compute(Op::Less, ty, &[own, end]);
        let goes_on = self.register_of(goes_on)?;
        self.builder.branch(when(goes_on), again);
        self.builder.place(behind);
        Ok(())
    }

    /// The registers of a thread's share of all fragments here.
    fn fragment_registers(&self) -> usize {
        let counts = self.storage.values().map(|storage| match storage {
            Storage::Fragment(fragment) => fragment.registers.len(),
            Storage::Registers(_) | Storage::Memory(_) => 0,
        });
        counts.sum()
    }

    /// Whether a loop chooses elements of fragments, which are registers with fixed numbers.
    fn chooses_elements(&self, node: &For) -> bool {
        let mut chooses = false;
        for_each_access(&node.body, &mut |access| {
            let is_fragment = self.program.buffer(access.buffer).scope == Scope::Fragment;
            chooses |= is_fragment && access.indices.iter().any(|index| index.mentions(node.var));
        });
        chooses
    }

    /// A number of iterations, in 32 bits where it is known to fit.
    fn extent(&mut self, extent: &Index, is_word: bool) -> Outcome<Operand> {
        match (is_word, self.width_of(extent)) {
            (true, Width::Word) => self.index(extent, Width::Word),
            (true, Width::Double) => {
                let wide = self.index(extent, Width::Double)?;
                Ok(self.builder.convert(Op::Convert, Type::U32, Type::U64, wide))
            }
            (false, _) => self.index(extent, Width::Double),
        }
    }

    /// The body of a loop, for one value of its variable.
    fn iteration(&mut self, node: &For, variable: Variable) -> Outcome<()> {
        self.variables.insert(node.var, variable);
        self.ranges.insert_loop(node);
        let outcome = self.in_scope(|this| this.stmt(&node.body));
        self.ranges.remove(node.var);
        self.variables.remove(&node.var);
        outcome
    }

    fn alloc(&mut self, node: &Alloc) -> Outcome<()> {
        let buffer = self.program.buffer(node.buffer);
        if buffer.scope == Scope::Fragment {
            let storage = self.fragment(node)?;
            self.storage.insert(node.buffer, storage);
            return self.stmt(&node.body);
        }
        if buffer.scope != Scope::Local {
            return Err(unsupported(format!(
                "buffer `{}`, which is `{}` and belongs to one thread; make it `local`, or compute it in loops of its own",
                buffer.name,
                buffer.scope.text()
            )));
        }
        let storage = if self.in_registers.contains(&node.buffer) {
            let class = bits_type(class_of(buffer.dtype)).class();
            let count = buffer.constant_len().unwrap_or(0).max(0);
            Storage::Registers((0..count).map(|_| self.builder.register(class)).collect())
        } else {
            Storage::Memory(self.place_local(node)?)
        };
        self.storage.insert(node.buffer, storage);
        self.stmt(&node.body)
    }

    /// Memory of one thread, which is used again by what comes behind.
    fn place_local(&mut self, node: &Alloc) -> Outcome<Place> {
        let bytes = memory::constant_bytes(self.program.buffer(node.buffer))?;
        let offset = self.local_bytes;
        self.local_bytes = (offset + bytes).next_multiple_of(memory::ALIGNMENT);
        let base = self.local_base()?;
        let offset = u32::try_from(offset).map_err(|_| unsupported("that much memory of one thread"))?;
        Ok(Place { base, offset, space: Space::Local, is_streamed: false })
    }

    /// Writes code that is not executed always: nothing that it computes is known behind it.
    fn in_scope(&mut self, write: impl FnOnce(&mut Self) -> Outcome<()>) -> Outcome<()> {
        self.open_scope();
        let outcome = write(self);
        self.close_scope();
        outcome
    }
}
