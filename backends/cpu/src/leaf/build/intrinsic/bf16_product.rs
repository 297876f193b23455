//! `vdpbf16ps`: dot products of two `bf16` each, added to `f32`.
//!
//! One operand is a vector of pairs, the other a pair spread over all lanes. Products commute, so that either may be in
//! memory.

use tilewright_core::intrinsic::Match;

use super::super::{Builder, Outcome};
use super::{Rule, Sums};
use crate::leaf::encode::VectorOp;
use crate::leaf::ir::Width;
use crate::leaf::{Level, Refusal};
use crate::machine::{Feature, FeatureSet};

pub(super) const RULES: &[Rule] =
    &[rule::<16>("vdpbf16ps_16"), rule::<8>("vdpbf16ps_8"), rule::<4>("vdpbf16ps_4")];

const fn rule<const LANES: u32>(name: &'static str) -> Rule {
    Rule { name, is_available, sums: Sums::Vector { operand: 2, elements: LANES }, emit: emit::<LANES> }
}

/// The instruction has no encoding without AVX-512.
fn is_available(level: Level, features: FeatureSet) -> bool {
    level == Level::Avx512 && features.contains(Feature::Avx512bf16)
}

fn emit<const LANES: u32>(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    let [spread, vector, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
    let width = Width::of_bytes(4 * LANES);
    let spread = builder.operand_spread(spread, width)?;
    let vector = builder.operand_vector(vector, width)?;
    builder.accumulate(VectorOp::DotBf16, width, sums, [spread, vector])
}
