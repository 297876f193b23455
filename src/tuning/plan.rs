//! The decisions before the first measurement of a kernel at a shape, and the results of its search.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tilewright_core::device::Device;
use tilewright_core::program::Program;
use tilewright_core::target::{RunOptions, TargetKind};
use tilewright_measure::count::{count_bytes, count_flops, count_needed_flops};
use tilewright_measure::isolation::protocol::{Setup, Source};
use tilewright_measure::isolation::{memory_limit, worker};
use tilewright_measure::peak::peak_of;
use tilewright_measure::roofline::bandwidth_for;
use tilewright_measure::subject::Oracle;
use tilewright_runtime::devices;
use tilewright_search::candidate::Candidate;
use tilewright_search::records::{CacheState, Record, Shape, TunedFor};
use tilewright_search::rule::RuleSet;
use tilewright_search::spec::SearchSpec;
use tilewright_search::tuner::{Runner, Task, TuneResult};

use super::{Isolation, TuneError, Tuner};
use crate::kernel::{self, Kernel};
use crate::settings;

/// All decisions before the first measurement.
pub(crate) struct Plan {
    pub(super) title: String,
    pub(super) name: String,
    pub(super) path: String,
    /// The unscheduled program with symbolic dimensions, and its hash.
    pub(super) definition: Program,
    pub(super) hash: u64,
    pub(super) shape: Shape,
    pub(super) task: Task,
    /// The device that it is tuned on.
    pub(super) device: Arc<dyn Device>,
    /// Its name, by which a measuring process finds it.
    pub(super) device_name: String,
    pub(super) dims: Vec<i64>,
    pub(super) spec: SearchSpec,
    pub(super) threads: usize,
    pub(super) seed: u64,
    /// Where the operands of measured runs are.
    pub(super) cache: CacheState,
    /// The most measurements, those of earlier runs included.
    pub(super) trials: Option<usize>,
    pub(super) stops_when_converged: bool,
    pub(super) time_limit: Option<Duration>,
    /// The arithmetic operations of one run.
    pub(super) flops: f64,
    /// The operations that no schedule leaves out, as far as they are known.
    pub(super) needed_flops: Option<f64>,
    /// The bytes that one run must move.
    pub(super) bytes: f64,
    pub(super) peak_gflops: Option<f64>,
    /// Computes the expected results of a kernel that is not written in Rust.
    pub(super) oracle: Option<Oracle>,
    pub(super) is_isolated: bool,
}

impl Tuner {
    /// Plans the tuning of a kernel at a shape.
    pub(super) fn plan(&self, kernel: &Kernel, dims: &[(&str, i64)]) -> Result<Plan, TuneError> {
        let dims = kernel.dims_by_name(dims)?;
        let program = kernel.program_for(&dims)?;
        let threads = match self.threads {
            Some(threads) => threads,
            None => settings::threads()?,
        };
        let device = devices::device(self.device)?;
        let context = devices::run_context_of(self.device)?.with_threads(threads);
        let kind = context.target.kind();
        let rules = match &self.rules {
            Some(rules) => rules.clone(),
            None => RuleSet::registered(kind)?,
        };
        let mut spec = SearchSpec::new(kind, rules);
        if let Some(mutators) = &self.mutators {
            spec.mutators = mutators.clone();
        }
        if let Some(postprocessors) = &self.postprocessors {
            spec.postprocessors = postprocessors.clone();
        }
        let path = kernel.path();
        // A measuring process finds a kernel by its name, or is given the program.
        let oracle = if kernel.definition().is_some() { None } else { Some(Oracle::of(&program)?) };
        let is_known = oracle.is_some() || kernel::kernel(&path).is_ok();
        let peak_gflops = peak_of(&program, &*device, RunOptions::with_threads(threads), None);
        Ok(Plan {
            title: match self.cache {
                CacheState::Warm => format!("{}[{}]", kernel.name(), kernel.shape(&dims)),
                CacheState::Cold => format!("{}[{}], cold caches", kernel.name(), kernel.shape(&dims)),
            },
            name: kernel.name().to_owned(),
            path,
            definition: kernel.program()?.clone(),
            hash: kernel.hash()?,
            shape: kernel.shape(&dims),
            flops: count_flops(&program),
            needed_flops: count_needed_flops(&program),
            bytes: count_bytes(&program),
            peak_gflops,
            oracle,
            device,
            device_name: devices::name(self.device)?,
            task: Task { id: program.stable_hash(), program, context },
            dims,
            spec,
            threads,
            seed: self.seed,
            cache: self.cache,
            trials: self.trials,
            stops_when_converged: false,
            time_limit: self.time_limit,
            is_isolated: self.isolation == Isolation::Automatic && worker::is_initialised() && is_known,
        })
    }
}

