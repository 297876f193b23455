//! A respectable schedule without any measurement.
//!
//! The design spaces are sampled with a fixed seed and the draft model that ranks the first trials of a search
//! picks one. The same program and target always get the same schedule.

use std::sync::Arc;

use tilewright_core::program::Program;
use tilewright_core::schedule::Schedule;
use tilewright_core::target::Target;

use crate::candidate::{Candidate, Generator};
use crate::evolution::{Evolution, EvolutionOptions};
use crate::model::{CostModel, ProgramFeatures, Sample};
use crate::rule::RuleSet;
use crate::space::design_spaces;

/// Candidates per generation: enough that every design space shows a good tile, few enough that the first
/// call of a kernel is not held up for long.
const POPULATION: usize = 64;

/// Ranks by the draft model alone.
struct Draft;

impl CostModel for Draft {
    fn predict(&self, programs: &[ProgramFeatures]) -> Vec<f32> {
        programs.iter().map(ProgramFeatures::prior).collect()
    }

    fn update(&mut self, _: &[Sample]) {}
}

/// The candidate that the draft model thinks best; `None` when no candidate is legal.
pub fn default_candidate(program: &Program, target: &Arc<Target>, rules: &RuleSet) -> Option<Candidate> {
    let generator = Generator { program: program.clone(), target: target.clone() };
    let spaces = design_spaces(program, target, rules, 0);
    let options = EvolutionOptions {
        population: POPULATION,
        generations: 3,
        random_share: 0.0,
        threads: 1,
        ..EvolutionOptions::default()
    };
    let mut evolution = Evolution::new(generator, spaces, options, 0);
    evolution.propose_best(&Draft)
}

/// A schedule for a program without any measurement: that of [`default_candidate`] with the built-in rules, or
/// the program as it is.
pub fn schedule_by_default(program: &Program, target: &Arc<Target>) -> Schedule {
    let unscheduled = || Schedule::new(program.clone(), target.clone(), 0);
    let Ok(rules) = RuleSet::built_in(target.kind) else { return unscheduled() };
    default_candidate(program, target, &rules)
        .and_then(|candidate| candidate.trace.replay(program, target, 0).ok())
        .unwrap_or_else(unscheduled)
}
