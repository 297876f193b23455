//! Traces: what was done to a program, with the decisions that were taken.

use rustc_hash::FxHashMap;

use crate::program::Program;
use crate::schedule::argument::Rename;
use crate::schedule::prim::Instruction;
use crate::schedule::{Schedule, ScheduleError};
use crate::target::RunContext;

/// The outcome of a sampling primitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The factors of a tile, outermost first.
    Tile(Vec<i64>),
    /// The number of a candidate.
    Choice(usize),
    /// A compute location: -1 to stay, -2 to inline, else the number of a loop of the consumer, outermost first.
    Location(i64),
}

/// One primitive that was applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The primitive.
    pub instruction: Instruction,
    /// The number of the first variable it makes.
    pub first_output: u32,
    /// How many variables it makes.
    pub outputs: u32,
    /// The decision taken, for a sampling primitive.
    pub decision: Option<Decision>,
}

impl Step {
    /// The numbers of the variables it makes.
    pub fn output_range(&self) -> std::ops::Range<u32> {
        self.first_output..self.first_output + self.outputs
    }

    /// The primitive with other variables: `name` gives the number of each in place of the one that it has.
    pub fn renamed(&self, name: impl FnMut(u32) -> u32) -> Instruction {
        let mut instruction = self.instruction.clone();
        let Ok(()) = instruction.arguments(&mut Rename(name));
        instruction
    }
}

/// The steps that made a schedule, in order. Prints as text that parses back ([`std::str::FromStr`]).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    steps: Vec<Step>,
}

/// A step of a trace that could not be repeated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("step {} (`{name}`): {}", .step + 1, .description)]
pub struct ReplayError {
    /// The number of the step, from 0.
    pub step: usize,
    /// The primitive.
    pub name: &'static str,
    /// Why it refused.
    pub error: ScheduleError,
    /// The refusal as a sentence with the program's names.
    pub description: String,
}

