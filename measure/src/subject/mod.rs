//! A program at a shape, with random arguments and its expected results: the subject of measurements.
//!
//! | module | does |
//! |---|---|
//! | `inputs` | random arguments |
//! | `expectation` | the expected results, kept from one measuring process to the next |
//!
//! `exact`
//! results in `f64`, and the magnitudes of their terms
//!
//! | `tolerance` | how far results may be off |
//!
//! `oracle`
//! expected results where the kernel's definition is not linked
//!

mod exact;
mod expectation;
mod inputs;
mod oracle;
mod tolerance;

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use tilewright_core::device::{Arguments, BufferArgument, Device};
use tilewright_core::lower::{LoweredKernel, lower_kernel};
use tilewright_core::program::{Access, Program};
use tilewright_core::schedule::Trace;
use tilewright_core::target::{RunContext, RunOptions};
use tilewright_core::tensor::AnyTensor;
use tilewright_runtime::Error;
use tilewright_runtime::code::{self, Compiled};
use tilewright_runtime::kernel::Kernel;
use tilewright_search::records::CacheState;

use crate::failure::{Failure, reason};
use expectation::expectation;
use inputs::poison;

pub use inputs::Inputs;
pub use oracle::{Oracle, OracleError};
pub use tolerance::{Expected, Tolerance};

/// A program at a shape, ready to try schedules of it.
pub struct Subject {
    device: Arc<dyn Device>,
    context: RunContext,
    threads: usize,
    program: Program,
    inputs: Inputs,
    /// The expected content of each tensor after a run: of results and updated tensors; `None` for tensors only read.
    expected: Vec<Option<Expected>>,
    accesses: Vec<Access>,
    tolerance: Tolerance,
    reference_time: Duration,
    cache: CacheState,
}

/// The most runs in a row with cold caches. The time of a longer row is extrapolated, because evicting takes longer than a short run.
const COLD_RUNS: u64 = 8;

/// How to prepare a subject.
#[derive(Clone, Debug)]
pub struct SubjectOptions {
    /// The seed of the arguments.
    pub seed: u64,
    /// Threads that a run uses.
    pub threads: usize,
    /// A directory that keeps expected results, since the definition may take seconds to compute them.
    pub cache: Option<PathBuf>,
}

impl Subject {
    /// Makes arguments and computes the expected results, unless the cache has them: by the definition as ordinary Rust, or by the
    /// [`Oracle`] of a program where there is no definition.
    ///
    /// # Errors
    /// When the dimensions do not fit the kernel, or nothing can compute the results.
    pub fn new(
        kernel: &Kernel,
        dims: &[i64],
        device: Arc<dyn Device>,
        options: &SubjectOptions,
    ) -> Result<Self, OracleError> {
        if kernel.definition().is_none() {
            let program = kernel.program_for(dims)?;
            return Oracle::of(&program)?.subject(program, device, options);
        }
        let reference = |program: &Program, inputs: &Inputs| run_reference(kernel, dims, program, inputs);
        Ok(Self::of_program(kernel.program_for(dims)?, device, options, &reference)?)
    }

    /// Makes arguments for a program whose dimensions are bound, and lets a reference compute the expected results, unless the
    /// cache has them.
    pub fn of_program<E: From<Error>>(
        program: Program,
        device: Arc<dyn Device>,
        options: &SubjectOptions,
        reference: &Reference<'_, E>,
    ) -> Result<Self, E> {
        let context = RunContext::new(device.target().clone(), RunOptions::with_threads(options.threads));
        let accesses: Vec<Access> = program.buffer_params().map(|(_, access)| access).collect();
        let tolerance = Tolerance::of(&program);
        let start = Instant::now();
        let cache = options.cache.as_deref().map(|directory| {
            directory.join(format!("{:016x}-{}.expected", program.stable_hash(), options.seed))
        });
        let (seed, cache) = (options.seed, cache.as_deref());
        let (inputs, expected) = expectation(&program, seed, cache, &device, context.options, reference)?;
        Ok(Subject {
            device,
            context,
            threads: options.threads,
            program,
            inputs,
            expected,
            accesses,
            tolerance,
            reference_time: start.elapsed(),
            cache: CacheState::Warm,
        })
    }

