//! `vpdpbusd`: dot products of four bytes each, unsigned by signed.
//!
//! The signed operand is a vector, from memory when nothing else uses it. The unsigned one is four bytes spread over all
//! lanes; the instruction has no form that does this itself, because only the signed operand may be in memory.

use tilewright_core::intrinsic::Match;

use super::super::{Builder, Outcome};
use super::{Rule, Sums};
use crate::cpu::leaf::encode::VectorOp;
use crate::cpu::leaf::ir::Width;
use crate::cpu::leaf::{Level, Refusal};
use crate::cpu::machine::{Feature, FeatureSet};

pub(super) const RULES: &[Rule] =
    &[rule::<16>("vpdpbusd_16"), rule::<8>("vpdpbusd_8"), rule::<4>("vpdpbusd_4")];

const fn rule<const LANES: u32>(name: &'static str) -> Rule {
    Rule {
        name,
        is_available: is_available::<LANES>,
        sums: Sums::Vector { operand: 2, elements: LANES },
        emit: emit::<LANES>,
    }
}

/// Whether there are byte dot products on vectors of so many lanes.
pub(super) fn is_available<const LANES: u32>(level: Level, features: FeatureSet) -> bool {
    let feature = match level {
        Level::Avx2 => Feature::AvxVnni,
        Level::Avx512 => Feature::Avx512vnni,
    };
    features.contains(feature) && 4 * LANES <= level.bytes()
}

fn emit<const LANES: u32>(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    let [unsigned, signed, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
    let width = Width::of_bytes(4 * LANES);
    let unsigned = builder.operand_spread(unsigned, width)?;
    let signed = builder.operand_bytes(signed, width)?;
    builder.accumulate(VectorOp::DotU8I8, width, sums, [unsigned, signed])
}
