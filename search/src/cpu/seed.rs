//! The decisions that a search starts with: tiles aligned to the machine.
//!
//! A tile drawn uniformly rarely fills whole vectors, or all registers. Seeds draw the innermost factors from the factors
//! that do, and leave the other levels and choices to chance.

use tilewright_core::schedule::{Decision, Instruction, Rng, Step};
use tilewright_core::target::{CpuTarget, RunContext};

use crate::space::mutate::tile_size::max_innermost;

/// The most parts of a loop that is tiled for caches alone, as reductions are; with more parts, the innermost is a register tile.
const PARTS_WITHOUT_REGISTERS: usize = 2;

/// The shortest inner part of a reduction is the longest possible one over this: each inner run loads and stores the tile of sums.
const SHORTEST_REDUCTION: i64 = 4;

/// Most vectors side by side in a register tile: beyond it too few rows are left.
const MAX_VECTORS: i64 = 4;

/// Tiles that need not divide exceed the extent by at most the extent over this, or by less than a vector.
const MAX_EXCESS: i64 = 8;

/// A decision for a step that cuts a loop; `None` for any other step, and where nothing fits. The loop that may have the
/// longest innermost part is the one that runs in vector lanes.
pub(crate) fn aligned(step: &Step, context: &RunContext, rng: &mut Rng) -> Option<Decision> {
    let cpu = context.target.cpu().ok()?;
    let Some(Decision::Tile(known)) = &step.decision else { return None };
    let max_innermost = max_innermost(step)?;
    if known.iter().any(|factor| *factor < 1) {
        return None;
    }
    let extent: i64 = known.iter().product();
    match known.len() {
        ..PARTS_WITHOUT_REGISTERS => None,
        PARTS_WITHOUT_REGISTERS => long_reduction(step, extent, max_innermost, cpu, rng),
        parts => register_tile(step, extent, parts, max_innermost, cpu, rng),
    }
}

/// Two parts, of which the inner one is long.
fn long_reduction(
    step: &Step,
    extent: i64,
    max_innermost: i64,
    cpu: &CpuTarget,
    rng: &mut Rng,
) -> Option<Decision> {
    let longest = max_innermost.min(extent);
    let lanes = i64::from(cpu.lanes(4));
    let is_long = |factor: &i64| *factor <= longest && *factor * SHORTEST_REDUCTION >= longest;
    let candidates: Vec<i64> = match covers(step) {
        true if longest >= lanes => {
            (1..=longest).filter(|factor| factor % lanes == 0 || *factor == extent).collect()
        }
        true => (1..=longest).collect(),
        false => divisors(extent).collect(),
    };
    let inner = pick(&candidates.into_iter().filter(is_long).collect::<Vec<_>>(), rng)?;
    Some(Decision::Tile(vec![tiles(extent, inner), inner]))
}

/// Parts of which the innermost fills vectors or registers.
fn register_tile(
    step: &Step,
    extent: i64,
    parts: usize,
    max_innermost: i64,
    cpu: &CpuTarget,
    rng: &mut Rng,
) -> Option<Decision> {
    let lanes = i64::from(cpu.lanes(4));
    let rows = row_limit(cpu);
    let fits = |factor: &i64| match max_innermost > rows {
        true => (factor % lanes == 0 || *factor == extent) && *factor <= MAX_VECTORS * lanes,
        false => *factor <= rows / 2,
    };
    // Tiles that need not divide are a little more than what there is to cover.
    let candidates: Vec<i64> = match covers(step) {
        true => (1..=max_innermost.min(extent))
            .filter(|tile| tiles(extent, *tile) * tile - extent <= (extent / MAX_EXCESS).max(lanes - 1))
            .collect(),
        false => divisors(extent).collect(),
    };
    let fitting: Vec<i64> = candidates.into_iter().filter(fits).collect();
    let innermost = pick(&fitting, rng)?;
    let mut factors = vec![1; parts];
    let last = factors.len() - 1;
    factors[last] = innermost;
    // The remaining factor goes to the other levels, the inner ones first.
    let mut rest = tiles(extent, innermost);
    for factor in factors[1..last].iter_mut().rev() {
        let choices: Vec<i64> = divisors(rest).collect();
        *factor = pick(&choices, rng)?;
        rest /= *factor;
    }
    factors[0] = rest;
    Some(Decision::Tile(factors))
}

