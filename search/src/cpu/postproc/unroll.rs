//! Unrolls the inner loops of each block.

use std::sync::Arc;

use tilewright_core::analysis::block::reads;
use tilewright_core::analysis::region::{AccessKind, bound_accesses};
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::annotation::{UNROLL, UNROLL_FACTOR, UNROLL_REDUCTION};
use tilewright_core::ids::BlockId;
use tilewright_core::index::Index;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, ScheduleError};
use tilewright_core::stmt::{Block, For, IterKind, LoopKind, Stmt};
use tilewright_core::visit::find_block;

use crate::cpu::postproc::{block_names, find, nest_annotation};

/// Unrolls, from the inside, the spatial loops of each block that hold it alone, then short loops over the taps of a filter,
/// while the copies stay within the nest's annotation; then gives the reduction loop around them an unroll factor.
pub(super) fn unroll_blocks(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    for name in block_names(schedule) {
        let (block, id) = find(schedule, &name)?;
        let Some(unrolling) = choose_unrolling(schedule.program(), id) else { continue };
        if unrolling.unrolled == 0 && unrolling.reduction.is_none() {
            continue;
        }
        let loops = schedule.get_loops(block)?;
        for target in &loops[unrolling.end - unrolling.unrolled..unrolling.end] {
            schedule.unroll(*target)?;
        }
        if let Some((position, factor)) = unrolling.reduction {
            schedule.annotate(loops[position], UNROLL_FACTOR, factor)?;
        }
    }
    Ok(())
}

/// The loops around a block that are unrolled.
struct Unrolling {
    /// One past the innermost loop to unroll.
    end: usize,
    /// The number of loops to unroll, ending there.
    unrolled: usize,
    /// The position of the reduction loop around them, and its unroll factor.
    reduction: Option<(usize, i64)>,
}

fn choose_unrolling(program: &Program, id: BlockId) -> Option<Unrolling> {
    let block = find_block(&program.body, id)?;
    let path = loops_around(&program.body, id)?;
    let settings = blocks(&path.first()?.body);
    let limit = nest_annotation(&settings, UNROLL)?;
    let steps = nest_annotation(&settings, UNROLL_REDUCTION).unwrap_or(1);
    let reduces = |node: &For| {
        block.iters.iter().any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(node.var))
    };
    let mut end = path.len();
    if path.last().is_some_and(|node| node.kind == LoopKind::Vectorized) {
        end -= 1;
    }
    let mut copies = 1;
    let spatial = count_inner(&path[..end], limit, &mut copies, &|node, _| !reduces(node));
    let (outer, unrolled_loops) = path[..end].split_at(end - spatial);
    let is_short_tap =
        |node: &For, extent| extent <= steps && reduces(node) && is_tap(block, node, unrolled_loops);
    let unrolled = spatial + count_inner(outer, limit, &mut copies, &is_short_tap);
    let around = end - unrolled;
    let reduction = around.checked_sub(1).filter(|position| {
        let node = path[*position];
        is_unrollable(node)
            && reduces(node)
            && steps > 1
            && copies.saturating_mul(steps) <= limit.max(steps)
            && node.extent.as_constant().is_some_and(|extent| extent >= steps)
    });
    Some(Unrolling { end, unrolled, reduction: reduction.map(|position| (position, steps)) })
}

/// Whether a loop runs over the taps of a filter: it slides a window over an input of the block, in the same dimension as one of the
/// unrolled loops inside it. Unrolling it as well lets the copies share loads.
fn is_tap(block: &Block, node: &For, unrolled_loops: &[&Arc<For>]) -> bool {
    let read = reads(block).into_iter().flat_map(|buffer| bound_accesses(block, buffer, AccessKind::Read));
    let slides = |index: Index| {
        index.mentions(node.var) && unrolled_loops.iter().any(|inside| index.mentions(inside.var))
    };
    read.flatten().any(slides)
}

/// The number of innermost loops that are wanted, or have a single iteration, and can be unrolled with no more than `limit`
/// copies together.
fn count_inner(
    path: &[&Arc<For>],
    limit: i64,
    copies: &mut i64,
    is_wanted: &dyn Fn(&For, i64) -> bool,
) -> usize {
    let inner = path.iter().rev().take_while(|node| {
        let Some(extent) = node.extent.as_constant() else { return false };
        let all = copies.saturating_mul(extent);
        let is_wanted = extent == 1 || is_wanted(node, extent);
        let fits = all <= limit && is_unrollable(node) && is_wanted;
        *copies = if fits { all } else { *copies };
        fits
    });
    inner.count()
}

/// Whether a loop is serial and holds a single loop or block.
fn is_unrollable(node: &For) -> bool {
    node.kind == LoopKind::Serial && matches!(&node.body, Stmt::For(_) | Stmt::Block(_))
}
