//! The trials of one kernel at one shape on one kind of machine, gathered from records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tilewright_core::device::Device;
use tilewright_core::program::Program;
use tilewright_core::target::RunOptions;
use tilewright_measure::peak::peak_of;
use tilewright_measure::roofline::{Roofline, Share, bandwidth_for};
use tilewright_search::records::{CacheState, Database, Outcome, Record, Run, Shape, TunedFor, best_of};

use super::super::{count_bytes, count_flops, replay};
use crate::kernel::kernels;

/// The source of a machine's peak.
#[derive(Clone, Copy)]
pub enum Peak<'a> {
    /// Records of tuning runs: the same records give the same report everywhere.
    Recorded,
    /// A measurement of this device.
    Measured(&'a Arc<dyn Device>),
}

/// The trials of one kernel at one shape on one kind of machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The kernel's name.
    pub kernel: String,
    /// The hash of its program.
    pub program: u64,
    /// The shape.
    pub shape: Shape,
    /// The machine, in the terms that records state.
    pub target: TunedFor,
    /// Where the operands of runs were.
    pub cache: CacheState,
    /// The CPU's name.
    pub cpu: String,
    /// The trials, in the order in which they were made.
    pub trials: Vec<Trial>,
    /// The first in the order of records, which calls use.
    pub winner: Option<Record>,
    /// Failed trials by reason.
    pub failures: BTreeMap<String, u64>,
    /// The tuning runs, in their order.
    pub runs: Vec<Run>,
    /// When the last record was made, in seconds since 1970.
    pub last_time: u64,
    /// The arithmetic operations of one run; `None` when unknown.
    pub flops: Option<f64>,
    /// The bytes that one run must move; `None` when unknown.
    pub bytes: Option<f64>,
    /// The greatest speed of the machine, in 10⁹ operations per second, where known.
    pub peak_gflops: Option<f64>,
    /// Bytes per second that go to and from memory at most, in 10⁹, where known.
    pub peak_bandwidth: Option<f64>,
}

/// One trial of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// Its number in the search, from 0; that of the default schedule is 0.
    pub number: u64,
    /// The time in seconds, `None` when it failed.
    pub seconds: Option<f64>,
    /// The cost model's score before it was measured.
    pub predicted: Option<f32>,
    /// The rules that generated its design space, where they are known.
    pub rules: Option<Vec<String>>,
}

impl Series {
    /// The trials in a database, by kernel, shape and machine.
    pub fn of_records(database: &Database, peak: Peak<'_>) -> Vec<Series> {
        let mut groups: BTreeMap<(String, Shape, TunedFor, u64, CacheState), Vec<&Record>> = BTreeMap::new();
        for record in database.records() {
            let (kernel, shape, target) =
                (record.kernel.clone(), record.shape.clone(), record.target.clone());
            groups
                .entry((kernel, shape, target, record.program, record.provenance.cache))
                .or_default()
                .push(record);
        }
        groups.into_values().map(|records| series(database, &records, peak)).collect()
    }

    /// `matmul[M=64, N=64, K=64]`, with a remark where the caches were cold.
    pub fn title(&self) -> String {
        match self.cache {
            CacheState::Warm => format!("{}[{}]", self.kernel, self.shape),
            CacheState::Cold => format!("{}[{}], cold caches", self.kernel, self.shape),
        }
    }

    /// The best time, in seconds.
    pub fn best(&self) -> Option<f64> {
        self.winner.as_ref().and_then(Record::median_ns).map(|ns| ns * 1e-9)
    }

    /// Whether the best schedule won a comparison at the end of a run.
    pub fn is_confirmed(&self) -> bool {
        self.winner.as_ref().and_then(Record::measurement).is_some_and(|found| found.is_confirmed)
    }

    /// The distance of the quartiles of the best schedule's times, as a share of their median.
    pub fn spread(&self) -> Option<f64> {
        Some(self.winner.as_ref()?.measurement()?.spread)
    }

    /// The greatest error of the best schedule, relative to the largest magnitude of the reference's results.
    pub fn error(&self) -> Option<f64> {
        Some(self.winner.as_ref()?.measurement()?.max_rel_err)
    }

    /// The time of the default schedule, in seconds: from the last comparison with the best schedule, or
    /// else from its own measurement.
    pub fn default_time(&self) -> Option<f64> {
        let compared = self.runs.iter().rev().find_map(|run| run.default_ns).map(|ns| ns * 1e-9);
        let first = || self.trials.first().filter(|trial| trial.number == 0);
        compared.or_else(|| first().and_then(|trial| trial.seconds))
    }

    /// The number of trials, including those whose records have been dropped, as far as the others tell.
    pub fn trial_count(&self) -> usize {
        let last = self.trials.iter().map(|trial| trial.number + 1).max().unwrap_or(0);
        let of_runs = self.runs.iter().map(|run| run.earlier.saturating_add(run.trials)).max().unwrap_or(0);
        (last.max(of_runs) as usize).max(self.trials.len())
    }

