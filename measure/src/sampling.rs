//! How often to run each candidate, so that a little time suffices.
//!
//! The candidates of a batch are timed alternately, one sample each per round, so that a disturbance of the machine
//! affects all of them. The first sample of each is dropped. A candidate that is far behind after a round is
//! timed no further: its time is known well enough. This module knows neither kernels nor
//! clocks; it calls a function that runs a candidate.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The least length of a sample, beside which reading the clock and calling cost nothing.
const LEAST_SAMPLE: Duration = Duration::from_millis(1);

/// Each sample follows runs of about this length, unless one alone takes longer: other candidates have evicted its data from
/// the caches meanwhile.
const WARM_UP: Duration = Duration::from_micros(500);

/// Most samples of one candidate.
const ROUNDS: usize = 5;

/// The most time for one candidate, as far as [`FEWEST_ROUNDS`] allow it.
const CANDIDATE_BUDGET: Duration = Duration::from_millis(100);

/// Samples that even a slow candidate gets.
const FEWEST_ROUNDS: usize = 2;

/// The greatest ratio of a candidate's best sample to the best of all, after each round, with which it stays in. The last
/// applies to every further round.
const ELIMINATION: [f64; 3] = [2.5, 1.6, 1.25];

/// The greatest ratio of a candidate's very first run to the best. Caches are cold in it, hence the wider margin.
const FIRST_RUN_ELIMINATION: f64 = 3.0;

/// A shorter first run tells nothing: page faults and cold caches dominate it. A longer one
/// is warm-up enough.
const LEAST_TELLING_FIRST_RUN: Duration = Duration::from_millis(20);

/// Pairs of samples of a comparison, and its budget beyond the first [`FEWEST_PAIRS`]. 31 pairs of the shortest samples take a tenth
/// of a second: other programs slow a shared machine down for tens of milliseconds at a time.
const PAIRS: usize = 31;
const FEWEST_PAIRS: usize = 3;
const PAIRS_BUDGET: Duration = Duration::from_millis(600);

/// The time of a run, from several samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The median of the faster half of the samples, in seconds: disturbances only ever add time.
    pub median: f64,
    /// The distance of the quartiles of all samples over that median.
    pub spread: f64,
}

impl Timing {
    /// The timing of samples in seconds; `None` when there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = quantile(&sorted[..sorted.len().div_ceil(2)], 0.5)?;
        let spread = (quantile(&sorted, 0.75)? - quantile(&sorted, 0.25)?) / median;
        Some(Timing { median, spread })
    }

    /// The timing on a machine that is slower by a factor.
    pub fn scaled(self, factor: f64) -> Self {
        Timing { median: self.median * factor, ..self }
    }
}

/// The value below which a share of sorted samples lies, interpolated between neighbours.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(low + (high - low) * place.fract())
}

/// Runs candidates, given by number.
pub trait Runs {
    /// Why a run failed.
    type Failure;

    /// Runs a candidate `repetitions` times in a row and says how long that took.
    fn run(&mut self, candidate: usize, repetitions: u64) -> Result<Duration, Self::Failure>;

    /// Whether to stop as soon as possible.
    fn should_stop(&self) -> bool;
}

/// One candidate while it is sampled.
struct Entry<F> {
    candidate: usize,
    /// The length of a run as far as known, in seconds.
    estimate: f64,
    /// Runs per sample; 0 before the warm-up.
    repetitions: u64,
    rounds: usize,
    samples: Vec<f64>,
    failure: Option<F>,
    is_eliminated: bool,
    /// Whether it is sampled to the end, however slow it is.
    is_kept: bool,
}

impl<F> Entry<F> {
    fn is_open(&self, round: usize) -> bool {
        self.failure.is_none() && !self.is_eliminated && round < self.rounds
    }

