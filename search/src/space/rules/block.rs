//! Properties of blocks that the rules of every device use.

use std::sync::Arc;

use tilewright_core::analysis::block::{
    complete_store, is_ordered, is_reduction, is_spatial, reduction, single_store, writes,
};
use tilewright_core::analysis::constant::constant_blocks;
use tilewright_core::analysis::scope::{blocks, loops_around, writers, writes_parameter};
use tilewright_core::annotation::TILING;
use tilewright_core::expr::Indices;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::program::{Access, Program};
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, For, Iter, IterKind};
use tilewright_core::visit::find_block;

/// The block that a variable stands for.
pub(crate) fn block_of(schedule: &Schedule, block: BlockRv) -> Result<Arc<Block>, ScheduleError> {
    let id = schedule.values().block(block)?;
    find_block(&schedule.program().body, id).cloned().ok_or(ScheduleError::MissingBlock(id))
}

/// The loop that an iterator of a block is bound to, by its position; `None` when its binding is no loop alone.
pub(crate) fn loop_of(
    schedule: &mut Schedule,
    block: BlockRv,
    iter: usize,
) -> Result<Option<LoopRv>, ScheduleError> {
    let found = block_of(schedule, block)?;
    let path = loops_around(&schedule.program().body, found.id).unwrap_or_default();
    let binding = found.iters[iter].binding.as_var();
    let position = path.iter().position(|node| Some(node.var) == binding);
    let loops = schedule.get_loops(block)?;
    Ok(position.and_then(|position| loops.get(position).copied()))
}

/// The operands of a block that are constant parameters, or are computed from constant parameters alone.
pub(crate) fn constant_operands(program: &Program, block: &Block) -> Vec<BufferId> {
    use tilewright_core::analysis::block::reads;
    use tilewright_core::analysis::scope::writers;
    let ahead = constant_blocks(program);
    let is_constant = |buffer: &BufferId| match program.access(*buffer) {
        Some(access) => access == Access::Constant,
        None => {
            let mut makers = writers(program, *buffer).into_iter();
            makers.next().is_some_and(|maker| ahead.contains(&maker.id))
        }
    };
    // A block that runs ahead of calls itself does not need another layout.
    if ahead.contains(&block.id) {
        Vec::new()
    } else {
        reads(block).into_iter().filter(is_constant).collect()
    }
}

/// Whether the loops around a block hold no other block.
pub(crate) fn has_own_loops(program: &Program, block: &Block) -> bool {
    let path = loops_around(&program.body, block.id).unwrap_or_default();
    path.first().is_some_and(|outermost| blocks(&outermost.body).len() == 1)
}

/// The loops around a block that hold no other block, outermost first.
fn own_nodes<'p>(program: &'p Program, block: &Block) -> Vec<&'p Arc<For>> {
    let path = loops_around(&program.body, block.id).unwrap_or_default();
    path.into_iter().skip_while(|node| blocks(&node.body).len() != 1).collect()
}

/// The loops around a block that hold no other block, outermost first.
pub(crate) fn own_loops(schedule: &mut Schedule, block: BlockRv) -> Result<Vec<LoopRv>, ScheduleError> {
    let own = own_nodes(schedule.program(), &*block_of(schedule, block)?).len();
    let mut all = schedule.get_loops(block)?;
    Ok(all.split_off(all.len() - own))
}

/// The number of points that the own loops of a block enumerate, as far as it is known.
pub(crate) fn own_points(program: &Program, block: &Block) -> i64 {
    let extents = own_nodes(program, block).into_iter().filter_map(|node| node.extent.as_constant());
    extents.fold(1, i64::saturating_mul)
}

/// Whether a block is a reduction of one step of a recurrence: its own loops are inside of the loop over the steps, and each of
/// them is one iterator, or the innermost part of one, and none of another.
pub(crate) fn is_reduction_of_step(program: &Program, block: &Block) -> bool {
    let has_one_iter = |node: &Arc<For>| {
        let mut following = block.iters.iter().filter(|iter| iter.binding.mentions(node.var));
        following.next().is_some_and(|iter| {
            iter.kind != IterKind::Ordered && iter.binding.linear_coefficient(node.var) == Some(1)
        }) && following.next().is_none()
    };
    let own = own_nodes(program, block);
    let has_one_loop = |iter: &Iter| own.iter().filter(|node| iter.binding.mentions(node.var)).count() <= 1;
    is_ordered(block)
        && reduction(block).is_some()
        && block.init.is_some()
        && writes(block).len() == 1
        && !own.is_empty()
        && own.iter().all(|node| node.extent.is(1) || has_one_iter(node))
        && block.iters.iter().all(has_one_loop)
}

/// Whether each iterator equals one loop variable, each a different one, or is 0.
pub(crate) fn has_trivial_bindings(block: &Block) -> bool {
    let mut seen: Vec<VarId> = Vec::new();
    block.iters.iter().all(|iter| match iter.binding.as_var() {
        Some(var) if !seen.contains(&var) => {
            seen.push(var);
            true
        }
        Some(_) => false,
        None => iter.binding.is(0),
    })
}

/// Whether a rule may tile the loops of a block: they hold no other block, and neither an order nor a structure is given.
pub(crate) fn has_free_loops(program: &Program, block: &Block) -> bool {
    !is_ordered(block)
        && has_own_loops(program, block)
        && has_trivial_bindings(block)
        && !TILING.is_in(&block.annotations)
}