    /// How many trials failed.
    pub fn failed(&self) -> u64 {
        let of_runs = self.runs.iter().flat_map(|run| run.failed.values());
        let of_runs = of_runs.fold(0, |sum: u64, count| sum.saturating_add(*count));
        self.failures.values().sum::<u64>().max(of_runs)
    }

    /// Operations per second, in 10⁹, of a run of some seconds.
    pub fn gflops(&self, seconds: f64) -> Option<f64> {
        self.flops.map(|flops| flops / seconds / 1e9).filter(|&gflops| gflops > 0.0)
    }

    /// Bytes per second, in 10⁹, that a run of some seconds moves at least.
    pub fn bandwidth(&self, seconds: f64) -> Option<f64> {
        self.bytes.map(|bytes| bytes / seconds / 1e9).filter(|&bandwidth| bandwidth > 0.0)
    }

    /// The share that a run of some seconds reaches of the limit of the machine that bounds the kernel.
    pub fn share(&self, seconds: f64) -> Option<Share> {
        let machine = Roofline { gflops: self.peak_gflops, bandwidth: self.peak_bandwidth };
        machine.share(self.flops?, self.bytes.unwrap_or(0.0), seconds)
    }

    /// The share of the machine's peak that a run of some seconds reaches.
    pub fn share_of_peak(&self, seconds: f64) -> Option<f64> {
        Some(self.gflops(seconds)? / self.peak_gflops?)
    }
}

fn series(database: &Database, records: &[&Record], peak: Peak<'_>) -> Series {
    let first = records[0];
    let mut ordered = records.to_vec();
    ordered.sort_by_key(|record| (record.provenance.time, record.provenance.trial));
    let winner = best_of(records).cloned();
    let last_time = ordered.last().map_or(0, |record| record.provenance.time);
    // A schedule that was timed once more at the end was no trial then.
    let mut known = BTreeSet::new();
    ordered.retain(|record| {
        known.insert((record.provenance.seed, record.provenance.trial, record.trace.to_string()))
    });
    let mut failures: BTreeMap<String, u64> = BTreeMap::new();
    for record in &ordered {
        if let Outcome::Failed(text) = &record.outcome {
            let reason = text.split(':').next().unwrap_or(text);
            *failures.entry(reason.to_owned()).or_default() += 1;
        }
    }
    let is_own = |run: &&Run| {
        (run.program, &run.shape, &run.target) == (first.program, &first.shape, &first.target)
            && run.cache == first.provenance.cache
    };
    let runs: Vec<Run> = database.runs().iter().filter(is_own).cloned().collect();
    let bound = bound(database, first);
    let of_runs = |value: fn(&Run) -> f64| runs.last().map(value);
    let mut series = Series {
        kernel: first.kernel.clone(),
        program: first.program,
        shape: first.shape.clone(),
        target: first.target.clone(),
        cache: first.provenance.cache,
        cpu: first.provenance.cpu.clone(),
        trials: ordered.iter().map(|record| trial(record)).collect(),
        winner,
        failures,
        last_time,
        flops: bound.as_ref().map(count_flops).or_else(|| of_runs(|run| run.flops)),
        bytes: bound.as_ref().map(count_bytes).or_else(|| of_runs(|run| run.bytes)),
        peak_gflops: None,
        peak_bandwidth: None,
        runs,
    };
    let recorded = |value: fn(&Run) -> Option<f64>| series.runs.iter().filter_map(value).reduce(f64::max);
    (series.peak_gflops, series.peak_bandwidth) = match peak {
        Peak::Recorded => (recorded(|run| run.peak_gflops), recorded(|run| run.peak_bandwidth)),
        Peak::Measured(device) => {
            let options = RunOptions::with_threads(series.target.threads as usize);
            let reached = series.best().and_then(|best| series.gflops(best));
            let gflops = bound.as_ref().and_then(|program| peak_of(program, &**device, options, reached));
            let (flops, bytes) = (series.flops.unwrap_or(0.0), series.bytes.unwrap_or(0.0));
            (gflops, bandwidth_for(flops, bytes, device, options))
        }
    };
    series
}

fn trial(record: &Record) -> Trial {
    Trial {
        number: record.provenance.trial,
        seconds: record.median_ns().map(|ns| ns * 1e-9),
        predicted: record.provenance.predicted,
        rules: record.provenance.rules.clone(),
    }
}

/// The program of a record at its shape: from the line beside it, or from a kernel of this program.
fn bound(database: &Database, record: &Record) -> Option<Program> {
    if let Some(program) = database.program(record.program) {
        return replay::bind(program, &record.shape).ok();
    }
    kernels().into_iter().find_map(|kernel| {
        if kernel.name() != record.kernel || kernel.hash().ok()? != record.program {
            return None;
        }
        let shape = record.shape.dims.iter().chain(&record.shape.params);
        let named: Vec<(&str, i64)> = shape.map(|(name, value)| (name.as_str(), *value)).collect();
        kernel.program_for(&kernel.dims_by_name(&named).ok()?).ok()
    })
}
