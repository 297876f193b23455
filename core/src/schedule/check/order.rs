//! Whether recurrences stay in order.
//!
//! The points of an [ordered iterator](IterKind::Ordered) follow each other, and all blocks inside of a loop that executes them
//! take part in each of its iterations. Primitives that were not made with this in mind refuse such blocks and loops as a
//! whole. The others keep the order of all loops, but for `reorder` and `sink_loop`, which ask [`check_reorder`] and [`check_apart`].

use std::sync::Arc;

use crate::analysis::block::{BufferAccess, all_loads, is_ordered, is_ordered_by, stores, writes};
use crate::analysis::scope::blocks;
use crate::ids::{BlockId, LoopId, VarId};
use crate::index::Index;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::prim::Instruction;
use crate::schedule::{BlockOrLoopRv, BlockRv, LoopRv, ScheduleError, Values};
use crate::stmt::{Block, For, IterKind};
use crate::visit::{find_block, find_loop};

/// Checks that a primitive which may change the order of points is not applied to a recurrence.
pub(in crate::schedule) fn check_order_kept(
    program: &Program,
    instruction: &Instruction,
    values: &Values,
) -> Result<(), ScheduleError> {
    if instruction.keeps_order() || !blocks(&program.body).iter().any(|block| is_ordered(block)) {
        return Ok(());
    }
    let mut places = Places { values, blocks: Vec::new(), loops: Vec::new() };
    instruction.clone().arguments(&mut places)?;
    let named = places.blocks.iter().filter_map(|id| find_block(&program.body, *id));
    let inside = places.loops.iter().filter_map(|id| find_loop(&program.body, *id));
    let all = named.chain(inside.flat_map(|node| blocks(&node.body)));
    match all.into_iter().find(|block| is_ordered(block)) {
        Some(block) => Err(ScheduleError::OrderedBlock(block.id)),
        None => Ok(()),
    }
}

/// The blocks and loops that a primitive is applied to.
struct Places<'v> {
    values: &'v Values,
    blocks: Vec<BlockId>,
    loops: Vec<LoopId>,
}

impl ArgumentVisitor for Places<'_> {
    type Error = ScheduleError;

    fn visit(&mut self, argument: Argument<'_>) -> Result<(), ScheduleError> {
        let (mut blocks, mut loops): (Vec<BlockRv>, Vec<LoopRv>) = (Vec::new(), Vec::new());
        match argument {
            Argument::Block(block) | Argument::Place(BlockOrLoopRv::Block(block)) => blocks.push(*block),
            Argument::Blocks(all) => blocks.clone_from(all),
            Argument::Loop(target) | Argument::Place(BlockOrLoopRv::Loop(target)) => loops.push(*target),
            Argument::Loops(all) => loops.clone_from(all),
            _ => {}
        }
        for block in blocks {
            self.blocks.push(self.values.block(block)?);
        }
        self.loops.extend(self.values.loops(&loops)?);
        Ok(())
    }
}

/// Checks that the loops of a chain may be put into another order: a loop over points that follow each other changes places
/// only with loops whose iterations never meet in an element.
pub(in crate::schedule) fn check_reorder(
    chain: &[Arc<For>],
    reordered: &[LoopId],
) -> Result<(), ScheduleError> {
    let Some(innermost) = chain.last() else { return Ok(()) };
    let inside = blocks(&innermost.body);
    let place = |node: &For| reordered.iter().position(|id| *id == node.id);
    for (depth, outer) in chain.iter().enumerate() {
        for inner in chain[depth + 1..].iter().filter(|inner| place(inner) < place(outer)) {
            let ordered_by = |node: &For| inside.iter().find(|block| is_ordered_by(block, node.var));
            let (block, other) = match (ordered_by(outer), ordered_by(inner)) {
                (None, None) => continue,
                (Some(block), None) => (block, inner),
                (None, Some(block)) => (block, outer),
                (Some(block), Some(_)) => {
                    return Err(ScheduleError::OrderedLoop { target: inner.id, block: block.id });
                }
            };
            if !keeps_apart(&inside, other.var) {
                return Err(ScheduleError::OrderedLoop { target: outer.id, block: block.id });
            }
        }
    }
    Ok(())
}

/// Checks that the iterations of a loop around these blocks never meet in an element that one of them writes.
pub(in crate::schedule) fn check_apart(inside: &[&Arc<Block>], target: &For) -> Result<(), ScheduleError> {
    match inside.first() {
        Some(block) if !target.extent.is(1) && !keeps_apart(inside, target.var) => {
            Err(ScheduleError::OrderedLoop { target: target.id, block: block.id })
        }
        _ => Ok(()),
    }
}

/// Whether iterations of a loop never meet in an element that one of the blocks writes: some dimension of each such buffer is
/// indexed by one spatial iterator that the loop is a part of, and by nothing else.
fn keeps_apart(inside: &[&Arc<Block>], var: VarId) -> bool {
    let Some(first) = inside.first().and_then(|block| spatial_iter(block, var)) else { return false };
    let binding = &first.1;
    let same = |block: &&Arc<Block>| spatial_iter(block, var).is_some_and(|(_, other)| other == *binding);
    if !inside.iter().all(same) {
        return false;
    }
    let accesses: Vec<(Index, BufferAccess<'_>)> = inside
        .iter()
        .flat_map(|block| {
            let own = spatial_iter(block, var).map_or(Index::constant(0), |(iter, _)| Index::var(iter));
            let stored = block.init.iter().chain([&block.body]).flat_map(stores);
            let stored = stored.map(|store| BufferAccess { buffer: store.buffer, indices: &store.indices });
            all_loads(block).into_iter().chain(stored).map(move |access| (own.clone(), access))
        })
        .collect();
    inside.iter().flat_map(|block| writes(block)).all(|buffer| {
        let own: Vec<_> = accesses.iter().filter(|(_, access)| access.buffer == buffer).collect();
        let rank = own.first().map_or(0, |(_, access)| access.indices.len());
        (0..rank).any(|dimension| own.iter().all(|(iter, access)| access.indices[dimension] == *iter))
    })
}

/// The spatial iterator that alone depends on a loop, with its binding.
fn spatial_iter(block: &Block, var: VarId) -> Option<(VarId, Index)> {
    let mut own = block.iters.iter().filter(|iter| iter.binding.mentions(var));
    let (iter, more) = (own.next()?, own.next());
    let is_linear = iter.binding.linear_coefficient(var).is_some_and(|coefficient| coefficient != 0);
    (more.is_none() && is_linear && iter.kind == IterKind::Spatial).then(|| (iter.var, iter.binding.clone()))
}
