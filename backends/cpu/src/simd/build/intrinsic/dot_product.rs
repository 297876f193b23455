//! `vpdpbusd` and similar instructions: dot products of four bytes each.
//!
//! One operand is a vector of bytes, the other four bytes broadcast over all lanes, and either may be the unsigned one: the
//! instruction multiplies lane by lane. Its signed operand may be in memory, also one that is broadcast where there is AVX-512.

use tilewright_core::intrinsic::Match;

use super::{Rule, Sums};
use crate::machine::{Feature, FeatureSet};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::Width;
use crate::simd::x86::VectorOp;
use crate::simd::{Refusal, VectorExtension};

/// The broadcast operand is unsigned in the first three, signed in the next three; both have the same sign in the others.
pub(super) const RULES: &[Rule] = &[
    rule("vpdpbusd_16", is_available::<16>, 16, emit::<16, true>),
    rule("vpdpbusd_8", is_available::<8>, 8, emit::<8, true>),
    rule("vpdpbusd_4", is_available::<4>, 4, emit::<4, true>),
    rule("vpdpbsud_16", is_available::<16>, 16, emit::<16, false>),
    rule("vpdpbsud_8", is_available::<8>, 8, emit::<8, false>),
    rule("vpdpbsud_4", is_available::<4>, 4, emit::<4, false>),
    rule("vpdpbssd_8", has_all_signs, 8, emit_equal::<8, true>),
    rule("vpdpbssd_4", has_all_signs, 4, emit_equal::<4, true>),
    rule("vpdpbuud_8", has_all_signs, 8, emit_equal::<8, false>),
    rule("vpdpbuud_4", has_all_signs, 4, emit_equal::<4, false>),
];

const fn rule(
    name: &'static str,
    is_available: fn(VectorExtension, FeatureSet) -> bool,
    elements: u32,
    emit: fn(&mut Builder<'_>, &Match) -> Outcome<()>,
) -> Rule {
    Rule { name, is_available, sums: Sums::Vector { operand: 2, elements }, emit }
}

/// Whether there are byte dot products on vectors of `lanes` lanes.
pub(super) fn is_available<const LANES: u32>(extension: VectorExtension, features: FeatureSet) -> bool {
    let feature = match extension {
        VectorExtension::Avx2 => Feature::AvxVnni,
        VectorExtension::Avx512 => Feature::Avx512vnni,
    };
    features.contains(feature) && 4 * LANES <= extension.bytes()
}

/// Whether there are dot products of bytes of equal signs. There are none on vectors of 512 bits.
fn has_all_signs(extension: VectorExtension, features: FeatureSet) -> bool {
    extension == VectorExtension::Avx2 && features.contains(Feature::AvxVnniInt8)
}

fn emit<const LANES: u32, const SPREAD_UNSIGNED: bool>(
    builder: &mut Builder<'_>,
    found: &Match,
) -> Outcome<()> {
    let [broadcast, vector, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
    let width = Width::of_bytes(4 * LANES);
    let broadcast = builder.operand_broadcast(broadcast, width)?;
    let vector = builder.operand_vector(vector, width)?;
    let operands = if SPREAD_UNSIGNED { [broadcast, vector] } else { [vector, broadcast] };
    builder.accumulate(VectorOp::DotU8I8, width, sums, operands)
}

fn emit_equal<const LANES: u32, const SIGNED: bool>(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    let [broadcast, vector, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
    let width = Width::of_bytes(4 * LANES);
    let operands = [builder.operand_broadcast(broadcast, width)?, builder.operand_vector(vector, width)?];
    let op = if SIGNED { VectorOp::DotI8I8 } else { VectorOp::DotU8U8 };
    builder.accumulate(op, width, sums, operands)
}
