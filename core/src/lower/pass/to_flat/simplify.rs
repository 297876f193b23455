//! Constant folding and removal of statements that never run.

use crate::index::Ranges;
use crate::lower::util::unreached::remove_unreached;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::simplify::simplify_stmt;

/// Simplifies the whole program.
pub(in crate::lower) fn simplify(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    simplify_stmt(&mut program.body, &Ranges::new());
    remove_unreached(program);
    Ok(())
}
