//! Candidates: points of a design space that are replayed, postprocessed, and described by features.

use std::collections::BTreeMap;

use tilewright_core::program::Program;
use tilewright_core::schedule::{Decision, Rng, Schedule, Step, Trace};
use tilewright_core::target::RunContext;

use crate::model::ProgramFeatures;
use crate::space::spec::SearchSpec;

/// A legal, scheduled program with the trace that makes it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The number of its design space. Numbers beyond those of the design spaces stand for the traces that the search began with
    /// and for candidates of earlier runs; [`FOREIGN`](crate::explore::strategy::SearchSpace::FOREIGN) stands for any other origin.
    pub space: usize,
    /// The trace without postprocessing. Mutators change its decisions.
    pub decisions: Trace,
    /// The whole trace, as records keep it.
    pub trace: Trace,
    /// The scheduled program, at the `Blocks` level.
    pub program: Program,
    /// Equal for programs that [execute the same](Program::execution_hash).
    pub hash: u64,
    /// The features that the cost model sees.
    pub features: ProgramFeatures,
}

/// The number of generated candidates, and of refused ones by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Candidates generated, legal or not.
    pub generated: u64,
    /// Refused candidates by reason.
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

/// Generates candidates of one kernel at one shape on one machine.
#[derive(Clone, Debug)]
pub struct Generator {
    /// The unscheduled program.
    pub program: Program,
    /// The target, with the options of its runs.
    pub context: RunContext,
    /// The search of the device.
    pub spec: SearchSpec,
}

impl Generator {
    /// A generator for a program, the context of its runs, and the search of the device.
    pub fn new(program: Program, context: impl Into<RunContext>, spec: SearchSpec) -> Self {
        Generator { program, context: context.into(), spec }
    }

    /// A decision for a step that is aligned to the device; see [`AlignDecision`](crate::space::spec::AlignDecision).
    pub fn align(&self, step: &Step, rng: &mut Rng) -> Option<Decision> {
        (self.spec.device.align_decision)(step, &self.context, rng)
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
        match trace.replay_with(&self.program, &self.context, seed, decide) {
            Ok(schedule) => self.complete(space, schedule, statistics),
            Err(error) => {
                statistics.generated += 1;
                statistics.reject(error.error.reason());
                None
            }
        }
    }

    /// Postprocesses and describes a schedule that a trace of a design space has made. `None` when it is refused, with the reason
    /// counted.
    pub(crate) fn complete(
        &self,
        space: usize,
        mut schedule: Schedule,
        statistics: &mut Statistics,
    ) -> Option<Candidate> {
        statistics.generated += 1;
        let decisions = schedule.trace().clone();
        if let Err(rejection) = self.spec.postprocessors.apply(&mut schedule) {
            statistics.reject(rejection.0);
            return None;
        }
        let (program, trace) = schedule.into_parts();
        match (self.spec.device.extract_features)(&program, &self.context) {
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
