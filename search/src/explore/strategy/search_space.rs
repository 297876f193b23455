//! The space that a strategy searches.

use std::num::NonZeroUsize;

use rustc_hash::FxHashSet;
use tilewright_core::schedule::{Rng, Step, Trace};

use crate::explore::candidate::{Candidate, Generator, Statistics};

/// The space that is searched: one kernel at one shape on one machine.
#[derive(Clone, Debug)]
pub struct SearchSpace {
    /// Generates candidates of traces.
    pub generator: Generator,
    /// The design spaces.
    pub spaces: Vec<Trace>,
    /// The traces that the search begins with, the most promising first: tuned traces of other shapes and other kernels.
    pub starts: Vec<Trace>,
    /// The seed of all random streams.
    pub seed: u64,
    /// Threads that generate candidates. Their number changes nothing but the time that generation takes.
    pub threads: usize,
}

/// The share of random points whose register tiles are aligned to the machine.
pub(super) const ALIGNED_SHARE: f64 = 0.5;

/// The number of random points tried for one draw.
const DRAWS: usize = 5;

/// The number of rounds in a row without a new candidate after which a space counts as exhausted.
const FRUITLESS_ROUNDS: usize = 5;

/// Up to `count` candidates that were not proposed before. `draw` makes as many as it is asked for; some of them may be
/// refused or known.
pub(super) fn propose_fresh(
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
    /// The [space](Candidate::space) of candidates that come from no design space.
    pub const FOREIGN: usize = usize::MAX;

    /// A space without traces to begin with, for all cores.
    pub fn new(generator: Generator, spaces: Vec<Trace>, seed: u64) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        SearchSpace { generator, spaces, starts: Vec::new(), seed, threads }
    }

    /// A random point of a random design space, its register tiles aligned to the machine as often as not.
    pub fn draw(&self, rng: &mut Rng, statistics: &mut Statistics) -> Option<Candidate> {
        (0..DRAWS).find_map(|_| {
            let space = rng.below(self.spaces.len().max(1));
            let trace = self.spaces.get(space)?;
            let seed = rng.next_u64();
            let is_aligned = rng.unit() < ALIGNED_SHARE;
            let decide =
                |_: usize, step: &Step| is_aligned.then(|| self.generator.align(step, rng)).flatten();
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

    /// The candidate of one of the traces that the search begins with, by its number. Its [space](Candidate::space), which its mutations
    /// keep, comes after the design spaces.
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
