//! The progress of tuning on a terminal: a bar, or plain lines where there is no terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use tilewright_measure::peak::percent_of_peak;
use tilewright_search::tuner::TrialOutcome;

use super::Tuned;
use super::observer::{Observer, Progress, Started};
use super::report::{duration, histogram};

/// The least time between two lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows the best so far, trials per second and the time left, on the standard error.
#[derive(Default)]
pub(crate) struct ProgressBar {
    bar: Option<indicatif::ProgressBar>,
    title: String,
    /// Whether several kernels and shapes are tuned alternately.
    is_one_of_many: bool,
    trials: usize,
    failures: usize,
    flops: f64,
    peak_gflops: Option<f64>,
    time_limit: Option<Duration>,
    last_line: Option<Instant>,
}

impl ProgressBar {
    /// `best 12.3 µs, 42.6 GFLOP/s, 61 % of peak`
    fn best(&self, best: Option<f64>) -> String {
        let Some(seconds) = best else { return "nothing measured yet".to_owned() };
        let mut text = format!("best {}", duration(seconds));
        let gflops = self.flops / seconds / 1e9;
        if gflops > 0.0 {
            text.push_str(&format!(", {gflops:.1} GFLOP/s"));
            if let Some(peak) = self.peak_gflops {
                text.push_str(&format!(", {}", percent_of_peak(gflops / peak)));
            }
        }
        text
    }

    /// `18.2 trials/s, 3 s left`
    fn pace(&self, progress: &Progress<'_>) -> String {
        let elapsed = progress.elapsed.as_secs_f64().max(1e-9);
        let rate = progress.trial as f64 / elapsed;
        let by_trials = match self.trials {
            usize::MAX => f64::INFINITY,
            trials => trials.saturating_sub(progress.trial) as f64 / rate,
        };
        let by_time = self.time_limit.map_or(f64::INFINITY, |limit| limit.as_secs_f64() - elapsed);
        let left = by_trials.min(by_time).max(0.0);
        let left = if left.is_finite() { format!(", {left:.0} s left") } else { String::new() };
        format!("{rate:.1} trials/s{left}")
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            // Tuning continues if progress cannot be shown.
            None => drop(writeln!(std::io::stderr(), "{text}")),
        }
    }
}

impl Observer for ProgressBar {
    fn started(&mut self, started: &Started<'_>) {
        let is_one_of_many = self.is_one_of_many || self.bar.is_some();
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        *self = ProgressBar {
            is_one_of_many,
            title: started.title.to_owned(),
            trials: started.trials,
            flops: started.flops,
            peak_gflops: started.peak_gflops,
            time_limit: started.time_limit,
            ..ProgressBar::default()
        };
        let earlier = match started.earlier {
            0 => String::new(),
            count => format!(", {count} more are recorded already"),
        };
        let (trials, template) = match self.trials {
            usize::MAX => (String::new(), "{spinner} {pos}  {msg}"),
            trials => (format!(" {trials} trials"), "{bar:28} {pos}/{len}  {msg}"),
        };
        let text = format!("tuning {}:{trials}{earlier}", self.title);
        if std::io::stderr().is_terminal() {
            let bar = match self.trials {
                usize::MAX => indicatif::ProgressBar::no_length(),
                trials => indicatif::ProgressBar::new(trials as u64),
            };
            let style =
                indicatif::ProgressStyle::with_template(template).expect("the template is well formed");
            bar.set_style(style.progress_chars("━━─"));
            bar.enable_steady_tick(Duration::from_millis(200));
            self.bar = Some(bar);
        }
        self.say(&text);
    }

    fn resumed(&mut self, started: &Started<'_>) {
        self.is_one_of_many = true;
        self.title = started.title.to_owned();
        (self.flops, self.peak_gflops) = (started.flops, started.peak_gflops);
    }

    fn note(&mut self, text: &str) {
        self.say(&format!("  {text}"));
    }

    fn measured(&mut self, progress: &Progress<'_>) {
        self.failures += usize::from(matches!(progress.measurement, TrialOutcome::Failed { .. }));
        let failures = if self.failures > 0 { format!(", {} failed", self.failures) } else { String::new() };
        let title = if self.is_one_of_many { format!("{}: ", self.title) } else { String::new() };
        let text = format!("{title}{}  {}{failures}", self.best(progress.best), self.pace(progress));
        match &self.bar {
            Some(bar) => {
                bar.set_position(progress.trial as u64);
                bar.set_message(text);
            }
            None => {
                if self.last_line.is_none_or(|last| last.elapsed() >= LINE_INTERVAL) {
                    let of =
                        if self.trials == usize::MAX { String::new() } else { format!("/{}", self.trials) };
                    self.say(&format!("  {}{of}  {text}", progress.trial));
                    self.last_line = Some(Instant::now());
                }
            }
        }
    }

    fn finished(&mut self, tuned: &Tuned) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.say(&format!("  {tuned}"));
        self.say(&histogram(tuned.generated, &tuned.rejected));
        if let Some(forecast) = tuned.forecast {
            self.say(&format!("  {forecast}"));
        }
        for fault in &tuned.rule_faults {
            self.say(&format!("  skipped: {fault}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_told_with_its_share_of_the_peak() {
        let bar = ProgressBar { flops: 2e6, peak_gflops: Some(40.0), ..ProgressBar::default() };
        assert_eq!(bar.best(Some(1e-4)), "best 100 µs, 20.0 GFLOP/s, 50 % of peak");
        assert_eq!(ProgressBar::default().best(Some(1.5e-3)), "best 1.50 ms");
        assert_eq!(bar.best(None), "nothing measured yet");
    }

    #[test]
    fn the_time_left_is_that_of_trials_or_of_the_limit() {
        let measurement = TrialOutcome::Failed { reason: String::new(), message: String::new() };
        let progress =
            Progress { trial: 10, measurement: &measurement, best: None, elapsed: Duration::from_secs(2) };
        let bar = ProgressBar { trials: 60, ..ProgressBar::default() };
        assert_eq!(bar.pace(&progress), "5.0 trials/s, 10 s left");
        let bar = ProgressBar { time_limit: Some(Duration::from_secs(6)), ..bar };
        assert_eq!(bar.pace(&progress), "5.0 trials/s, 4 s left");
    }
}
