//! The objective of the booster: a loss in the programs' scores.

use std::collections::BTreeMap;

use super::draft::Draft;
use super::histogram::Derivatives;
use super::{ProgramFeatures, Sample};

/// The loss as a mix of two parts; each part's weight is relative to the other's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// The weight of the squared error between score and label, each program weighed by its label.
    ///
    /// A program's label is the least time of its task divided by its own time, in `(0, 1]`, and 0 for a failure.
    /// Fast programs thus weigh more, which is the objective of MetaSchedule's boosted trees; below
    /// [`weight_floor`](Self::weight_floor) the weight does not fall, so that the model learns from failures.
    pub squared: f64,
    /// The weight of the pairwise ranking loss within a task, as in RankNet (Burges et al., "Learning to rank using
    /// gradient descent", ICML 2005), each pair weighed by the difference of its labels times the better one's weight
    /// as in LambdaRank.
    pub pairwise: f64,
    /// The least weight of a program, in `[0, 1]`.
    pub weight_floor: f64,
}

impl Objective {
    /// Squared error alone.
    pub const SQUARED: Self = Self { squared: 1.0, pairwise: 0.0, weight_floor: 0.1 };
    /// Pairwise ranking alone.
    pub const PAIRWISE: Self = Self { squared: 0.0, pairwise: 1.0, weight_floor: 0.1 };
    /// Both in equal parts: the scores are near the labels, and the order counts where the labels are close.
    pub const MIXED: Self = Self { squared: 1.0, pairwise: 1.0, weight_floor: 0.1 };
}

/// The difference of scores at which a pair's loss turns from curved to straight. Labels lie within `[0, 1]`, so
/// a difference of an eighth of the best speed is decisive.
const DECISIVE_DIFFERENCE: f64 = 0.125;

/// Up to this many programs of a task, every pair is compared; beyond, each program only with those 1, 2, 4, … ranks
/// away, which keeps the number of pairs at n log n and still compares both neighbours and extremes.
const ALL_PAIRS_LIMIT: usize = 48;

/// Labels of samples, in order: the least time of the task divided by the sample's time, 0 for a failure.
pub(super) fn labels(samples: &[Sample]) -> Vec<f64> {
    let mut fastest: BTreeMap<u64, f64> = BTreeMap::new();
    for sample in samples {
        if let Some(seconds) = sample.valid_seconds() {
            let least = fastest.entry(sample.task).or_insert(seconds);
            *least = least.min(seconds);
        }
    }
    samples.iter().map(|sample| sample.valid_seconds().map_or(0.0, |s| fastest[&sample.task] / s)).collect()
}

/// Two programs of one task, of which the first was faster.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair {
    faster: u32,
    slower: u32,
    weight: f64,
}

/// The loss of given samples as a function of their scores.
#[derive(Debug)]
pub(super) struct Loss {
    labels: Vec<f64>,
    /// The weight of each program.
    importance: Vec<f64>,
    /// The share of the squared error in the loss.
    squared: f64,
    pairs: Vec<Pair>,
}

impl Loss {
    pub(super) fn new(samples: &[Sample], objective: Objective) -> Self {
        let labels = labels(samples);
        let importance: Vec<f64> = labels.iter().map(|&label| label.max(objective.weight_floor)).collect();
        let mut pairs =
            if objective.pairwise > 0.0 { pairs(samples, &labels, &importance) } else { Vec::new() };

        // A pair's curvature at a tie is half its weight over the decisive difference, at each of its ends. With
        // this factor both parts are equally curved where training starts.
        let curvature: f64 = pairs.iter().map(|pair| pair.weight / DECISIVE_DIFFERENCE).sum();
        let total: f64 = importance.iter().sum();
        let pair_factor = if curvature > 0.0 { objective.pairwise * total / curvature } else { 0.0 };
        pairs.iter_mut().for_each(|pair| pair.weight *= pair_factor);
        Self { labels, importance, squared: objective.squared, pairs }
    }

    /// The line through prior and label that fits best, for trees to correct.
    pub(super) fn fit_draft(&self, programs: &[&ProgramFeatures]) -> Draft {
        let points = programs.iter().zip(&self.labels).zip(&self.importance);
        Draft::fit(points.map(|((program, &label), &weight)| (program.prior(), label, weight)))
    }

    /// The loss at `scores`; its derivatives by each program's score go to `derivatives`.
    pub(super) fn evaluate(&self, scores: &[f64], derivatives: &mut [Derivatives]) -> f64 {
        let mut loss = 0.0;
        for (index, derivative) in derivatives.iter_mut().enumerate() {
            let (error, weight) = (scores[index] - self.labels[index], self.squared * self.importance[index]);
            loss += 0.5 * weight * error * error;
            *derivative = Derivatives { gradient: weight * error, hessian: weight };
        }
        for pair in &self.pairs {
            let (faster, slower) = (pair.faster as usize, pair.slower as usize);
            let (value, slope, curvature) = ranking_loss(scores[faster] - scores[slower]);
            loss += pair.weight * value;
            derivatives[faster].gradient += pair.weight * slope;
            derivatives[slower].gradient -= pair.weight * slope;
            derivatives[faster].hessian += pair.weight * curvature;
            derivatives[slower].hessian += pair.weight * curvature;
        }
        loss
    }
}

