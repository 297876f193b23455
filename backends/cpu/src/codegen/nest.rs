//! Statements: loops, conditionals, stores and the lifetimes of intermediates.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{BlockArg, InstBuilder, StackSlotData, StackSlotKind, Value};
use smallvec::SmallVec;
use tilewright_core::expr::{Expr, ExprKind};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::stmt::{Alloc, For, If, LoopKind, Stmt, Store};

use super::emit::Key;
use super::memory::storage::{ALIGNMENT, Placement};
use super::value::lanes::{Form, Group, Lanes, Width};
use super::value::select::LaneCondition;
use super::{Binding, FreeWorkspace, Generator, Outcome, Storage};
use crate::flat::access::{for_each_access, for_each_load};
use crate::flat::lanes::at_lane;
use crate::runtime::frame;

impl Generator<'_> {
    /// Translates a statement.
    pub(super) fn stmt(&mut self, stmt: &Stmt) -> Outcome<()> {
        if self.leaf(stmt)? {
            return Ok(());
        }
        match stmt {
            Stmt::Seq(stmts) => self.sequence(stmts),
            Stmt::For(node) if node.kind == LoopKind::Parallel && !self.in_body => self.parallel(node),
            Stmt::For(node) => {
                match node.kind {
                    LoopKind::Bound(axis) => Err(self
                        .unsupported(format!("a loop over `{}`, an axis of a GPU's threads", axis.text()))),
                    _ => self.serial_loop(node),
                }
            }
            Stmt::Store(node) => self.statement_values(|this| this.store_stmt(node)),
            Stmt::If(node) => self.conditional(node),
            Stmt::Alloc(node) => self.alloc(node),
            // Only leaves emit intrinsics; the body is what this one means.
            Stmt::Intrinsic(node) => self.stmt(&node.body),
            Stmt::Block(node) => Err(self.unsupported(format!("the block `{}`", node.name))),
            Stmt::Barrier => Err(self.unsupported("a barrier of a GPU's threads")),
            // Copies arrive at once.
            Stmt::Copies(_) => Ok(()),
            Stmt::Shuffle(_) => Err(self.unsupported("an exchange between a GPU's threads")),
        }
    }

    /// Runs `generate` with what is computed for one statement remembered during it.
    fn statement_values<R>(&mut self, generate: impl FnOnce(&mut Self) -> Outcome<R>) -> Outcome<R> {
        self.memos.push(Default::default());
        let result = generate(self);
        self.memos.pop();
        result
    }

    fn serial_loop(&mut self, node: &For) -> Outcome<()> {
        if !matches!(node.kind, LoopKind::Serial | LoopKind::Parallel) {
            return Err(self.unsupported(format!("a {} loop", node.kind.text())));
        }
        let extent = self.resolve(&node.extent);
        match extent.as_constant() {
            Some(..=0) => Ok(()),
            Some(1) => {
                self.variables.insert(node.var, Binding::Constant(0));
                let result = self.stmt(&node.body);
                self.variables.remove(&node.var);
                result
            }
            _ => {
                let begin = self.iconst(I64, 0);
                let end = self.index_value(&extent)?;
                self.part_of_loop(node.var, &extent, begin, end, &node.body)
            }
        }
    }

    /// The iterations from `begin` on and before `end` of a loop over `0..extent`.
    pub(super) fn part_of_loop(
        &mut self,
        var: VarId,
        extent: &Index,
        begin: Value,
        end: Value,
        body: &Stmt,
    ) -> Outcome<()> {
        self.counted(begin, end, body, |this, counter| {
            let level = this.level();
            this.variables.insert(var, Binding::Value { value: counter, level });
            this.ranges.insert(var, extent.clone());
            let around = this.innermost.replace(var);
            this.stmt(body)?;
            this.innermost = around;
            this.variables.remove(&var);
            this.ranges.remove(var);
            Ok(())
        })
    }

    /// A loop whose counter goes from `begin` to `end`, without it. `generate` translates an iteration, which executes a statement.
    ///
    /// The condition is tested at the top. That way the results of an iteration are used in one place,
    /// the next iteration's start, without which Cranelift would not fold loads into the operations
    /// that accumulators depend on.
    pub(super) fn counted(
        &mut self,
        begin: Value,
        end: Value,
        body: &Stmt,
        generate: impl FnOnce(&mut Self, Value) -> Outcome<()>,
    ) -> Outcome<()> {
        for_each_access(body, &mut |access| {
            if access.is_store {
                self.forget_loads(access.buffer);
            }
        });
        let (header, inside, after) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        let counter = self.builder.append_block_param(header, I64);
        let entry = self.builder.ins().jump(header, &[BlockArg::Value(begin)]);
        self.switch_to(header);
        let goes_on = self.ins().icmp(IntCC::SignedLessThan, counter, end);
        self.builder.ins().brif(goes_on, inside, &[], after, &[]);
        self.enter(inside, entry, true);
        generate(self, counter)?;
        let next = self.ins().iadd_imm_s(counter, 1);
        self.builder.ins().jump(header, &[BlockArg::Value(next)]);
        self.close_scope();
        self.builder.seal_block(header);
        self.switch_to(after);
        self.builder.seal_block(after);
        Ok(())
    }

    fn alloc(&mut self, node: &Alloc) -> Outcome<()> {
        let dtype = self.unit.program.buffer(node.buffer).dtype;
        let free = self.workspace;
        let storage = match self.unit.plan.placement(node.buffer).cloned() {
            Some(Placement::Registers(layout)) => self.make_registers(dtype, &layout),
            Some(Placement::Stack(bytes)) => self.stack_memory(node.buffer, bytes)?,
            Some(Placement::Workspace) => self.workspace_memory(node.buffer)?,
            None => return Err(self.broken(format!("no place was planned for {:?}", node.buffer))),
        };
        self.storage.insert(node.buffer, storage);
        let result = self.stmt(&node.body);
        self.storage.remove(&node.buffer);
        self.forget_loads(node.buffer);
        self.workspace = free;
        result
    }

    pub(super) fn stack_memory(&mut self, buffer: BufferId, bytes: u32) -> Outcome<Storage> {
        let base = self.value_at(0, Key::Stack(buffer), |this| {
            // The stack is aligned to 16 bytes only.
            let size = bytes + ALIGNMENT as u32 - 16;
            let slot = this.builder.create_sized_stack_slot(StackSlotData::new(
                StackSlotKind::ExplicitSlot,
                size,
                4,
            ));
            let start = this.ins().stack_addr(I64, slot, 0);
            let end = this.ins().iadd_imm_s(start, ALIGNMENT as i64 - 1);
            Ok(this.with(end, -(ALIGNMENT as i64), |this, a, b| this.ins().band(a, b)))
        })?;
        Ok(Storage::Memory { base, offset: 0, level: 0 })
    }

    pub(super) fn workspace_memory(&mut self, buffer: BufferId) -> Outcome<Storage> {
        let free = match self.workspace {
            Some(free) => free,
            None => FreeWorkspace { base: self.frame_word(frame::WORKSPACE, I64)?, offset: 0, level: 0 },
        };
        let (size, extent) = {
            let buffer = self.unit.program.buffer(buffer);
            (buffer.dtype.bytes() as i64, buffer.shape.first().cloned().unwrap_or_else(|| 1.into()))
        };
        // The same sum as in `Need::bytes`, which has checked it for overflow.
        let alignment = ALIGNMENT as i64;
        self.workspace = Some(match extent.as_constant() {
            Some(elements) => {
                let bytes = elements.wrapping_mul(size).wrapping_add(alignment) & -alignment;
                FreeWorkspace { offset: free.offset.wrapping_add(bytes), ..free }
            }
            None => {
                let bytes = self.index_value(&extent.scale(size))?;
                let end = self.ins().iadd_imm_s(bytes, free.offset.wrapping_add(alignment));
                let end = self.with(end, -alignment, |this, a, b| this.ins().band(a, b));
                FreeWorkspace { base: self.ins().iadd(free.base, end), offset: 0, level: self.level() }
            }
        });
        Ok(Storage::Memory { base: free.base, offset: free.offset, level: free.level })
    }

    fn store_stmt(&mut self, node: &Store) -> Outcome<()> {
        if node.is_atomic() && self.registers_of(node.buffer).is_none() {
            return self.atomic_update(node);
        }
        let index = self.single_index(&node.indices)?;
        let dtype = self.unit.program.buffer(node.buffer).dtype;
        let lanes = index.lanes();
        if self.lanes_of(&node.value) > lanes {
            return Err(self.unsupported("a store of several lanes to one element"));
        }
        let groups = Group::of(lanes);
        if let Some((condition, then, otherwise)) = self.as_branch(&node.value) {
            let store = |value: &Expr| Store {
                buffer: node.buffer,
                indices: node.indices.clone(),
                value: value.clone(),
                kind: node.kind,
            };
            let (then, otherwise) = (store(then), store(otherwise));
            let test = self.value(condition, Group::SCALAR)?.low;
            return self.either(
                test,
                |this| this.statement_values(|this| this.store_stmt(&then)),
                |this| this.statement_values(|this| this.store_stmt(&otherwise)),
            );
        }
        if let Some(active) = self.active.clone() {
            if active.lanes != lanes {
                return Err(self.unsupported("a store with other lanes than the condition around it"));
            }
            for (group, mask) in groups.into_iter().zip(active.masks) {
                self.conditional_store(node, &index, group, mask)?;
            }
            return Ok(());
        }
        if groups.len() > 1 && reads_elsewhere(&node.value, node.buffer, &node.indices) {
            let values: Outcome<SmallVec<[Lanes; 8]>> =
                groups.iter().map(|group| self.value(&node.value, *group)).collect();
            for (group, value) in groups.into_iter().zip(values?) {
                self.store(node.buffer, dtype, &index, group, value)?;
            }
            return Ok(());
        }
        for group in groups {
            let value = self.value(&node.value, group)?;
            self.store(node.buffer, dtype, &index, group, value)?;
        }
        Ok(())
    }

    /// The parts of a `select` that is better a branch around the whole statement than around each group:
    /// its condition is the same in all lanes, and one of its values must not be computed in vain.
    fn as_branch<'e>(&mut self, value: &'e Expr) -> Option<(&'e Expr, &'e Expr, &'e Expr)> {
        let ExprKind::Select(condition, then, otherwise) = value.kind() else { return None };
        let is_branch = self.active.is_none()
            && self.lanes_of(condition) == 1
            && !(self.is_total(then) && self.is_total(otherwise));
        is_branch.then_some((condition, then, otherwise))
    }

    /// A store of the lanes of one group for which `mask` holds.
    fn conditional_store(&mut self, node: &Store, index: &Index, group: Group, mask: Value) -> Outcome<()> {
        let dtype = self.unit.program.buffer(node.buffer).dtype;
        if group.width == Width::One {
            return self.when(mask, |this| {
                this.for_one_group(|this| {
                    let value = this.value(&node.value, group)?;
                    this.store(node.buffer, dtype, index, group, value)
                })
            });
        }
        let value = self.under_guard(mask, group.width, |this| this.value(&node.value, group))?;
        if self.registers_of(node.buffer).is_some() {
            let old = self.load(node.buffer, dtype, index, group)?;
            let blended = self.choose(Form::of(dtype), group.width, mask, value, old);
            return self.store(node.buffer, dtype, index, group, blended);
        }
        self.forget_loads(node.buffer);
        for lane in 0..group.width.lanes() {
            let wanted = self.extract(mask.into(), Form::Bool, group.width, lane);
            self.when(wanted, |this| {
                let place = at_lane(&this.resolve(index), group.start + lane);
                this.require_inside(node.buffer, &place, Group::SCALAR)?;
                this.store_lane(node.buffer, dtype, index, group, lane, value)
            })?;
        }
        Ok(())
    }

    /// Runs `then` behind a branch on a scalar condition.
    fn when(&mut self, condition: Value, then: impl FnOnce(&mut Self) -> Outcome<()>) -> Outcome<()> {
        let (inside, after) = (self.builder.create_block(), self.builder.create_block());
        let entry = self.builder.ins().brif(condition, inside, &[], after, &[]);
        self.enter(inside, entry, false);
        then(self)?;
        self.close_scope();
        self.builder.ins().jump(after, &[]);
        self.switch_to(after);
        self.builder.seal_block(after);
        Ok(())
    }

    fn conditional(&mut self, node: &If) -> Outcome<()> {
        let lanes = self.lanes_of(&node.condition);
        if lanes > 1 {
            return self.conditional_lanes(node, lanes);
        }
        if self.active.is_some() {
            self.require_total(&node.condition)?;
        }
        let condition = self.statement_values(|this| this.value(&node.condition, Group::SCALAR))?;
        self.either(
            condition.low,
            |this| this.branch(&node.condition, true, &node.then),
            |this| match &node.otherwise {
                Some(otherwise) => this.branch(&node.condition, false, otherwise),
                None => Ok(()),
            },
        )
    }

    /// Translates a branch, which is taken where a condition holds, or fails.
    fn branch(&mut self, condition: &Expr, holds: bool, stmt: &Stmt) -> Outcome<()> {
        let constants = |var| match self.variables.get(&var) {
            Some(Binding::Constant(value)) => Some(Index::constant(*value)),
            _ => None,
        };
        let known = self.facts.in_branch(condition, holds, &constants, &self.ranges);
        let outer = std::mem::replace(&mut self.facts, known);
        let result = self.stmt(stmt);
        self.facts = outer;
        result
    }

    /// Branches to one of two versions of code.
    fn either(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut Self) -> Outcome<()>,
        otherwise: impl FnOnce(&mut Self) -> Outcome<()>,
    ) -> Outcome<()> {
        let (first, second, after) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        let entry = self.builder.ins().brif(condition, first, &[], second, &[]);
        self.enter(first, entry, false);
        then(self)?;
        self.close_scope();
        self.builder.ins().jump(after, &[]);
        self.enter(second, entry, false);
        otherwise(self)?;
        self.close_scope();
        self.builder.ins().jump(after, &[]);
        self.switch_to(after);
        self.builder.seal_block(after);
        Ok(())
    }

    /// A conditional whose condition differs between lanes: as usual when it holds in all of them, otherwise
    /// with stores of single lanes.
    fn conditional_lanes(&mut self, node: &If, lanes: u32) -> Outcome<()> {
        let groups = Group::of(lanes);
        let outer = self.active.take();
        if let Some(outer) = &outer {
            self.require_total(&node.condition)?;
            if outer.lanes != lanes {
                return Err(self.unsupported("conditions with different lanes inside each other"));
            }
        }
        let masks = self.statement_values(|this| {
            let masks = groups.iter().map(|group| Ok(this.value(&node.condition, *group)?.low));
            masks.collect::<Outcome<SmallVec<[Value; 8]>>>()
        })?;
        let result = match &outer {
            Some(outer) => self.under_conditions(node, lanes, &masks, Some(&outer.masks)),
            None => {
                let mut everywhere = self.holds_everywhere(masks[0], groups[0].width);
                for (group, mask) in groups.iter().zip(&masks).skip(1) {
                    let here = self.holds_everywhere(*mask, group.width);
                    everywhere = self.ins().band(everywhere, here);
                }
                self.either(
                    everywhere,
                    |this| this.stmt(&node.then),
                    |this| this.under_conditions(node, lanes, &masks, None),
                )
            }
        };
        self.active = outer;
        result
    }

    /// Both branches, each for the lanes that it concerns.
    fn under_conditions(
        &mut self,
        node: &If,
        lanes: u32,
        masks: &[Value],
        outer: Option<&SmallVec<[Value; 8]>>,
    ) -> Outcome<()> {
        let within = |this: &mut Self, masks: SmallVec<[Value; 8]>| match outer {
            Some(outer) => masks.into_iter().zip(outer).map(|(a, b)| this.ins().band(a, *b)).collect(),
            None => masks,
        };
        let holds = within(self, masks.iter().copied().collect());
        self.active = Some(LaneCondition { lanes, masks: holds });
        self.stmt(&node.then)?;
        if let Some(otherwise) = &node.otherwise {
            let fails = masks.iter().map(|mask| self.not_bool((*mask).into()).low).collect();
            let fails = within(self, fails);
            self.active = Some(LaneCondition { lanes, masks: fails });
            self.stmt(otherwise)?;
        }
        self.active = None;
        Ok(())
    }

    fn require_total(&mut self, condition: &Expr) -> Outcome<()> {
        if self.is_total(condition) {
            return Ok(());
        }
        Err(self.unsupported("a condition with loads, inside a condition on lanes"))
    }
}

/// Whether a value reads the buffer at another place than the one that the value is stored to. Lanes are
/// stored group by group, so then every group has to be computed first.
fn reads_elsewhere(value: &Expr, buffer: BufferId, indices: &[Index]) -> bool {
    let mut elsewhere = false;
    for_each_load(value, &mut |access| elsewhere |= access.buffer == buffer && access.indices != indices);
    elsewhere
}
