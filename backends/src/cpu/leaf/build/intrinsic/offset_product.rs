//! Dot products of four bytes each that are both signed or both unsigned.
//!
//! Where the machine has no instruction for them, that for unsigned times signed bytes stands in. With its highest bit
//! flipped, a signed byte is an unsigned one that is 128 larger, and an unsigned byte a signed one that is 128 smaller. What
//! that adds to the result is 128 times the sum of the other operand, which is taken away again. All sums wrap, and no
//! product of two bytes is cut off on the way, so that the result is exact.
//!
//! The bytes that are spread are flipped. The other operand's sum is the same for all rows of a tile. Where a loop does
//! nothing else with the sums of products, it is kept beside them, once for the tile's rows, and taken away when the
//! loop is over ([`corrections`](super::corrections)); otherwise each statement takes away its own part.

use tilewright_core::intrinsic::{Match, Operand};

use super::super::scope::LoadKey;
use super::super::{Builder, Outcome};
use super::corrections::Correction;
use super::dot_product::is_available;
use super::{Rule, Sums};
use crate::cpu::leaf::encode::VectorOp;
use crate::cpu::leaf::ir::{self, Class, Constant, Inst, Op, Reg, Width};
use crate::cpu::leaf::{Level, Refusal};
use crate::cpu::machine::Feature;

/// The names, the numbers of lanes, and whether both operands are signed.
pub(super) const RULES: &[Rule] = &[
    rule::<16, true>("vpdpbssd_16"),
    rule::<8, true>("vpdpbssd_8"),
    rule::<4, true>("vpdpbssd_4"),
    rule::<16, false>("vpdpbuud_16"),
    rule::<8, false>("vpdpbuud_8"),
    rule::<4, false>("vpdpbuud_4"),
];

/// The highest bit of each byte: 128 as unsigned bytes, -128 as signed ones.
const HIGH_BITS: u64 = 0x8080_8080;

const fn rule<const LANES: u32, const SIGNED: bool>(name: &'static str) -> Rule {
    let sums = Sums::Vector { operand: 2, elements: LANES };
    Rule { name, is_available: is_available::<LANES>, sums, emit: emit::<LANES, SIGNED> }
}

fn emit<const LANES: u32, const SIGNED: bool>(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    let [spread, vector, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
    let width = Width::of_bytes(4 * LANES);
    let bytes = builder.operand_vector(vector, width)?;
    if builder.has_own_instruction() {
        let spread = builder.operand_spread(spread, width)?;
        let op = if SIGNED { VectorOp::DotI8I8 } else { VectorOp::DotU8U8 };
        return builder.accumulate(op, width, sums, [spread, bytes]);
    }
    match builder.correction_of(sums) {
        Some(Correction { sum, is_made_here: true }) => {
            let high = builder.same(HIGH_BITS, 4);
            builder.push(dot(width, sum, in_order::<SIGNED>(high, bytes)));
        }
        Some(_) => {}
        None => {
            let part = builder.part_of_sum::<SIGNED>(vector, bytes, width)?;
            builder.accumulate_difference(width, sums, part)?;
        }
    }
    let flipped = builder.flipped(spread, width)?;
    builder.accumulate(VectorOp::DotU8I8, width, sums, in_order::<SIGNED>(flipped, bytes))
}

/// The unsigned operand and the signed one, of the flipped bytes and the others.
fn in_order<const SIGNED: bool>(flipped: Reg, bytes: Reg) -> [Reg; 2] {
    if SIGNED { [flipped, bytes] } else { [bytes, flipped] }
}

fn dot(width: Width, sum: Reg, [unsigned, signed]: [Reg; 2]) -> Inst {
    let args = [sum, unsigned, signed].map(ir::Operand::Reg);
    Inst::new(Op::Accumulate(VectorOp::DotU8I8), width, Some(sum), args)
}

impl Builder<'_> {
    /// Whether nothing has to stand in. There are no such instructions on vectors of 512 bits.
    pub(super) fn has_own_instruction(&self) -> bool {
        self.features == Level::Avx2 && self.around.features.contains(Feature::AvxVnniInt8)
    }

    /// Four bytes in every lane, with their highest bits flipped.
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

    /// What flipping adds to the products of a vector's groups of four bytes.
    fn part_of_sum<const SIGNED: bool>(
        &mut self,
        operand: &Operand,
        bytes: Reg,
        width: Width,
    ) -> Outcome<Reg> {
        let mem = self.operand_place(operand, width.bytes())?;
        let key = LoadKey { op: Op::Accumulate(VectorOp::DotU8I8), width, mem, lanes: width.bytes() / 4 };
        if let Some(known) = self.known_load(key) {
            return Ok(known);
        }
        let part = self.emit(Class::Vector, Op::Constant(Constant::Same(0, 4)), width, []);
        let high = self.same(HIGH_BITS, 4);
        self.push(dot(width, part, in_order::<SIGNED>(high, bytes)));
        self.remember_load(key, part);
        Ok(part)
    }
}
