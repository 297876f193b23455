//! A point of a design space, ready to be judged: replayed, postprocessed, and described by features.

use std::collections::BTreeMap;

use tilewright_core::program::Program;
use tilewright_core::schedule::{Decision, Step, Trace};
use tilewright_core::target::RunContext;

use crate::features;
use crate::model::ProgramFeatures;
use crate::postproc::Postprocessors;

/// A legal, scheduled program with the trace that makes it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The number of the design space it comes from. Numbers behind those of the search's spaces stand for the traces that it
    /// began with and for candidates of earlier runs, and [`FOREIGN`](crate::strategy::SearchSpace::FOREIGN) for what is from
    /// elsewhere.
    pub space: usize,
    /// The decisions, without postprocessing: what mutators work on.
    pub decisions: Trace,
    /// The whole trace, as records keep it.
    pub trace: Trace,
    /// The scheduled program, at the `Blocks` level.
    pub program: Program,
    /// Equal for programs that [execute the same](Program::execution_hash).
    pub hash: u64,
    /// What the cost model sees.
    pub features: ProgramFeatures,
}

/// How many candidates were tried and what was wrong with those refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Candidates generated, legal or not.
    pub generated: u64,
    /// Refused ones by reason.
    pub rejected: BTreeMap<&'static str, u64>,
}

impl Statistics {
    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Statistics) {
        self.generated += other.generated;
        for (reason, count) in &other.rejected {
            *self.rejected.entry(reason).or_default() += count;
        }
    }

    fn reject(&mut self, reason: &'static str) {
        *self.rejected.entry(reason).or_default() += 1;
    }
}

/// What candidates are made from: one kernel at one shape on one machine.
#[derive(Clone, Debug)]
pub struct Generator {
    /// The unscheduled program.
    pub program: Program,
    /// The target, with the options of its runs.
    pub context: RunContext,
    /// What makes replayed traces fit to be compiled, or refuses them.
    pub postprocessors: Postprocessors,
}

impl Generator {
    /// With the built-in postprocessors for a machine.
    pub fn new(program: Program, context: impl Into<RunContext>) -> Self {
        let context = context.into();
        let postprocessors = Postprocessors::built_in(context.target.kind());
        Generator { program, context, postprocessors }
    }

    /// Replays a trace with the decisions that `decide` gives (`None` draws afresh from `seed`), postprocesses and
    /// describes the result. `None` when it is refused, with the reason counted.
    pub fn generate(
        &self,
        space: usize,
        trace: &Trace,
        seed: u64,
        decide: impl FnMut(usize, &Step) -> Option<Decision>,
        statistics: &mut Statistics,
    ) -> Option<Candidate> {
        statistics.generated += 1;
        let mut schedule = match trace.replay_with(&self.program, &self.context, seed, decide) {
            Ok(schedule) => schedule,
            Err(error) => {
                statistics.reject(error.error.reason());
                return None;
            }
        };
        let decisions = schedule.trace().clone();
        if let Err(rejection) = self.postprocessors.apply(&mut schedule) {
            statistics.reject(rejection.0);
            return None;
        }
        let (program, trace) = schedule.into_parts();
        match features::extract(&program, &self.context) {
            Ok(features) => {
                let hash = program.execution_hash();
                Some(Candidate { space, decisions, trace, hash, program, features })
            }
            Err(_) => {
                statistics.reject("lowering");
                None
            }
        }
    }
}
