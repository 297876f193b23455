//! The interface of a strategy.

use std::sync::Arc;

use super::search_space::SearchSpace;
use crate::explore::candidate::{Candidate, Statistics};
use crate::model::CostModel;

/// Decides which candidates of one kernel at one shape are measured next.
///
/// The tuner calls [`propose`](Strategy::propose), measures the proposed candidates, and calls [`learn`](Strategy::learn) for each; it repeats
/// this until the budget is spent or nothing is proposed any more. The same calls must give the same proposals, whatever
/// the number of threads: all randomness comes from [`SearchSpace::seed`], with a stream of its own for each candidate.
///
/// ```
/// use std::collections::HashSet;
/// use tilewright_core::schedule::Rng;
/// use tilewright_search::candidate::{Candidate, Statistics};
/// use tilewright_search::model::CostModel;
/// use tilewright_search::strategy::{SearchSpace, Strategy};
///
/// /// Of a handful of random candidates, measures the one that the cost model thinks best.
/// struct BestOfEight {
///     space: SearchSpace,
///     drawn: u64,
///     proposed: HashSet<u64>,
///     statistics: Statistics,
/// }
///
/// impl Strategy for BestOfEight {
///     fn propose(&mut self, count: usize, model: &dyn CostModel) -> Vec<Candidate> {
///         let mut picks = Vec::new();
///         for _ in 0..count {
///             let first = self.drawn;
///             self.drawn += 8;
///             let (space, seed) = (&self.space, self.space.seed);
///             let drawn = space.generate(8, &mut self.statistics, |number, statistics| {
///                 space.draw(&mut Rng::stream(seed, first + number as u64), statistics)
///             });
///             let drawn: Vec<Candidate> = drawn.into_iter().flatten().collect();
///             let features: Vec<_> = drawn.iter().map(|candidate| candidate.features.clone()).collect();
///             let scored = model.predict(&features).into_iter().zip(drawn);
///             let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, candidate)| candidate);
///             picks.extend(best.filter(|candidate| self.proposed.insert(candidate.hash)));
///         }
///         picks
///     }
///
///     fn learn(&mut self, candidate: &Candidate, _: Option<f64>) {
///         self.proposed.insert(candidate.hash);
///     }
///
///     fn statistics(&self) -> &Statistics {
///         &self.statistics
///     }
/// }
/// ```
pub trait Strategy: Send {
    /// Up to `count` candidates that were not proposed before, the most promising first; none when the strategy finds no
    /// more.
    fn propose(&mut self, count: usize, model: &dyn CostModel) -> Vec<Candidate>;

    /// Learns the seconds that a candidate takes, `None` when it failed; also of candidates from records of earlier
    /// runs, which were never proposed. Its program need not be proposed again.
    fn learn(&mut self, candidate: &Candidate, seconds: Option<f64>);

    /// The counts of the candidates generated so far.
    fn statistics(&self) -> &Statistics;
}

/// Makes the strategy for a kernel at a shape.
pub type MakeStrategy = Arc<dyn Fn(SearchSpace) -> Box<dyn Strategy> + Send + Sync>;