/// The loss of a pair whose faster program scores higher by `difference`, with its slope, and the curvature of the
/// parabola that touches it there and lies above it everywhere.
///
/// It is the hinge `max(0, -difference)` rounded to a hyperbola: `(√(x² + d²) − x) / 2`. It does what the logistic
/// loss of RankNet does, in operations that IEEE 754 rounds exactly, so that one model results on every machine.
fn ranking_loss(difference: f64) -> (f64, f64, f64) {
    let root = (difference * difference + DECISIVE_DIFFERENCE * DECISIVE_DIFFERENCE).sqrt();
    let inverse = 1.0 / root;
    (0.5 * (root - difference), 0.5 * (difference * inverse - 1.0), 0.5 * inverse)
}

/// The pairs to compare, task by task, weighed but not yet scaled.
fn pairs(samples: &[Sample], labels: &[f64], weights: &[f64]) -> Vec<Pair> {
    let mut tasks: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (index, sample) in samples.iter().enumerate() {
        tasks.entry(sample.task).or_default().push(index as u32);
    }
    let mut pairs = Vec::new();
    for mut members in tasks.into_values() {
        members.sort_by(|&a, &b| labels[b as usize].total_cmp(&labels[a as usize]));
        let mut distance = 1;
        while distance < members.len() {
            for (&faster, &slower) in members.iter().zip(&members[distance..]) {
                let difference = labels[faster as usize] - labels[slower as usize];
                if difference > 0.0 {
                    pairs.push(Pair { faster, slower, weight: weights[faster as usize] * difference });
                }
            }
            distance = if members.len() <= ALL_PAIRS_LIMIT { distance + 1 } else { 2 * distance };
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::super::ProgramFeatures;
    use super::*;

    fn sample(task: u64, seconds: Option<f64>) -> Sample {
        Sample { task, features: ProgramFeatures::new(vec![], 0, 0.0).unwrap(), seconds }
    }

    fn many(count: usize) -> Vec<Sample> {
        (0..count).map(|index| sample(index as u64 % 2, Some(1.0 + index as f64))).collect()
    }

    #[test]
    fn labels_are_shares_of_the_best_speed_of_the_task() {
        let samples = [
            sample(1, Some(2.0)),
            sample(2, Some(10.0)),
            sample(1, None),
            sample(1, Some(4.0)),
            sample(2, Some(f64::NAN)),
            sample(3, None),
        ];
        assert_eq!(labels(&samples), [1.0, 1.0, 0.0, 0.5, 0.0, 0.0]);
    }

    #[test]
    fn squared_error_has_the_stated_derivatives() {
        let samples = [sample(0, Some(1.0)), sample(0, Some(4.0)), sample(0, None)];
        let loss = Loss::new(&samples, Objective::SQUARED);
        let mut derivatives = [Derivatives::default(); 3];
        let value = loss.evaluate(&[0.5, 0.5, 0.5], &mut derivatives);
        let expected = [(-0.5, 1.0), (0.25 * 0.25, 0.25), (0.5 * 0.1, 0.1)]
            .map(|(gradient, hessian)| Derivatives { gradient, hessian });
        assert_eq!(derivatives, expected);
        assert!((value - 0.5 * (0.25 + 0.25 * 0.0625 + 0.1 * 0.25)).abs() < 1e-12, "{value}");
    }

    #[test]
    fn derivatives_are_the_slopes_of_the_loss() {
        let samples: Vec<Sample> = many(60);
        let scores: Vec<f64> = (0..60).map(|index| f64::from((index * 7) % 13) / 13.0).collect();
        for objective in [Objective::SQUARED, Objective::PAIRWISE, Objective::MIXED] {
            let loss = Loss::new(&samples, objective);
            let mut derivatives = vec![Derivatives::default(); 60];
            let mut unused = derivatives.clone();
            loss.evaluate(&scores, &mut derivatives);
            for index in 0..60 {
                let mut moved = |by: f64| {
                    let mut scores = scores.clone();
                    scores[index] += by;
                    loss.evaluate(&scores, &mut unused)
                };
                let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                let gradient = derivatives[index].gradient;
                assert!((slope - gradient).abs() < 1e-6, "{objective:?} {index}: {slope} {gradient}");
                assert!(derivatives[index].hessian > 0.0, "{objective:?} {index}");
            }
        }
    }

    #[test]
    fn the_parabola_lies_above_the_ranking_loss() {
        for at in [-3.0, -0.2, 0.0, 0.05, 1.0] {
            let (value, slope, curvature) = ranking_loss(at);
            for step in [-4.0, -0.3, -0.01, 0.01, 0.3, 4.0] {
                let parabola = value + slope * step + 0.5 * curvature * step * step;
                assert!(parabola >= ranking_loss(at + step).0 - 1e-12, "at {at}, step {step}");
            }
        }
    }

    #[test]
    fn small_tasks_compare_all_pairs_and_large_ones_n_log_n() {
        let count = |samples: &[Sample]| Loss::new(samples, Objective::PAIRWISE).pairs.len();
        assert_eq!(count(&many(20)), 2 * 45);
        assert_eq!(count(&many(2000)), 2 * (0..10).map(|power| 1000 - (1 << power)).sum::<usize>());
    }

    #[test]
    fn equals_and_strangers_are_not_compared() {
        let samples = [sample(0, Some(1.0)), sample(0, Some(1.0)), sample(1, Some(5.0)), sample(2, None)];
        assert!(Loss::new(&samples, Objective::MIXED).pairs.is_empty());
    }

    #[test]
    fn nothing_gives_no_loss() {
        let loss = Loss::new(&[], Objective::MIXED);
        assert_eq!(loss.evaluate(&[], &mut []), 0.0);
    }
}
