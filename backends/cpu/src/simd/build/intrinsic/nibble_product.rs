//! Dot products with bytes that hold two unsigned integers of 4 bits: the low halves are multiplied with four signed bytes, the
//! high halves with four others.
//!
//! The halves become bytes in registers: a mask leaves the low ones, a shift and the same mask the high ones. Machines without an instruction for
//! dot products of bytes add pairs of products in words of 16 bits (`vpmaddubsw`), which these small integers do not fill.

use tilewright_core::intrinsic::{Match, Operand};

use super::dot_product::{fits, has_dots};
use super::{Rule, Sums};
use crate::machine::FeatureSet;
use crate::simd::build::scope::LoadKey;
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{Op, Reg, Width};
use crate::simd::x86::VectorOp;
use crate::simd::{Refusal, VectorExtension};

/// The products on vectors of every width.
pub(super) const RULES: &[Rule] =
    &[rule::<16>("vpdpbsud_nibbles_16"), rule::<8>("vpdpbsud_nibbles_8"), rule::<4>("vpdpbsud_nibbles_4")];

/// The low half of each byte.
const LOW_HALVES: u64 = 0x0f0f_0f0f;

/// Words of 16 bits that are 1.
const ONE_IN_EACH_WORD: u64 = 0x0001_0001;

const fn rule<const LANES: u32>(name: &'static str) -> Rule {
    let sums = Sums::Vector { operand: 3, elements: LANES };
    Rule { name, is_available: is_possible::<LANES>, sums, emit: emit::<LANES> }
}

fn is_possible<const LANES: u32>(extension: VectorExtension, _: FeatureSet) -> bool {
    fits(extension, LANES)
}

fn emit<const LANES: u32>(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    let [first, second, bytes, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
    let width = Width::of_bytes(4 * LANES);
    let [low, high] = builder.halves(bytes, width)?;
    let (first, second) =
        (builder.operand_broadcast(first, width)?, builder.operand_broadcast(second, width)?);
    if has_dots(builder.extension, builder.around.features) {
        builder.accumulate(VectorOp::DotU8I8, width, sums, [low, first])?;
        return builder.accumulate(VectorOp::DotU8I8, width, sums, [high, second]);
    }
    // A sum of two products of integers below 16 with signed bytes is at most 3,840, and so is that of the high halves: words of 16 bits
    // hold both together, so that the instruction, which saturates, gives the exact sum.
    let low = builder.vector(VectorOp::MulAddPairsU8I8, width, [low, first])?;
    let high = builder.vector(VectorOp::MulAddPairsU8I8, width, [high, second])?;
    let words = builder.vector(VectorOp::Add16, width, [low, high])?;
    let ones = builder.same(ONE_IN_EACH_WORD, 4);
    let dots = builder.vector(VectorOp::MulAddPairs16, width, [words, ones])?;
    builder.accumulate_lanes(width, sums, dots)
}

impl Builder<'_> {
    /// The low and the high halves of a vector of bytes, each as a byte.
    fn halves(&mut self, operand: &Operand, width: Width) -> Outcome<[Reg; 2]> {
        let lanes = width.bytes() / 4;
        let mem = self.operand_place(operand, width.bytes())?;
        // No other value that is made of loaded bytes has these operations as its key.
        let keys = [VectorOp::Or32, VectorOp::ShiftRight32].map(|op| LoadKey {
            op: Op::Vector(op),
            width,
            mem,
            lanes,
        });
        if let [Some(low), Some(high)] = keys.map(|key| self.known_load(key)) {
            return Ok([low, high]);
        }
        let bytes = self.operand_vector(operand, width)?;
        let mask = self.same(LOW_HALVES, 4);
        let low = self.vector(VectorOp::And32, width, [mask, bytes])?;
        let shifted = self.with_immediate(VectorOp::ShiftRight32, width, bytes, 4);
        let high = self.vector(VectorOp::And32, width, [mask, shifted])?;
        for (key, reg) in keys.into_iter().zip([low, high]) {
            self.remember_load(key, reg);
        }
        Ok([low, high])
    }
}
