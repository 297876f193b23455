//! `add_unit_loop`

use crate::index::Index;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{edit_block_stmt, edit_loop, fresh_loop, nest};
use crate::schedule::find::{require_block, require_loop};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, BlockOrLoopRv, Schedule, ScheduleError, Value};
use crate::stmt::Stmt;

/// Puts a loop of one iteration around a block or loop, so that other blocks can be computed at it.
///
/// ```text
/// before
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = add_unit_loop block %0
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i in 0..12 {
///     for u in 0..1 {
///       block b(v: spatial 12 = i) {
///         b[v] = a[v]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddUnitLoop {
    /// The block or loop that the new loop goes around.
    pub place: BlockOrLoopRv,
}

impl Primitive for AddUnitLoop {
    const NAME: &'static str = "add_unit_loop";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Place(&mut self.place))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let program = &mut *context.program;
        // Checked before anything is made.
        let (block, target) = match self.place {
            BlockOrLoopRv::Block(block) => (Some(require_block(program, context.values.block(block)?)?.id), None),
            BlockOrLoopRv::Loop(target) => {
                (None, Some(require_loop(program, context.values.target_loop(target)?)?.id))
            }
        };
        let unit = fresh_loop(program, &"u".into(), Index::constant(1));
        let made = Value::Loop(unit.id);
        let mut unit = Some(unit);
        let mut wrap = |stmt: &mut Stmt| {
            if let Some(unit) = unit.take() {
                *stmt = nest(vec![unit], stmt.clone());
            }
        };
        if let Some(id) = block {
            edit_block_stmt(&mut program.body, id, &mut wrap);
        }
        if let Some(id) = target {
            edit_loop(&mut program.body, id, &mut wrap);
        }
        Ok(Outputs::from_slice(&[made]))
    }
}

impl Schedule {
    /// Puts a loop of one iteration around a block or loop, and gives the loop. See [`AddUnitLoop`].
    ///
    /// # Errors
    /// When the block or loop is gone.
    pub fn add_unit_loop(&mut self, place: impl Into<BlockOrLoopRv>) -> Result<LoopRv, ScheduleError> {
        self.push_one(AddUnitLoop { place: place.into() }).map(LoopRv)
    }
}
