//! Why statements are no leaves, and how many there were of this process for each reason.
//!
//! Cranelift compiles a refused statement, and parts of it may still be leaves. Its code is slower, which nothing but these counts
//! shows.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

/// Why a statement is no leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Error)]
pub(crate) enum Refusal {
    #[error("an operation without a vector form: {0}")]
    Operation(&'static str),
    #[error("an access without a vector form")]
    Access,
    #[error("an index that depends on data")]
    DataIndex,
    #[error("lanes that do not fit together")]
    Lanes,
    #[error("an intermediate that is in registers of the code around")]
    OuterRegisters,
    #[error("a variable that is not bound")]
    Unbound,
    #[error("an offset that is too large")]
    Offset,
    #[error("a parallel loop, or a statement that is not of the flat level")]
    Statement,
    #[error("too many instructions")]
    Size,
    #[error("spills")]
    Spills,
    #[error("a tensor intrinsic that is not emitted here: {0}")]
    Intrinsic(&'static str),
    #[error("a marked statement that is not what its intrinsic computes")]
    Mark,
    #[error("tile products whose sums cannot stay in tile registers; they are executed as statements")]
    Accumulators,
    #[error("an instruction that could not be encoded")]
    Encoding,
}

static COUNTS: Mutex<BTreeMap<Refusal, u64>> = Mutex::new(BTreeMap::new());

/// Counts a refusal.
pub(crate) fn count(refusal: Refusal) {
    *COUNTS.lock().unwrap_or_else(PoisonError::into_inner).entry(refusal).or_default() += 1;
}

/// Why statements that were compiled since the process began are not vector code of full width, and how many there were for
/// each reason, the most frequent first. Statements around and inside one another count each.
pub fn refusals() -> Vec<(String, u64)> {
    let counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found: Vec<(String, u64)> =
        counts.iter().map(|(refusal, count)| (refusal.to_string(), *count)).collect();
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
