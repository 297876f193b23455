//! Annotations of blocks and loops.

use crate::schedule::edit::{edit_block, edit_loop_annotations};
use crate::schedule::find::{require_block, require_loop};
use crate::schedule::prim::Context;
use crate::schedule::{BlockOrLoopRv, ScheduleError};
use crate::stmt::Annotations;

/// Edits the annotations of a block or loop.
pub(in crate::schedule) fn edit_annotations(
    context: &mut Context<'_>,
    place: BlockOrLoopRv,
    edit: &mut dyn FnMut(&mut Annotations),
) -> Result<(), ScheduleError> {
    match place {
        BlockOrLoopRv::Block(block) => {
            let id = context.values.block(block)?;
            require_block(context.program, id)?;
            edit_block(&mut context.program.body, id, &mut |block| edit(&mut block.annotations));
        }
        BlockOrLoopRv::Loop(target) => {
            let id = context.values.target_loop(target)?;
            require_loop(context.program, id)?;
            edit_loop_annotations(&mut context.program.body, id, edit);
        }
    }
    Ok(())
}
