//! The three ways of running a kernel, side by side: as its definition, with the default schedule, tuned.

use std::path::Path;
use std::time::{Duration, Instant};

use tilewright_core::tensor::AnyTensor;
use tilewright_measure::subject::{Subject, SubjectOptions};
use tilewright_runtime::code::Compiled;
use tilewright_runtime::devices::{self, DeviceId};
use tilewright_search::records::CacheState;
use tilewright_search::schedule_by_default;

use crate::background;
use crate::kernel::{Explanation, Kernel, Source, explain_on};
use crate::settings;
use crate::tuning::{TuneError, count_flops};

/// A way of running a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// The definition as ordinary Rust, on one thread.
    Reference,
    /// Compiled with the schedule that needs no tuning.
    Default,
    /// Compiled with the schedule that a call would use: that of the records, where there is one.
    Tuned,
}

impl Variant {
    /// Every variant.
    pub const ALL: [Variant; 3] = [Variant::Reference, Variant::Default, Variant::Tuned];

    /// `reference`, `default` or `tuned`.
    pub const fn name(self) -> &'static str {
        match self {
            Variant::Reference => "reference",
            Variant::Default => "default",
            Variant::Tuned => "tuned",
        }
    }
}

/// The time of a run, from several samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// The median, in nanoseconds.
    pub median_ns: f64,
    /// The median of the faster half, in nanoseconds: disturbances only ever add time.
    pub clean_ns: f64,
    /// The fastest sample, in nanoseconds.
    pub min_ns: f64,
    /// The distance of the quartiles over the median.
    pub spread: f64,
}

/// A run whose results are right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checked {
    /// The greatest error relative to the largest magnitude of the reference's results.
    pub max_rel_err: f64,
    /// How long the run took; caches were cold.
    pub duration: Duration,
}

/// The effort of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Most samples.
    pub samples: usize,
    /// A sample consists of as many runs as last this long, at least one.
    pub sample: Duration,
    /// After this long no further sample is begun, once there are three.
    pub budget: Duration,
}

impl Default for Effort {
    fn default() -> Self {
        Effort { samples: 31, sample: Duration::from_millis(10), budget: Duration::from_secs(2) }
    }
}

/// A kernel at a shape, compiled with the default schedule and with the one that calls use.
pub struct Comparison {
    kernel: &'static Kernel,
    dims: Vec<i64>,
    subject: Subject,
    traces: [String; 2],
    executables: [Compiled; 2],
    tensors: Vec<AnyTensor>,
    source: Source,
    notes: Vec<String>,
    flops: f64,
}

impl Comparison {
    /// Compiles a kernel for as many threads as kernels use. The definition runs once for the expected results; `cache`
    /// is a directory that keeps them.
    ///
    /// # Errors
    /// When the dimensions do not fit, or it cannot be compiled.
    pub fn new(
        kernel: &'static Kernel,
        dims: &[(&str, i64)],
        cache: Option<&Path>,
    ) -> Result<Self, TuneError> {
        Self::on(DeviceId::DEFAULT, kernel, dims, cache)
    }

    /// As [`Comparison::new`], on any device.
    ///
    /// # Errors
    /// As [`Comparison::new`], and when the device cannot be opened.
    pub fn on(
        device: DeviceId,
        kernel: &'static Kernel,
        dims: &[(&str, i64)],
        cache: Option<&Path>,
    ) -> Result<Self, TuneError> {
        let Explanation { trace, source, notes, .. } = explain_on(kernel, device, dims)?;
        let threads = settings::threads()?;
        let context = devices::run_context_of(device)?;
        let device = devices::device(device)?;
        let values = kernel.dims_by_name(dims)?;
        let options = SubjectOptions { seed: 1, threads, cache: cache.map(Path::to_owned) };
        let subject = Subject::new(kernel, &values, device, &options)?;
        let default = schedule_by_default(subject.program(), context).trace().to_string();
        let traces = [default, trace.to_string()];
        let executables: Result<Vec<_>, _> = subject.compile(&traces).into_iter().collect();
        let executables = executables.map_err(|failure| TuneError::Variant {
            kernel: kernel.name().to_owned(),
            problem: failure.message,
        })?;
        let Ok(executables) = executables.try_into() else { unreachable!("one for each trace") };
        let (flops, tensors) = (count_flops(subject.program()), subject.arguments());
        Ok(Comparison { kernel, dims: values, subject, traces, executables, tensors, source, notes, flops })
    }

    /// Sets where the operands of measured runs are: in the caches, unless this says otherwise. The reference always runs warm.
    pub fn set_cache(&mut self, cache: CacheState) {
        self.subject.set_cache(cache);
    }

    /// `matmul[M=64, N=64, K=64]`
    pub fn title(&self) -> String {
        format!("{}[{}]", self.kernel.name(), self.kernel.shape(&self.dims))
    }

    /// Where the schedule of [`Variant::Tuned`] comes from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Why better schedules were not used: records of another GPU, for example.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The arithmetic operations of one run.
    pub fn flops(&self) -> f64 {
        self.flops
    }

