//! How many statements of this process were no leaves, by reason.
//!
//! A refused statement is not lost: what is inside of it may be a leaf, and Cranelift translates the rest. But it
//! is slower, and nothing else shows that.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Refusal;

static TALLY: Mutex<BTreeMap<Refusal, u64>> = Mutex::new(BTreeMap::new());

/// Counts a refusal.
pub(crate) fn count(refusal: Refusal) {
    *TALLY.lock().unwrap_or_else(PoisonError::into_inner).entry(refusal).or_default() += 1;
}

/// Why statements that were compiled since the process began are not vector code of full width, and how many there were for
/// each reason, the most frequent first. Statements around and inside one another count each.
pub fn refusals() -> Vec<(String, u64)> {
    let tally = TALLY.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found: Vec<(String, u64)> =
        tally.iter().map(|(refusal, count)| (refusal.to_string(), *count)).collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_reason() {
        let of = |refusal: Refusal| {
            let text = refusal.to_string();
            refusals().iter().find(|(reason, _)| *reason == text).map_or(0, |(_, count)| *count)
        };
        let before = of(Refusal::Operation("of a test"));
        count(Refusal::Operation("of a test"));
        count(Refusal::Operation("of a test"));
        assert_eq!(of(Refusal::Operation("of a test")), before + 2);
    }
}
