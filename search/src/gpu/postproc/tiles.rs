//! Binds the loops of tiled blocks.

use tilewright_core::analysis::block::{reads, single_store};
use tilewright_core::annotation::{TENSORIZE, TILED_LOOPS, UNROLL};
use tilewright_core::lower::LowerOptions;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, Symbol};
use tilewright_core::thread_axis::ThreadAxis;

use super::{copies, extent, fused, nest_names, unroll_one, variable, writers};
use crate::gpu::rules::multi_level_thread_tiling::LEVELS;
use crate::space::rules::block::block_of;

/// The longest vector, in bytes, that the sums of a thread form.
const MAX_VECTOR_BYTES: i64 = 16;

/// One spatial loop of a tiled block.
pub(super) struct TiledLoop {
    /// The dimension of the result that it runs along; `None` where it has a single iteration.
    pub(super) dimension: Option<usize>,
    /// The extents of its parts inside a block of threads: virtual threads, threads, and two levels of elements of a thread.
    pub(super) parts: [i64; 4],
}

/// Binds the tiles of each tiled block: those of blocks to the grid, those of threads to threads, together with the loops of the copies
/// and of the block that writes the results. Unrolls the loops of one thread, and sets the sums to their initial values before the
/// reduction.
pub(super) fn bind_tiles(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    let names: Vec<Symbol> = tilewright_core::analysis::scope::blocks(&schedule.program().body)
        .into_iter()
        .filter(|block| TILED_LOOPS.is_in(&block.annotations) && !TENSORIZE.is_in(&block.annotations))
        .map(|block| block.name.clone())
        .collect();
    for name in names {
        let block = schedule.get_block(&name)?;
        let found = block_of(schedule, block)?;
        let counts = TILED_LOOPS.get(&found.annotations).unwrap_or_default();
        let [spatial, reduce] = counts[..] else { continue };
        bind_tile(schedule, block, [spatial, reduce].map(|count| count.max(0) as usize))?;
    }
    Ok(())
}

/// The loops of a tiled block by level.
struct Levels<'l> {
    blocks: &'l [LoopRv],
    outer_reduction: &'l [LoopRv],
    threads: &'l [LoopRv],
    inner_reduction: &'l [LoopRv],
    /// The loops of one thread, which are unrolled.
    elements: &'l [LoopRv],
}

impl<'l> Levels<'l> {
    /// Takes the loops of a block apart, in the order in which the rule nests them.
    fn of(loops: &'l [LoopRv], [spatial, reduce]: [usize; 2]) -> Result<Self, ScheduleError> {
        if loops.len() != LEVELS.0 * spatial + LEVELS.1 * reduce || reduce == 0 || spatial == 0 {
            return Err(ScheduleError::BadDecision("as many loops as a tiled block has"));
        }
        let (blocks, rest) = loops.split_at(spatial);
        let (outer_reduction, rest) = rest.split_at(reduce);
        let (threads, rest) = rest.split_at(spatial);
        let (inner_reduction, elements) = rest.split_at(reduce);
        Ok(Levels { blocks, outer_reduction, threads, inner_reduction, elements })
    }
}

fn bind_tile(schedule: &mut Schedule, block: BlockRv, counts: [usize; 2]) -> Result<(), ScheduleError> {
    let loops = schedule.get_loops(block)?;
    let levels = Levels::of(&loops, counts)?;
    let found = block_of(schedule, block)?;
    let tile = tiled_loops(schedule, &found, &levels, counts)?;
    let threads: i64 = tile.iter().map(|own| own.parts[1]).product();
    let grid = bind_grid(schedule, levels.blocks)?;
    let store = single_store(&found).ok_or(ScheduleError::NotReduction(found.id))?;
    for name in nest_names(schedule.program(), found.id).into_iter().filter(|name| *name != found.name) {
        let other = schedule.get_block(&name)?;
        match reads(&*block_of(schedule, other)?).contains(&store.buffer) {
            true => writers::bind_writer(schedule, other, grid, store.buffer, &tile)?,
            false => copies::bind_copy(schedule, other, grid + counts[1], &[(ThreadAxis::ThreadX, threads)])?,
        }
    }
    let lanes = vector_loop(schedule, &found, &levels, counts[0])?;
    let bound = fused(schedule, levels.threads)?.ok_or(ScheduleError::BadLoopList)?;
    schedule.bind(bound, ThreadAxis::ThreadX)?;
    unroll(schedule, &found, &levels, lanes)?;
    schedule.decompose_reduction(block, levels.outer_reduction[0]).map(drop)
}