    /// Runs a variant `repetitions` times and gives the duration.
    ///
    /// # Errors
    /// When a run fails.
    pub fn run(&mut self, variant: Variant, repetitions: u64) -> Result<Duration, TuneError> {
        if self.subject.updates_in_place() {
            self.subject.reset(&mut self.tensors);
        }
        let executable = match variant {
            Variant::Reference => {
                let start = Instant::now();
                for _ in 0..repetitions {
                    self.subject.run_reference(self.kernel, &self.dims, &mut self.tensors)?;
                }
                return Ok(start.elapsed());
            }
            Variant::Default => &self.executables[0],
            Variant::Tuned => &self.executables[1],
        };
        self.subject.run(executable, &mut self.tensors, repetitions).map_err(|failure| TuneError::Variant {
            kernel: self.kernel.name().to_owned(),
            problem: failure.message,
        })
    }

    /// Runs a variant once and compares its results with those of the definition.
    ///
    /// # Errors
    /// When the error is beyond what another order of summation explains.
    pub fn check(&mut self, variant: Variant) -> Result<Checked, TuneError> {
        self.subject.reset(&mut self.tensors);
        let duration = self.run(variant, 1)?;
        let checked = self.subject.check(&self.tensors);
        let max_rel_err = checked.map_err(|failure| TuneError::Variant {
            kernel: self.kernel.name().to_owned(),
            problem: failure.message,
        })?;
        Ok(Checked { max_rel_err, duration })
    }

    /// Measures variants alternately, so that disturbances of the machine affect them alike.
    ///
    /// # Errors
    /// As [`Comparison::run`].
    pub fn measure(&mut self, variants: &[Variant], effort: &Effort) -> Result<Vec<Sampled>, TuneError> {
        measure_alternately(variants.len(), effort, |number, repetitions| {
            self.run(variants[number], repetitions)
        })
    }

    /// The median time of compiling a variant, from its trace to machine code, in seconds.
    ///
    /// # Errors
    /// When it cannot be compiled.
    pub fn compile_seconds(&self, variant: Variant) -> Result<f64, TuneError> {
        /// Enough for a median.
        const SAMPLES: usize = 11;
        let trace = match variant {
            Variant::Tuned => &self.traces[1],
            Variant::Reference | Variant::Default => &self.traces[0],
        };
        let mut samples = Vec::new();
        for _ in 0..SAMPLES {
            let start = Instant::now();
            let compiled: Result<Vec<_>, _> =
                self.subject.compile(std::slice::from_ref(trace)).into_iter().collect();
            samples.push(start.elapsed().as_secs_f64() * 1e9);
            compiled.map_err(|failure| TuneError::Variant {
                kernel: self.kernel.name().to_owned(),
                problem: failure.message,
            })?;
        }
        Ok(summarise(&samples).median_ns * 1e-9)
    }
}

/// Measures `count` things alternately. `run` runs one of them, by its number, a number of times and gives the duration.
pub(super) fn measure_alternately(
    count: usize,
    effort: &Effort,
    mut run: impl FnMut(usize, u64) -> Result<Duration, TuneError>,
) -> Result<Vec<Sampled>, TuneError> {
    // Versions for other shapes, which are compiled beside calls, take a core.
    background::finish();
    let mut repetitions = Vec::new();
    for number in 0..count {
        run(number, 1)?;
        let mut runs = 1;
        // Twice, because the first estimate is from few runs.
        for _ in 0..2 {
            let seconds = run(number, runs)?.as_secs_f64() / runs as f64;
            runs = (effort.sample.as_secs_f64() / seconds.max(1e-9)).ceil().clamp(1.0, 1e7) as u64;
            if seconds > effort.sample.as_secs_f64() {
                break;
            }
        }
        repetitions.push(runs);
    }
    let start = Instant::now();
    let mut samples = vec![Vec::new(); count];
    for round in 0..effort.samples {
        if round >= 3 && start.elapsed() > effort.budget * count as u32 {
            break;
        }
        for (number, (&runs, samples)) in repetitions.iter().zip(&mut samples).enumerate() {
            samples.push(run(number, runs)?.as_secs_f64() * 1e9 / runs as f64);
        }
    }
    Ok(samples.into_iter().map(|samples| summarise(&samples)).collect())
}

fn summarise(samples: &[f64]) -> Sampled {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (faster, slower) = (&sorted[..sorted.len().div_ceil(2)], &sorted[sorted.len() / 2..]);
    let median_ns = median_of(&sorted);
    let spread = (median_of(slower) - median_of(faster)) / median_ns;
    Sampled { median_ns, clean_ns: median_of(faster), min_ns: sorted[0], spread }
}

fn median_of(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { (sorted[middle - 1] + sorted[middle]) / 2.0 } else { sorted[middle] }
}

impl std::fmt::Debug for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparison").field("title", &self.title()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_up_by_their_quartiles() {
        let found = summarise(&[8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(found, Sampled { median_ns: 4.5, clean_ns: 2.5, min_ns: 1.0, spread: 4.0 / 4.5 });
        assert_eq!(summarise(&[3.0]), Sampled { median_ns: 3.0, clean_ns: 3.0, min_ns: 3.0, spread: 0.0 });
    }

    #[test]
    fn alternating_measurements_run_in_rounds() {
        let effort = Effort { samples: 2, sample: Duration::from_micros(1), budget: Duration::from_secs(1) };
        let mut order = Vec::new();
        let measured = measure_alternately(3, &effort, |number, runs| {
            order.push(number);
            Ok(Duration::from_micros(1 + number as u64) * runs as u32)
        });
        let medians: Vec<f64> = measured.unwrap().iter().map(|sampled| sampled.median_ns.round()).collect();
        assert_eq!(medians, [1e3, 2e3, 3e3]);
        assert_eq!(order[order.len() - 6..], [0, 1, 2, 0, 1, 2]);
    }
}
