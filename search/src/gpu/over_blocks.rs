//! Long reductions with few results, divided among blocks of threads: one kernel for the parts, and one for the results ("split-K").

use tilewright_core::analysis::block::is_reduction;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::IterKind;

use super::by_element::fuse_all;
use super::in_block::{reduce_in_block, threads_for};
use crate::space::rules::add_rfactor::partition_loops;
use crate::space::rules::block::{
    block_of, domain_size, has_own_loops, has_trivial_bindings, needs_multi_level_tiling,
};

/// The most threads of a block that computes a part.
const THREADS: i64 = 256;

/// The fewest values of a part.
const LEAST_VALUES: i64 = 1024;

/// The results of a product that one block of threads computes without a search.
const RESULTS_OF_TILE: i64 = 64 * 64;

/// Blocks of threads for each multiprocessor.
const BLOCKS: i64 = 2;

/// Divides a reduction into as many parts as fill the machine, where its results do not, and schedules the parts; the block of the
/// results is left to other ways. A product is left to them, too, with its parts as a dimension of the results.
pub(super) fn divide_among_blocks(schedule: &mut Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    let found = block_of(schedule, block)?;
    let program = schedule.program();
    if !is_reduction(&found) || !has_own_loops(program, &found) || !has_trivial_bindings(&found) {
        return Ok(false);
    }
    let is_product = needs_multi_level_tiling(program, &found);
    let sizes = domain_size(&found, IterKind::Spatial).zip(domain_size(&found, IterKind::Reduce));
    let Some((results, values)) = sizes else { return Ok(false) };
    let gpu = schedule.context().target.gpu().map_err(ScheduleError::WrongTargetKind)?;
    let wanted = i64::from(gpu.multiprocessors) * BLOCKS;
    let filled = if is_product { results.div_euclid(RESULTS_OF_TILE).max(1) } else { results.max(1) };
    let least = if is_product { LEAST_VALUES / 4 } else { LEAST_VALUES };
    let most = (wanted / filled).min(values / least);
    if most < 2 || (!is_product && threads_for(&found, THREADS).is_none()) {
        return Ok(false);
    }
    let parts = 1_i64 << most.ilog2();
    let loops = schedule.get_loops(block)?;
    let (spatial, reduce) = partition_loops(schedule, block, &loops)?;
    schedule.reorder(&[spatial.as_slice(), reduce.as_slice()].concat())?;
    let fused = fuse_all(schedule, &reduce)?;
    let split = schedule.split(fused, &[Some(parts), None])?;
    let (partial, _) = schedule.rfactor(block, split[0], -1)?;
    if is_product { Ok(true) } else { reduce_in_block(schedule, partial, THREADS) }
}
