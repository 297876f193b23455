//! Whether loops enumerate the domain of a block.

use crate::ids::{LoopId, VarId};
use crate::index::Index;
use crate::index::iter_map::{MapLevel, detect};
use crate::program::{Program, VariableKind};
use crate::schedule::ScheduleError;
use crate::schedule::find::single_block_chain;
use crate::stmt::{Block, LoopKind};

/// Checks that the loops around a block that hold it alone enumerate its domain by themselves; the answer
/// is the outermost of them, if there is one.
pub(in crate::schedule) fn check_loops(
    program: &Program,
    block: &Block,
) -> Result<Option<LoopId>, ScheduleError> {
    let chain = single_block_chain(program, block.id)?;
    let is_own = |var| chain.iter().any(|node| node.var == var);
    let mut foreign = false;
    for iter in &block.iters {
        iter.binding.for_each_var(&mut |var| foreign |= !is_own(var) && is_loop(program, var));
    }
    if foreign {
        return Err(ScheduleError::SharedLoops(block.id));
    }
    let bindings: Vec<Index> = block.iters.iter().map(|iter| iter.binding.clone()).collect();
    let loops: Vec<_> = chain.iter().map(|node| (node.var, node.extent.clone())).collect();
    let enumerates = detect(&bindings, &loops, &block.guards, MapLevel::Bijective)
        .is_ok_and(|map| map.outputs.iter().zip(&block.iters).all(|(sum, iter)| sum.covers(&iter.extent)));
    if !enumerates {
        return Err(ScheduleError::NotEnumerated(block.id));
    }
    if let Some(node) = chain.iter().find(|node| node.kind != LoopKind::Serial) {
        return Err(ScheduleError::NotSerial(node.id));
    }
    Ok(chain.first().map(|node| node.id))
}

fn is_loop(program: &Program, var: VarId) -> bool {
    program.variable(var).kind == VariableKind::Loop
}
