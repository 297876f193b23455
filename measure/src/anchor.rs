//! The schedules to which the times of a search are relative.
//!
//! A machine is slower or faster for a while, because its clock or its neighbours change. To keep the times of different
//! batches comparable, each batch times a few of the first candidates again, alternating with its own, and scales its
//! times by theirs. These anchors stay the same during a search, so that errors do not add up. There are several, because
//! one alone may vary: the position of its data in the caches differs from batch to batch.

use serde::{Deserialize, Serialize};
use tilewright_search::tuner::{Earlier, TrialOutcome};

/// The number of anchors: the median of three stands for the machine when one of them varies.
const ANCHORS: usize = 3;

/// A candidate whose time is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// Its trace.
    pub trace: String,
    /// Its time, in seconds.
    pub seconds: f64,
}

/// The anchors of a search.
#[derive(Clone, Debug, Default)]
pub struct Anchors(Vec<Anchor>);

impl Anchors {
    /// The fastest candidates of earlier runs, to which the times of this run are to be comparable.
    pub fn of_earlier(earlier: &[Earlier]) -> Self {
        let measured =
            |record: &Earlier| Some(Anchor { trace: record.trace.to_string(), seconds: record.seconds? });
        Self::fastest_of(earlier.iter().filter_map(measured))
    }

    /// Takes the fastest candidates of a batch, if there are no anchors yet. They were timed most carefully.
    pub fn learn(&mut self, traces: &[String], outcomes: &[Option<TrialOutcome>]) {
        if self.0.is_empty() {
            let measured = traces.iter().zip(outcomes).filter_map(|(trace, outcome)| match outcome {
                Some(TrialOutcome::Ok { seconds, .. }) => {
                    Some(Anchor { trace: trace.clone(), seconds: *seconds })
                }
                _ => None,
            });
            *self = Self::fastest_of(measured);
        }
    }

    fn fastest_of(measured: impl Iterator<Item = Anchor>) -> Self {
        let mut fastest: Vec<Anchor> = measured.collect();
        fastest.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        fastest.dedup_by(|a, b| a.trace == b.trace);
        fastest.truncate(ANCHORS);
        // The median of fewer would follow one anchor rather than the machine.
        Anchors(if fastest.len() < ANCHORS { Vec::new() } else { fastest })
    }

    /// The anchors, to be timed with a batch.
    pub fn to_vec(&self) -> Vec<Anchor> {
        self.0.clone()
    }
}

/// The factor for times of now: the median of the anchors' earlier times over their times now. `now` has
/// the seconds of each, where it could be timed.
pub fn scale(anchors: &[Anchor], now: &[Option<f64>]) -> f64 {
    let ratios = anchors.iter().zip(now).filter_map(|(anchor, now)| Some(anchor.seconds / (*now)?));
    let mut ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0).collect();
    ratios.sort_by(f64::total_cmp);
    if ratios.len() < ANCHORS { 1.0 } else { ratios[ratios.len() / 2] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchors(seconds: &[f64]) -> Vec<Anchor> {
        let named =
            |(number, seconds): (usize, &f64)| Anchor { trace: number.to_string(), seconds: *seconds };
        seconds.iter().enumerate().map(named).collect()
    }

    fn measured(seconds: f64) -> Option<TrialOutcome> {
        Some(TrialOutcome::Ok { seconds, spread: 0.0, max_relative_error: 0.0 })
    }

    fn traces(count: usize) -> Vec<String> {
        (0..count).map(|number| number.to_string()).collect()
    }

    #[test]
    fn a_machine_that_is_slower_for_a_while_is_told_from_a_candidate_that_is() {
        let known = anchors(&[1.0, 2.0, 4.0]);
        assert_eq!(scale(&known, &[Some(2.0), Some(4.0), Some(8.0)]), 0.5);
        assert_eq!(scale(&known, &[Some(1.0), Some(6.0), Some(4.0)]), 1.0, "one of them varies");
        assert_eq!(scale(&known, &[Some(2.0), None, Some(8.0)]), 1.0, "two are too few");
        assert_eq!(scale(&[], &[]), 1.0);
    }

    #[test]
    fn the_fastest_of_the_first_batch_stay() {
        let outcomes = [measured(3.0), None, measured(1.0), measured(2.0), measured(9.0)];
        let mut chosen = Anchors::default();
        chosen.learn(&traces(5), &outcomes);
        let numbers = |chosen: &Anchors| chosen.to_vec().into_iter().map(|own| own.trace).collect::<Vec<_>>();
        assert_eq!(numbers(&chosen), ["2", "3", "0"]);
        chosen.learn(&traces(3), &[measured(0.1), measured(0.1), measured(0.1)]);
        assert_eq!(numbers(&chosen), ["2", "3", "0"]);
    }

    #[test]
    fn a_batch_of_two_has_none() {
        let mut chosen = Anchors::default();
        chosen.learn(&traces(2), &[measured(1.0), measured(2.0)]);
        assert!(chosen.to_vec().is_empty());
    }
}
