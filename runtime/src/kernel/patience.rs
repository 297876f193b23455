//! How long calls of one shape run a version at hand while their own waits for its turn beside them.
//!
//! Nobody knows how many calls of a shape will come. Calls run the version at hand until that has taken as long as it takes to make the
//! own one; the next call makes that itself. Both together then take at most twice as long as the better of the two choices would have
//! taken, which is the best that can be guaranteed (Karlin et al., *Competitive snoopy caching*, 1988). A call that will take as long by itself, by the number of its
//! points, begins with its own version.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::state::State;
use super::versions::Entry;

/// How long it takes to make a version of a kernel of which none has been made.
const UNKNOWN_COST: Duration = Duration::from_millis(100);

/// About how long a version with symbolic dimensions takes for a point of a block. One that was chosen in little time took 1 ns for a product
/// of bytes and 2 ns for attention, on two threads with AVX-512; one that was fitted from the version of another shape takes less.
const NS_OF_POINT: f64 = 0.25;

/// How long it takes to make a version of a kernel.
#[derive(Default)]
pub(super) struct Cost {
    /// That of the one that took longest; 0 at first. Code that shapes share is found in no time, and the next shape may need code of its own.
    longest_ns: AtomicU64,
}

impl Cost {
    /// Makes a version, and keeps how long that takes.
    pub(super) fn measure<T>(&self, make: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let made = make();
        self.longest_ns.fetch_max(nanoseconds(start.elapsed()).max(1), Ordering::Relaxed);
        made
    }

    fn ns(&self) -> u64 {
        match self.longest_ns.load(Ordering::Relaxed) {
            0 => nanoseconds(UNKNOWN_COST),
            longest => longest,
        }
    }
}

impl Entry {
    /// Counts a call that ran the version at hand.
    pub(super) fn count_provisional(&self, time: Duration) {
        self.provisional_ns.fetch_add(nanoseconds(time), Ordering::Relaxed);
    }
}

impl State {
    /// Whether calls have run the version at hand of an entry for so long that the next one should make the own version.
    pub(super) fn has_waited_long(&self, entry: &Entry) -> bool {
        entry.provisional_ns.load(Ordering::Relaxed) >= self.cost.ns()
    }

    /// Whether one call takes so long with a version at hand that it should make the own version.
    pub(super) fn is_long(&self, dims: &[i64]) -> bool {
        self.points(dims).is_some_and(|points| points * NS_OF_POINT >= self.cost.ns() as f64)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