    fn least(&self) -> f64 {
        self.samples.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// The result of a candidate; `None` when sampling was stopped before there was a sample of it.
pub type SampleOutcome<F> = Option<Result<Timing, F>>;

/// Times candidates, given the length of a first run of each, in seconds. Candidates for whose number `is_kept` holds are
/// sampled fully, however slow they are.
pub fn sample<R: Runs>(
    runs: &mut R,
    first_runs: &[(usize, f64)],
    is_kept: &[bool],
) -> Vec<(usize, SampleOutcome<R::Failure>)> {
    let mut entries: Vec<Entry<R::Failure>> = first_runs
        .iter()
        .map(|&(candidate, estimate)| Entry {
            candidate,
            estimate,
            repetitions: 0,
            rounds: ROUNDS,
            samples: Vec::new(),
            failure: None,
            is_eliminated: false,
            is_kept: is_kept.get(candidate).copied().unwrap_or(false),
        })
        .collect();
    eliminate_by_first_run(&mut entries);
    for entry in entries.iter_mut().filter(|entry| entry.is_open(0)) {
        if runs.should_stop() {
            break;
        }
        warm_up(entry, runs);
    }
    for round in 0..ROUNDS {
        for entry in entries.iter_mut().filter(|entry| entry.is_open(round) && entry.repetitions > 0) {
            if runs.should_stop() {
                break;
            }
            match sample_once(runs, entry.candidate, entry.repetitions, entry.estimate) {
                Ok(seconds) => entry.samples.push(seconds),
                Err(failure) => entry.failure = Some(failure),
            }
        }
        eliminate(&mut entries, ELIMINATION[round.min(ELIMINATION.len() - 1)]);
    }
    entries
        .into_iter()
        .map(|entry| {
            let outcome = match entry.failure {
                Some(failure) => Some(Err(failure)),
                None => Timing::of(&entry.samples).map(Ok),
            };
            (entry.candidate, outcome)
        })
        .collect()
}

/// One sample: the seconds of one run among some, with warm caches.
fn sample_once<R: Runs>(
    runs: &mut R,
    candidate: usize,
    repetitions: u64,
    estimate: f64,
) -> Result<f64, R::Failure> {
    let warm_up = (WARM_UP.as_secs_f64() / estimate.max(1e-9)).min(repetitions as f64) as u64;
    if warm_up > 0 {
        runs.run(candidate, warm_up)?;
    }
    Ok(runs.run(candidate, repetitions)?.as_secs_f64() / repetitions as f64)
}

/// A candidate that is hopeless after its first run is not run again: that run is its time.
fn eliminate_by_first_run<F>(entries: &mut [Entry<F>]) {
    let least = entries.iter().map(|entry| entry.estimate).fold(f64::INFINITY, f64::min);
    for entry in entries {
        if !entry.is_kept && is_telling(entry.estimate) && entry.estimate > least * FIRST_RUN_ELIMINATION {
            entry.samples.push(entry.estimate);
            entry.is_eliminated = true;
        }
    }
}

fn is_telling(first_run: f64) -> bool {
    first_run > LEAST_TELLING_FIRST_RUN.as_secs_f64()
}

fn eliminate<F>(entries: &mut [Entry<F>], factor: f64) {
    let least = entries.iter().map(Entry::least).fold(f64::INFINITY, f64::min);
    for entry in entries {
        entry.is_eliminated |= !entry.is_kept && entry.least() > least * factor;
    }
}

/// Runs a candidate with warm caches and decides how many runs make a sample, and how many samples are taken. These
/// runs are the first sample, which is dropped.
fn warm_up<R: Runs>(entry: &mut Entry<R::Failure>, runs: &mut R) {
    if !is_telling(entry.estimate) {
        // The first run was cold; a second try with about a tenth of a sample corrects the estimate.
        let tries = repetitions(LEAST_SAMPLE / 10, entry.estimate);
        match runs.run(entry.candidate, tries) {
            Ok(duration) => entry.estimate = duration.as_secs_f64() / tries as f64,
            Err(failure) => {
                entry.failure = Some(failure);
                return;
            }
        }
    }
    entry.repetitions = repetitions(LEAST_SAMPLE, entry.estimate);
    let sample = entry.estimate * entry.repetitions as f64;
    let affordable = (CANDIDATE_BUDGET.as_secs_f64() / sample) as usize;
    entry.rounds = affordable.clamp(FEWEST_ROUNDS, ROUNDS);
}

fn repetitions(target: Duration, run: f64) -> u64 {
    (target.as_secs_f64() / run.max(1e-9)).ceil().clamp(1.0, 1e6) as u64
}

/// Times two candidates alternately, `first second second first …`, so that drift affects both alike.
/// Candidates are 0 and 1 to `runs`.
pub fn compare<R: Runs>(runs: &mut R) -> Result<Option<(Timing, Timing)>, R::Failure> {
    let mut estimates = [0.0; 2];
    for (candidate, estimate) in estimates.iter_mut().enumerate() {
        let cold = runs.run(candidate, 1)?.as_secs_f64();
        let tries = repetitions(LEAST_SAMPLE / 10, cold);
        *estimate = runs.run(candidate, tries)?.as_secs_f64() / tries as f64;
    }
    let start = Instant::now();
    let mut samples = [Vec::new(), Vec::new()];
    for pair in 0..PAIRS {
        if runs.should_stop() || (pair >= FEWEST_PAIRS && start.elapsed() > PAIRS_BUDGET) {
            break;
        }
        let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
        for candidate in order {
            let estimate = estimates[candidate];
            samples[candidate].push(sample_once(
                runs,
                candidate,
                repetitions(LEAST_SAMPLE, estimate),
                estimate,
            )?);
        }
    }
    Ok(Timing::of(&samples[0]).zip(Timing::of(&samples[1])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Candidates of known speed on a clock of our own.
    struct Clock {
        seconds: Vec<f64>,
        runs: Vec<u64>,
        fails: Option<usize>,
        stop_after: u64,
    }

    impl Clock {
        fn new(seconds: &[f64]) -> Self {
            Clock {
                seconds: seconds.to_vec(),
                runs: vec![0; seconds.len()],
                fails: None,
                stop_after: u64::MAX,
            }
        }
    }

    impl Runs for Clock {
        type Failure = &'static str;

        fn run(&mut self, candidate: usize, repetitions: u64) -> Result<Duration, Self::Failure> {
            self.runs[candidate] += repetitions;
            if self.fails == Some(candidate) {
                return Err("broken");
            }
            Ok(Duration::from_secs_f64(self.seconds[candidate] * repetitions as f64))
        }

        fn should_stop(&self) -> bool {
            self.runs.iter().sum::<u64>() >= self.stop_after
        }
    }

    fn outcomes(clock: &mut Clock) -> Vec<Option<Result<Timing, &'static str>>> {
        let first: Vec<(usize, f64)> = clock.seconds.iter().copied().enumerate().collect();
        sample(clock, &first, &[]).into_iter().map(|(_, outcome)| outcome).collect()
    }

    fn median(outcome: &Option<Result<Timing, &'static str>>) -> f64 {
        outcome.expect("it was sampled").expect("it ran").median
    }

    #[test]
    fn quartiles_are_interpolated() {
        let timing = Timing::of(&[4.0, 1.0, 3.0, 2.0, 5.0]).unwrap();
        assert_eq!((timing.median, timing.spread), (2.0, 1.0));
        assert_eq!(Timing::of(&[2.0, 4.0]).unwrap().median, 2.0);
        assert_eq!(Timing::of(&[]), None);
    }

    #[test]
    fn the_slow_are_left_early_and_the_fast_are_sampled_fully() {
        let mut clock = Clock::new(&[2e-3, 3e-3, 50e-3, 2.1e-3]);
        let outcomes = outcomes(&mut clock);
        let medians: Vec<f64> = outcomes.iter().map(median).collect();
        assert!((medians[0] - 2e-3).abs() < 1e-9 && (medians[2] - 50e-3).abs() < 1e-9, "{medians:?}");
        assert_eq!(clock.runs[0], 1 + ROUNDS as u64, "the warm-up and every round");
        assert_eq!(clock.runs[2], 0, "its first run has told enough");
        assert!(clock.runs[1] < clock.runs[0] && clock.runs[1] >= 3, "{:?}", clock.runs);
    }

    #[test]
    fn short_runs_are_repeated_to_a_millisecond() {
        let mut clock = Clock::new(&[2e-6]);
        let outcomes = outcomes(&mut clock);
        assert!((median(&outcomes[0]) - 2e-6).abs() < 1e-9);
        // Half a millisecond of warm-up precedes each of the five samples.
        assert!((50 + 5 * 750..=51 + 5 * 752).contains(&clock.runs[0]), "{:?}", clock.runs);
    }

    #[test]
    fn what_is_kept_is_sampled_however_slow() {
        let mut clock = Clock::new(&[2e-3, 9e-3]);
        sample(&mut clock, &[(0, 2e-3), (1, 9e-3)], &[false, true]);
        assert_eq!(clock.runs[1], 1 + ROUNDS as u64);
    }

    #[test]
    fn long_runs_are_few() {
        let mut clock = Clock::new(&[0.3, 0.31]);
        let outcomes = outcomes(&mut clock);
        assert_eq!(clock.runs, [FEWEST_ROUNDS as u64; 2], "the first run was the warm-up");
        assert!((median(&outcomes[1]) - 0.31).abs() < 1e-9);
    }

    #[test]
    fn a_failure_concerns_one_candidate() {
        let mut clock = Clock::new(&[1e-3, 1e-3]);
        clock.fails = Some(0);
        let outcomes = outcomes(&mut clock);
        assert_eq!(outcomes[0], Some(Err("broken")));
        assert!((median(&outcomes[1]) - 1e-3).abs() < 1e-9);
    }

    #[test]
    fn stopping_keeps_what_was_sampled() {
        let mut clock = Clock::new(&[1e-3, 1e-3]);
        clock.stop_after = 3;
        let outcomes = outcomes(&mut clock);
        assert!(matches!(outcomes[0], Some(Ok(_))) && outcomes[1].is_none(), "{outcomes:?}");
    }

    #[test]
    fn a_comparison_alternates() {
        let mut clock = Clock::new(&[1e-3, 2e-3]);
        let (first, second) = compare(&mut clock).unwrap().unwrap();
        assert!((first.median - 1e-3).abs() < 1e-9 && (second.median - 2e-3).abs() < 1e-9);
        assert_eq!(clock.runs, [2 + PAIRS as u64, 2 + PAIRS as u64]);
    }
}
