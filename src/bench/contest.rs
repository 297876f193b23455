//! Schedules of one kernel at one shape, side by side.

use tilewright_core::schedule::Trace;
use tilewright_core::tensor::AnyTensor;
use tilewright_measure::subject::{Subject, SubjectOptions};
use tilewright_runtime::code::Compiled;
use tilewright_runtime::devices;

use super::comparison::{Checked, Effort, Sampled, measure_alternately};
use crate::kernel::Kernel;
use crate::settings;
use crate::tuning::TuneError;

/// A kernel at a shape, compiled with several schedules. The winners of different searches, for example, were timed in
/// different minutes, so that their times do not compare.
pub struct Contest {
    kernel: &'static Kernel,
    subject: Subject,
    executables: Vec<Compiled>,
    tensors: Vec<AnyTensor>,
}

impl Contest {
    /// Compiles a kernel with each of the traces, for as many threads as kernels use. The definition runs once for the
    /// expected results.
    ///
    /// # Errors
    /// When the dimensions do not fit, or a trace cannot be replayed and compiled.
    pub fn new(kernel: &'static Kernel, dims: &[(&str, i64)], traces: &[&Trace]) -> Result<Self, TuneError> {
        let values = kernel.dims_by_name(dims)?;
        let options = SubjectOptions { seed: 1, threads: settings::threads()?, cache: None };
        let subject = Subject::new(kernel, &values, devices::default_device()?, &options)?;
        let texts: Vec<String> = traces.iter().map(ToString::to_string).collect();
        let executables: Result<Vec<_>, _> = subject.compile(&texts).into_iter().collect();
        let executables = executables.map_err(|failure| TuneError::Variant {
            kernel: kernel.name().to_owned(),
            problem: failure.message,
        })?;
        let tensors = subject.arguments();
        Ok(Contest { kernel, subject, executables, tensors })
    }

    /// Runs each schedule once and compares its results with those of the definition.
    ///
    /// # Errors
    /// When an error is beyond what another order of summation explains.
    pub fn check(&mut self) -> Result<Vec<Checked>, TuneError> {
        let mut checked = Vec::new();
        for number in 0..self.executables.len() {
            self.subject.reset(&mut self.tensors);
            let duration = self.run(number, 1)?;
            let max_rel_err =
                self.subject.check(&self.tensors).map_err(|failure| self.problem(failure.message))?;
            checked.push(Checked { max_rel_err, duration });
        }
        Ok(checked)
    }

    /// Measures all schedules alternately, so that disturbances of the machine affect them alike.
    ///
    /// # Errors
    /// When a run fails.
    pub fn measure(&mut self, effort: &Effort) -> Result<Vec<Sampled>, TuneError> {
        measure_alternately(self.executables.len(), effort, |number, repetitions| {
            self.run(number, repetitions)
        })
    }

    fn run(&mut self, number: usize, repetitions: u64) -> Result<std::time::Duration, TuneError> {
        if self.subject.updates_in_place() {
            self.subject.reset(&mut self.tensors);
        }
        let ran = self.subject.run(&self.executables[number], &mut self.tensors, repetitions);
        ran.map_err(|failure| self.problem(failure.message))
    }

    fn problem(&self, problem: String) -> TuneError {
        TuneError::Variant { kernel: self.kernel.name().to_owned(), problem }
    }
}

impl std::fmt::Debug for Contest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contest").field("kernel", &self.kernel.name()).finish_non_exhaustive()
    }
}
