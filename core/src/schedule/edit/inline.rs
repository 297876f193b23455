//! A block computed in its consumers.

use crate::analysis::block::complete_store;
use crate::expr::{Expr, Indices};
use crate::ids::BlockId;
use crate::index::Index;
use crate::program::Program;
use crate::schedule::ScheduleError;
use crate::schedule::check::inline::check_inline;
use crate::schedule::edit::{edit_block, remove_block, replace_loads};
use crate::schedule::find::require_block;
use crate::visit::substitute_expr;

/// Inlines a block into its consumers.
pub(in crate::schedule) fn inline_block(program: &mut Program, id: BlockId) -> Result<(), ScheduleError> {
    let block = require_block(program, id)?.clone();
    let readers = check_inline(program, &block)?;
    let store = complete_store(&block).ok_or(ScheduleError::NotComplete(id))?;
    let expand = |indices: &Indices| -> Expr {
        let value_of = |var| {
            let dimension = store.indices.iter().position(|index| index.as_var() == Some(var));
            match dimension {
                Some(dimension) => Some(indices[dimension].clone()),
                // An iterator that the store does not mention has extent 1.
                None => block.iters.iter().any(|iter| iter.var == var).then(|| Index::constant(0)),
            }
        };
        substitute_expr(&store.value, &value_of)
    };
    remove_block(&mut program.body, id);
    for reader in readers {
        edit_block(&mut program.body, reader, &mut |block| {
            for part in block.init.iter_mut().chain([&mut block.body]) {
                replace_loads(part, store.buffer, &expand);
            }
        });
    }
    Ok(())
}
