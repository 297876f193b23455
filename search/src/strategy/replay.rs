//! Replay: given traces, and then the same ones with other decisions.

use rustc_hash::FxHashSet;
use tilewright_core::schedule::{Rng, Step, Trace};

use super::{SearchSpace, Strategy};
use crate::candidate::{Candidate, Statistics};
use crate::model::CostModel;
use crate::seed;

/// After so many rounds in a row without a new candidate the traces count as exhausted.
const FRUITLESS_ROUNDS: usize = 5;

/// Proposes given traces as they are, and afterwards their structures with every decision drawn anew, each trace in its
/// turn (MetaSchedule's `ReplayTrace`).
#[derive(Debug)]
pub struct ReplayStrategy {
    space: SearchSpace,
    traces: Vec<Trace>,
    /// How many replays there were; the first ones are of the traces as they are.
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

    fn replay(&self, number: usize, statistics: &mut Statistics) -> Option<Candidate> {
        let trace = self.traces.get(number % self.traces.len().max(1))?;
        if number < self.traces.len() {
            return self.space.replay(trace, statistics);
        }
        let mut rng = Rng::stream(self.space.seed, number as u64);
        let (drawn, is_aligned) = (rng.next_u64(), rng.below(2) == 0);
        let target = &self.space.generator.target;
        let decide =
            |_: usize, step: &Step| is_aligned.then(|| seed::aligned(step, target, &mut rng)).flatten();
        self.space.generator.generate(SearchSpace::FOREIGN, trace, drawn, decide, statistics)
    }
}

impl Strategy for ReplayStrategy {
    fn propose(&mut self, count: usize, _: &dyn CostModel) -> Vec<Candidate> {
        let mut picks = Vec::new();
        let mut fruitless = 0;
        while picks.len() < count && fruitless < FRUITLESS_ROUNDS {
            let (wanted, first) = (count - picks.len(), self.replayed);
            let mut statistics = std::mem::take(&mut self.statistics);
            let made = self.space.generate(wanted, &mut statistics, |number, statistics| {
                self.replay(first + number, statistics)
            });
            self.statistics = statistics;
            self.replayed += wanted;
            let before = picks.len();
            let fresh = made.into_iter().flatten().filter(|candidate| self.proposed.insert(candidate.hash));
            picks.extend(fresh);
            fruitless = if picks.len() == before { fruitless + 1 } else { 0 };
        }
        picks
    }

    fn learn(&mut self, candidate: &Candidate, _: Option<f64>) {
        self.proposed.insert(candidate.hash);
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}
