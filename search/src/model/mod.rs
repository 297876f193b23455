//! Learned cost models: they predict which candidate program is fast before anything is compiled.
//!
//! A candidate reaches this module as one feature vector per buffer store ([`ProgramFeatures`]); a measurement
//! reaches it as a [`Sample`]. A [`CostModel`] turns the former into scores and learns from the latter. The
//! scores order the candidates of one task and mean nothing between tasks.
//!
//! This module extracts no features, measures nothing and starts no thread. Every model in it is a pure function
//! of its parameters and of the samples it was given, in the order it was given them.

mod accuracy;
mod bins;
mod boosted;
mod booster;
mod draft;
mod grow;
mod histogram;
mod leaf_values;
mod objective;
mod random;
mod ranking;
mod sample;
mod text;
mod tree;

pub use accuracy::{pairwise_accuracy, peak_at_k, top_k_recall};
pub use boosted::BoostedModel;
pub use booster::{Booster, BoosterParameters};
pub use objective::Objective;
pub use random::RandomModel;
pub use ranking::Ranking;
pub use sample::{FeatureShapeError, ProgramFeatures, Sample};
pub use text::ModelTextError;
pub use tree::MalformedTree;

/// Predicts the order of candidate programs by speed, and learns from measurements.
pub trait CostModel: Send {
    /// One score for each program, in the order of `programs`; higher means faster. Every score is finite.
    ///
    /// Scores compare programs of the same task. They need not be calibrated: a caller may rank by them or
    /// normalise them, but must not read them as seconds.
    fn predict(&self, programs: &[ProgramFeatures]) -> Vec<f32>;

    /// Adds new measurements. The model may learn from them now or with later ones.
    fn update(&mut self, samples: &[Sample]);
}
