//! `get_block`

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::Symbol;
use crate::visit::for_each_block;

/// Finds a block by its name.
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
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GetBlock {
    /// The block's name.
    pub name: Symbol,
}

impl Default for GetBlock {
    fn default() -> Self {
        GetBlock { name: "".into() }
    }
}

impl Primitive for GetBlock {
    const NAME: &'static str = "get_block";
    const PURE: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Text(&mut self.name))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let mut found = None;
        for_each_block(&context.program.body, &mut |block| {
            if found.is_none() && block.name == self.name {
                found = Some(block.id);
            }
        });
        Ok(Outputs::from_slice(&[Value::Block(found.ok_or(ScheduleError::UnknownBlock)?)]))
    }
}

impl Schedule {
    /// Finds a block by its name. See [`GetBlock`].
    ///
    /// # Errors
    /// When there is none.
    pub fn get_block(&mut self, name: &str) -> Result<BlockRv, ScheduleError> {
        self.push_one(GetBlock { name: name.into() }).map(BlockRv)
    }
}
