//! Tiles of loops of any extent.

use tilewright_core::schedule::{IntRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::visit::find_loop;

/// The innermost tiles of a loop that run at full speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsefulTiles {
    /// The fewest iterations.
    pub(crate) least: i64,
    /// The most iterations.
    pub(crate) most: i64,
    /// The most iterations of a divisor that makes tiles which do not divide needless: a prime tile that fills all registers leaves
    /// none for a second vector.
    pub(crate) most_dividing: i64,
    /// The number of iterations is a multiple of this: the lanes of a vector, or 1.
    pub(crate) multiple: i64,
}

impl UsefulTiles {
    /// Whether a loop has such a tile that divides it, or is itself no longer than the shortest one.
    fn divide(self, extent: i64) -> bool {
        let Self { least, most_dividing, multiple, .. } = self;
        let first = multiple * ((least.max(1) - 1) / multiple + 1);
        extent <= first || (first..=most_dividing).step_by(multiple as usize).any(|tile| extent % tile == 0)
    }
}

/// Draws the factors of a loop: divisors of its extent where one of them is a useful innermost tile, and otherwise tiles that need not
/// divide it. The split guards the last of these. Divisors are among them, so that the cost model decides.
pub(crate) fn sample_tile(
    schedule: &mut Schedule,
    target: LoopRv,
    parts: usize,
    useful: UsefulTiles,
) -> Result<Vec<IntRv>, ScheduleError> {
    let id = schedule.values().target_loop(target)?;
    let extent = find_loop(&schedule.program().body, id).and_then(|node| node.extent.as_constant());
    match extent {
        Some(extent) if !useful.divide(extent) => schedule.sample_covering_tile(target, parts, useful.most),
        _ => schedule.sample_perfect_tile(target, parts, useful.most),
    }
}

#[cfg(test)]
mod tests {
    use super::UsefulTiles;

    #[test]
    fn whole_vectors_must_divide_a_long_loop() {
        let lanes = UsefulTiles { least: 16, most: 64, most_dividing: 64, multiple: 16 };
        for (extent, divides) in [
            (1, true),
            (16, true),
            (17, false),
            (24, false),
            (48, true),
            (1000, false),
            (1008, true),
            (1009, false),
        ] {
            assert_eq!(lanes.divide(extent), divides, "{extent}");
        }
    }

    #[test]
    fn any_tile_in_reach_divides_other_loops() {
        let rows = UsefulTiles { least: 4, most: 32, most_dividing: 16, multiple: 1 };
        for (extent, divides) in [
            (3, true),
            (7, true),
            (29, false),
            (37, false),
            (49, true),
            (62, false),
            (74, false),
            (1009, false),
        ] {
            assert_eq!(rows.divide(extent), divides, "{extent}");
        }
    }
}
