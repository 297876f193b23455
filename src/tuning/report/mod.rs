//! What records say, for people: a table, a histogram of refusals, a page with pictures.
//!
//! Everything is made from the records alone, so that a report can be made at any time, of kernels that were
//! tuned in different runs.

mod html;
mod svg;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tilewright_core::target::Target;
use tilewright_search::database::{Database, Measurement, Outcome, Record, Shape, TunedFor};

pub use table::Table;

use super::peak::{peak_of, percent_of_peak};
use super::{TuneError, count_flops};
use crate::kernel::kernels;

/// The trials of one kernel at one shape on one kind of machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The kernel's name.
    pub kernel: String,
    /// The shape.
    pub shape: Shape,
    /// The machine, as far as it matters.
    pub target: TunedFor,
    /// The CPU's name.
    pub cpu: String,
    /// The time of each trial in seconds, `None` for one that failed, in the order in which they were made. The
    /// first is that of the default schedule.
    pub trials: Vec<Option<f64>>,
    /// The time, in seconds, of the schedule that won the last comparison at the end of a run.
    pub confirmed: Option<f64>,
    /// The greatest error of the best schedule, relative to the largest magnitude of the reference's results.
    pub error: Option<f64>,
    /// Failed trials by reason.
    pub failures: BTreeMap<String, u64>,
    /// The arithmetic operations of one run; `None` when the kernel is not part of this program.
    pub flops: Option<f64>,
    /// Operations per second that this machine reaches at most, in 10⁹, where known.
    pub peak_gflops: Option<f64>,
}

impl Series {
    /// The trials in a database, by kernel, shape and machine. Peaks are those of the running machine, with the vector
    /// width of `target`.
    pub fn of_records(database: &Database, target: &Target) -> Vec<Series> {
        let mut groups: BTreeMap<(String, Shape, TunedFor, u64), Vec<&Record>> = BTreeMap::new();
        for record in database.records() {
            let key = (record.kernel.clone(), record.shape.clone(), record.target.clone(), record.program);
            groups.entry(key).or_default().push(record);
        }
        let groups = groups.into_iter();
        groups.map(|((_, _, _, program), records)| series(program, &records, target)).collect()
    }

    /// `matmul[M=64, N=64, K=64]`
    pub fn title(&self) -> String {
        format!("{}[{}]", self.kernel, self.shape)
    }

    /// The best time, in seconds.
    pub fn best(&self) -> Option<f64> {
        self.confirmed.or_else(|| self.trials.iter().copied().flatten().reduce(f64::min))
    }

    /// The time of the default schedule, in seconds.
    pub fn default_time(&self) -> Option<f64> {
        self.trials.first().copied().flatten()
    }

    /// Operations per second, in 10⁹, of a run of some seconds.
    pub fn gflops(&self, seconds: f64) -> Option<f64> {
        self.flops.map(|flops| flops / seconds / 1e9).filter(|&gflops| gflops > 0.0)
    }

    /// The share of the machine's peak that a run of some seconds reaches.
    pub fn share_of_peak(&self, seconds: f64) -> Option<f64> {
        Some(self.gflops(seconds)? / self.peak_gflops?)
    }
}

fn series(program: u64, records: &[&Record], target: &Target) -> Series {
    let first = records[0];
    let mut ordered = records.to_vec();
    ordered.sort_by_key(|record| (record.provenance.time, record.provenance.trial));
    let mut failures: BTreeMap<String, u64> = BTreeMap::new();
    for record in &ordered {
        if let Outcome::Failed(text) = &record.outcome {
            let reason = text.split(':').next().unwrap_or(text);
            *failures.entry(reason.to_owned()).or_default() += 1;
        }
    }
    let fastest = fastest(&ordered);
    let confirmed = fastest.filter(|found| found.is_confirmed).map(|found| found.median_ns * 1e-9);
    let error = fastest.map(|found| found.max_rel_err);
    // What was timed once more in the end was no trial then.
    let mut known = BTreeSet::new();
    ordered.retain(|record| {
        known.insert((record.provenance.seed, record.provenance.trial, record.trace.to_string()))
    });
    let target = Target { cores: first.target.threads, ..target.clone() };
    let bound = kernels().into_iter().find_map(|kernel| {
        if kernel.name() != first.kernel || kernel.hash().ok()? != program {
            return None;
        }
        let shape = first.shape.dims.iter().chain(&first.shape.params);
        let named: Vec<(&str, i64)> = shape.map(|(name, value)| (name.as_str(), *value)).collect();
        kernel.program_for(&kernel.dims_by_name(&named).ok()?).ok()
    });
    let trials: Vec<_> = ordered.iter().map(|record| record.median_ns().map(|ns| ns * 1e-9)).collect();
    let flops = bound.as_ref().map(count_flops);
    let best = confirmed.or_else(|| trials.iter().copied().flatten().reduce(f64::min));
    let reached = flops.zip(best).map(|(flops, seconds)| flops / seconds / 1e9);
    Series {
        kernel: first.kernel.clone(),
        shape: first.shape.clone(),
        target: first.target.clone(),
        cpu: first.provenance.cpu.clone(),
        trials,
        confirmed,
        error,
        failures,
        flops,
        peak_gflops: bound.as_ref().and_then(|program| peak_of(program, &target, reached)),
    }
}

