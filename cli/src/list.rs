//! `tilewright list`.

use std::time::SystemTime;

use serde::Serialize;
use tilewright::tuning::report::{Peak, Series, Table, duration};

use crate::arguments::List;
use crate::records::open_all;
use crate::words::{age, percent};
use crate::{Failure, Outcome};

/// One kernel at one shape on one machine, for other programs.
#[derive(Serialize)]
struct Entry<'a> {
    kernel: &'a str,
    program: String,
    shape: String,
    target: String,
    cpu: &'a str,
    best_ns: Option<f64>,
    confirmed: bool,
    spread: Option<f64>,
    max_rel_err: Option<f64>,
    default_ns: Option<f64>,
    gflops: Option<f64>,
    share_of_peak: Option<f64>,
    trials: usize,
    failed: u64,
    /// Seconds since 1970.
    time: u64,
}

pub(crate) fn run(options: &List) -> Outcome {
    let database = open_all(&options.paths)?;
    let series = Series::of_records(&database, Peak::Recorded);
    if options.json {
        let entries: Vec<Entry<'_>> = series.iter().map(entry).collect();
        return Ok(serde_json::to_string_pretty(&entries).map_err(Failure::new)? + "\n");
    }
    if series.is_empty() {
        return Ok("no records\n".to_owned());
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(table(&series, now))
}

fn entry(series: &Series) -> Entry<'_> {
    let best = series.best();
    Entry {
        kernel: &series.kernel,
        program: format!("{:016x}", series.program),
        shape: series.shape.to_string(),
        target: series.target.to_string(),
        cpu: &series.cpu,
        best_ns: best.map(|seconds| seconds * 1e9),
        confirmed: series.is_confirmed(),
        spread: series.spread(),
        max_rel_err: series.error(),
        default_ns: series.default_time().map(|seconds| seconds * 1e9),
        gflops: best.and_then(|best| series.gflops(best)),
        share_of_peak: best.and_then(|best| series.share_of_peak(best)),
        trials: series.trial_count(),
        failed: series.failed(),
        time: series.last_time,
    }
}

fn table(series: &[Series], now: u64) -> String {
    let heading =
        ["kernel", "threads", "best", "spread", "confirmed", "GFLOP/s", "of peak", "trials", "failed", "age"];
    let mut table = Table::new(&heading);
    let dash = || "–".to_owned();
    for one in series {
        let best = one.best();
        table.row([
            one.title(),
            one.target.threads.to_string(),
            best.map_or_else(dash, duration),
            one.spread().map_or_else(dash, percent),
            if one.is_confirmed() { "yes" } else { "no" }.to_owned(),
            best.and_then(|best| one.gflops(best)).map_or_else(dash, |gflops| format!("{gflops:.1}")),
            best.and_then(|best| one.share_of_peak(best))
                .map_or_else(dash, |share| format!("{:.0} %", 100.0 * share)),
            one.trial_count().to_string(),
            one.failed().to_string(),
            age(one.last_time, now),
        ]);
    }
    table.to_string()
}
