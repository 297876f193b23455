//! Changes how many threads share a loop of a tile.

use tilewright_core::schedule::{Decision, Instruction, Rng, Step};

use crate::gpu::rules::multi_level_thread_tiling::{LEVELS, THREADS_LEVEL};
use crate::space::mutate::{Change, Mutator};

/// See the module.
pub(super) const MUTATOR: Mutator = Mutator::built_in("threads", 0.2, applies, mutate);

/// A tile of a loop that is divided among threads, with a factor to move.
fn applies(step: &Step, decision: &Decision) -> bool {
    let is_tile = matches!(&step.instruction, Instruction::SamplePerfectTile(sample) if sample.parts == LEVELS.0 as i64);
    is_tile && matches!(decision, Decision::Tile(factors) if factors.iter().any(|factor| *factor > 1))
}

/// Moves a prime factor between the number of threads and another part: blocks, virtual threads, or elements of a thread.
fn mutate(step: &Step, decision: &Decision, rng: &mut Rng) -> Option<Change> {
    let (Instruction::SamplePerfectTile(sample), Decision::Tile(factors)) = (&step.instruction, decision)
    else {
        return None;
    };
    let other = (THREADS_LEVEL + 1 + rng.below(factors.len() - 1)) % factors.len();
    let (from, to) = if rng.below(2) == 0 { (THREADS_LEVEL, other) } else { (other, THREADS_LEVEL) };
    let moved = (2..=factors[from]).find(|divisor| factors[from] % divisor == 0)?;
    let mut factors = factors.clone();
    factors[from] /= moved;
    factors[to] *= moved;
    let is_allowed = factors.last().is_some_and(|innermost| *innermost <= sample.max_innermost);
    is_allowed.then_some(Change::Decide(Decision::Tile(factors)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::schedule::LoopRv;
    use tilewright_core::schedule::prim::SamplePerfectTile;

    #[test]
    fn threads_change_with_one_other_part() {
        let mut rng = Rng::new(2);
        let mut factors = vec![4, 1, 8, 3, 2];
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let sample = SamplePerfectTile { target: LoopRv(0), parts: 5, max_innermost: 4 };
            let decision = Some(Decision::Tile(factors.clone()));
            let step = Step { instruction: sample.into(), first_output: 1, outputs: 5, decision };
            assert!(applies(&step, step.decision.as_ref().unwrap()));
            let Some(Change::Decide(Decision::Tile(next))) =
                mutate(&step, step.decision.as_ref().unwrap(), &mut rng)
            else {
                continue;
            };
            assert_eq!(next.iter().product::<i64>(), 192, "{factors:?} -> {next:?}");
            assert!(next[4] <= 4, "{next:?}");
            let changed: Vec<usize> = (0..5).filter(|part| next[*part] != factors[*part]).collect();
            assert!(changed.len() == 2 && changed.contains(&THREADS_LEVEL), "{factors:?} -> {next:?}");
            seen.insert(next[THREADS_LEVEL]);
            factors = next;
        }
        assert!(seen.len() > 5, "{seen:?}");
    }
}
