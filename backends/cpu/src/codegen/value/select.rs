//! Conditional values, and statements under a condition on lanes.
//!
//! A `select` evaluates only the chosen branch. Where a branch holds no load that could leave its buffer, both are
//! computed and one is picked. Otherwise a scalar condition becomes a real branch, and a condition on lanes
//! is tested as a whole: if it holds in every lane, only the first branch is computed, as always;
//! if not, both are, under a [`Guard`] that sends the loads of the other lanes to the buffer's first element,
//! which always exists (an empty tensor's address is replaced before the call).

use cranelift_codegen::ir::{BlockArg, InstBuilder, Value};
use smallvec::SmallVec;
use tilewright_core::expr::Expr;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;

use crate::codegen::memory::address::Address;
use crate::codegen::value::lanes::{Form, Group, Lanes, Width};
use crate::codegen::{Generator, Outcome};
use crate::flat::access::{can_report, for_each_load};

/// The lanes of the group being computed that are wanted.
#[derive(Clone, Copy)]
pub(in crate::codegen) struct Guard {
    /// Booleans of as many lanes as the group has, or of one while a single lane's index is computed.
    masks: Value,
    width: Width,
}

/// A condition on the lanes of a statement: booleans for each of its groups.
#[derive(Clone)]
pub(in crate::codegen) struct LaneCondition {
    pub(in crate::codegen) lanes: u32,
    pub(in crate::codegen) masks: SmallVec<[Value; 8]>,
}

