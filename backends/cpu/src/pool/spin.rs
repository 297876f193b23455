//! Busy waiting that is bounded by time.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// Pauses between two looks at the clock: the clock costs about as much as a pause.
const PAUSES_PER_CLOCK_READ: u32 = 32;

/// A bounded busy wait: [`Spinner::pause`] once per unsuccessful look at the awaited value.
///
/// The bound is time and not a count, because one pause instruction takes from 10 to 140 cycles by
/// microarchitecture.
pub(super) struct Spinner {
    budget: Duration,
    started: Option<Instant>,
    pauses: u32,
}

impl Spinner {
    /// A wait of at most about `budget`; a zero budget never spins.
    pub(super) fn new(budget: Duration) -> Self {
        Self { budget, started: None, pauses: 0 }
    }

    /// Pauses for a moment and returns true, or returns false when the budget is spent and the thread ought
    /// to sleep.
    pub(super) fn pause(&mut self) -> bool {
        if self.budget.is_zero() {
            return false;
        }
        spin_loop();
        self.pauses += 1;
        if !self.pauses.is_multiple_of(PAUSES_PER_CLOCK_READ) {
            return true;
        }
        let started = *self.started.get_or_insert_with(Instant::now);
        started.elapsed() < self.budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_budget_never_spins() {
        assert!(!Spinner::new(Duration::ZERO).pause());
    }

    #[test]
    fn a_budget_ends() {
        let mut spinner = Spinner::new(Duration::from_micros(20));
        assert!(spinner.pause(), "the first pause is within any budget");
        while spinner.pause() {}
    }
}
