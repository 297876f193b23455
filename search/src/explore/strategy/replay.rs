//! Replay: given traces, and then the same traces with other decisions.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use tilewright_core::schedule::{Rng, Step, Trace};

use super::interface::{MakeStrategy, Strategy};
use super::search_space::{ALIGNED_SHARE, SearchSpace, propose_fresh};
use crate::explore::candidate::{Candidate, Statistics};
use crate::model::CostModel;

/// Replays the given traces, or the traces that the search begins with when none are given, and then the same traces with new
/// decisions.
pub fn replay(traces: Vec<Trace>) -> MakeStrategy {
    Arc::new(move |space| Box::new(ReplayStrategy::new(space, &traces)))
}

/// Proposes given traces as they are, and afterwards each of them again and again with all decisions drawn anew
/// (MetaSchedule's `ReplayTrace`).
#[derive(Debug)]
pub struct ReplayStrategy {
    space: SearchSpace,
    traces: Vec<Trace>,
    /// The number of replays so far; the first ones are of the traces as they are.
    replayed: usize,
    proposed: FxHashSet<u64>,
    statistics: Statistics,
}

impl ReplayStrategy {
    /// Replays the given traces; without any, those that the search begins with; without these, the design spaces.
    pub fn new(space: SearchSpace, traces: &[Trace]) -> Self {
        let known = [traces, &space.starts, &space.spaces].into_iter().find(|traces| !traces.is_empty());
        let traces = known.into_iter().flatten().map(Trace::without_postprocessing).collect();
        ReplayStrategy {
            space,
            traces,
            replayed: 0,
            proposed: FxHashSet::default(),
            statistics: Statistics::default(),
        }
    }
}

/// The candidate that comes after `number` replays.
fn replay_number(
    space: &SearchSpace,
    traces: &[Trace],
    number: usize,
    statistics: &mut Statistics,
) -> Option<Candidate> {
    let trace = traces.get(number % traces.len().max(1))?;
    if number < traces.len() {
        return space.replay(trace, statistics);
    }
    let mut rng = Rng::stream(space.seed, number as u64);
    let (drawn, is_aligned) = (rng.next_u64(), rng.unit() < ALIGNED_SHARE);
    let decide = |_: usize, step: &Step| is_aligned.then(|| space.generator.align(step, &mut rng)).flatten();
    space.generator.generate(SearchSpace::FOREIGN, trace, drawn, decide, statistics)
}

impl Strategy for ReplayStrategy {
    fn propose(&mut self, count: usize, _: &dyn CostModel) -> Vec<Candidate> {
        let ReplayStrategy { space, traces, replayed, proposed, statistics } = self;
        propose_fresh(count, proposed, |wanted| {
            let first = *replayed;
            *replayed += wanted;
            space.generate(wanted, statistics, |number, statistics| {
                replay_number(space, traces, first + number, statistics)
            })
        })
    }

    fn learn(&mut self, candidate: &Candidate, _: Option<f64>) {
        self.proposed.insert(candidate.hash);
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}
