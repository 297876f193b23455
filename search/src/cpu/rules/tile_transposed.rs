//! Tiles for transpositions.

use tilewright_core::analysis::block::{is_spatial, loads, stores};
use tilewright_core::analysis::scope::{loops_around, writes_parameter};
use tilewright_core::expr::Indices;
use tilewright_core::ids::VarId;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule};
use tilewright_core::stmt::{Block, For};
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{block_of, has_own_loops, has_trivial_bindings};
use crate::space::rules::tiles::{UsefulTiles, sample_tile};

/// The most elements of a side of a tile: a few cache lines.
const MAX_SIDE: i64 = 64;

/// Tiles the two loops of a transposition, or of any other element-wise stage whose loads are contiguous along one loop and whose
/// stores along another. Without tiles, each cache line read would serve one element and be evicted before the next row needs it.
/// The tiles follow each other along the loads, which the hardware prefetcher can follow, or along the stores.
#[schedule_rule(target = "cpu", after = "multi_level_tiling", before = "parallelize_vectorize_unroll")]
pub fn tile_transposed(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let program = schedule.program();
    let path = loops_around(&program.body, found.id).unwrap_or_default();
    let is_open = has_own_loops(program, &found) && is_spatial(&found) && has_trivial_bindings(&found);
    if !is_open || !writes_parameter(program, &found) {
        return schedule.unchanged();
    }
    let vars: Vec<VarId> = path.iter().map(|node: &&std::sync::Arc<For>| node.var).collect();
    let Some((reading, writing)) = transposed_loops(&found, &vars) else { return schedule.unchanged() };
    let loops = schedule.get_loops(block)?;
    let lanes = i64::from(schedule.cpu()?.lanes(4));
    let useful = UsefulTiles { least: lanes, most: MAX_SIDE, most_dividing: MAX_SIDE, multiple: lanes };
    let mut halves: Vec<[LoopRv; 2]> = Vec::new();
    for target in [loops[reading], loops[writing]] {
        let factors = sample_tile(schedule, target, 2, useful)?;
        let parts = schedule.split(target, &[Some(factors[0]), Some(factors[1])])?;
        halves.push([parts[0], parts[1]]);
    }
    let [[outer_reading, reading], [outer_writing, writing]] = halves[..] else {
        return schedule.unchanged();
    };
    let mut by_column = schedule.fork();
    by_column.reorder(&[outer_writing, outer_reading, reading, writing])?;
    schedule.reorder(&[outer_reading, outer_writing, reading, writing])?;
    Ok(RuleOutcome::Variants(vec![by_column, schedule.clone()]))
}

/// The positions of the loop along the last dimension of a transposed load and of the loop along the last dimension of a store.
fn transposed_loops(block: &Block, vars: &[VarId]) -> Option<(usize, usize)> {
    let along = |indices: &Indices| {
        let last = indices.last()?;
        let of = |var: &VarId| {
            block.iters.iter().any(|iter| iter.binding.mentions(*var) && last.mentions(iter.var))
        };
        vars.iter().position(of)
    };
    let writing = stores(&block.body).iter().find_map(|store| along(&store.indices))?;
    let reading = loads(&block.body).into_iter().find_map(|access| {
        let reading = along(access.indices)?;
        let moves = access.indices.iter().any(|index| {
            let of = |iter: &&tilewright_core::stmt::Iter| iter.binding.mentions(vars[writing]);
            block.iters.iter().filter(of).any(|iter| index.mentions(iter.var))
        });
        (reading != writing && moves).then_some(reading)
    })?;
    Some((reading, writing))
}
