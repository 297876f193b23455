//! Repeating records on the programs that stand beside them, without the kernels that they are of.
//!
//! What comes from a file is not believed: dimensions are bound with the checks of a call, a trace goes through the
//! primitives, the result is verified, and what is timed is compared with what the unscheduled program computes.

use serde::{Deserialize, Serialize};
use tilewright_core::analysis::scope::blocks;
use tilewright_core::build::bounds::{OutOfBoundsErrors, check_in_bounds};
use tilewright_core::device::{Arguments, CompileError, Device};
use tilewright_core::ids::VarId;
use tilewright_core::interp;
use tilewright_core::lower::{LowerError, lower_kernel};
use tilewright_core::program::{Access, Program};
use tilewright_core::schedule::{ReplayError as StepError, Trace};
use tilewright_core::target::{RunContext, RunOptions, Target};
use tilewright_core::tensor::AnyTensor;
use tilewright_core::verify::{Level, verify};
use tilewright_search::records::Shape;
use tilewright_search::tuner::Measurement;

use super::TuneError;
use super::inputs::Inputs;
use super::isolated::{IsolatedRunner, Limits};
use super::measure::Measuring;
use super::protocol::{Outcome, Reply, Setup, Source};
use super::runner::Interrupt;
use super::subject::{Subject, SubjectOptions, buffer_arguments, written};
use super::{process, worker};
use crate::Error;
use tilewright_runtime::code;
use tilewright_runtime::devices;

/// Up to so many points of its blocks the unscheduled program is interpreted: a few seconds.
const INTERPRETED_POINTS: f64 = 4e6;

/// Beyond so many points the unscheduled program, compiled as it is, would run for minutes.
const MOST_POINTS: f64 = 4e10;

/// The most bytes of all tensors together.
const MOST_BYTES: f64 = (1u64 << 33) as f64;

/// The greatest dimension, so that products of a few of them stay in range.
const GREATEST_DIMENSION: i64 = 1 << 31;

