//! Dot products of four bytes each on machines without an instruction for them, exactly: bytes become words of 16 bits, `vpmaddwd` adds
//! the products of pairs of words.
//!
//! A lane of four bytes has two words of its even bytes and two of its odd ones; the sums of both products of pairs are the dot product. No
//! product or sum of bytes leaves the range of 32 bits, whatever the signs, so that all combinations of signs are alike.

use tilewright_core::intrinsic::Operand;

use crate::simd::build::scope::LoadKey;
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{self, Class, Inst, Op, Reg, Width};
use crate::simd::x86::VectorOp;

/// The low byte of each word.
const LOW_BYTES: u64 = 0x00ff_00ff;

/// Bytes as words: the even and the odd ones of each lane.
#[derive(Clone, Copy)]
pub(super) struct Words {
    even: Reg,
    odd: Reg,
}

impl Builder<'_> {
    /// Four bytes of elements in every 32-bit lane, as words.
    pub(super) fn broadcast_words(
        &mut self,
        operand: &Operand,
        width: Width,
        signed: bool,
    ) -> Outcome<Words> {
        self.loaded_words(operand, VectorOp::Broadcast32, width, signed)
    }

    /// A whole vector of bytes, as words.
    pub(super) fn vector_words(&mut self, operand: &Operand, width: Width, signed: bool) -> Outcome<Words> {
        self.loaded_words(operand, VectorOp::Load, width, signed)
    }

    fn loaded_words(
        &mut self,
        operand: &Operand,
        load: VectorOp,
        width: Width,
        signed: bool,
    ) -> Outcome<Words> {
        let (bytes, lanes) = match load {
            VectorOp::Broadcast32 => (4, 1),
            _ => (width.bytes(), width.bytes() / 4),
        };
        let mem = self.operand_place(operand, bytes)?;
        // No other value that is made of loaded bytes has these operations as its key.
        let keys = if signed {
            [VectorOp::ShiftSigned16, VectorOp::ShiftLeft16]
        } else {
            [VectorOp::And32, VectorOp::ShiftRight16]
        };
        let keys = keys.map(|op| LoadKey { op: Op::Vector(op), width, mem, lanes });
        if let [Some(even), Some(odd)] = keys.map(|key| self.known_load(key)) {
            return Ok(Words { even, odd });
        }
        let loaded = self.emit(Class::Vector, Op::Vector(load), width, [ir::Operand::Mem(mem)]);
        let words = self.words(loaded, width, signed)?;
        for (key, reg) in keys.into_iter().zip([words.even, words.odd]) {
            self.remember_load(key, reg);
        }
        Ok(words)
    }

    /// The bytes in a register, as words.
    fn words(&mut self, bytes: Reg, width: Width, signed: bool) -> Outcome<Words> {
        if signed {
            let moved = self.with_immediate(VectorOp::ShiftLeft16, width, bytes, 8);
            let even = self.with_immediate(VectorOp::ShiftSigned16, width, moved, 8);
            return Ok(Words { even, odd: self.with_immediate(VectorOp::ShiftSigned16, width, bytes, 8) });
        }
        let mask = self.same(LOW_BYTES, 4);
        let even = self.vector(VectorOp::And32, width, [mask, bytes])?;
        Ok(Words { even, odd: self.with_immediate(VectorOp::ShiftRight16, width, bytes, 8) })
    }

    /// Adds the dot products of lanes to a whole vector of lanes, in its register or in memory.
    pub(super) fn accumulate_pairs(
        &mut self,
        width: Width,
        into: &Operand,
        [a, b]: [Words; 2],
    ) -> Outcome<()> {
        let even = self.vector(VectorOp::MulAddPairs16, width, [a.even, b.even])?;
        let odd = self.vector(VectorOp::MulAddPairs16, width, [a.odd, b.odd])?;
        let dots = self.vector(VectorOp::Add32, width, [even, odd])?;
        self.accumulate_lanes(width, into, dots)
    }

    /// Adds 32-bit lanes to a whole vector of them, in its register or in memory.
    pub(super) fn accumulate_lanes(&mut self, width: Width, into: &Operand, dots: Reg) -> Outcome<()> {
        let lanes = width.bytes() / 4;
        if self.is_in_registers(into.buffer) {
            let sum = self.register_variable(into.buffer, &into.first, lanes)?;
            let args = [ir::Operand::Reg(sum), ir::Operand::Reg(dots)];
            self.push(Inst::new(Op::Vector(VectorOp::Add32), width, Some(sum), args));
            return Ok(());
        }
        let mem = self.operand_place(into, lanes)?;
        let old = self.emit(Class::Vector, Op::Vector(VectorOp::Load), width, [ir::Operand::Mem(mem)]);
        let sum = self.vector(VectorOp::Add32, width, [old, dots])?;
        self.forget_loads(into.buffer);
        let args = [ir::Operand::Mem(mem), ir::Operand::Reg(sum)];
        self.push(Inst::new(Op::Vector(VectorOp::Store), width, None, args));
        Ok(())
    }
}
