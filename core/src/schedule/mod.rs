//! Schedules: a program, and the trace of primitives that made it what it is.
//!
//! [`Schedule::push`] applies a primitive and records it; [`Trace::replay`] is a loop of `push`. There is
//! no second class that traces. The primitives are in [`prim`], each with a method of the same name
//! on [`Schedule`].

pub mod argument;
mod check;
mod compose;
mod destination;
pub(crate) mod edit;
mod elements;
mod error;
mod find;
pub mod prim;
mod retired;
mod rng;
mod rv;
mod text;
mod tiling;
mod trace;

pub use error::ScheduleError;
pub use prim::{Instruction, Primitive};
pub use rng::Rng;
pub use rv::{
    AnnotationArgument, BlockOrLoopRv, BlockRv, IntArgument, IntRv, LoopRv, PrefetchMode, Value, Values,
};
pub use text::TraceParseError;
pub use trace::{Decision, ReplayError, Step, Trace};

use crate::program::Program;
use crate::target::{CpuTarget, GpuTarget, RunContext, Target};
use prim::{Context, Outputs};

/// The most steps of a schedule: far more than any kernel needs. A rule that applies primitives without end stops here.
pub const MAX_STEPS: usize = 4096;

/// A program being scheduled.
#[derive(Clone, Debug)]
pub struct Schedule {
    program: Program,
    trace: Trace,
    values: Values,
    rng: Rng,
    context: RunContext,
}

impl Schedule {
    /// Starts from an unscheduled program. Equal seeds make equal samples. Rules read the context; among
    /// primitives, only `tensorize` does, which looks up descriptions of intrinsics in the target. A target alone stands for
    /// runs that use all of it.
    pub fn new(program: Program, context: impl Into<RunContext>, seed: u64) -> Self {
        let (trace, values, rng) = (Trace::default(), Values::default(), Rng::new(seed));
        Schedule { program, trace, values, rng, context: context.into() }
    }

    /// The target that the program is scheduled for, with the options of its runs.
    pub fn context(&self) -> &RunContext {
        &self.context
    }

    /// The target that the program is scheduled for.
    pub fn target(&self) -> &Target {
        &self.context.target
    }

    /// The CPU that the program is scheduled for.
    ///
    /// # Errors
    /// [`ScheduleError::WrongTargetKind`] when the target is no CPU.
    pub fn cpu(&self) -> Result<&CpuTarget, ScheduleError> {
        self.target().cpu().map_err(ScheduleError::WrongTargetKind)
    }

    /// The GPU that the program is scheduled for.
    ///
    /// # Errors
    /// [`ScheduleError::WrongTargetKind`] when the target is no GPU.
    pub fn gpu(&self) -> Result<&GpuTarget, ScheduleError> {
        self.target().gpu().map_err(ScheduleError::WrongTargetKind)
    }

    /// The CPU threads that will run the program; 1 or more.
    pub fn threads(&self) -> u32 {
        self.context.threads()
    }

    /// The program as scheduled so far.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The steps so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The values of the variables so far.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The generator that sampling primitives draw from.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Takes the schedule apart.
    pub fn into_parts(self) -> (Program, Trace) {
        (self.program, self.trace)
    }

    /// A copy that samples differently from here on: another point of the same space.
    pub fn fork(&mut self) -> Schedule {
        let seed = self.rng.next_u64();
        Schedule { rng: Rng::new(seed), ..self.clone() }
    }

    /// Applies a primitive and records it.
    ///
    /// # Errors
    /// When a precondition does not hold, or there are [`MAX_STEPS`] already; the schedule is then unchanged.
    pub fn push(
        &mut self,
        instruction: impl Into<Instruction>,
        decision: Option<Decision>,
    ) -> Result<Outputs, ScheduleError> {
        if self.trace.steps().len() >= MAX_STEPS {
            return Err(ScheduleError::TooManySteps);
        }
        let instruction = instruction.into();
        check::order::check_order_kept(&self.program, &instruction, &self.values)?;
        let mut decision = decision;
        let outputs = instruction.apply(&mut Context {
            program: &mut self.program,
            values: &self.values,
            decision: &mut decision,
            rng: &mut self.rng,
            intrinsics: self.context.target.descriptions(),
        })?;
        #[cfg(debug_assertions)]
        self.verify_after(&instruction);
        let first = self.values.len();
        self.values.extend(&outputs);
        self.trace.record(Step { instruction, first_output: first, outputs: outputs.len() as u32, decision });
        Ok(outputs)
    }

    /// Applies a primitive that makes one variable, and gives its number.
    pub(crate) fn push_one(&mut self, instruction: impl Into<Instruction>) -> Result<u32, ScheduleError> {
        let first = self.values.len();
        let outputs = self.push(instruction, None)?;
        debug_assert_eq!(outputs.len(), 1, "a primitive with one result");
        Ok(first)
    }

    /// Applies a primitive, and gives the numbers of the variables that it makes.
    pub(crate) fn push_many(
        &mut self,
        instruction: impl Into<Instruction>,
    ) -> Result<std::ops::Range<u32>, ScheduleError> {
        let first = self.values.len();
        let outputs = self.push(instruction, None)?;
        Ok(first..first + outputs.len() as u32)
    }

    /// The program must be well formed after every step; anything else is a bug of the primitive.
    #[cfg(debug_assertions)]
    fn verify_after(&self, instruction: &Instruction) {
        use crate::verify::{Level, verify};
        if instruction.is_pure() {
            return;
        }
        if let Err(errors) = verify(&self.program, Level::Blocks) {
            panic!("{} broke the program:\n{errors}\n{}", instruction.name(), self.program);
        }
    }
}