/// Why a record could not be repeated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The shape has other dimensions than the program.
    #[error("the shape {shape} does not fit the program, whose dimensions are {expected}")]
    Dimensions {
        /// The shape.
        shape: Shape,
        /// The program's dimensions.
        expected: String,
    },
    /// At this shape the program leaves a tensor.
    #[error("at this shape: {0}")]
    OutOfBounds(#[from] OutOfBoundsErrors),
    /// It is too large to be run here.
    #[error("{what} is too large to be replayed: {amount:.1e}, at most {most:.1e}")]
    TooLarge {
        /// What is.
        what: &'static str,
        /// How much it is.
        amount: f64,
        /// The limit.
        most: f64,
    },
    /// A step of the trace cannot be repeated.
    #[error("the trace does not replay: {0}")]
    Step(#[from] StepError),
    /// The trace makes a program that is none.
    #[error("the trace makes a malformed program: {0}")]
    Malformed(String),
    /// The scheduled program cannot be lowered.
    #[error("it cannot be lowered: {0}")]
    Lower(#[from] LowerError),
    /// It cannot be compiled on this machine.
    #[error("it cannot be compiled on this machine: {0}")]
    Compile(#[from] CompileError),
    /// The unscheduled program has no value for random arguments.
    #[error("the unscheduled program cannot be interpreted: {0}")]
    Interpreter(#[from] interp::InterpError),
    /// It failed, crashed or gave wrong results.
    #[error("{reason}: {message}")]
    Failed {
        /// One of the words of [`reason`](super::reason).
        reason: String,
        /// What happened.
        message: String,
    },
    /// The measuring process cannot do its work.
    #[error(transparent)]
    Measuring(#[from] TuneError),
    /// The environment is not fit for it.
    #[error(transparent)]
    Other(#[from] Error),
}

/// What a repeated record was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Oracle {
    /// The unscheduled program, interpreted.
    Interpreter,
    /// The unscheduled program, compiled as it is: interpreting it would take too long.
    Unscheduled,
}

/// The time of a repeated record on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Timed {
    /// The median of the faster half of the samples, in seconds.
    pub seconds: f64,
    /// The distance of the quartiles of all samples over that median.
    pub spread: f64,
    /// The greatest error relative to the largest magnitude of the expected results.
    pub max_relative_error: f64,
    /// What it was compared with.
    pub oracle: Oracle,
}

/// A scheduled program, lowered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Code {
    /// What is computed from constant tensors alone, once for each, at the `Flat` level.
    pub prologue: Option<Program>,
    /// What a call runs, at the `Flat` level.
    pub flat: Program,
    /// The size of the machine code, in bytes.
    pub code_bytes: usize,
    /// The machine code, one instruction a line.
    pub disassembly: String,
}

/// The circumstances that records of a number of threads are replayed for: this machine, and runs on as many threads.
///
/// # Errors
/// When a setting of the environment cannot be obeyed.
pub fn context(threads: u32) -> Result<RunContext, ReplayError> {
    Ok(devices::run_context_with_threads(threads as usize)?)
}

/// A symbolic program at a shape, as traces are made for.
///
/// # Errors
/// When the shape has other dimensions, or the program leaves a tensor at this shape or is too large.
pub fn bind(program: &Program, shape: &Shape) -> Result<Program, ReplayError> {
    let sizes: Vec<(&String, i64)> =
        shape.dims.iter().chain(&shape.params).map(|(name, size)| (name, *size)).collect();
    let size = |name: &str| sizes.iter().find(|(known, _)| *known == name).map(|(_, size)| *size);
    let bound: Option<Vec<(VarId, i64)>> =
        program.dims().map(|(var, name)| Some((var, size(name)?))).collect();
    let Some(bound) = bound.filter(|bound| bound.len() == sizes.len()) else {
        let expected: Vec<&str> = program.dims().map(|(_, name)| &**name).collect();
        return Err(ReplayError::Dimensions { shape: shape.clone(), expected: expected.join(", ") });
    };
    if let Some((_, size)) = bound.iter().find(|(_, size)| !(0..=GREATEST_DIMENSION).contains(size)) {
        return Err(too_large("a dimension", *size as f64, GREATEST_DIMENSION as f64));
    }
    let bound = check_in_bounds(&program.bind_dims(&bound))?;
    let bytes = |(_, buffer): (_, &tilewright_core::program::Buffer)| {
        let extents = buffer.shape.iter().map(|extent| extent.as_constant().unwrap_or(0).max(1) as f64);
        extents.product::<f64>() * buffer.dtype.bytes() as f64
    };
    let bytes: f64 = bound.buffers().map(bytes).sum();
    if bytes > MOST_BYTES {
        return Err(too_large("what its tensors hold, in bytes,", bytes, MOST_BYTES));
    }
    Ok(bound)
}

fn too_large(what: &'static str, amount: f64, most: f64) -> ReplayError {
    ReplayError::TooLarge { what, amount, most }
}

/// What a trace makes of a bound program: verified, at the `Blocks` level.
///
/// # Errors
/// The first step that cannot be repeated.
pub fn schedule(bound: &Program, trace: &Trace, context: &RunContext) -> Result<Program, ReplayError> {
    let (scheduled, _) = trace.replay(bound, context, 0)?.into_parts();
    verify(&scheduled, Level::Blocks).map_err(|errors| ReplayError::Malformed(errors.render(&scheduled)))?;
    Ok(scheduled)
}

/// A scheduled program lowered and compiled for this machine.
///
/// # Errors
/// Why that cannot be done.
pub fn compile(scheduled: &Program, target: &Target) -> Result<Code, ReplayError> {
    let lowered = lower_kernel(scheduled, target)?;
    let mut compiled = code::compile(&devices::default_device()?, &[&lowered]);
    let code = compiled.pop().expect("one result for one program")?;
    Ok(Code {
        code_bytes: code.code_bytes(),
        disassembly: code.disassembly(),
        prologue: lowered.prologue.map(|prologue| prologue.program),
        flat: lowered.main,
    })
}

/// Runs what a trace makes of a bound program on random arguments, compares the results with those of the unscheduled
/// program, and times it: in a process of its own, so that code which crashes or hangs costs only itself, or in this one where
/// [`init`](super::init) has not been called.
///
/// # Errors
/// Why that cannot be done, or what is wrong with the results.
pub fn time(bound: &Program, trace: &Trace, threads: usize, seed: u64) -> Result<Timed, ReplayError> {
    let oracle = Oracle::of(bound)?;
    if !worker::is_initialised() {
        return time_here(bound, oracle, trace, threads, seed);
    }
    let setup = Setup {
        of: Source::Program { text: bound.to_string(), oracle },
        threads,
        seed,
        cache: None,
        memory: process::memory_limit(),
    };
    let interrupt = Interrupt::new(None, None);
    let mut runner = IsolatedRunner::new(worker::command, setup, Limits::default(), interrupt);
    time_apart(&mut runner, oracle, trace)
}

/// Times a trace in the process of a runner for its program.
pub(super) fn time_apart(
    runner: &mut IsolatedRunner,
    oracle: Oracle,
    trace: &Trace,
) -> Result<Timed, ReplayError> {
    let (mut outcomes, result) = runner.measure_traces(&[trace.to_string()]);
    result?;
    match outcomes.pop().flatten().expect("nobody stops it, so that there is an outcome") {
        Measurement::Ok { seconds, spread, max_relative_error } => {
            Ok(Timed { seconds, spread, max_relative_error, oracle })
        }
        Measurement::Failed { reason, message } => Err(ReplayError::Failed { reason, message }),
    }
}

fn time_here(
    bound: &Program,
    oracle: Oracle,
    trace: &Trace,
    threads: usize,
    seed: u64,
) -> Result<Timed, ReplayError> {
    let options = SubjectOptions { seed, threads, cache: None };
    let subject = oracle.subject(bound.clone(), devices::default_device()?, &options)?;
    let mut outcome = None;
    let mut receive = |reply: Reply| {
        if let Reply::Outcome { outcome: found, .. } = reply {
            outcome = Some(found);
        }
    };
    let mut measuring = Measuring { subject: &subject, emit: &mut receive, should_stop: &|| false };
    measuring.measure(vec![trace.to_string()], &[]);
    match outcome.expect("nobody stops it, so that there is an outcome") {
        Outcome::Measured { timing, error } => {
            Ok(Timed { seconds: timing.median, spread: timing.spread, max_relative_error: error, oracle })
        }
        Outcome::Failed(failure) => {
            Err(ReplayError::Failed { reason: failure.reason, message: failure.message })
        }
    }
}

impl Oracle {
    /// What can be waited for.
    fn of(bound: &Program) -> Result<Self, ReplayError> {
        let points = points(bound);
        if points > MOST_POINTS {
            return Err(too_large("the number of points that its blocks run through", points, MOST_POINTS));
        }
        Ok(if points <= INTERPRETED_POINTS { Oracle::Interpreter } else { Oracle::Unscheduled })
    }

    /// A bound program with arguments, and with the results that this one gives.
    pub(super) fn subject(
        self,
        bound: Program,
        device: Arc<dyn Device>,
        options: &SubjectOptions,
    ) -> Result<Subject, ReplayError> {
        let reference = match self {
            Oracle::Interpreter => interpreted,
            Oracle::Unscheduled => unscheduled,
        };
        Subject::of_program(bound, device, options, &reference)
    }
}

/// How many points the blocks of a bound program run through.
fn points(bound: &Program) -> f64 {
    let extent = |extent: Option<i64>| extent.unwrap_or(1).max(0) as f64;
    blocks(&bound.body)
        .into_iter()
        .map(|block| block.iters.iter().map(|iter| extent(iter.extent.as_constant())).product::<f64>())
        .sum()
}

fn interpreted(bound: &Program, inputs: &Inputs) -> Result<Vec<Option<AnyTensor>>, ReplayError> {
    let mut tensors = inputs.tensors.clone();
    interp::run(bound, &[], &inputs.scalars, &mut tensors)?;
    Ok(written(bound, tensors))
}

fn unscheduled(bound: &Program, inputs: &Inputs) -> Result<Vec<Option<AnyTensor>>, ReplayError> {
    let device = devices::default_device()?;
    let lowered = lower_kernel(bound, device.target())?;
    let code = code::compile(&device, &[&lowered]).pop().expect("one result for one program")?;
    let accesses: Vec<Access> = bound.buffer_params().map(|(_, access)| access).collect();
    let mut tensors = inputs.tensors.clone();
    let mut buffers = buffer_arguments(&mut tensors, &accesses);
    let mut arguments = Arguments { dims: &[], scalars: &inputs.scalars, buffers: &mut buffers };
    code.run(&mut arguments, RunOptions::with_threads(1)).map_err(Error::from)?;
    Ok(written(bound, tensors))
}

#[cfg(test)]
mod tests {
    use tilewright_core::lower::{LowerOptions, lower};

    use super::super::tests as kernels;
    use super::*;

    fn product() -> Program {
        "kernel product(M, N, K, in a: f32[M, K], in b: f32[K, N], out c: f32[M, N]) {
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        block c(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) {
          init {
            c[vi, vj] = 0.0
          }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}
"
        .parse()
        .expect("the program is well-formed")
    }

    fn trace(last: &str) -> Trace {
        let text = format!("trace v1\n%0 = get_block \"c\"\n%1, %2, %3 = get_loops %0\n{last}\n");
        text.parse().expect("a trace")
    }

    #[test]
    fn both_oracles_agree_and_times_are_positive() {
        for (size, oracle) in [(24, Oracle::Interpreter), (192, Oracle::Unscheduled)] {
            let shape = Shape::of_dims([("M", size), ("N", size), ("K", size)]);
            let bound = bind(&product(), &shape).expect("it fits");
            let timed = time(&bound, &trace("vectorize %2\nparallel %1"), 2, 1).expect("it runs");
            assert_eq!(timed.oracle, oracle);
            assert!(timed.seconds > 0.0 && timed.max_relative_error < 1e-5, "{timed:?}");
        }
    }

    #[test]
    fn code_that_crashes_does_not_crash_who_replays_it() {
        let kernel = kernels::product::kernel();
        let dims = kernel.dims_by_name(&kernels::DIMS).expect("its dimensions");
        let program = kernel.program_for(&dims).expect("it fits");
        let [good, bad] = &kernels::candidates(2)[..] else { panic!("two candidates") };
        let flat = lower(&bad.program, &LowerOptions::default()).expect("it can be lowered");
        for oracle in [Oracle::Interpreter, Oracle::Unscheduled] {
            let of = Source::Program { text: program.to_string(), oracle };
            let setup = Setup { of, threads: 1, seed: 1, cache: None, memory: process::memory_limit() };
            let command = kernels::worker_command(format!("crash:{:016x},", flat.stable_hash()));
            let interrupt = Interrupt::new(None, None);
            let mut runner = IsolatedRunner::new(command, setup, Limits::default(), interrupt);
            let timed = time_apart(&mut runner, oracle, &good.trace).expect("it runs");
            assert!(timed.seconds > 0.0 && timed.max_relative_error < 1e-5, "{timed:?}");
            let crash = time_apart(&mut runner, oracle, &bad.trace).expect_err("it crashes");
            assert!(
                matches!(&crash, ReplayError::Failed { reason, .. } if reason == super::super::reason::CRASH),
                "{crash}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let shape = |k: i64| Shape::of_dims([("M", 8), ("N", 8), ("K", k)]);
        let other = bind(&product(), &Shape::of_dims([("M", 8), ("N", 8)])).unwrap_err().to_string();
        assert!(other.contains("whose dimensions are M, N, K"), "{other}");
        for size in [i64::MAX, 1 << 30] {
            let error = bind(&product(), &shape(size)).unwrap_err();
            assert!(matches!(error, ReplayError::TooLarge { .. }), "{size}: {error}");
        }
        let bound = bind(&product(), &shape(8)).expect("it fits");
        let context = context(1).expect("a machine");
        let error = schedule(&bound, &trace("reorder [%2, %2]"), &context).unwrap_err().to_string();
        assert!(error.starts_with("the trace does not replay: step 3 (`reorder`)"), "{error}");
        let code = compile(
            &schedule(&bound, &trace("vectorize %2"), &context).expect("it replays"),
            &context.target,
        );
        assert!(code.expect("it compiles").code_bytes > 0);
    }
}
