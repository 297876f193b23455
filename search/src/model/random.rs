//! The baseline: random scores.

use super::{CostModel, ProgramFeatures, Sample};

/// Scores programs at random, uniformly in `[0, 1)`, and learns nothing.
///
/// The gain of a learned model is measured against this one. The score is a hash of the seed and of
/// the program's features: equal programs get equal scores, however the calls are batched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomModel {
    seed: u64,
}

impl RandomModel {
    /// A baseline whose scores are determined by `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    fn score(&self, program: &ProgramFeatures) -> f32 {
        let mut state = mix(self.seed);
        for row in program.rows() {
            for value in row {
                state = mix(state ^ u64::from(value.to_bits()));
            }
        }
        // 24 bits are as many as the significand of an f32 holds, so every score is exact and below one.
        (state >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// One step of the SplitMix64 generator (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014): a bijection of 64-bit words in which every output bit depends on every input bit.
fn mix(state: u64) -> u64 {
    let mut word = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

impl CostModel for RandomModel {
    fn predict(&self, programs: &[ProgramFeatures]) -> Vec<f32> {
        programs.iter().map(|program| self.score(program)).collect()
    }

    fn update(&mut self, _samples: &[Sample]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(count: usize) -> Vec<ProgramFeatures> {
        (0..count).map(|index| ProgramFeatures::new(vec![index as f32, 1.0], 2, 0.0).unwrap()).collect()
    }

    #[test]
    fn scores_follow_from_seed_and_program_alone() {
        let programs = programs(50);
        let together = RandomModel::new(7).predict(&programs);
        let alone: Vec<f32> =
            programs.iter().flat_map(|p| RandomModel::new(7).predict(std::slice::from_ref(p))).collect();
        assert_eq!(together, alone);
        assert_ne!(together, RandomModel::new(8).predict(&programs));
    }

    #[test]
    fn scores_are_spread_over_the_unit_interval() {
        let scores = RandomModel::new(1).predict(&programs(4000));
        assert!(scores.iter().all(|score| (0.0..1.0).contains(score)));
        for quarter in 0..4 {
            let count = scores.iter().filter(|&&score| (score * 4.0) as usize == quarter).count();
            assert!((900..1100).contains(&count), "quarter {quarter} holds {count} of 4000");
        }
    }
}