/// The parts of each spatial loop, with the dimension of the result that it runs along.
fn tiled_loops(
    schedule: &Schedule,
    block: &Block,
    levels: &Levels<'_>,
    [spatial, reduce]: [usize; 2],
) -> Result<Vec<TiledLoop>, ScheduleError> {
    let store = single_store(block).ok_or(ScheduleError::NotReduction(block.id))?;
    let elements = levels.elements;
    let of_loop = |number: usize| {
        let parts = [
            elements[number],
            levels.threads[number],
            elements[spatial + number],
            elements[2 * spatial + reduce + number],
        ];
        let all = parts.into_iter().chain([levels.blocks[number]]);
        let vars = all.map(|part| variable(schedule, part)).collect::<Result<Vec<_>, _>>()?;
        let own = block.iters.iter().find(|iter| vars.iter().any(|var| iter.binding.mentions(*var)));
        let dimension =
            own.and_then(|iter| store.indices.iter().position(|index| index.as_var() == Some(iter.var)));
        let [virtual_threads, threads, outer, inner] = parts;
        let mut extents = [0; 4];
        for (extent_of, part) in extents.iter_mut().zip([virtual_threads, threads, outer, inner]) {
            *extent_of = extent(schedule, part)?;
        }
        let is_single = own.is_none();
        match dimension {
            None if !is_single => Err(ScheduleError::NotInvertible(block.id)),
            _ => Ok(TiledLoop { dimension, parts: extents }),
        }
    };
    (0..spatial).map(of_loop).collect()
}

/// Binds the loops over blocks: all of them to one axis, or each to its own where an inner extent is symbolic. The answer is the number of
/// loops that there are now.
pub(super) fn bind_grid(schedule: &mut Schedule, loops: &[LoopRv]) -> Result<usize, ScheduleError> {
    let are_known = loops[1..].iter().all(|target| extent(schedule, *target).is_ok());
    if are_known {
        let single = fused(schedule, loops)?.ok_or(ScheduleError::BadLoopList)?;
        schedule.bind(single, ThreadAxis::BlockX)?;
        return Ok(1);
    }
    let axes = [ThreadAxis::BlockX, ThreadAxis::BlockY, ThreadAxis::BlockZ];
    if loops.len() > axes.len() {
        return Err(ScheduleError::BadLoopList);
    }
    for (target, axis) in loops.iter().rev().zip(axes) {
        schedule.bind(*target, axis)?;
    }
    Ok(loops.len())
}

/// The innermost loop, where its iterations are elements beside each other in the result that one access takes.
fn vector_loop(
    schedule: &Schedule,
    block: &Block,
    levels: &Levels<'_>,
    spatial: usize,
) -> Result<Option<LoopRv>, ScheduleError> {
    let Some(last) = levels.elements[levels.elements.len() - spatial..].last() else { return Ok(None) };
    let store = single_store(block).ok_or(ScheduleError::NotReduction(block.id))?;
    let var = variable(schedule, *last)?;
    let along = store.indices.last().and_then(|index| index.as_var());
    let is_along = block.iters.iter().any(|iter| Some(iter.var) == along && iter.binding.mentions(var));
    let is_guarded = block.guards.iter().any(|guard| guard.index.mentions(var));
    let iterations = extent(schedule, *last)?;
    let bytes = iterations * schedule.program().buffer(store.buffer).dtype.bytes() as i64;
    let suits = is_along && !is_guarded && iterations > 1 && bytes <= MAX_VECTOR_BYTES;
    Ok(suits.then_some(*last))
}

/// Unrolls the loops of one thread, so that its sums are in registers, and the inner reductions while there are not too many copies. A tile
/// that is too large for that is refused.
fn unroll(
    schedule: &mut Schedule,
    block: &Block,
    levels: &Levels<'_>,
    lanes: Option<LoopRv>,
) -> Result<(), ScheduleError> {
    let limit = UNROLL.get(&block.annotations).unwrap_or(1);
    let mut copies = 1_i64;
    for target in levels.elements.iter().rev() {
        match lanes {
            Some(lanes) if lanes == *target => schedule.vectorize(*target)?,
            _ => copies = copies.saturating_mul(unroll_one(schedule, *target)?),
        }
    }
    // Loops that lowering leaves as they are would choose the sums, which are then in memory.
    let most = LowerOptions::of(schedule.target()).max_unrolled_statements;
    if usize::try_from(copies).map_or(true, |copies| copies > most) {
        return Err(ScheduleError::BadDecision("a tile that can be written out"));
    }
    for target in levels.inner_reduction.iter().rev() {
        if copies.saturating_mul(extent(schedule, *target)?) > limit {
            break;
        }
        copies = copies.saturating_mul(unroll_one(schedule, *target)?);
    }
    Ok(())
}