/// Whether a step draws tiles that need not divide the loop.
fn covers(step: &Step) -> bool {
    matches!(step.instruction, Instruction::SampleCoveringTile(_))
}

/// The longest innermost part worth having for a loop that does not run in lanes: one register for each of its
/// iterations.
pub(crate) fn row_limit(cpu: &CpuTarget) -> i64 {
    i64::from(cpu.vector_registers).max(4)
}

/// The longest innermost part worth having for a loop that runs in lanes.
pub(crate) fn lane_limit(cpu: &CpuTarget) -> i64 {
    (8 * i64::from(cpu.lanes(4))).max(2 * row_limit(cpu))
}

/// How many tiles cover an extent.
fn tiles(extent: i64, tile: i64) -> i64 {
    (extent - 1) / tile + 1
}

fn divisors(number: i64) -> impl Iterator<Item = i64> {
    (1..=number).take_while(move |low| *low <= number / low).filter(move |low| number % low == 0).flat_map(
        move |low| {
            let high = number / low;
            std::iter::once(low).chain((high != low).then_some(high))
        },
    )
}

fn pick(choices: &[i64], rng: &mut Rng) -> Option<i64> {
    (!choices.is_empty()).then(|| choices[rng.below(choices.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::schedule::LoopRv;
    use tilewright_core::schedule::prim::SamplePerfectTile;

    fn step(factors: &[i64], max_innermost: i64) -> Step {
        let sample = SamplePerfectTile { target: LoopRv(0), parts: factors.len() as i64, max_innermost };
        let decision = Some(Decision::Tile(factors.to_vec()));
        Step { instruction: sample.into(), first_output: 1, outputs: factors.len() as u32, decision }
    }

    fn drawn(factors: &[i64], max_innermost: i64) -> Vec<Option<Vec<i64>>> {
        let mut rng = Rng::new(1);
        let context = RunContext::from(CpuTarget::generic());
        let draw = |_| match aligned(&step(factors, max_innermost), &context, &mut rng) {
            Some(Decision::Tile(factors)) => Some(factors),
            _ => None,
        };
        (0..200).map(draw).collect()
    }

    #[test]
    fn the_loop_in_lanes_ends_in_whole_vectors() {
        for factors in drawn(&[1, 3, 4, 16], lane_limit(&CpuTarget::generic())) {
            let factors = factors.expect("192 has divisors that fit");
            assert_eq!(factors.iter().product::<i64>(), 192, "{factors:?}");
            assert!(factors[3] % 4 == 0 && factors[3] <= 16, "{factors:?}");
        }
    }

    #[test]
    fn other_loops_end_in_few_rows() {
        let rows = row_limit(&CpuTarget::generic());
        for factors in drawn(&[7, 2, 2, 5], rows) {
            let factors = factors.expect("140 has divisors that fit");
            assert_eq!(factors.iter().product::<i64>(), 140, "{factors:?}");
            assert!(factors[3] <= rows / 2, "{factors:?}");
        }
    }

    #[test]
    fn reductions_end_in_long_parts() {
        for factors in drawn(&[16, 64], 256).into_iter().chain(drawn(&[6, 1], 256)) {
            let factors = factors.expect("there is always the whole");
            let longest = factors.iter().product::<i64>().min(256);
            assert!(factors[1] <= longest && 4 * factors[1] >= longest, "{factors:?}");
        }
        assert!(drawn(&[521, 1], 256).iter().all(Option::is_none), "a prime beyond the limit");
    }

    #[test]
    fn a_loop_that_is_shorter_than_a_tile_is_taken_as_a_whole() {
        for factors in drawn(&[7, 1, 1, 1], lane_limit(&CpuTarget::generic())) {
            assert_eq!(factors.expect("there is always the whole")[3], 7);
        }
    }

    #[test]
    fn what_cannot_be_aligned_is_left_to_chance() {
        assert!(drawn(&[1001, 1, 1, 1], lane_limit(&CpuTarget::generic())).iter().all(Option::is_none));
        assert!(drawn(&[-1, 4, 2, 8], 64).iter().all(Option::is_none), "a symbolic extent");
    }
}
