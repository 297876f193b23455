//! Operands of intrinsics, in memory and in registers.

use tilewright_core::index::Index;
use tilewright_core::intrinsic::Operand;

use crate::simd::Refusal;
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{self, Class, Inst, Mem, Op, Reg, Width};
use crate::simd::x86::VectorOp;

impl Builder<'_> {
    /// The address of `elements` consecutive elements of an operand, which are checked to lie inside their buffer.
    pub(super) fn operand_place(&mut self, operand: &Operand, elements: u32) -> Outcome<Mem> {
        if self.is_in_registers(operand.buffer) {
            return Err(Refusal::Access);
        }
        self.require_address(operand.buffer)?;
        self.require_inside(operand.buffer, &(&operand.first + &Index::lane(elements)))?;
        self.address(operand.buffer, &operand.first)
    }

    /// Four bytes of elements in every 32-bit lane.
    pub(super) fn operand_broadcast(&mut self, operand: &Operand, width: Width) -> Outcome<Reg> {
        let mem = self.operand_place(operand, self.elements_in(operand, 4))?;
        Ok(self.shared_load(VectorOp::Broadcast32, width, mem, width.bytes() / 4, None))
    }

    /// A whole vector of elements.
    pub(super) fn operand_vector(&mut self, operand: &Operand, width: Width) -> Outcome<Reg> {
        let mem = self.operand_place(operand, self.elements_in(operand, width.bytes()))?;
        Ok(self.shared_load(VectorOp::Load, width, mem, width.bytes() / 4, None))
    }

    /// The number of elements of an operand in `bytes` bytes.
    fn elements_in(&self, operand: &Operand, bytes: u32) -> u32 {
        bytes / self.program.buffer(operand.buffer).dtype.bytes() as u32
    }

    /// Adds a function of two operands to a whole vector of 32-bit lanes, in its register or in memory.
    pub(super) fn accumulate(
        &mut self,
        op: VectorOp,
        width: Width,
        into: &Operand,
        operands: [Reg; 2],
    ) -> Outcome<()> {
        if op.code(self.extension, width).is_none() {
            return Err(Refusal::Operation("which needs AVX-512"));
        }
        let [a, b] = operands.map(ir::Operand::Reg);
        let added = |sum| Inst::new(Op::Accumulate(op), width, Some(sum), [ir::Operand::Reg(sum), a, b]);
        let lanes = width.bytes() / 4;
        if self.is_in_registers(into.buffer) {
            let variable = self.register_variable(into.buffer, &into.first, lanes)?;
            self.push(added(variable));
            return Ok(());
        }
        let mem = self.operand_place(into, lanes)?;
        let sum = self.emit(Class::Vector, Op::Vector(VectorOp::Load), width, [ir::Operand::Mem(mem)]);
        self.push(added(sum));
        self.forget_loads(into.buffer);
        let args = [ir::Operand::Mem(mem), ir::Operand::Reg(sum)];
        self.push(Inst::new(Op::Vector(VectorOp::Store), width, None, args));
        Ok(())
    }
}