    /// How long the reference took, about; short when its results were in the cache.
    pub fn reference_time(&self) -> Duration {
        self.reference_time
    }

    /// The unscheduled program, with its dimensions bound.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs the definition itself once.
    pub fn run_reference(
        &self,
        kernel: &Kernel,
        dims: &[i64],
        tensors: &mut [AnyTensor],
    ) -> Result<(), Error> {
        let mut buffers = buffer_arguments(tensors, &self.accesses);
        kernel.reference(dims, &self.inputs.scalars, &mut buffers)
    }

    /// Replays, lowers and compiles traces, all at once, on all cores: nothing is timed meanwhile.
    pub fn compile(&self, traces: &[String]) -> Vec<Result<Compiled, Failure>> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let parts = cores.clamp(1, traces.len().max(1));
        if parts == 1 {
            return self.compile_part(traces.iter());
        }
        // The threads take traces alternately: neighbours are alike and take equally long.
        let part = |first: usize| self.compile_part(traces.iter().skip(first).step_by(parts));
        let mut compiled: Vec<_> = std::thread::scope(|scope| {
            let part = &part;
            let workers: Vec<_> = (0..parts).map(|first| scope.spawn(move || part(first))).collect();
            let finish = |worker: ScopedJoinHandle<'_, Vec<_>>| match worker.join() {
                Ok(compiled) => compiled.into_iter(),
                Err(panic) => resume_unwind(panic),
            };
            workers.into_iter().map(finish).collect()
        });
        (0..traces.len())
            .map(|number| compiled[number % parts].next().expect("there is one result for each trace"))
            .collect()
    }

    /// The same on this thread alone.
    fn compile_part<'t>(&self, traces: impl Iterator<Item = &'t String>) -> Vec<Result<Compiled, Failure>> {
        let lowered: Vec<Result<LoweredKernel, Failure>> = traces.map(|trace| self.lower(trace)).collect();
        let programs: Vec<&LoweredKernel> =
            lowered.iter().filter_map(|program| program.as_ref().ok()).collect();
        let mut compiled = code::compile(&self.device, &programs).into_iter();
        let compile = |program: &Result<LoweredKernel, Failure>| {
            program.as_ref().map_err(Failure::clone)?;
            let executable = compiled.next().expect("there is one result for each program");
            executable.map_err(|error| Failure::new(reason::COMPILE, error))
        };
        lowered.iter().map(compile).collect()
    }

    fn lower(&self, trace: &str) -> Result<LoweredKernel, Failure> {
        let trace: Trace = trace.parse().map_err(|error| Failure::new(reason::REPLAY, error))?;
        let schedule = trace
            .replay_exactly(&self.program, &self.context, 0)
            .map_err(|error| Failure::new(reason::REPLAY, error))?;
        lower_kernel(schedule.program(), &self.context.target)
            .map_err(|error| Failure::new(reason::LOWERING, error))
    }

    /// Fresh arguments for runs of compiled code.
    pub fn arguments(&self) -> Vec<AnyTensor> {
        self.inputs.tensors.clone()
    }

    /// Restores the first content of tensors that runs have changed.
    pub fn reset(&self, tensors: &mut [AnyTensor]) {
        let parameters = self.program.buffer_params();
        for ((tensor, original), (id, access)) in tensors.iter_mut().zip(&self.inputs.tensors).zip(parameters)
        {
            match access {
                Access::Input | Access::Constant => {}
                Access::Output if self.program.strides(id).is_none() => poison(tensor),
                // The memory between the elements of a result stays as it is.
                Access::InOut | Access::Output => tensor.bytes_mut().copy_from_slice(original.bytes()),
            }
        }
    }

    /// Whether runs change their inputs.
    pub fn updates_in_place(&self) -> bool {
        self.accesses.contains(&Access::InOut)
    }

    /// Runs compiled code `repetitions` times in a row and gives the duration, without the computation on
    /// constant tensors, whose results are kept. With [cold caches](Subject::set_cache) operands are evicted before each run.
    pub fn run(
        &self,
        executable: &Compiled,
        tensors: &mut [AnyTensor],
        repetitions: u64,
    ) -> Result<Duration, Failure> {
        let mut buffers = buffer_arguments(tensors, &self.accesses);
        let mut arguments = Arguments { dims: &[], scalars: &self.inputs.scalars, buffers: &mut buffers };
        let (failed, options) =
            (|error| Failure::new(reason::CALL, error), RunOptions::with_threads(self.threads));
        if self.cache == CacheState::Warm {
            return executable.time(&mut arguments, options, repetitions).map_err(failed);
        }
        let runs = repetitions.clamp(1, COLD_RUNS);
        let mut duration = Duration::ZERO;
        for _ in 0..runs {
            let time = executable.time_cold(&*self.device, &mut arguments, options).map_err(failed)?;
            duration += time.ok_or_else(|| {
                Failure::new(reason::CALL, "this device cannot evict operands from its caches: measure warm")
            })?;
        }
        Ok(duration.mul_f64(repetitions as f64 / runs as f64))
    }

    /// Says where the operands of runs are: in the caches, unless this says otherwise.
    pub fn set_cache(&mut self, cache: CacheState) {
        self.cache = cache;
    }

    /// Compares the tensors after one run with the expected ones; gives the greatest relative error.
    pub fn check(&self, tensors: &[AnyTensor]) -> Result<f64, Failure> {
        let mut greatest: f64 = 0.0;
        for (position, (found, expected)) in tensors.iter().zip(&self.expected).enumerate() {
            let Some(expected) = expected else { continue };
            match self.tolerance.check(found, expected) {
                Ok(error) => greatest = greatest.max(error),
                Err(error) => return Err(self.wrong_result(position, &error)),
            }
        }
        Ok(greatest)
    }

    fn wrong_result(&self, position: usize, error: &tilewright_core::tensor::ErrorSummary) -> Failure {
        let buffer = self.program.buffer_params().nth(position);
        let name = buffer.map_or("?", |(id, _)| &self.program.buffer(id).name).to_owned();
        let first = error.first_mismatch.unwrap_or(0);
        Failure::new(
            reason::WRONG_RESULT,
            format!(
                "`{name}` differs from the reference by {:.3e} where values reach {:.3e}, first at element {first}",
                error.max_abs, error.scale
            ),
        )
    }
}

