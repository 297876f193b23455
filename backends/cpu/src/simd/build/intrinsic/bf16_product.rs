//! `vdpbf16ps`: dot products of two `bf16` each, added to `f32`.
//!
//! One operand is a vector of pairs, the other a pair broadcast over all lanes. Products commute, so that either may be in
//! memory.

use tilewright_core::intrinsic::Match;

use super::{Rule, Sums};
use crate::machine::{Feature, FeatureSet};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::Width;
use crate::simd::x86::VectorOp;
use crate::simd::{Refusal, VectorExtension};

pub(super) const RULES: &[Rule] =
    &[rule::<16>("vdpbf16ps_16"), rule::<8>("vdpbf16ps_8"), rule::<4>("vdpbf16ps_4")];

const fn rule<const LANES: u32>(name: &'static str) -> Rule {
    Rule { name, is_available, sums: Sums::Vector { operand: 2, elements: LANES }, emit: emit::<LANES> }
}

/// The instruction has no encoding without AVX-512.
fn is_available(extension: VectorExtension, features: FeatureSet) -> bool {
    extension == VectorExtension::Avx512 && features.contains(Feature::Avx512bf16)
}

fn emit<const LANES: u32>(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    let [broadcast, vector, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
    let width = Width::of_bytes(4 * LANES);
    let broadcast = builder.operand_broadcast(broadcast, width)?;
    let vector = builder.operand_vector(vector, width)?;
    builder.accumulate(VectorOp::DotBf16, width, sums, [broadcast, vector])
}
