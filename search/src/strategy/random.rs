//! Random search: independent draws.

use rustc_hash::FxHashSet;
use tilewright_core::schedule::Rng;

use super::{SearchSpace, Strategy};
use crate::candidate::{Candidate, Statistics};
use crate::model::CostModel;

/// After so many rounds of draws in a row without a new candidate the spaces count as exhausted.
const FRUITLESS_ROUNDS: usize = 5;

/// Proposes independent random points of the design spaces, whatever the model thinks of them.
#[derive(Debug)]
pub struct RandomStrategy {
    space: SearchSpace,
    /// How many draws there were.
    drawn: u64,
    proposed: FxHashSet<u64>,
    statistics: Statistics,
}

impl RandomStrategy {
    /// Random search of a space.
    pub fn new(space: SearchSpace) -> Self {
        RandomStrategy { space, drawn: 0, proposed: FxHashSet::default(), statistics: Statistics::default() }
    }
}

impl Strategy for RandomStrategy {
    fn propose(&mut self, count: usize, _: &dyn CostModel) -> Vec<Candidate> {
        let mut picks = Vec::new();
        let mut fruitless = 0;
        while picks.len() < count && fruitless < FRUITLESS_ROUNDS {
            let wanted = count - picks.len();
            let (space, first) = (&self.space, self.drawn);
            let drawn = space.generate(wanted, &mut self.statistics, |number, statistics| {
                space.draw(&mut Rng::stream(space.seed, first + number as u64), statistics)
            });
            self.drawn += wanted as u64;
            let before = picks.len();
            let fresh = drawn.into_iter().flatten().filter(|candidate| self.proposed.insert(candidate.hash));
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