/// Tensors as the arguments of a call.
pub fn buffer_arguments<'a>(tensors: &'a mut [AnyTensor], accesses: &[Access]) -> Vec<BufferArgument<'a>> {
    let argument = |(tensor, access): (&'a mut AnyTensor, &Access)| match access {
        Access::Input => BufferArgument::Read(tensor.bytes()),
        Access::Constant => BufferArgument::Identified(tensor.identified_bytes()),
        Access::Output | Access::InOut => BufferArgument::Write(tensor.bytes_mut()),
    };
    tensors.iter_mut().zip(accesses).map(argument).collect()
}

/// Computes the results of a program with bound dimensions: each tensor afterwards, `None` for tensors that it only
/// reads.
pub type Reference<'r, E> = dyn Fn(&Program, &Inputs) -> Result<Vec<Option<AnyTensor>>, E> + 'r;

fn run_reference(
    kernel: &Kernel,
    dims: &[i64],
    program: &Program,
    inputs: &Inputs,
) -> Result<Vec<Option<AnyTensor>>, Error> {
    let accesses: Vec<Access> = program.buffer_params().map(|(_, access)| access).collect();
    let mut tensors = inputs.tensors.clone();
    let mut buffers = buffer_arguments(&mut tensors, &accesses);
    kernel.reference(dims, &inputs.scalars, &mut buffers)?;
    Ok(written(program, tensors))
}

/// The tensors of a program that it writes.
pub fn written(program: &Program, tensors: Vec<AnyTensor>) -> Vec<Option<AnyTensor>> {
    let accesses = program.buffer_params().map(|(_, access)| access);
    tensors.into_iter().zip(accesses).map(|(tensor, access)| access.is_written().then_some(tensor)).collect()
}
