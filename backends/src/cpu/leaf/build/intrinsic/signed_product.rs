//! Dot products of four signed bytes each, by the instruction for unsigned times signed ones.
//!
//! With 128 added, a signed byte is an unsigned one: its highest bit is flipped. What that adds to the result is 128
//! times the sum of the other operand, which is taken away again. All sums wrap, and no product of two bytes is cut off
//! on the way, so that the result is exact.
//!
//! The other operand's sum is the same for all rows of a tile. Where a loop does nothing else with the sums of
//! products, it is kept beside them, once for the tile's rows, and taken away when the loop is over
//! ([`corrections`](super::corrections)); otherwise each statement takes away its own part.

use tilewright_core::intrinsic::{Match, Operand};

use super::super::scope::LoadKey;
use super::super::{Builder, Outcome};
use super::corrections::Correction;
use super::{Rule, Sums};
use crate::cpu::leaf::Refusal;
use crate::cpu::leaf::encode::VectorOp;
use crate::cpu::leaf::ir::{self, Class, Constant, Inst, Op, Reg, Width};

pub(super) const RULES: &[Rule] =
    &[rule::<16>("vpdpbssd_16"), rule::<8>("vpdpbssd_8"), rule::<4>("vpdpbssd_4")];

/// The highest bit of each byte; as unsigned bytes, 128.
const HIGH_BITS: u64 = 0x8080_8080;

const fn rule<const LANES: u32>(name: &'static str) -> Rule {
    let sums = Sums::Vector { operand: 2, elements: LANES };
    Rule { name, is_available: super::dot_product::is_available::<LANES>, sums, emit: emit::<LANES> }
}

fn emit<const LANES: u32>(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    let [spread, vector, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
    let width = Width::of_bytes(4 * LANES);
    let correction = builder.correction_of(sums);
    let bytes = builder.operand_bytes(vector, width)?;
    match correction {
        Some(Correction { sum, is_made_here: true }) => {
            let high = builder.same(HIGH_BITS, 4);
            builder.push(dot(width, sum, high, bytes));
        }
        Some(_) => {}
        None => {
            let part = builder.part_of_sum(vector, bytes, width)?;
            builder.accumulate_difference(width, sums, part)?;
        }
    }
    let unsigned = builder.flipped(spread, width)?;
    builder.accumulate(VectorOp::DotU8I8, width, sums, [unsigned, bytes])
}

fn dot(width: Width, sum: Reg, unsigned: Reg, signed: Reg) -> Inst {
    let args = [sum, unsigned, signed].map(ir::Operand::Reg);
    Inst::new(Op::Accumulate(VectorOp::DotU8I8), width, Some(sum), args)
}

impl Builder<'_> {
    /// Four signed bytes in every lane, with their highest bits flipped.
    fn flipped(&mut self, operand: &Operand, width: Width) -> Outcome<Reg> {
        let mem = self.operand_place(operand, 4)?;
        let key = LoadKey { op: Op::Vector(VectorOp::Xor32), width, mem, lanes: width.bytes() / 4 };
        if let Some(known) = self.known_load(key) {
            return Ok(known);
        }
        let bytes = self.emit(Class::Vector, Op::Vector(VectorOp::Spread32), width, [ir::Operand::Mem(mem)]);
        let high = self.same(HIGH_BITS, 4);
        let flipped = self.vector(VectorOp::Xor32, width, [high, bytes])?;
        self.remember_load(key, flipped);
        Ok(flipped)
    }

    /// 128 times the sums of a vector's groups of four bytes.
    fn part_of_sum(&mut self, operand: &Operand, bytes: Reg, width: Width) -> Outcome<Reg> {
        let mem = self.operand_place(operand, width.bytes())?;
        let key = LoadKey { op: Op::Accumulate(VectorOp::DotU8I8), width, mem, lanes: width.bytes() / 4 };
        if let Some(known) = self.known_load(key) {
            return Ok(known);
        }
        let part = self.emit(Class::Vector, Op::Constant(Constant::Same(0, 4)), width, []);
        let high = self.same(HIGH_BITS, 4);
        self.push(dot(width, part, high, bytes));
        self.remember_load(key, part);
        Ok(part)
    }
}
