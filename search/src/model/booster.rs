//! Gradient-boosted trees whose prediction for a program is the sum over its rows.
//!
//! Each round computes the derivatives of the loss by the programs' scores, grows a tree on rows, finds the leaf
//! values that fit all programs best, and adds a share of them. A row's derivatives are those of its program, with
//! the hessian multiplied by the number of rows: each row answers for its part of the program's error.
//!
//! Training runs on one thread and is a function of its arguments alone, bit for bit.

use super::bins::{self, BinnedRows, MAX_BINS};
use super::draft::Draft;
use super::grow::{GrownNode, GrownTree, GrowthLimits, grow};
use super::histogram::{Derivatives, FixedPoint, Packed};
use super::leaf_values::{LeafValues, leaf_values};
use super::objective::{Loss, Objective};
use super::tree::{Node, Tree};
use super::{ProgramFeatures, Sample};

/// About the most rows that choose the splits of one tree. All rows determine the leaf values; a few thousand rows choose
/// the splits as well, in a fraction of the time, and trees on different rows complement each other (stochastic gradient boosting).
const MEMBERS: usize = 5000;

/// The parameters of a training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoosterParameters {
    /// The objective that is minimised.
    pub objective: Objective,
    /// The most trees that one training adds.
    pub rounds: usize,
    /// The most leaves of a tree.
    pub max_leaves: usize,
    /// The most splits between a tree's root and a leaf.
    pub max_depth: usize,
    /// The share of a tree's best leaf values that is added, in `(0, 1]`.
    pub learning_rate: f64,
    /// The least sum of hessians on either side of a split. A program's hessian is at most its weight, which is
    /// within `(0, 1]`, times its number of rows, for each part of the objective.
    pub min_child_weight: f64,
    /// The least reduction of the loss by a split.
    pub gamma: f64,
    /// The weight of the squared leaf values in the loss.
    pub lambda: f64,
    /// The most bins of a column, held within `2..=64`.
    pub max_bins: usize,
    /// Training stops after this many rounds without a relative fall of the training loss by
    /// [`plateau_tolerance`](Self::plateau_tolerance).
    pub plateau_rounds: usize,
    /// See [`plateau_rounds`](Self::plateau_rounds).
    pub plateau_tolerance: f64,
}

impl Default for BoosterParameters {
    fn default() -> Self {
        Self {
            objective: Objective::MIXED,
            rounds: 40,
            max_leaves: 32,
            max_depth: 10,
            learning_rate: 0.25,
            min_child_weight: 0.1,
            gamma: 1e-4,
            lambda: 0.5,
            max_bins: MAX_BINS,
            plateau_rounds: 5,
            plateau_tolerance: 1e-3,
        }
    }
}

/// A trained ensemble of trees.
#[derive(Debug, Clone, PartialEq)]
pub struct Booster {
    pub(super) width: usize,
    pub(super) draft: Draft,
    pub(super) trees: Vec<Tree>,
}

impl Booster {
    /// Trains on samples. With a `foundation`, its trees are kept and new ones correct it.
    ///
    /// Rows may differ in width: columns that a row lacks read as NaN, which is ordered below every number. Programs
    /// without rows get the same score each. No samples give an ensemble without trees.
    pub fn fit(samples: &[Sample], parameters: &BoosterParameters, foundation: Option<&Self>) -> Self {
        let programs: Vec<&ProgramFeatures> = samples.iter().map(|sample| &sample.features).collect();
        let loss = Loss::new(samples, parameters.objective);
        let mut booster = foundation.cloned().unwrap_or_else(|| Self {
            width: 0,
            draft: loss.fit_draft(&programs),
            trees: Vec::new(),
        });
        booster.width = programs.iter().map(|program| program.width()).fold(booster.width, usize::max);
        let mut training = Training {
            rows: BinnedRows::new(&programs, parameters.max_bins),
            row_counts: programs.iter().map(|program| program.row_count()).collect(),
            scores: booster.scores(&programs),
            derivatives: vec![Derivatives::default(); programs.len()],
            parameters,
        };
        let mut plateau = Plateau::new(parameters);
        for round in 0..parameters.rounds {
            let value = loss.evaluate(&training.scores, &mut training.derivatives);
            if plateau.is_reached(value) {
                break;
            }
            let Some((tree, constant)) = training.round(round) else { break };
            booster.trees.push(tree);
            booster.draft.offset = finite(f64::from(booster.draft.offset) + f64::from(constant));
        }
        booster
    }

    /// One score for each program, higher for faster; near the label in `[0, 1]` where the objective has a squared
    /// part.
    pub fn predict(&self, programs: &[ProgramFeatures]) -> Vec<f32> {
        let programs: Vec<&ProgramFeatures> = programs.iter().collect();
        self.scores(&programs).into_iter().map(finite).collect()
    }

