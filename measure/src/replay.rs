//! Replays records on the programs that are stored beside them, without the kernels' definitions.
//!
//! Nothing in a file is trusted: dimensions are bound with the checks of a call, a trace passes the checks of the
//! primitives, the result is verified, and the results of the timed code are compared with those of the unscheduled program.

use tilewright_core::build::bounds::{OutOfBoundsErrors, check_in_bounds};
use tilewright_core::device::CompileError;
use tilewright_core::ids::VarId;
use tilewright_core::lower::{LowerError, lower_kernel};
use tilewright_core::program::Program;
use tilewright_core::schedule::{ReplayError as StepError, Trace};
use tilewright_core::target::{RunContext, Target};
use tilewright_core::verify::{Level, verify};
use tilewright_search::records::Shape;
use tilewright_search::tuner::TrialOutcome;

use crate::MeasureError;
use crate::batch::Measuring;
use crate::isolation::protocol::{Outcome, Reply, Setup, Source};
use crate::isolation::{IsolatedRunner, Limits, memory_limit, worker};
use crate::runner::Interrupt;
use crate::subject::SubjectOptions;

pub use crate::subject::{Oracle, OracleError};
use tilewright_runtime::Error;
use tilewright_runtime::code;
use tilewright_runtime::devices::{self, DeviceId};

/// The most bytes of all tensors together.
const MOST_BYTES: f64 = (1u64 << 33) as f64;

/// The greatest dimension, so that products of a few of them stay in range.
const GREATEST_DIMENSION: i64 = 1 << 31;

/// Why a record could not be replayed.
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
    /// At this shape the program accesses elements outside of a tensor.
    #[error("at this shape: {0}")]
    OutOfBounds(#[from] OutOfBoundsErrors),
    /// It is too large to be run here.
    #[error("{what} is too large to be replayed: {amount:.1e}, at most {most:.1e}")]
    TooLarge {
        /// The limited quantity.
        what: &'static str,
        /// How much it is.
        amount: f64,
        /// The limit.
        most: f64,
    },
    /// A step of the trace does not replay.
    #[error("the trace does not replay: {0}")]
    Step(#[from] StepError),
    /// The trace produces a malformed program.
    #[error("the trace makes a malformed program: {0}")]
    Malformed(String),
    /// The scheduled program cannot be lowered.
    #[error("it cannot be lowered: {0}")]
    Lower(#[from] LowerError),
    /// It cannot be compiled on this machine.
    #[error("it cannot be compiled on this machine: {0}")]
    Compile(#[from] CompileError),
    /// The unscheduled program gives no results to compare with.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// It failed, crashed or gave wrong results.
    #[error("{reason}: {message}")]
    Failed {
        /// One of the words of [`reason`](crate::reason).
        reason: String,
        /// The failure, as text.
        message: String,
    },
    /// The measuring process cannot do its work.
    #[error(transparent)]
    Measuring(#[from] MeasureError),
    /// The environment prevents it.
    #[error(transparent)]
    Other(#[from] Error),
}

/// The time of a replayed record on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Timed {
    /// The median of the faster half of the samples, in seconds.
    pub seconds: f64,
    /// The distance of the quartiles of all samples over that median.
    pub spread: f64,
    /// The greatest error relative to the largest magnitude of the expected results.
    pub max_relative_error: f64,
    /// The source of the expected results.
    pub oracle: Oracle,
}

/// A scheduled program, lowered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Code {
    /// The computation on constant tensors alone, run once for each, at the `Flat` level.
    pub prologue: Option<Program>,
    /// The computation of a call, at the `Flat` level.
    pub flat: Program,
    /// The size of the machine code, in bytes.
    pub code_bytes: usize,
    /// The machine code, one instruction a line.
    pub disassembly: String,
}

/// The context in which records of a number of threads are replayed: this machine, and runs on as many threads.
///
/// # Errors
/// When a setting of the environment is invalid.
pub fn context(threads: u32) -> Result<RunContext, ReplayError> {
    Ok(devices::run_context_with_threads(threads as usize)?)
}

/// The program at a shape, to which traces apply.
///
/// # Errors
/// When the shape has other dimensions, or the program at this shape accesses elements outside of a tensor or is too large.
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
    let bound = check_in_bounds(&program.for_sizes(&bound))?;
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

/// The bound program that a trace produces: verified, at the `Blocks` level.
///
/// # Errors
/// The first step that does not replay.
pub fn schedule(bound: &Program, trace: &Trace, context: &RunContext) -> Result<Program, ReplayError> {
    let (scheduled, _) = trace.replay_exactly(bound, context, 0)?.into_parts();
    verify(&scheduled, Level::Blocks).map_err(|errors| ReplayError::Malformed(errors.render(&scheduled)))?;
    Ok(scheduled)
}

/// A scheduled program lowered and compiled for this machine.
///
/// # Errors
/// When lowering or compilation fails.
pub fn compile(scheduled: &Program, target: &Target) -> Result<Code, ReplayError> {
    let lowered = lower_kernel(scheduled, target)?;
    let device = devices::default_device()?;
    let mut compiled = code::compile(&device, &[&lowered]);
    let code = compiled.pop().expect("one result for one program")?;
    Ok(Code {
        code_bytes: code.code_bytes(),
        disassembly: code::list(&*device, &lowered)?,
        prologue: lowered.prologue.map(|prologue| prologue.program),
        flat: lowered.main,
    })
}

/// Runs the scheduled program of a trace on random arguments, compares the results with those of the unscheduled
/// program, and times it: in a process of its own, so that code which crashes or hangs costs only itself, or in this one where
/// [`init`](crate::isolation::init) has not been called.
///
/// # Errors
/// When it cannot be run, or its results are wrong.
pub fn time(bound: &Program, trace: &Trace, threads: usize, seed: u64) -> Result<Timed, ReplayError> {
    let oracle = Oracle::of(bound)?;
    if !worker::is_initialised() {
        return time_here(bound, oracle, trace, threads, seed);
    }
    let setup = Setup {
        of: Source::Program { text: bound.to_string(), oracle },
        device: devices::name(DeviceId::DEFAULT)?,
        threads,
        seed,
        cache: None,
        memory: memory_limit(),
        cold: false,
    };
    let interrupt = Interrupt::new(None, None);
    let mut runner = IsolatedRunner::new(worker::command, setup, Limits::default(), interrupt);
    time_apart(&mut runner, oracle, trace)
}

/// Times a trace in the process of a runner for its program.
pub fn time_apart(runner: &mut IsolatedRunner, oracle: Oracle, trace: &Trace) -> Result<Timed, ReplayError> {
    let (mut outcomes, result) = runner.measure_traces(&[trace.to_string()]);
    result?;
    match outcomes.pop().flatten().expect("nobody stops it, so that there is an outcome") {
        TrialOutcome::Ok { seconds, spread, max_relative_error } => {
            Ok(Timed { seconds, spread, max_relative_error, oracle })
        }
        TrialOutcome::Failed { reason, message } => Err(ReplayError::Failed { reason, message }),
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
