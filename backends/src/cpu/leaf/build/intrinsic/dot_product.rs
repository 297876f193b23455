//! `vpdpbusd`: dot products of four bytes each, unsigned by signed.
//!
//! One operand is a vector of bytes, the other four bytes spread over all lanes, and either may be the unsigned one: the
//! instruction multiplies lane by lane. Its signed operand may be in memory, also one that is spread where there is AVX-512.

use tilewright_core::intrinsic::Match;

use super::super::{Builder, Outcome};
use super::{Rule, Sums};
use crate::cpu::leaf::encode::VectorOp;
use crate::cpu::leaf::ir::Width;
use crate::cpu::leaf::{Level, Refusal};
use crate::cpu::machine::{Feature, FeatureSet};

/// The operand that is spread is unsigned in the first three, signed in the others.
pub(super) const RULES: &[Rule] = &[
    rule("vpdpbusd_16", is_available::<16>, 16, emit::<16, true>),
    rule("vpdpbusd_8", is_available::<8>, 8, emit::<8, true>),
    rule("vpdpbusd_4", is_available::<4>, 4, emit::<4, true>),
    rule("vpdpbsud_16", is_available::<16>, 16, emit::<16, false>),
    rule("vpdpbsud_8", is_available::<8>, 8, emit::<8, false>),
    rule("vpdpbsud_4", is_available::<4>, 4, emit::<4, false>),
];

const fn rule(
    name: &'static str,
    is_available: fn(Level, FeatureSet) -> bool,
    elements: u32,
    emit: fn(&mut Builder<'_>, &Match) -> Outcome<()>,
) -> Rule {
    Rule { name, is_available, sums: Sums::Vector { operand: 2, elements }, emit }
}

/// Whether there are byte dot products on vectors of so many lanes.
pub(super) fn is_available<const LANES: u32>(level: Level, features: FeatureSet) -> bool {
    let feature = match level {
        Level::Avx2 => Feature::AvxVnni,
        Level::Avx512 => Feature::Avx512vnni,
    };
    features.contains(feature) && 4 * LANES <= level.bytes()
}

fn emit<const LANES: u32, const SPREAD_UNSIGNED: bool>(
    builder: &mut Builder<'_>,
    found: &Match,
) -> Outcome<()> {
    let [spread, vector, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
    let width = Width::of_bytes(4 * LANES);
    let spread = builder.operand_spread(spread, width)?;
    let vector = builder.operand_vector(vector, width)?;
    let operands = if SPREAD_UNSIGNED { [spread, vector] } else { [vector, spread] };
    builder.accumulate(VectorOp::DotU8I8, width, sums, operands)
}
