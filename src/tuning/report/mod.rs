//! Records for people: a table, a histogram of refusals, a page with pictures.
//!
//! Everything comes from the records alone, so that a report can be made at any time, of kernels that were
//! tuned in different runs.

#[cfg(feature = "report")]
mod html;
mod reasons;
#[cfg(feature = "report")]
mod refusals;
#[cfg(feature = "report")]
mod rules;
mod series;
#[cfg(feature = "report")]
mod svg;
mod table;

use std::collections::BTreeMap;
#[cfg(feature = "report")]
use std::path::Path;

pub use series::{Peak, Series, Trial};
pub use table::Table;

#[cfg(feature = "report")]
use super::TuneError;

/// One row for each series: times of the default and of the best schedule, and how good the best one is.
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
            one.trial_count().to_string(),
            or_dash(default.map(duration)),
            or_dash(best.map(duration)),
            or_dash(default.zip(best).map(|(default, best)| format!("{:.2} ×", default / best))),
            or_dash(best.and_then(|best| one.gflops(best)).map(|gflops| format!("{gflops:.1}"))),
            or_dash(best.and_then(|best| one.share(best)).map(|share| share.to_string())),
            or_dash(one.error().map(|error| format!("{error:.1e}"))),
        ]);
    }
    table
}

/// Writes a self-contained page: the share of the peak of each kernel, the course of its tuning, why candidates
/// were refused, how well the cost model ranked them, and which rules made the best.
///
/// # Errors
/// [`TuneError::Report`] when the file cannot be written.
#[cfg(feature = "report")]
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
    /// The length of a full bar.
    const WIDTH: f64 = 20.0;
    let total: u64 = rejected.values().sum();
    if total == 0 {
        return format!("  {generated} candidates generated, none refused");
    }
    let mut reasons: Vec<(&String, u64)> = rejected.iter().map(|(reason, count)| (reason, *count)).collect();
    reasons.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), reason.as_str()));
    let width = WIDTH as usize;
    let widest = reasons.iter().map(|(reason, _)| reason.chars().count()).max().unwrap_or(0);
    let mut text = format!("  {generated} candidates generated, {total} refused:");
    for (reason, count) in reasons {
        let share = count as f64 / total as f64;
        let bar = "█".repeat(((share * WIDTH).round() as usize).max(1));
        let meaning = reasons::meaning(reason);
        text.push_str(format!("\n    {reason:<widest$}  {count:>7}  {bar:<width$}  {meaning}").trim_end());
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
        assert!(lines[1].starts_with("    registers        9  ███") && lines[1].ends_with('█'), "{text}");
        assert!(lines[2].starts_with("    crash            1  █"), "{text}");
        assert!(lines[2].ends_with("  the process that ran it died"), "{text}");
    }
}
