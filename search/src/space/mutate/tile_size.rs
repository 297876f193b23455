//! Moves a factor from one part of a tile to another.

use tilewright_core::schedule::{Decision, Instruction, Rng, Step};

use crate::space::mutate::{Change, Mutator};

/// See the module.
pub(super) const MUTATOR: Mutator = Mutator::built_in("tile_size", 0.8, applies, mutate);

fn applies(step: &Step, decision: &Decision) -> bool {
    max_innermost(step).is_some()
        && matches!(decision, Decision::Tile(factors) if factors.len() > 1 && factors.iter().any(|factor| *factor > 1))
}

/// Draws a part larger than 1 and another part, and moves a random divisor of the one to the other. The
/// innermost part never grows beyond its limit. A tile that need not divide its loop gets another innermost part as often.
fn mutate(step: &Step, decision: &Decision, rng: &mut Rng) -> Option<Change> {
    let (Some(max_innermost), Decision::Tile(factors)) = (max_innermost(step), decision) else { return None };
    if matches!(step.instruction, Instruction::SampleCoveringTile(_)) && rng.below(2) == 0 {
        return Some(Change::Decide(Decision::Tile(with_other_innermost(factors, max_innermost, rng))));
    }
    let large: Vec<usize> = (0..factors.len()).filter(|part| factors[*part] > 1).collect();
    let from = large[rng.below(large.len())];
    let to = (from + 1 + rng.below(factors.len() - 1)) % factors.len();
    let limit = if to + 1 == factors.len() { max_innermost / factors[to] } else { i64::MAX };
    let divisors: Vec<i64> =
        (2..=factors[from].min(limit)).filter(|divisor| factors[from] % divisor == 0).collect();
    if divisors.is_empty() {
        return None;
    }
    let moved = divisors[rng.below(divisors.len())];
    let mut factors = factors.clone();
    factors[from] /= moved;
    factors[to] *= moved;
    Some(Change::Decide(Decision::Tile(factors)))
}

/// Draws the innermost part among the multiples of a random power of two, which vectors and registers prefer, and lets the outermost
/// part make up for it.
fn with_other_innermost(factors: &[i64], max_innermost: i64, rng: &mut Rng) -> Vec<i64> {
    let extent = factors.iter().fold(1i64, |product, factor| product.saturating_mul(*factor)).max(1);
    let most = max_innermost.min(extent).max(1);
    let power = 1i64 << rng.below(most.ilog2() as usize + 1);
    let innermost = power * (1 + rng.below((most / power) as usize) as i64);
    let mut factors = factors.to_vec();
    let last = factors.len() - 1;
    factors[last] = innermost;
    let inside = factors[1..].iter().fold(1i64, |product, factor| product.saturating_mul(*factor));
    factors[0] = (extent - 1) / inside + 1;
    factors
}

/// The limit of a tile's innermost part, for steps that draw tiles of any kind.
pub(crate) fn max_innermost(step: &Step) -> Option<i64> {
    match &step.instruction {
        Instruction::SamplePerfectTile(sample) => Some(sample.max_innermost),
        Instruction::SampleCoveringTile(sample) => Some(sample.max_innermost),
        _ => None,
    }
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

    #[test]
    fn the_product_stays_and_the_innermost_limit_holds() {
        let mut rng = Rng::new(7);
        let mut factors = vec![8, 4, 16];
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..1000 {
            let step = step(&factors, 16);
            let decision = step.decision.clone().unwrap();
            if let Some(Change::Decide(Decision::Tile(next))) = mutate(&step, &decision, &mut rng) {
                assert_eq!(next.iter().product::<i64>(), 512, "round {round}: {factors:?} -> {next:?}");
                assert!(next[2] <= 16, "round {round}: {factors:?} -> {next:?}");
                factors = next;
                seen.insert(factors.clone());
            }
        }
        assert!(seen.len() > 15, "only {} different tiles", seen.len());
    }

    #[test]
    fn a_tile_of_ones_is_left_alone() {
        let step = step(&[1, 1], 4);
        assert!(!applies(&step, step.decision.as_ref().unwrap()));
    }
}
