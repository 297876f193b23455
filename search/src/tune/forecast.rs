//! The forecast of further trials, by the curve of the best time so far.
//!
//! The model: improvements by at least some share are events at the rate `θ/n` at the `n`-th trial. For independent trials, new
//! bests have this rate with `θ = 1`, whatever the distribution of the times (the
//! theory of records; Rényi 1962). Their number in `n..m` is Poisson with mean `θ·ln(m/n)`. A search that learns has
//! a larger `θ`, and a search near its limit a smaller one. `θ` is estimated from the number of recent improvements: with
//! a gamma prior of mean 1, the chance of none in the next trials has a closed form.
//!
//! A test compares forecast chances with frequencies on synthetic curves. This module does not know the limit of the machine; the
//! tuner does.

use std::fmt;

/// The rate is estimated from the trials after the first eighth of all, since early trials say little.
const WINDOW: f64 = 8.0;

/// The gamma prior of the rate: half an event in half a unit of `ln n`.
const PRIOR_EVENTS: f64 = 0.5;
const PRIOR_EXPOSURE: f64 = 0.5;

/// The least improvement that counts, as a share of the time.
pub const NOTABLE: f64 = 0.01;

/// The forecast for a number of further trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// The number of further trials.
    pub trials: usize,
    /// The least improvement that counts, as a share of the time.
    pub notable: f64,
    /// The chance of at least one such improvement, between 0 and 1.
    pub chance: f64,
    /// The expected reduction of the time by the trials, as a share of it.
    pub expected_gain: f64,
}

/// The forecast after a curve of the best times so far, one for each trial (infinite as long as there is none); `None` as long as
/// there is no time.
pub fn forecast(best_after: &[f64], trials: usize, notable: f64) -> Option<Forecast> {
    let first = best_after.iter().position(|best| best.is_finite())?;
    let made = best_after.len() - first;
    // The first time is no improvement of anything; the window starts after it.
    let from = ((made as f64 / WINDOW) as usize).max(1);
    let gains = notable_gains(&best_after[first..], from, notable);
    let events = PRIOR_EVENTS + gains.len() as f64;
    let exposure = PRIOR_EXPOSURE + (made as f64 / from as f64).ln();
    let ahead = ((made as f64 + trials as f64) / made as f64).ln();
    let chance = 1.0 - (exposure / (exposure + ahead)).powf(events);
    // One gain of the least size stands for the gains that were not seen.
    let size = (gains.iter().sum::<f64>() + notable) / (gains.len() + 1) as f64;
    let expected_gain = 1.0 - (1.0 - size).powf(events / exposure * ahead);
    Some(Forecast { trials, notable, chance, expected_gain })
}

/// The improvements by at least `notable`, from a trial on: each relative to the best at the last of them.
fn notable_gains(best_after: &[f64], from: usize, notable: f64) -> Vec<f64> {
    let mut reference = best_after[from - 1];
    let mut gains = Vec::new();
    for best in &best_after[from..] {
        let gain = 1.0 - best / reference;
        if gain >= notable {
            gains.push(gain);
            reference = *best;
        }
    }
    gains
}