impl Plan {
    pub(super) fn tuned_for(&self) -> TunedFor {
        TunedFor::of(&self.task.context)
    }

    pub(super) fn setup(&self, cache: &Path) -> Result<Setup, TuneError> {
        let shape = &self.shape;
        let dims = shape.dims.iter().chain(&shape.params);
        let of = match self.oracle {
            Some(oracle) => Source::Program { text: self.task.program.to_string(), oracle },
            None => Source::Kernel {
                kernel: self.path.clone(),
                program: format!("{:016x}", self.hash),
                dims: dims.map(|(name, value)| (name.clone(), *value)).collect(),
            },
        };
        Ok(Setup {
            of,
            device: self.device_name.clone(),
            threads: self.threads,
            seed: self.seed,
            cache: Some(cache.to_owned()),
            memory: match self.device.target().kind() {
                TargetKind::Cpu => memory_limit(),
                // A GPU's driver maps many times the memory of the machine, which the limit would count.
                TargetKind::Gpu => u64::MAX,
            },
            cold: self.cache == CacheState::Cold,
        })
    }

    /// The peak that the program could reach, in GFLOP/s; a peak below `reached` is measured again.
    pub(super) fn peak(&self, reached: Option<f64>) -> Option<f64> {
        let options = RunOptions::with_threads(self.threads);
        peak_of(&self.task.program, &*self.device, options, reached)
    }

    /// The bandwidth of memory, in 10⁹ bytes per second, where it may bound the program.
    pub(super) fn peak_bandwidth(&self) -> Option<f64> {
        bandwidth_for(self.flops, self.bytes, &self.device, RunOptions::with_threads(self.threads))
    }

    /// The rules that made the design space of a record and are not built in.
    pub(super) fn user_rules(&self, record: &Record) -> Vec<String> {
        let rules = self.spec.rules.rules();
        let is_of_user =
            |name: &&String| rules.iter().any(|rule| rule.name == name.as_str() && !rule.is_built_in());
        record.provenance.rules.iter().flatten().filter(is_of_user).cloned().collect()
    }

    /// The least time of any schedule, in seconds, as far as it is known now: where the machine was slow when the
    /// plan was made, its measured peak is higher later.
    pub(super) fn roofline_seconds(&self) -> Option<f64> {
        let needed = self.needed_flops?;
        let peak = self.peak(None)?;
        Some(needed / (peak * 1e9))
    }
}

/// The result of a search.
pub(crate) struct Found {
    pub(super) default_seconds: Option<f64>,
    pub(super) result: TuneResult,
}

impl Found {
    /// Compares the best schedule and the default one alternately, since times from different minutes do not
    /// compare. If the default is faster after all, it becomes the result.
    pub(super) fn compare_with_default(&mut self, default: Candidate, runner: &mut dyn Runner) {
        let result = &mut self.result;
        let Some((best, seconds)) = &mut result.best else { return };
        if best.trace == default.trace {
            self.default_seconds = Some(*seconds);
            return;
        }
        if self.default_seconds.is_none() {
            return;
        }
        let Some((best_seconds, default_seconds)) = runner.compare(best, &default) else {
            result.confirmed.clear();
            return;
        };
        *seconds = best_seconds.min(default_seconds);
        self.default_seconds = Some(default_seconds);
        if let Some(first) = result.confirmed.first_mut() {
            first.1 = best_seconds;
        }
        result.confirmed.retain(|(candidate, _)| candidate.trace != default.trace);
        let place = usize::from(default_seconds >= best_seconds).min(result.confirmed.len());
        if !result.confirmed.is_empty() {
            result.confirmed.insert(place, (default.clone(), default_seconds));
        }
        if default_seconds < best_seconds {
            *best = default;
        }
    }
}