impl Trace {
    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(crate) fn record(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// A trace of given steps, whose variables are numbered in order.
    pub(crate) fn from_steps(steps: Vec<Step>) -> Self {
        Trace { steps }
    }

    /// Repeats every step on a program, with the decisions of the trace; `seed` serves steps without a
    /// decision. A tile that does not fit another extent is repaired to one that does.
    ///
    /// # Errors
    /// The first step that refuses.
    pub fn replay(
        &self,
        program: &Program,
        context: impl Into<RunContext>,
        seed: u64,
    ) -> Result<Schedule, ReplayError> {
        self.replay_with(program, context, seed, |_, step| step.decision.clone())
    }

    /// As [`Trace::replay`], for a trace of this very program: a decision that does not fit, such as factors that do not multiply up to
    /// their loop, is refused. Somebody may have edited the trace, and means what it says.
    ///
    /// # Errors
    /// The first step that refuses, or else the first one whose decision does not fit.
    pub fn replay_exactly(
        &self,
        program: &Program,
        context: impl Into<RunContext>,
        seed: u64,
    ) -> Result<Schedule, ReplayError> {
        let schedule = self.replay(program, context, seed)?;
        let repeated = self.steps.iter().zip(schedule.trace().steps()).enumerate();
        for (number, (own, found)) in repeated {
            if let (Some(given), Some(fitting)) = (&own.decision, &found.decision)
                && given != fitting
            {
                let error = ScheduleError::BadDecision("another one does");
                let description = format!("the decision {given} does not fit the program; {fitting} would");
                return Err(ReplayError { step: number, name: own.instruction.name(), error, description });
            }
        }
        Ok(schedule)
    }

    /// As [`Trace::replay`], with decisions provided for each step: `None` samples afresh.
    ///
    /// # Errors
    /// The first step that refuses.
    pub fn replay_with(
        &self,
        program: &Program,
        context: impl Into<RunContext>,
        seed: u64,
        mut decide: impl FnMut(usize, &Step) -> Option<Decision>,
    ) -> Result<Schedule, ReplayError> {
        let mut schedule = Schedule::new(program.clone(), context, seed);
        self.resume(&mut schedule, self.steps.len(), &mut decide)?;
        Ok(schedule)
    }

    /// Goes on with a schedule that has repeated the first steps of this trace, up to the step `end`, which is not repeated. `decide`
    /// gives the decisions as for [`Trace::replay_with`].
    ///
    /// # Errors
    /// The first step that refuses.
    pub fn resume(
        &self,
        schedule: &mut Schedule,
        end: usize,
        mut decide: impl FnMut(usize, &Step) -> Option<Decision>,
    ) -> Result<(), ReplayError> {
        let begin = schedule.trace().steps().len();
        for (number, step) in self.steps.iter().enumerate().take(end).skip(begin) {
            schedule.repeat(step, decide(number, step)).map_err(|error| ReplayError {
                step: number,
                name: step.instruction.name(),
                error,
                description: error.describe(schedule.program()),
            })?;
        }
        Ok(())
    }

    /// Repeats, on a schedule of another program, the steps of the search that apply there, and says for each step whether
    /// it was repeated. A step that refuses is left out, with all that depend on it; where there are more or fewer loops than
    /// there were, the innermost ones correspond.
    pub fn replay_applicable(&self, schedule: &mut Schedule) -> Vec<bool> {
        let mut names: FxHashMap<u32, u32> = FxHashMap::default();
        let search =
            self.steps.iter().take_while(|step| !matches!(step.instruction, Instruction::EnterPostproc(_)));
        search.map(|step| schedule.repeat_if_applicable(step, &mut names)).collect()
    }

    /// The numbers of the steps that took a decision.
    pub fn decisions(&self) -> impl Iterator<Item = (usize, &Decision)> {
        self.steps.iter().enumerate().filter_map(|(number, step)| Some((number, step.decision.as_ref()?)))
    }

    /// The trace with another decision at one step.
    ///
    /// # Panics
    /// When there is no such step.
    pub fn with_decision(&self, step: usize, decision: Decision) -> Trace {
        let mut trace = self.clone();
        trace.steps[step].decision = Some(decision);
        trace
    }

    /// The part before [`EnterPostproc`](crate::schedule::prim::EnterPostproc): what the search decides on.
    pub fn without_postprocessing(&self) -> Trace {
        let search =
            self.steps.iter().take_while(|step| !matches!(step.instruction, Instruction::EnterPostproc(_)));
        Trace { steps: search.cloned().collect() }
    }

    /// The trace without pure steps whose results nothing uses, with variables numbered anew.
    pub fn simplified(&self) -> Trace {
        let mut used = vec![false; self.steps.last().map_or(0, |step| step.output_range().end as usize)];
        let mut keep = vec![true; self.steps.len()];
        for (number, step) in self.steps.iter().enumerate().rev() {
            let needed = step.output_range().any(|output| used[output as usize]);
            keep[number] = needed || !step.instruction.is_pure();
            if keep[number] {
                step.renamed(|variable| {
                    used[variable as usize] = true;
                    variable
                });
            }
        }
        renumber(self.steps.iter().zip(keep).filter_map(|(step, keep)| keep.then_some(step)), used.len())
    }
}

fn renumber<'a>(steps: impl Iterator<Item = &'a Step>, variables: usize) -> Trace {
    let mut names = vec![0u32; variables];
    let mut next = 0;
    let mut renumbered = Vec::new();
    for step in steps {
        let mut step =
            Step { instruction: step.renamed(|variable| names[variable as usize]), ..step.clone() };
        for output in step.output_range() {
            names[output as usize] = next;
            next += 1;
        }
        step.first_output = next - step.outputs;
        renumbered.push(step);
    }
    Trace::from_steps(renumbered)
}

impl Schedule {
    /// Repeats a recorded step, which must make as many variables as it did.
    fn repeat(&mut self, step: &Step, decision: Option<Decision>) -> Result<(), ScheduleError> {
        if self.values.len() != step.first_output {
            return Err(ScheduleError::ResultCount { expected: step.first_output, found: self.values.len() });
        }
        let outputs = self.push(step.instruction.clone(), decision)?;
        if outputs.len() as u32 != step.outputs {
            return Err(ScheduleError::ResultCount { expected: step.outputs, found: outputs.len() as u32 });
        }
        Ok(())
    }

    /// Repeats a step of another schedule, whose variables have the given numbers in this one; false when it does
    /// not apply.
    fn repeat_if_applicable(&mut self, step: &Step, names: &mut FxHashMap<u32, u32>) -> bool {
        let mut is_known = true;
        let instruction = step.renamed(|variable| {
            let name = names.get(&variable).copied();
            is_known &= name.is_some();
            name.unwrap_or(variable)
        });
        if !is_known {
            return false;
        }
        let (first, are_loops) = (self.values.len(), matches!(instruction, Instruction::GetLoops(_)));
        let Ok(outputs) = self.push(instruction, step.decision.clone()) else { return false };
        let found = outputs.len() as u32;
        if found == step.outputs || are_loops {
            let (own, others) = (first..first + found, step.output_range());
            names.extend(others.rev().zip(own.rev()));
        }
        true
    }
}
