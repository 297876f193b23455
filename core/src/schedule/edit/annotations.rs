//! Annotations of blocks and loops.

use crate::schedule::edit::{edit_block, edit_loop_annotations, require_block, require_loop};
use crate::schedule::prim::Context;
use crate::schedule::{PlaceRv, ScheduleError};
use crate::stmt::Annotations;

/// Edits the annotations of a block or loop.
pub(in crate::schedule) fn edit_annotations(
    context: &mut Context<'_>,
    place: PlaceRv,
    edit: &mut dyn FnMut(&mut Annotations),
) -> Result<(), ScheduleError> {
    match place {
        PlaceRv::Block(block) => {
            let id = context.values.block(block)?;
            require_block(context.program, id)?;
            edit_block(&mut context.program.body, id, &mut |block| edit(&mut block.annotations));
        }
        PlaceRv::Loop(target) => {
            let id = context.values.target_loop(target)?;
            require_loop(context.program, id)?;
            edit_loop_annotations(&mut context.program.body, id, edit);
        }
    }
    Ok(())
}