    /// The number of trees.
    pub fn tree_count(&self) -> usize {
        self.trees.len()
    }

    /// The widest feature row the ensemble was trained on; wider rows are read up to there.
    pub fn width(&self) -> usize {
        self.width
    }

    fn scores(&self, programs: &[&ProgramFeatures]) -> Vec<f64> {
        let mut row_values = vec![0.0; bins::column_count(self.width)];
        let score = |program: &&ProgramFeatures| {
            let mut score = self.draft.score(program.prior());
            for row in program.rows() {
                for (column, value) in row_values.iter_mut().enumerate() {
                    *value = bins::column_value(program, row, column);
                }
                for tree in &self.trees {
                    score += f64::from(tree.predict(&row_values));
                }
            }
            score
        };
        programs.iter().map(score).collect()
    }
}

/// The nearest finite f32; zero for NaN, which only parameters that are no numbers lead to.
fn finite(value: f64) -> f32 {
    if value.is_nan() { 0.0 } else { (value as f32).clamp(f32::MIN, f32::MAX) }
}

/// The state of one training.
struct Training<'a> {
    rows: BinnedRows,
    row_counts: Vec<usize>,
    scores: Vec<f64>,
    derivatives: Vec<Derivatives>,
    parameters: &'a BoosterParameters,
}

impl Training<'_> {
    /// Grows one tree on the current derivatives and adds it, with a constant, to the scores; `None` when no split gains
    /// anything.
    fn round(&mut self, number: usize) -> Option<(Tree, f32)> {
        let parameters = self.parameters;
        let members = self.members(number);
        // The values to which sums over rows are compared shrink alike.
        let share = members.len() as f64 / self.row_counts.iter().sum::<usize>().max(1) as f64;
        let limits = GrowthLimits {
            max_leaves: parameters.max_leaves,
            max_depth: parameters.max_depth,
            min_child_weight: share * parameters.min_child_weight,
            gamma: share * parameters.gamma,
            lambda: share * parameters.lambda,
        };
        let rows = self.row_counts.iter().zip(&self.derivatives).flat_map(|(&count, &program)| {
            let hessian = program.hessian * count as f64;
            std::iter::repeat_n(Derivatives { hessian, ..program }, count)
        });
        let scale = FixedPoint::new(rows.clone());
        let packed: Vec<Packed> = rows.map(|row| scale.pack(row)).collect();
        let grown = grow(&self.rows, &packed, members, scale, limits);
        if grown.leaf_count < 2 {
            return None;
        }
        let LeafValues { leaves, constant } = leaf_values(
            grown.leaf_count,
            &grown.leaf_of_row,
            &self.row_counts,
            &self.derivatives,
            parameters.lambda,
        );
        let leaves: Vec<f32> =
            leaves.into_iter().map(|value| finite(parameters.learning_rate * value)).collect();
        let constant = finite(parameters.learning_rate * constant);
        self.add(&grown, &leaves, constant);
        Some((self.finish(&grown, &leaves), constant))
    }

    /// The rows that choose a tree's splits: those of every n-th program, and of other programs for the next tree.
    fn members(&self, number: usize) -> Vec<u32> {
        let stride = self.row_counts.iter().sum::<usize>().div_ceil(MEMBERS).max(1);
        let mut first = 0;
        let mut members = Vec::with_capacity(MEMBERS);
        for (program, &count) in self.row_counts.iter().enumerate() {
            if program % stride == number % stride {
                members.extend(first..first + count as u32);
            }
            first += count as u32;
        }
        members
    }

    fn add(&mut self, grown: &GrownTree, leaves: &[f32], constant: f32) {
        let mut rows = grown.leaf_of_row.iter();
        for (score, &count) in self.scores.iter_mut().zip(&self.row_counts) {
            *score += f64::from(constant);
            for &leaf in rows.by_ref().take(count) {
                *score += f64::from(leaves[leaf as usize]);
            }
        }
    }

    /// The tree on values that corresponds to a tree on bins.
    fn finish(&self, grown: &GrownTree, values: &[f32]) -> Tree {
        let node = |node: &GrownNode| match *node {
            GrownNode::Leaf(leaf) => Node::Leaf(values[leaf]),
            GrownNode::Split { column, bin, left } => {
                let column = &self.rows.columns()[column];
                Node::Split {
                    column: column.source as u32,
                    threshold: column.edges[usize::from(bin)],
                    left: left as u32,
                }
            }
        };
        let columns = 1 + self.rows.columns().iter().map(|column| column.source).max().unwrap_or(0);
        Tree::new(grown.nodes.iter().map(node).collect(), columns)
            .expect("children are pushed after their parent, and boundaries and leaf values are finite")
    }
}