/// Whether a block can be the last one of several that are computed together for some rows of its result.
pub(crate) fn can_end_rows(program: &Program, block: &Block) -> bool {
    is_spatial(block) && single_store(block).is_some() && has_free_loops(program, block)
}

/// Whether a block can be computed for some rows, before a block that ends them: a reduction, or one value for each element, of a buffer of
/// its own.
pub(crate) fn can_precede_rows(program: &Program, block: &Block) -> bool {
    let makes_one = |buffer| writers(program, buffer).len() == 1;
    (is_reduction(block) || complete_store(block).is_some())
        && !writes_parameter(program, block)
        && writes(block).len() == 1
        && single_store(block).is_some_and(|store| makes_one(store.buffer))
        && has_free_loops(program, block)
}

/// The number of points of a block's domain; `None` when an extent is symbolic.
pub(crate) fn points(block: &Block) -> Option<i64> {
    block.iters.iter().try_fold(1_i64, |points, iter| points.checked_mul(iter.extent.as_constant()?))
}

/// The number of points of the iterators of one kind; `None` when an extent is symbolic.
pub(crate) fn domain_size(block: &Block, kind: IterKind) -> Option<i64> {
    let iters = block.iters.iter().filter(|iter| iter.kind == kind);
    iters.map(|iter| iter.extent.as_constant()).try_fold(1i64, |size, extent| size.checked_mul(extent?))
}

/// Whether a reduction uses elements of an operand more than once: they depend on a reduction iterator, and some spatial iterator
/// leaves them unchanged. An operand that no reduction iterator moves is loaded once for the whole reduction anyway.
pub(crate) fn is_used_again(block: &Block, indices: &Indices) -> bool {
    let with_points = |kind: IterKind| {
        block.iters.iter().filter(move |iter| iter.kind == kind && !iter.extent.is(1)).map(|iter| iter.var)
    };
    let mentions = |var: VarId| indices.iter().any(|index| index.mentions(var));
    with_points(IterKind::Reduce).any(mentions) && !with_points(IterKind::Spatial).all(mentions)
}

/// Whether multi-level tiling of a block can increase reuse in a cache: it is a reduction, and uses elements of some operand
/// again.
pub(crate) fn needs_multi_level_tiling(program: &Program, block: &Block) -> bool {
    use tilewright_core::analysis::block::loads;
    let Some(found) = reduction(block).filter(|_| !is_ordered(block)) else { return false };
    if writes(block).len() != 1 || block.init.is_none() || !has_trivial_bindings(block) {
        return false;
    }
    let output = found.store.buffer;
    let operands: Vec<_> = loads(&block.body).into_iter().filter(|access| access.buffer != output).collect();
    !program.buffer(output).shape.is_empty()
        && operands.iter().any(|access| is_used_again(block, access.indices))
}

/// Whether vectors of a reduction run along its output: neighbours along the last index of the output read neighbours of each operand
/// that depends on this index, and of one at least. So it is for sums of columns, for windows of channels that lie innermost, and for
/// windows that move along a row by one element and are shorter than it. The loops as written have the reduction inside.
pub(crate) fn reduces_across_rows(block: &Block) -> bool {
    use tilewright_core::analysis::block::loads;
    let Some(found) = reduction(block).filter(|_| !is_ordered(block)) else { return false };
    if writes(block).len() != 1 || block.init.is_none() || !has_trivial_bindings(block) {
        return false;
    }
    let Some(lane) = found.store.indices.last().and_then(Index::as_var) else { return false };
    let Some(own) = block.iters.iter().find(|iter| iter.var == lane && !iter.extent.is(1)) else {
        return false;
    };
    let mut dependent = loads(&block.body)
        .into_iter()
        .filter(|access| access.buffer != found.store.buffer)
        .filter(|access| access.indices.iter().any(|index| index.mentions(lane)))
        .peekable();
    dependent.peek().is_some()
        && dependent.all(|access| {
            access.indices.split_last().is_some_and(|(last, rest)| {
                runs_along(block, own, last) && !rest.iter().any(|index| index.mentions(lane))
            })
        })
}

/// Whether an index is an iterator, or moves by one element with it and reaches less far in a reduction than the iterator does: a window. A
/// part of a sum that vectors share out reaches further, and is no row.
fn runs_along(block: &Block, own: &Iter, index: &Index) -> bool {
    if index.as_var() == Some(own.var) {
        return true;
    }
    let reach_of = |iter: &Iter| {
        let coefficient = index.linear_coefficient(iter.var)?;
        if coefficient == 0 { Some(0) } else { Some(coefficient.abs() * (iter.extent.as_constant()? - 1)) }
    };
    let reduced = block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
    let reach: Option<i64> = reduced.map(reach_of).sum();
    let is_short = |reach: i64| own.extent.as_constant().is_none_or(|extent| reach < extent);
    index.linear_coefficient(own.var) == Some(1) && reach.is_some_and(is_short)
}

/// Whether splitting the reduction itself can help: the spatial loops have too few iterations for all workers, or the block
/// has no data reuse.
pub(crate) fn needs_rfactor(program: &Program, block: &Block, max_parallel: i64) -> bool {
    use tilewright_core::analysis::block::is_reduction;
    if !is_reduction(block) || !has_trivial_bindings(block) {
        return false;
    }
    let (Some(space), Some(reduce)) =
        (domain_size(block, IterKind::Spatial), domain_size(block, IterKind::Reduce))
    else {
        return false;
    };
    if needs_multi_level_tiling(program, block) {
        space < reduce && space <= max_parallel
    } else {
        reduce > 1
    }
}
