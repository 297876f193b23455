//! Random search: independent draws.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use tilewright_core::schedule::Rng;

use super::interface::{MakeStrategy, Strategy};
use super::search_space::{SearchSpace, propose_fresh};
use crate::explore::candidate::{Candidate, Statistics};
use crate::model::CostModel;

/// Independent random candidates: the baseline of every search.
pub fn random() -> MakeStrategy {
    Arc::new(|space| Box::new(RandomStrategy::new(space)))
}

/// Proposes independent random points of the design spaces, without regard to the cost model.
#[derive(Debug)]
pub struct RandomStrategy {
    space: SearchSpace,
    /// The number of draws so far.
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
        let RandomStrategy { space, drawn, proposed, statistics } = self;
        propose_fresh(count, proposed, |wanted| {
            let first = *drawn;
            *drawn += wanted as u64;
            space.generate(wanted, statistics, |number, statistics| {
                space.draw(&mut Rng::stream(space.seed, first + number as u64), statistics)
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