/// Detects a plateau of the training loss.
struct Plateau {
    best: f64,
    rounds: usize,
    patience: usize,
    tolerance: f64,
}

impl Plateau {
    fn new(parameters: &BoosterParameters) -> Self {
        let BoosterParameters { plateau_rounds, plateau_tolerance, .. } = *parameters;
        Self { best: f64::INFINITY, rounds: 0, patience: plateau_rounds, tolerance: plateau_tolerance }
    }

    /// Records the loss before a round.
    fn is_reached(&mut self, loss: f64) -> bool {
        if loss < self.best * (1.0 - self.tolerance) {
            self.best = loss;
            self.rounds = 0;
        } else {
            self.rounds += 1;
        }
        self.rounds > self.patience
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const LIMITLESS: BoosterParameters = BoosterParameters {
        objective: Objective { squared: 1.0, pairwise: 0.0, weight_floor: 1.0 },
        rounds: 200,
        max_leaves: 16,
        max_depth: 10,
        learning_rate: 0.3,
        min_child_weight: 0.0,
        gamma: 0.0,
        lambda: 0.01,
        max_bins: MAX_BINS,
        plateau_rounds: 20,
        plateau_tolerance: 1e-3,
    };

    fn sample(rows: Vec<f32>, width: usize, label: f64) -> Sample {
        let features = ProgramFeatures::new(rows, width, 0.0).unwrap();
        Sample { task: 0, features, seconds: Some(1.0 / label) }
    }

    fn features(samples: &[Sample]) -> Vec<ProgramFeatures> {
        samples.iter().map(|sample| sample.features.clone()).collect()
    }

    /// Programs of 1 to 4 rows whose label is a known function summed over the rows. The first has label 1.
    fn additive(count: usize, seed: u64) -> Vec<Sample> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut samples = vec![sample([1.0, 1.0, 0.0].repeat(4), 3, 1.0)];
        while samples.len() < count {
            let rows: Vec<f32> =
                (0..3 * random.random_range(1..5)).map(|_| random.random_range(0.0..1.0)).collect();
            let value = |row: &[f32]| 0.02 + 0.13 * f64::from(row[0]) + if row[1] > 0.5 { 0.1 } else { 0.0 };
            let label = rows.chunks(3).map(value).sum();
            samples.push(sample(rows, 3, label));
        }
        samples
    }

    #[test]
    fn an_additive_function_is_learned_through_its_sums() {
        let booster = Booster::fit(&additive(2000, 1), &LIMITLESS, None);
        let test = additive(500, 2);
        let predicted = booster.predict(&features(&test));
        let labels: Vec<f64> = test.iter().map(|sample| 1.0 / sample.seconds.unwrap()).collect();
        let mean = labels.iter().sum::<f64>() / 500.0;
        let (mut error, mut spread) = (0.0, 0.0);
        for (label, score) in labels.iter().zip(predicted) {
            error += (f64::from(score) - label).powi(2);
            spread += (label - mean).powi(2);
        }
        assert!(error < 0.01 * spread, "unexplained: {}", error / spread);
    }

    #[test]
    fn a_program_scores_the_sum_of_its_rows() {
        let booster = Booster::fit(&additive(300, 1), &LIMITLESS, None);
        let rows = [[0.1, 0.9, 0.3], [0.7, 0.2, 0.8], [0.5, 0.6, 0.1]];
        let score = |rows: &[[f32; 3]]| {
            let program = ProgramFeatures::new(rows.concat(), 3, 0.0).unwrap();
            f64::from(booster.predict(&[program])[0])
        };
        let none = score(&[]);
        let parts: f64 = rows.iter().map(|row| score(&[*row]) - none).sum();
        assert!((score(&rows) - none - parts).abs() < 1e-5);
    }

    #[test]
    fn twenty_equal_rows_converge_like_one() {
        let programs: Vec<Sample> =
            (1..=10).map(|level| sample([level as f32].repeat(20), 1, f64::from(level) / 10.0)).collect();
        let booster = Booster::fit(&programs, &LIMITLESS, None);
        for (program, score) in programs.iter().zip(booster.predict(&features(&programs))) {
            let label = 1.0 / program.seconds.unwrap();
            assert!((f64::from(score) - label).abs() < 0.03, "label {label}, score {score}");
        }
    }

    #[test]
    fn training_is_deterministic() {
        for objective in [Objective::SQUARED, Objective::PAIRWISE, Objective::MIXED] {
            let parameters = BoosterParameters { objective, ..BoosterParameters::default() };
            let fit = || Booster::fit(&additive(400, 3), &parameters, None);
            assert!(fit().tree_count() > 0, "{objective:?}");
            assert_eq!(fit(), fit(), "{objective:?}");
        }
    }

