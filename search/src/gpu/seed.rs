//! The decisions that a search starts with: tiles that fill warps and registers.
//!
//! A factorisation drawn uniformly rarely has a useful number of threads and a small tile of sums in each of them. Seeds draw the
//! inner factors from those that do, and leave the outermost to what remains.

use tilewright_core::schedule::{Decision, Instruction, Rng, Step};
use tilewright_core::target::RunContext;

use crate::gpu::rules::multi_level_thread_tiling::LEVELS;

/// The largest factors of a spatial loop: virtual threads, threads, and two levels of elements of a thread.
const SPATIAL: [i64; 4] = [2, 32, 4, 4];

/// The largest factors of a reduction: between two copies, and between two uses of an element in registers.
const REDUCTION: [i64; 2] = [32, 4];

/// A decision for a step that cuts a loop into the levels of a tile; `None` for any other step, and where factors need not divide.
pub(crate) fn aligned(step: &Step, _: &RunContext, rng: &mut Rng) -> Option<Decision> {
    let (Instruction::SamplePerfectTile(sample), Some(Decision::Tile(known))) =
        (&step.instruction, &step.decision)
    else {
        return None;
    };
    if known.iter().any(|factor| *factor < 1) {
        return None;
    }
    let most: &[i64] = if known.len() == LEVELS.0 {
        &SPATIAL
    } else if known.len() == LEVELS.1 {
        &REDUCTION
    } else {
        return None;
    };
    let mut rest: i64 = known.iter().product();
    let mut factors = vec![1; known.len()];
    for (number, most) in most.iter().enumerate().rev() {
        let is_innermost = number + 2 == known.len();
        let limit = if is_innermost { (*most).min(sample.max_innermost) } else { *most };
        let fitting: Vec<i64> = (1..=limit.min(rest)).filter(|factor| rest % factor == 0).collect();
        factors[number + 1] = fitting[rng.below(fitting.len())];
        rest /= factors[number + 1];
    }
    factors[0] = rest;
    Some(Decision::Tile(factors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::schedule::LoopRv;
    use tilewright_core::schedule::prim::SamplePerfectTile;
    use tilewright_core::target::Target;

    #[test]
    fn factors_multiply_to_the_extent_within_their_limits() {
        let mut rng = Rng::new(3);
        for (extent, parts) in [(1024, 5), (1, 5), (97, 5), (768, 3), (7, 3), (4096, 5)] {
            for _ in 0..200 {
                let sample = SamplePerfectTile { target: LoopRv(0), parts, max_innermost: 16 };
                let mut known = vec![1; parts as usize];
                known[0] = extent;
                let decision = Some(Decision::Tile(known));
                let step =
                    Step { instruction: sample.into(), first_output: 1, outputs: parts as u32, decision };
                let drawn = aligned(&step, &Target::generic_gpu().into(), &mut rng);
                let Some(Decision::Tile(factors)) = drawn else { panic!("a tile") };
                assert_eq!(factors.iter().product::<i64>(), extent, "{factors:?}");
                let most: &[i64] = if parts == 5 { &SPATIAL } else { &REDUCTION };
                assert!(factors[1..].iter().zip(most).all(|(factor, most)| factor <= most), "{factors:?}");
            }
        }
    }
}
