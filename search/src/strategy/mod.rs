//! Strategies: which candidates to measure next.
//!
//! A [`Strategy`] proposes candidates of a [`SearchSpace`] and is told what became of them. There are three:
//! [evolutionary](crate::evolution), which the tuner uses unless it is told otherwise, [random](RandomStrategy) and
//! [replay](ReplayStrategy). Others are written in the same way, outside this crate: see the example at [`Strategy`].
//!
//! A strategy measures nothing and holds no cost model; both belong to the [tuner](crate::tuner).

mod random;
mod replay;

pub use random::RandomStrategy;
pub use replay::ReplayStrategy;

use std::num::NonZeroUsize;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use tilewright_core::schedule::{Rng, Step, Trace};

use crate::candidate::{Candidate, Generator, Statistics};
use crate::evolution::{Evolution, EvolutionOptions};
use crate::model::CostModel;
use crate::mutate::Mutators;
use crate::seed;

/// Decides which candidates of one kernel at one shape are measured next.
///
/// The tuner calls [`propose`](Strategy::propose), measures what it gets, and calls [`learn`](Strategy::learn) for each; and
/// so on until the budget is spent or nothing is proposed any more. The same calls must give the same proposals, whatever
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
    /// Up to `count` candidates that were not proposed before, the most promising first. Empty when there seem to be no
    /// more.
    fn propose(&mut self, count: usize, model: &dyn CostModel) -> Vec<Candidate>;

    /// Says how many seconds a candidate takes, `None` when it failed; also of candidates from records of earlier
    /// runs, which were never proposed. Its program need not be proposed again.
    fn learn(&mut self, candidate: &Candidate, seconds: Option<f64>);

    /// What became of the candidates generated so far.
    fn statistics(&self) -> &Statistics;
}

/// Makes the strategy for a kernel at a shape.
pub type MakeStrategy = Arc<dyn Fn(SearchSpace) -> Box<dyn Strategy> + Send + Sync>;

/// Evolutionary search with given sizes.
pub fn evolutionary(options: EvolutionOptions) -> MakeStrategy {
    Arc::new(move |space| Box::new(Evolution::new(space, options.clone())))
}

/// Independent random candidates: what a search gains is measured against this.
pub fn random() -> MakeStrategy {
    Arc::new(|space| Box::new(RandomStrategy::new(space)))
}

/// The given traces, or where there are none those that the search begins with, and then the same ones with their
/// decisions drawn anew.
pub fn replay(traces: Vec<Trace>) -> MakeStrategy {
    Arc::new(move |space| Box::new(ReplayStrategy::new(space, &traces)))
}

/// What is searched: one kernel at one shape on one machine.
#[derive(Clone, Debug)]
pub struct SearchSpace {
    /// Makes candidates of traces.
    pub generator: Generator,
    /// The design spaces.
    pub spaces: Vec<Trace>,
    /// Traces to begin with, the most promising first: what other shapes and other kernels have been tuned to.
    pub starts: Vec<Trace>,
    /// Small steps from one candidate to another.
    pub mutators: Mutators,
    /// Decides everything that is drawn.
    pub seed: u64,
    /// Threads that generate candidates. They change nothing but the time it takes.
    pub threads: usize,
}

/// The share of random points whose register tiles are aligned to the machine.
const ALIGNED_SHARE: f64 = 0.5;

/// How many random points are tried before a draw is given up.
const DRAWS: usize = 5;

/// After so many rounds of draws in a row without a new candidate there count as being no more.
const FRUITLESS_ROUNDS: usize = 5;

/// Up to `count` candidates that were not proposed before. `draw` makes so many as it is asked for, some of which may be
/// refused or known.
fn propose_fresh(
    count: usize,
    proposed: &mut FxHashSet<u64>,
    mut draw: impl FnMut(usize) -> Vec<Option<Candidate>>,
) -> Vec<Candidate> {
    let mut picks = Vec::new();
    let mut fruitless = 0;
    while picks.len() < count && fruitless < FRUITLESS_ROUNDS {
        let before = picks.len();
        let drawn = draw(count - before).into_iter().flatten();
        picks.extend(drawn.filter(|candidate| proposed.insert(candidate.hash)));
        fruitless = if picks.len() == before { fruitless + 1 } else { 0 };
    }
    picks
}

impl SearchSpace {
    /// The number of the [space](Candidate::space) of candidates that are from none of the design spaces.
    pub const FOREIGN: usize = usize::MAX;

    /// A space without traces to begin with, with the built-in mutators, for all cores.
    pub fn new(generator: Generator, spaces: Vec<Trace>, seed: u64) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let mutators = Mutators::built_in(generator.context.target.kind());
        SearchSpace { generator, spaces, starts: Vec::new(), mutators, seed, threads }
    }

    /// A random point of a random design space, its register tiles aligned to the machine as often as not.
    pub fn draw(&self, rng: &mut Rng, statistics: &mut Statistics) -> Option<Candidate> {
        (0..DRAWS).find_map(|_| {
            let space = rng.below(self.spaces.len().max(1));
            let trace = self.spaces.get(space)?;
            let seed = rng.next_u64();
            let is_aligned = rng.unit() < ALIGNED_SHARE;
            let target = &self.generator.context.target;
            let decide =
                |_: usize, step: &Step| is_aligned.then(|| seed::aligned(step, target, rng)).flatten();
            self.generator.generate(space, trace, seed, decide, statistics)
        })
    }

    /// The candidate of a trace with the decisions that it has, repaired where they do not fit. Its own postprocessing is
    /// replaced by what this program needs.
    pub fn replay(&self, trace: &Trace, statistics: &mut Statistics) -> Option<Candidate> {
        let decisions = trace.without_postprocessing();
        let decide = |_: usize, step: &Step| step.decision.clone();
        self.generator.generate(Self::FOREIGN, &decisions, 0, decide, statistics)
    }

    /// The candidate of one of the traces to begin with, by its number. What is made of it is known by its
    /// [space](Candidate::space), whose number comes behind those of the design spaces.
    pub fn start(&self, number: usize, statistics: &mut Statistics) -> Option<Candidate> {
        let mut candidate = self.replay(self.starts.get(number)?, statistics)?;
        candidate.space = self.spaces.len() + number;
        Some(candidate)
    }

    /// Calls `make` for the numbers below `count`, on several threads, and gives the results in the order of the numbers.
    /// Each call has statistics of its own, which are added up.
    pub fn generate<T: Send>(
        &self,
        count: usize,
        statistics: &mut Statistics,
        make: impl Fn(usize, &mut Statistics) -> T + Sync,
    ) -> Vec<T> {
        let threads = self.threads.clamp(1, count.max(1));
        let share = count.div_ceil(threads).max(1);
        let part = |first: usize| {
            let mut statistics = Statistics::default();
            let numbers = first..(first + share).min(count);
            let made: Vec<T> = numbers.map(|number| make(number, &mut statistics)).collect();
            (made, statistics)
        };
        if threads == 1 {
            let (made, own) = part(0);
            statistics.merge(&own);
            return made;
        }
        let parts: Vec<(Vec<T>, Statistics)> = std::thread::scope(|scope| {
            let part = &part;
            let workers: Vec<_> =
                (0..count).step_by(share).map(|first| scope.spawn(move || part(first))).collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("candidate generation does not panic"))
                .collect()
        });
        let mut made = Vec::with_capacity(count);
        for (part, own) in parts {
            made.extend(part);
            statistics.merge(&own);
        }
        made
    }
}
