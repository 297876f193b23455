//! The result of each task of a run: none is left out silently.

use std::fmt;

use super::report::{Table, duration};
use super::{TuneError, Tuned};

/// One task of a run, and the result of tuning it.
#[derive(Debug)]
pub struct Covered {
    /// The kernel and its shape: `matmul[M=64, N=64, K=64]`.
    pub title: String,
    /// The best schedule, or the reason why there is none.
    pub result: Result<Tuned, TuneError>,
}

/// Every task of a run, in the order in which they were given. Prints as a table.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Coverage {
    /// The tasks.
    pub tasks: Vec<Covered>,
}

impl Coverage {
    /// The tasks without any measurement: calls use a default schedule, or fit the nearest record.
    pub fn left_out(&self) -> impl Iterator<Item = &Covered> {
        self.tasks.iter().filter(|task| task.result.as_ref().map_or(true, |tuned| tuned.record.is_none()))
    }

    /// Measurements made, of all tasks.
    pub fn trials(&self) -> usize {
        self.tasks.iter().filter_map(|task| task.result.as_ref().ok()).map(|tuned| tuned.trials).sum()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = ["task", "trials", "best", "share", "× default", "ended because", "forecast"];
        let mut table = Table::new(&heading);
        let dash = || "–".to_owned();
        for task in &self.tasks {
            let cells = match &task.result {
                Err(error) => [dash(), dash(), dash(), dash(), error.to_string(), dash()],
                Ok(tuned) => [
                    match tuned.earlier_trials {
                        0 => tuned.trials.to_string(),
                        earlier => format!("{} + {earlier}", tuned.trials),
                    },
                    tuned.best_seconds.map_or_else(dash, duration),
                    tuned.share().map_or_else(dash, |share| share.to_string()),
                    tuned.speedup().map_or_else(dash, |speedup| format!("{speedup:.2}")),
                    tuned.end.to_string(),
                    tuned.forecast.map_or_else(dash, |forecast| {
                        format!("{:.0} % for {} more", 100.0 * forecast.chance, forecast.trials)
                    }),
                ],
            };
            table.row(std::iter::once(task.title.clone()).chain(cells));
        }
        write!(f, "{table}")?;
        let left_out: Vec<&str> = self.left_out().map(|task| task.title.as_str()).collect();
        match left_out.len() {
            0 => writeln!(f, "every task was reached; the forecast is the chance of 1 % or more"),
            count => writeln!(f, "{count} without any measurement: {}", left_out.join(", ")),
        }
    }
}