    #[test]
    fn training_scores_are_the_predicted_scores() {
        // The threshold has to decide in prediction as the bin decided in training: with one leaf for each program
        // and exact steps, predictions meet the labels only if rows end where they were trained.
        let strange = [f32::NAN, f32::NEG_INFINITY, -1.0, 0.0, 1.0, f32::INFINITY];
        let samples: Vec<Sample> = strange[1..]
            .iter()
            .enumerate()
            .map(|(index, &value)| sample(vec![value], 1, 0.2 * (index + 1) as f64))
            .collect();
        let parameters = BoosterParameters { learning_rate: 1.0, lambda: 0.0, ..LIMITLESS };
        let booster = Booster::fit(&samples, &parameters, None);
        for (sample, score) in samples.iter().zip(booster.predict(&features(&samples))) {
            let label = 1.0 / sample.seconds.unwrap();
            assert!((f64::from(score) - label).abs() < 1e-3, "{sample:?} scores {score}");
        }
        let nan = ProgramFeatures::new(vec![f32::NAN], 1, 0.0).unwrap();
        assert_eq!(booster.predict(&[nan]), booster.predict(&features(&samples[..1])));
    }

    #[test]
    fn degenerate_data_is_no_trouble() {
        let nothing = ProgramFeatures::new(vec![], 3, 0.5).unwrap();
        let empty = |seconds| Sample { task: 1, features: nothing.clone(), seconds };
        let wild = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, -0.0];
        let cases: [(&str, Vec<Sample>); 6] = [
            ("no samples", vec![]),
            ("a single program", vec![sample(vec![1.0, 2.0], 2, 1.0)]),
            ("programs without rows", vec![empty(Some(1.0)), empty(Some(2.0)), empty(None)]),
            (
                "constant features",
                (1..50).map(|index| sample(vec![3.0; 4], 2, 1.0 / f64::from(index))).collect(),
            ),
            (
                "wild features",
                (0..60)
                    .map(|i| sample(vec![wild[i % 6], wild[i / 6 % 6], i as f32], 3, 1.0 / (i + 1) as f64))
                    .collect(),
            ),
            ("only failures", vec![empty(None), Sample { seconds: None, ..sample(vec![1.0], 1, 1.0) }]),
        ];
        for (name, samples) in cases {
            for objective in [Objective::SQUARED, Objective::PAIRWISE, Objective::MIXED] {
                let parameters = BoosterParameters { objective, ..BoosterParameters::default() };
                let booster = Booster::fit(&samples, &parameters, None);
                let scores = booster.predict(&features(&samples));
                assert!(scores.iter().all(|score| score.is_finite()), "{name}, {objective:?}: {scores:?}");
                assert!(
                    booster.predict(std::slice::from_ref(&nothing))[0].is_finite(),
                    "{name}, {objective:?}"
                );
            }
        }
    }

    #[test]
    fn parameters_out_of_range_train_nothing_harmful() {
        let samples = additive(50, 1);
        let default = BoosterParameters::default();
        for parameters in [
            BoosterParameters { learning_rate: f64::NAN, ..default },
            BoosterParameters { lambda: f64::NAN, ..default },
            BoosterParameters { lambda: -1.0, ..default },
            BoosterParameters { gamma: f64::NEG_INFINITY, ..default },
            BoosterParameters { max_bins: 0, ..default },
            BoosterParameters { max_bins: 1000, ..default },
            BoosterParameters { max_leaves: 0, ..default },
            BoosterParameters { max_depth: 0, ..default },
            BoosterParameters { rounds: 0, ..default },
        ] {
            let scores = Booster::fit(&samples, &parameters, None).predict(&features(&samples));
            assert!(scores.iter().all(|score| score.is_finite()), "{parameters:?}");
        }
    }

    #[test]
    fn training_stops_at_a_standstill() {
        let parameters = BoosterParameters { plateau_rounds: 3, plateau_tolerance: 0.5, ..LIMITLESS };
        assert!(Booster::fit(&additive(300, 1), &parameters, None).tree_count() < 30);
    }

    #[test]
    fn a_foundation_is_kept_and_corrected() {
        let first = Booster::fit(&additive(100, 1), &BoosterParameters::default(), None);
        let more = additive(1000, 2);
        let second = Booster::fit(&more, &BoosterParameters::default(), Some(&first));
        assert_eq!(second.trees[..first.tree_count()], first.trees[..]);
        let error = |booster: &Booster| -> f64 {
            let scores = booster.predict(&features(&more));
            more.iter()
                .zip(scores)
                .map(|(s, score)| (f64::from(score) - 1.0 / s.seconds.unwrap()).powi(2))
                .sum()
        };
        assert!(error(&second) < 0.5 * error(&first), "{} {}", error(&second), error(&first));
    }
}