/// The last measurement that a comparison confirmed, or else the fastest one.
fn fastest<'a>(records: &[&'a Record]) -> Option<&'a Measurement> {
    let all = || records.iter().filter_map(|record| record.measurement());
    let confirmed = all().rfind(|found| found.is_confirmed);
    confirmed.or_else(|| all().min_by(|a, b| a.median_ns.total_cmp(&b.median_ns)))
}

/// One row for each series: times of the default and of the best schedule, and how good the latter is.
pub fn table(series: &[Series]) -> Table {
    let mut table = Table::new(&[
        "kernel", "threads", "trials", "default", "best", "speed-up", "GFLOP/s", "share", "error",
    ]);
    for one in series {
        let (best, default) = (one.best(), one.default_time());
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        table.row([
            one.title(),
            one.target.threads.to_string(),
            one.trials.len().to_string(),
            or_dash(default.map(duration)),
            or_dash(best.map(duration)),
            or_dash(default.zip(best).map(|(default, best)| format!("{:.2} ×", default / best))),
            or_dash(best.and_then(|best| one.gflops(best)).map(|gflops| format!("{gflops:.1}"))),
            or_dash(best.and_then(|best| one.share_of_peak(best)).map(percent_of_peak)),
            or_dash(one.error.map(|error| format!("{error:.1e}"))),
        ]);
    }
    table
}

/// Writes a page that needs nothing beside itself: the share of the peak of each kernel, and the course of its tuning.
///
/// # Errors
/// [`TuneError::Report`] when the file cannot be written.
pub fn write_html(path: &Path, series: &[Series]) -> Result<(), TuneError> {
    let failed = |source| TuneError::Report { path: path.to_owned(), source };
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    std::fs::write(path, html::page(series)).map_err(failed)
}

/// A duration given in seconds, with three digits: `12.3 µs`.
pub fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// Why candidates were refused, most frequent first, as bars.
pub fn histogram(generated: u64, rejected: &BTreeMap<String, u64>) -> String {
    /// The length of a bar for everything.
    const WIDTH: f64 = 30.0;
    let total: u64 = rejected.values().sum();
    if total == 0 {
        return format!("  {generated} candidates generated, none refused");
    }
    let mut reasons: Vec<(&String, u64)> = rejected.iter().map(|(reason, count)| (reason, *count)).collect();
    reasons.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), reason.as_str()));
    let widest = reasons.iter().map(|(reason, _)| reason.chars().count()).max().unwrap_or(0);
    let mut text = format!("  {generated} candidates generated, {total} refused:");
    for (reason, count) in reasons {
        let share = count as f64 / total as f64;
        let bar = "█".repeat(((share * WIDTH).round() as usize).max(1));
        text.push_str(&format!("\n    {reason:<widest$}  {count:>7}  {bar}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        let cases = [
            (1.234e-9, "1.23 ns"),
            (999.6e-9, "1000 ns"),
            (12.345e-6, "12.3 µs"),
            (0.1234, "123 ms"),
            (12.0, "12.0 s"),
            (123.4, "123 s"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn refusals_are_ordered_by_frequency() {
        let rejected = BTreeMap::from([("crash".to_owned(), 1), ("registers".to_owned(), 9)]);
        let text = histogram(20, &rejected);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  20 candidates generated, 10 refused:");
        assert!(lines[1].starts_with("    registers        9  ███"), "{text}");
        assert!(lines[2].starts_with("    crash            1  █"), "{text}");
    }
}
