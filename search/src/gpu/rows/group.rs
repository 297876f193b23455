//! The blocks that compute the rows of a result, step by step.

use std::sync::Arc;

use tilewright_core::analysis::block::{complete_store, is_reduction, loads, single_store};
use tilewright_core::analysis::constant::constant_blocks;
use tilewright_core::analysis::scope::{blocks, consumers, producers};
use tilewright_core::ids::{BlockId, BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::program::Program;
use tilewright_core::stmt::{Block, IterKind, Symbol};

use crate::space::rules::block::{can_end_rows, can_precede_rows, domain_size, needs_multi_level_tiling};

/// The steps before the last one, and the iterators that choose a row.
pub(super) struct Group {
    /// The steps before the last one, in the order in which they are computed.
    pub(super) steps: Vec<Step>,
    /// The iterators of the last step that choose a row.
    pub(super) rows: Vec<VarId>,
}

/// A step before the last one.
pub(super) struct Step {
    pub(super) name: Symbol,
    pub(super) is_reduction: bool,
    /// The values of a row that a reduction combines; those of all rows that another step computes.
    pub(super) values: i64,
}

/// The group of a block that writes elements which depend on reductions of their rows; `None` where the block has none.
pub(super) fn group_of(program: &Program, last: &Arc<Block>) -> Option<Group> {
    if !can_end_rows(program, last) {
        return None;
    }
    let members = members(program, last);
    let reductions = members.iter().filter(|member| is_reduction(member));
    let results: Vec<BufferId> = reductions.filter_map(|member| result(member)).collect();
    let rows = rows_of(last, &members, &results)?;
    let step = |block: &Arc<Block>| {
        let is_reduction = is_reduction(block);
        let kind = if is_reduction { IterKind::Reduce } else { IterKind::Spatial };
        let values = domain_size(block, kind)?;
        Some(Step { name: block.name.clone(), is_reduction, values })
    };
    let steps = members.iter().map(step).collect::<Option<Vec<_>>>()?;
    Some(Group { steps, rows })
}

fn result(block: &Block) -> Option<BufferId> {
    single_store(block).map(|store| store.buffer)
}

/// The producers of a block that serve it alone, directly or through each other, in the order of the program.
fn members(program: &Program, last: &Arc<Block>) -> Vec<Arc<Block>> {
    let ahead = constant_blocks(program);
    let mut found: Vec<BlockId> = vec![last.id];
    let mut pending = vec![last.clone()];
    while let Some(consumer) = pending.pop() {
        for producer in producers(program, &consumer) {
            if !found.contains(&producer.id) && suits(program, producer) && !ahead.contains(&producer.id) {
                found.push(producer.id);
                pending.push(producer.clone());
            }
        }
    }
    let mut members: Vec<Arc<Block>> =
        blocks(&program.body).into_iter().filter(|block| found.contains(&block.id)).cloned().collect();
    // A block with another consumer has to be computed before all of them.
    let serves_others = |members: &[Arc<Block>], block: &Block| {
        let is_member = |id: BlockId| members.iter().any(|member| member.id == id);
        block.id != last.id && consumers(program, block).iter().any(|consumer| !is_member(consumer.id))
    };
    while let Some(position) = members.iter().position(|member| serves_others(&members, member)) {
        members.remove(position);
    }
    members.retain(|member| member.id != last.id);
    members
}

/// Whether a block can be a step: a reduction, or one value for each element.
fn suits(program: &Program, block: &Block) -> bool {
    let reduces = is_reduction(block) && !needs_multi_level_tiling(program, block);
    (reduces || complete_store(block).is_some()) && can_precede_rows(program, block)
}

/// The iterators of a step that choose a row: those by which it loads the results of reductions, and the results of steps that depend on
/// reductions. `None` where it depends on none.
fn rows_of(step: &Block, members: &[Arc<Block>], results: &[BufferId]) -> Option<Vec<VarId>> {
    let mut rows: Option<Vec<VarId>> = None;
    for access in loads(&step.body) {
        let Some(producer) = members.iter().find(|member| result(member) == Some(access.buffer)) else {
            continue;
        };
        if producer.id == step.id {
            continue;
        }
        let of_access: Vec<VarId> = if results.contains(&access.buffer) {
            access.indices.iter().filter_map(Index::as_var).collect()
        } else {
            let Some(of_producer) = rows_of(producer, members, results) else { continue };
            let Some(store) = single_store(producer) else { continue };
            let is_row = |index: &Index| index.as_var().is_some_and(|var| of_producer.contains(&var));
            let pairs = store.indices.iter().zip(access.indices);
            pairs.filter(|(own, _)| is_row(own)).filter_map(|(_, index)| index.as_var()).collect()
        };
        rows = Some(match rows {
            None => of_access,
            Some(rows) => rows.into_iter().filter(|var| of_access.contains(var)).collect(),
        });
    }
    rows
}