impl Generator<'_> {
    /// The value of a `select`.
    pub(in crate::codegen) fn select(
        &mut self,
        condition: &Expr,
        then: &Expr,
        otherwise: &Expr,
        group: Group,
    ) -> Outcome<Lanes> {
        let form = Form::of(then.dtype());
        if let Some((low, high, is_lower)) = self.unit.numbers.as_min_max(condition, then, otherwise) {
            let (low, high) = self.both(low, high, group)?;
            return Ok(low.zip(high, |low, high| {
                let (then, otherwise) = if is_lower { (low, high) } else { (high, low) };
                self.pick_where_less((low, high), then, otherwise)
            }));
        }
        let own = if self.lanes_of(condition) == 1 { Group::SCALAR } else { group };
        let test = self.value(condition, own)?.low;
        if self.is_total(then) && self.is_total(otherwise) {
            let a = self.value(then, group)?;
            let b = self.value(otherwise, group)?;
            return Ok(self.choose(form, group.width, test, a, b));
        }
        if own.width == Width::One {
            if own == group && group != Group::SCALAR {
                return self.for_one_group(|this| this.branch_value(test, form, group, then, otherwise));
            }
            return self.branch_value(test, form, group, then, otherwise);
        }
        if self.guard.is_some() {
            return self.guarded_select(test, form, group, then, otherwise);
        }
        let everywhere = self.holds_everywhere(test, group.width);
        let merge = self.builder.create_block();
        let (fast, slow) = (self.builder.create_block(), self.builder.create_block());
        let entry = self.builder.ins().brif(everywhere, fast, &[], slow, &[]);
        self.enter(fast, entry, false);
        let value = self.for_one_group(|this| this.value(then, group))?;
        self.leave_with(merge, value);
        self.enter(slow, entry, false);
        let value = self.for_one_group(|this| this.guarded_select(test, form, group, then, otherwise))?;
        self.leave_with(merge, value);
        Ok(self.merged(merge, form, group.width))
    }

    /// Computes one of two values after a branch on a scalar condition.
    fn branch_value(
        &mut self,
        test: Value,
        form: Form,
        group: Group,
        then: &Expr,
        otherwise: &Expr,
    ) -> Outcome<Lanes> {
        let merge = self.builder.create_block();
        let (first, second) = (self.builder.create_block(), self.builder.create_block());
        let entry = self.builder.ins().brif(test, first, &[], second, &[]);
        for (block, branch) in [(first, then), (second, otherwise)] {
            self.enter(block, entry, false);
            let value = self.value(branch, group)?;
            self.leave_with(merge, value);
        }
        Ok(self.merged(merge, form, group.width))
    }

    /// Computes both values, each guarded by its side of the condition.
    fn guarded_select(
        &mut self,
        test: Value,
        form: Form,
        group: Group,
        then: &Expr,
        otherwise: &Expr,
    ) -> Outcome<Lanes> {
        let a = self.under_guard(test, group.width, |this| this.value(then, group))?;
        let not_test = self.not_bool(test.into()).low;
        let b = self.under_guard(not_test, group.width, |this| this.value(otherwise, group))?;
        Ok(self.choose(form, group.width, test, a, b))
    }

    /// Runs `compute` for the active lanes of `mask`.
    pub(in crate::codegen) fn under_guard<R>(
        &mut self,
        mask: Value,
        width: Width,
        compute: impl FnOnce(&mut Self) -> Outcome<R>,
    ) -> Outcome<R> {
        let masks = match self.guard {
            Some(outer) => self.ins().band(outer.masks, mask),
            None => mask,
        };
        self.with_guard(Guard { masks, width }, compute)
    }

    /// Runs `compute`, which is for lane `lane` of the group alone.
    pub(in crate::codegen) fn for_lane<R>(
        &mut self,
        lane: u32,
        compute: impl FnOnce(&mut Self) -> Outcome<R>,
    ) -> Outcome<R> {
        let Some(guard) = self.guard else { return compute(self) };
        let masks = self.extract(guard.masks.into(), Form::Bool, guard.width, lane);
        self.with_guard(Guard { masks, width: Width::One }, compute)
    }

    fn with_guard<R>(&mut self, guard: Guard, compute: impl FnOnce(&mut Self) -> Outcome<R>) -> Outcome<R> {
        let outer = self.guard.replace(guard);
        self.memos.push(Default::default());
        let result = compute(self);
        self.memos.pop();
        self.guard = outer;
        result
    }

    /// The address of the element at an index if any lane is wanted and the index lies inside the buffer, otherwise
    /// of the buffer's first element.
    pub(in crate::codegen) fn guarded(
        &mut self,
        buffer: BufferId,
        index: &Index,
        address: Address,
    ) -> Outcome<Address> {
        let Some(guard) = self.guard else { return Ok(address) };
        let mut wanted = self.holds_somewhere(guard.masks, guard.width);
        if let Some(inside) = self.inside(buffer, index)? {
            wanted = self.ins().band(wanted, inside);
        }
        self.redirect(buffer, address, wanted)
    }

    /// Whether lane `lane` is wanted; `None` when all are.
    pub(in crate::codegen) fn wanted(&mut self, width: Width, lane: u32) -> Option<Value> {
        let guard = self.guard?;
        Some(match width {
            Width::One => self.holds_somewhere(guard.masks, guard.width),
            _ => self.extract(guard.masks.into(), Form::Bool, guard.width, lane),
        })
    }

    fn redirect(&mut self, buffer: BufferId, address: Address, wanted: Value) -> Outcome<Address> {
        let first = self.address(buffer, &0.into())?;
        let place = self.ins().iadd_imm_s(address.base, i64::from(address.offset));
        let start = self.ins().iadd_imm_s(first.base, i64::from(first.offset));
        let base = self.ins().select(wanted, place, start);
        Ok(Address { base, offset: 0 })
    }

    /// Whether an expression can be computed although its value may not be wanted: every load is proved to
    /// stay inside its buffer, and no index can be reported.
    pub(in crate::codegen) fn is_total(&mut self, expr: &Expr) -> bool {
        let mut total = !can_report(expr);
        for_each_load(expr, &mut |access| {
            total &= access.indices.iter().all(|index| self.is_inside(access.buffer, index));
        });
        total
    }

    /// Goes on in a block with one predecessor, in a scope of its own.
    pub(in crate::codegen) fn enter(
        &mut self,
        block: cranelift_codegen::ir::Block,
        entry: cranelift_codegen::ir::Inst,
        is_loop: bool,
    ) {
        self.switch_to(block);
        self.builder.seal_block(block);
        self.open_scope(entry, is_loop);
    }

    fn leave_with(&mut self, merge: cranelift_codegen::ir::Block, lanes: Lanes) {
        self.close_scope();
        let arguments: SmallVec<[BlockArg; 2]> = lanes.registers().map(BlockArg::Value).collect();
        self.builder.ins().jump(merge, &arguments);
    }

    /// Goes on where two branches that each [leave with](Self::leave_with) a value meet.
    fn merged(&mut self, merge: cranelift_codegen::ir::Block, form: Form, width: Width) -> Lanes {
        let ty = form.register(width);
        let low = self.builder.append_block_param(merge, ty);
        let high = form.is_split(width).then(|| self.builder.append_block_param(merge, ty));
        self.switch_to(merge);
        self.builder.seal_block(merge);
        Lanes { low, high }
    }
}