/// `64 more trials: 23 % chance of 1 % or more, 0.4 % to be expected`
impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| 100.0 * share;
        write!(
            f,
            "{} more trials: {:.0} % chance of {:.0} % or more, {:.1} % to be expected",
            self.trials,
            percent(self.chance),
            percent(self.notable),
            percent(self.expected_gain)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::schedule::Rng;

    /// The time of a trial: what a search of some kind draws as its `n`-th.
    type Draw = fn(usize, &mut Rng) -> f64;

    /// Independent draws with a long tail to the right.
    fn independent(_: usize, rng: &mut Rng) -> f64 {
        1.0 + 3.0 * rng.unit().powi(2)
    }

    /// A search that learns: the typical time falls towards the limit.
    fn learning(trial: usize, rng: &mut Rng) -> f64 {
        1.0 + 4.0 * (-(trial as f64) / 150.0).exp() * rng.unit() + 0.2 * rng.unit()
    }

    /// A search that stands still after a while, but for the noise of measuring.
    fn settled(trial: usize, rng: &mut Rng) -> f64 {
        let typical = 1.0 + 20.0 / (1.0 + trial as f64);
        typical * (1.0 + 0.02 * rng.unit())
    }

    /// Few discrete times, as for small spaces.
    fn discrete(_: usize, rng: &mut Rng) -> f64 {
        1.0 + rng.below(40) as f64 * 0.05
    }

    const KINDS: [(&str, Draw); 4] =
        [("independent", independent), ("learning", learning), ("settled", settled), ("discrete", discrete)];

    fn curve(draw: Draw, trials: usize, rng: &mut Rng) -> Vec<f64> {
        let times = (0..trials).map(|trial| draw(trial, rng));
        times
            .scan(f64::INFINITY, |best, seconds| {
                *best = best.min(seconds);
                Some(*best)
            })
            .collect()
    }

    /// Predicted chances, and whether there was an improvement.
    fn predictions() -> Vec<(&'static str, f64, bool)> {
        let mut rng = Rng::new(11);
        let mut found = Vec::new();
        for (name, draw) in KINDS {
            for _ in 0..300 {
                let made = 16 << rng.below(5);
                let more = [made / 4, made, 3 * made][rng.below(3)].max(16);
                let whole = curve(draw, made + more, &mut rng);
                let forecast = forecast(&whole[..made], more, NOTABLE).expect("every trial has a time");
                let has_improved = whole[made + more - 1] <= whole[made - 1] * (1.0 - NOTABLE);
                found.push((name, forecast.chance, has_improved));
            }
        }
        found
    }

    #[test]
    fn chances_are_calibrated() {
        let found = predictions();
        for low in [0.0, 0.25, 0.5, 0.75] {
            let bin: Vec<_> =
                found.iter().filter(|(_, chance, _)| (low..low + 0.25).contains(chance)).collect();
            let predicted = bin.iter().map(|(_, chance, _)| chance).sum::<f64>() / bin.len() as f64;
            let happened = bin.iter().filter(|(.., improved)| *improved).count() as f64 / bin.len() as f64;
            let text = format!("of {} with {predicted:.2}, {happened:.2} improved", bin.len());
            assert!(bin.len() < 30 || (predicted - happened).abs() < 0.2, "{text}");
        }
    }

    #[test]
    fn chances_tell_more_than_the_average() {
        let found = predictions();
        let rate = found.iter().filter(|(.., improved)| *improved).count() as f64 / found.len() as f64;
        let error = |chance: f64, improved: bool| (chance - f64::from(u8::from(improved))).powi(2);
        let own: f64 = found.iter().map(|(_, chance, improved)| error(*chance, *improved)).sum();
        let constant: f64 = found.iter().map(|(_, _, improved)| error(rate, *improved)).sum();
        assert!(own < 0.9 * constant, "squared error {own:.1}, with the average {constant:.1}");
    }

    #[test]
    fn a_curve_that_has_come_to_rest_promises_little() {
        let mut curve = vec![f64::INFINITY, 4.0, 3.0, 2.0, 1.5, 1.2, 1.1, 1.0];
        let early = forecast(&curve, 64, NOTABLE).unwrap();
        curve.resize(1000, 1.0);
        let late = forecast(&curve, 64, NOTABLE).unwrap();
        assert!(early.chance > 0.9 && late.chance < 0.02, "{early} then {late}");
        assert!(late.expected_gain < 0.001, "{late}");
        assert_eq!(forecast(&[f64::INFINITY; 3], 64, NOTABLE), None);
        let endless = forecast(&curve, usize::MAX, NOTABLE).unwrap();
        assert!((0.0..=1.0).contains(&endless.chance) && endless.chance > late.chance, "{endless}");
    }
}
