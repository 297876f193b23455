//! Strips of several rows, for stages that reduce rows.

use tilewright_core::analysis::block::{is_reduction, is_spatial};
use tilewright_core::analysis::scope::{consumers, producers};
use tilewright_core::annotation::TILING;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_core::stmt::Block;
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleResult};
use crate::space::rules::block::{block_of, has_own_loops, has_trivial_bindings};
use crate::space::rules::tiles::{UsefulTiles, sample_tile};

/// The most rows of a strip: more do not fit into registers.
const MAX_ROWS: i64 = 8;

/// The fewest rows of a useful strip.
const LEAST_ROWS: i64 = 4;

/// Splits the rows of a normalisation, or of any other element-wise stage after reductions, into strips.
///
/// A stage computed strip by strip interleaves several rows, whose additions are independent of each other. The rows stay in the
/// first-level cache until the next stage.
#[schedule_rule(target = "cpu", after = "multi_level_tiling", before = "parallelize_vectorize_unroll")]
pub fn strip_rows(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let program = schedule.program();
    let producers = producers(program, &found);
    let is_tiled = |block: &Block| TILING.is_in(&block.annotations);
    let follows_reduction = producers.iter().any(|producer| is_reduction(producer));
    let is_last = consumers(program, &found).iter().all(|consumer| !is_spatial(consumer));
    let is_open = has_own_loops(program, &found) && is_spatial(&found) && has_trivial_bindings(&found);
    if !is_open || !is_last || !follows_reduction || producers.iter().any(|producer| is_tiled(producer)) {
        return schedule.unchanged();
    }
    let loops = schedule.get_loops(block)?;
    let [.., rows, _] = loops[..] else { return schedule.unchanged() };
    let useful = UsefulTiles { least: LEAST_ROWS, most: MAX_ROWS, most_dividing: MAX_ROWS, multiple: 1 };
    let factors = sample_tile(schedule, rows, 2, useful)?;
    schedule.split(rows, &[Some(factors[0]), Some(factors[1])])?;
    schedule.changed()
}
