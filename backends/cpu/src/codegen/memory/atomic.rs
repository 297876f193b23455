//! Updates of elements in one step, which threads make at the same time.

use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder};
use tilewright_core::analysis::block::{Reducer, reduction_of};
use tilewright_core::dtype::DType;
use tilewright_core::stmt::Store;

use crate::codegen::value::lanes::Group;
use crate::codegen::{Generator, Outcome, memory_flags};

impl Generator<'_> {
    /// Combines an element in memory with a value in one step.
    pub(in crate::codegen) fn atomic_update(&mut self, node: &Store) -> Outcome<()> {
        let index = self.single_index(&node.indices)?;
        let dtype = self.unit.program.buffer(node.buffer).dtype;
        let operation = reduction_of(node).and_then(|found| Some((operation(found.reducer, dtype)?, found)));
        let Some((operation, found)) = operation else {
            return Err(self.unsupported("an update in one step of this type"));
        };
        let value = self.value(found.value, Group::SCALAR)?.low;
        self.require_inside(node.buffer, &index, Group::SCALAR)?;
        self.forget_loads(node.buffer);
        let address = self.address(node.buffer, &index)?;
        let place = self.ins().iadd_imm_s(address.base, i64::from(address.offset));
        let (ty, is_narrow) = match dtype.bytes() {
            1 => (I8, true),
            2 => (I16, true),
            4 => (I32, false),
            _ => (I64, false),
        };
        let value = if is_narrow { self.ins().ireduce(ty, value) } else { value };
        self.ins().atomic_rmw(ty, memory_flags(), operation, place, value);
        Ok(())
    }
}

/// The operation of Cranelift that combines integers of a type.
fn operation(reducer: Reducer, dtype: DType) -> Option<AtomicRmwOp> {
    let is_signed = dtype.int_range()?.0 < 0;
    match reducer {
        Reducer::Sum => Some(AtomicRmwOp::Add),
        Reducer::Max | Reducer::Maximum if is_signed => Some(AtomicRmwOp::Smax),
        Reducer::Min | Reducer::Minimum if is_signed => Some(AtomicRmwOp::Smin),
        Reducer::Max | Reducer::Maximum => Some(AtomicRmwOp::Umax),
        Reducer::Min | Reducer::Minimum => Some(AtomicRmwOp::Umin),
        Reducer::Product => None,
    }
}
