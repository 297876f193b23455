//! Decomposes reductions into initialisation and update.

use tilewright_core::analysis::block::sets_out_to_reduce;
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::schedule::{Schedule, ScheduleError};
use tilewright_core::stmt::{IterKind, Symbol};
use tilewright_core::visit::find_block;

use crate::cpu::postproc::find;

/// Decomposes each reduction at its outermost reduction loop, so that the inner loops update without a test for the first
/// iteration.
pub(super) fn decompose_reductions(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    let names: Vec<Symbol> = blocks(&schedule.program().body)
        .iter()
        .filter(|block| sets_out_to_reduce(block))
        .map(|block| block.name.clone())
        .collect();
    for name in names {
        let (block, id) = find(schedule, &name)?;
        let program = schedule.program();
        let found = find_block(&program.body, id).ok_or(ScheduleError::MissingBlock(id))?;
        let path = loops_around(&program.body, id).unwrap_or_default();
        let outermost = path.iter().position(|node| {
            found.iters.iter().any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(node.var))
        });
        if let Some(outermost) = outermost {
            let target = schedule.get_loops(block)?[outermost];
            schedule.decompose_reduction(block, target)?;
        }
    }
    Ok(())
}
