//! Loads under conditions that are the same in all lanes, such as those of padding: `select(c, x[i], 0)`.
//!
//! The condition selects one of two addresses: the element's, or that of constants behind the code. This takes no mask and no
//! vector register, and the load can be the operand of the instruction that uses it.

use tilewright_core::expr::{BinaryOp, Constant as Number, Expr, ExprKind};
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;

use crate::flat::access::{can_report, for_each_load};
use crate::simd::Refusal;
use crate::simd::build::scope::Key;
use crate::simd::build::stmt::nest::is_index;
use crate::simd::build::stmt::registers::single;
use crate::simd::build::value::expr::bits_of;
use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{Base, GeneralOp, Mem, Operand, Reg};

/// A load under such a condition.
struct SelectedLoad<'e> {
    condition: &'e Expr,
    buffer: BufferId,
    index: Index,
    /// The value of the lanes where the condition fails.
    otherwise: Number,
}

impl Builder<'_> {
    /// A load from an address that a condition selects, if the expression has this form and the load is proved to stay inside
    /// its buffer where the condition holds.
    pub(in crate::simd::build) fn load_selected(
        &mut self,
        expr: &Expr,
        group: Group,
    ) -> Outcome<Option<Reg>> {
        let ExprKind::Select(_, value, _) = expr.kind() else { return Ok(None) };
        let ExprKind::Load(buffer, indices) = value.kind() else { return Ok(None) };
        if expr.dtype().bytes() < 4 {
            return Ok(None);
        }
        let Some(mem) = self.selected_place(expr, group)? else { return Ok(None) };
        if indices.iter().all(|index| index.lanes() == 1) && !group.is_scalar {
            return Ok(Some(self.broadcast_at(mem, Form::of(expr.dtype()), group)));
        }
        self.load_contiguous(*buffer, mem, group, None).map(Some)
    }

    /// The place of consecutive elements that a condition selects, as for [`Builder::load_selected`].
    pub(in crate::simd::build) fn selected_place(
        &mut self,
        expr: &Expr,
        group: Group,
    ) -> Outcome<Option<Mem>> {
        let Some(chosen) = self.as_selected(expr) else { return Ok(None) };
        let SelectedLoad { condition, buffer, index, otherwise } = chosen;
        let Some((scalar, offsets)) = self.group_offsets(&index, group) else { return Ok(None) };
        if offsets.iter().zip(0..).any(|(offset, lane)| *offset != offsets[0] + lane) {
            return Ok(None);
        }
        let known = self.knowing(&self.facts, condition, true);
        if !self.is_inside_given(&known, buffer, &index) {
            return Ok(None);
        }
        let condition = self.condition(condition)?;
        let place = self.address(buffer, &scalar.offset(offsets[0]))?;
        let (bits, bytes) = bits_of(expr.dtype(), otherwise);
        self.selected_address(condition, place, (bits, bytes.min(expr.dtype().bytes() as u8))).map(Some)
    }

    fn as_selected<'e>(&mut self, expr: &'e Expr) -> Option<SelectedLoad<'e>> {
        let ExprKind::Select(condition, value, otherwise) = expr.kind() else { return None };
        let ExprKind::Load(buffer, indices) = value.kind() else { return None };
        let otherwise = otherwise.as_constant()?;
        let is_plain = self.guard.is_none() && self.hoisted_to.is_none();
        let is_decided = is_decided_by_indices(condition) && self.lanes_of(condition) == 1;
        if !is_plain || !is_decided || depends_on_data(expr) || self.is_in_registers(*buffer) {
            return None;
        }
        self.require_address(*buffer).ok()?;
        Some(SelectedLoad { condition, buffer: *buffer, index: single(indices)?, otherwise })
    }

    /// An address where a condition holds, and otherwise that of lanes of a constant of `bytes` bytes.
    pub(in crate::simd::build) fn selected_address(
        &mut self,
        condition: Reg,
        place: Mem,
        (bits, bytes): (u64, u8),
    ) -> Outcome<Mem> {
        let element = &bits.to_le_bytes()[..usize::from(bytes)];
        let mut lanes = [0; 64];
        lanes.chunks_exact_mut(element.len()).for_each(|lane| lane.copy_from_slice(element));
        let start = self.pool_bytes(&lanes);
        let constants = Mem { base: Base::Pool, index: None, offset: start as i32, buffer: None };
        let constants = self.value_at(0, Key::Constants(start), |this| {
            Ok::<_, Refusal>(this.general(GeneralOp::Address, [Operand::Mem(constants)]))
        })?;
        let own = self.general(GeneralOp::Address, [Operand::Mem(Mem { buffer: None, ..place })]);
        let args = [condition, own, constants].map(Operand::Reg);
        let pointer = self.general(GeneralOp::Select, args);
        Ok(Mem { base: Base::Register(pointer), index: None, offset: 0, buffer: place.buffer })
    }
}

/// Whether a condition compares indices and nothing else.
pub(in crate::simd::build) fn is_decided_by_indices(condition: &Expr) -> bool {
    let ExprKind::Binary(op, a, b) = condition.kind() else { return false };
    match op {
        BinaryOp::And | BinaryOp::Or => is_decided_by_indices(a) && is_decided_by_indices(b),
        _ => op.is_comparison() && is_index(a) && is_index(b),
    }
}

/// Whether anything is read but the element itself: where that is, is computed whether or not the condition holds.
fn depends_on_data(expr: &Expr) -> bool {
    let mut loads = 0;
    for_each_load(expr, &mut |_| loads += 1);
    loads > 1 || can_report(expr)
}
