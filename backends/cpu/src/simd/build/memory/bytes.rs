//! Moves of some bytes between memory and the beginning of a register, whatever elements they are: 4, 8, or those of a whole register.

use crate::simd::build::Builder;
use crate::simd::ir::{Inst, Mem, Op, Operand, Reg, Width};
use crate::simd::x86::VectorOp;

/// The instruction that loads a number of bytes.
pub(in crate::simd::build) fn load_of_bytes(bytes: u32) -> VectorOp {
    match bytes {
        4 => VectorOp::LoadOne32,
        8 => VectorOp::LoadOne64,
        _ => VectorOp::Load,
    }
}

impl Builder<'_> {
    /// Stores the first bytes of a register.
    pub(in crate::simd::build) fn store_bytes(&mut self, mem: Mem, bytes: u32, value: Reg) {
        let op = match bytes {
            4 => VectorOp::StoreOne32,
            8 => VectorOp::StoreOne64,
            _ => VectorOp::Store,
        };
        let args = [Operand::Mem(mem), Operand::Reg(value)];
        self.push(Inst::new(Op::Vector(op), Width::of_bytes(bytes), None, args));
    }
}
