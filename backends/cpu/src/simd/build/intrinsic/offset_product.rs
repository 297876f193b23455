//! Dot products of four bytes each that are both signed or both unsigned, one of them with an offset.
//!
//! With its highest bit flipped, a signed byte is an unsigned one that is 128 larger, and an unsigned byte a signed one that is
//! 128 smaller: the instruction for unsigned times signed bytes computes these products. The schedule
//! subtracts the sum that the offset adds, outside of the inner loops
//! ([`offset_products`](tilewright_core::schedule::prim::OffsetProducts)).

use tilewright_core::intrinsic::{Match, Operand};

use super::dot_product::is_available;
use super::{Rule, Sums};
use crate::simd::Refusal;
use crate::simd::build::scope::LoadKey;
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{self, Class, Op, Reg, Width};
use crate::simd::x86::VectorOp;

/// The names, the numbers of lanes, whether both operands are signed, and whether the broadcast operand has the offset.
pub(super) const RULES: &[Rule] = &[
    rule::<16, true, true>("vpdpbssd_offset_a_16"),
    rule::<8, true, true>("vpdpbssd_offset_a_8"),
    rule::<4, true, true>("vpdpbssd_offset_a_4"),
    rule::<16, true, false>("vpdpbssd_offset_b_16"),
    rule::<8, true, false>("vpdpbssd_offset_b_8"),
    rule::<4, true, false>("vpdpbssd_offset_b_4"),
    rule::<16, false, true>("vpdpbuud_offset_a_16"),
    rule::<8, false, true>("vpdpbuud_offset_a_8"),
    rule::<4, false, true>("vpdpbuud_offset_a_4"),
    rule::<16, false, false>("vpdpbuud_offset_b_16"),
    rule::<8, false, false>("vpdpbuud_offset_b_8"),
    rule::<4, false, false>("vpdpbuud_offset_b_4"),
];

/// The highest bit of each byte.
const HIGH_BITS: u64 = 0x8080_8080;

const fn rule<const LANES: u32, const SIGNED: bool, const SPREAD_OFFSET: bool>(name: &'static str) -> Rule {
    let sums = Sums::Vector { operand: 2, elements: LANES };
    Rule { name, is_available: is_available::<LANES>, sums, emit: emit::<LANES, SIGNED, SPREAD_OFFSET> }
}

fn emit<const LANES: u32, const SIGNED: bool, const SPREAD_OFFSET: bool>(
    builder: &mut Builder<'_>,
    found: &Match,
) -> Outcome<()> {
    let [broadcast, vector, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
    let width = Width::of_bytes(4 * LANES);
    let (flipped, other) = match SPREAD_OFFSET {
        true => (
            builder.flipped(broadcast, VectorOp::Broadcast32, width)?,
            builder.operand_vector(vector, width)?,
        ),
        false => {
            let broadcast = builder.operand_broadcast(broadcast, width)?;
            (builder.flipped(vector, VectorOp::Load, width)?, broadcast)
        }
    };
    // Flipping makes unsigned bytes of signed ones, and the other way round.
    let operands = if SIGNED { [flipped, other] } else { [other, flipped] };
    builder.accumulate(VectorOp::DotU8I8, width, sums, operands)
}

impl Builder<'_> {
    /// Bytes in every lane, loaded by `load`, with their highest bits flipped.
    fn flipped(&mut self, operand: &Operand, load: VectorOp, width: Width) -> Outcome<Reg> {
        let (bytes, lanes) = match load {
            VectorOp::Broadcast32 => (4, 1),
            _ => (width.bytes(), width.bytes() / 4),
        };
        let mem = self.operand_place(operand, bytes)?;
        let key = LoadKey { op: Op::Vector(VectorOp::Xor32), width, mem, lanes };
        if let Some(known) = self.known_load(key) {
            return Ok(known);
        }
        let bytes = self.emit(Class::Vector, Op::Vector(load), width, [ir::Operand::Mem(mem)]);
        let high = self.same(HIGH_BITS, 4);
        let flipped = self.vector(VectorOp::Xor32, width, [high, bytes])?;
        self.remember_load(key, flipped);
        Ok(flipped)
    }
}
