//! `vpdpbusd` and similar instructions: dot products of four bytes each.
//!
//! One operand is a vector of bytes, the other four bytes broadcast over all lanes, and either may be the unsigned one: the
//! instruction multiplies lane by lane. Its signed operand may be in memory, also one that is broadcast where there is AVX-512.
//! Machines without such instructions form the same sums of products of pairs of words ([`super::pair_product`]).

use tilewright_core::intrinsic::Match;

use super::{Rule, Sums};
use crate::machine::{Feature, FeatureSet};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::Width;
use crate::simd::x86::VectorOp;
use crate::simd::{Refusal, VectorExtension};

/// The names, the lanes, and whether the broadcast operand and that of the lanes are signed.
pub(super) const RULES: &[Rule] = &[
    rule::<16, false, true>("vpdpbusd_16"),
    rule::<8, false, true>("vpdpbusd_8"),
    rule::<4, false, true>("vpdpbusd_4"),
    rule::<16, true, false>("vpdpbsud_16"),
    rule::<8, true, false>("vpdpbsud_8"),
    rule::<4, true, false>("vpdpbsud_4"),
    rule::<16, true, true>("vpdpbssd_16"),
    rule::<8, true, true>("vpdpbssd_8"),
    rule::<4, true, true>("vpdpbssd_4"),
    rule::<16, false, false>("vpdpbuud_16"),
    rule::<8, false, false>("vpdpbuud_8"),
    rule::<4, false, false>("vpdpbuud_4"),
];

const fn rule<const LANES: u32, const SPREAD_SIGNED: bool, const LANES_SIGNED: bool>(
    name: &'static str,
) -> Rule {
    Rule {
        name,
        is_available: is_possible::<LANES, SPREAD_SIGNED, LANES_SIGNED>,
        sums: Sums::Vector { operand: 2, elements: LANES },
        emit: emit::<LANES, SPREAD_SIGNED, LANES_SIGNED>,
    }
}

/// Whether vectors of an extension have `lanes` lanes.
pub(super) fn fits(extension: VectorExtension, lanes: u32) -> bool {
    4 * lanes <= extension.bytes()
}

/// Whether there are instructions for dot products of bytes of different signs.
pub(super) fn has_dots(extension: VectorExtension, features: FeatureSet) -> bool {
    features.contains(match extension {
        VectorExtension::Avx2 => Feature::AvxVnni,
        VectorExtension::Avx512 => Feature::Avx512vnni,
    })
}

/// Whether there are byte dot products on vectors of `LANES` lanes as instructions.
pub(super) fn is_available<const LANES: u32>(extension: VectorExtension, features: FeatureSet) -> bool {
    has_dots(extension, features) && fits(extension, LANES)
}

/// Whether dot products of bytes of some signs can be formed: by an instruction, or of pairs of words. Where the machine has instructions for
/// other signs alone, an offset leads to these, with fewer operations than pairs of words take.
fn is_possible<const LANES: u32, const SPREAD_SIGNED: bool, const LANES_SIGNED: bool>(
    extension: VectorExtension,
    features: FeatureSet,
) -> bool {
    let is_mixed = SPREAD_SIGNED != LANES_SIGNED;
    let is_open = is_mixed || !has_dots(extension, features) || has_all_signs(extension, features);
    is_open && fits(extension, LANES)
}

/// Whether there are dot products of bytes of equal signs. There are none on vectors of 512 bits.
fn has_all_signs(extension: VectorExtension, features: FeatureSet) -> bool {
    extension == VectorExtension::Avx2 && features.contains(Feature::AvxVnniInt8)
}

fn emit<const LANES: u32, const SPREAD_SIGNED: bool, const LANES_SIGNED: bool>(
    builder: &mut Builder<'_>,
    found: &Match,
) -> Outcome<()> {
    let [broadcast, vector, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
    let width = Width::of_bytes(4 * LANES);
    if !has_dots(builder.extension, builder.around.features) {
        let broadcast = builder.broadcast_words(broadcast, width, SPREAD_SIGNED)?;
        let vector = builder.vector_words(vector, width, LANES_SIGNED)?;
        return builder.accumulate_pairs(width, sums, [broadcast, vector]);
    }
    let broadcast = builder.operand_broadcast(broadcast, width)?;
    let vector = builder.operand_vector(vector, width)?;
    let (op, operands) = match (SPREAD_SIGNED, LANES_SIGNED) {
        (false, true) => (VectorOp::DotU8I8, [broadcast, vector]),
        (true, false) => (VectorOp::DotU8I8, [vector, broadcast]),
        (true, true) => (VectorOp::DotI8I8, [broadcast, vector]),
        (false, false) => (VectorOp::DotU8U8, [broadcast, vector]),
    };
    builder.accumulate(op, width, sums, operands)
}
