//! `unannotate`

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::edit_annotations;
use crate::schedule::find::{require_block, require_loop};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockOrLoopRv, Schedule, ScheduleError};
use crate::stmt::Symbol;

/// Removes an annotation from a block or loop.
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
/// annotate block %0, "note", "text"
/// unannotate block %0, "note"
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
pub struct Unannotate {
    /// The block or loop.
    pub place: BlockOrLoopRv,
    /// The hint's name.
    pub name: Symbol,
}

impl Default for Unannotate {
    fn default() -> Self {
        Unannotate { place: BlockOrLoopRv::default(), name: "".into() }
    }
}

impl Primitive for Unannotate {
    const NAME: &'static str = "unannotate";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Place(&mut self.place))?;
        visitor.visit(Argument::Text(&mut self.name))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let annotations = match self.place {
            BlockOrLoopRv::Block(block) => {
                &require_block(context.program, context.values.block(block)?)?.annotations
            }
            BlockOrLoopRv::Loop(target) => {
                &require_loop(context.program, context.values.target_loop(target)?)?.annotations
            }
        };
        if !annotations.contains_key(&self.name) {
            return Err(ScheduleError::NoAnnotation);
        }
        edit_annotations(context, self.place, &mut |annotations| {
            annotations.remove(&self.name);
        })?;
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Removes an annotation from a block or loop. See [`Unannotate`].
    ///
    /// # Errors
    /// When the block or loop is gone or has no such hint.
    pub fn unannotate(
        &mut self,
        place: impl Into<BlockOrLoopRv>,
        name: impl AsRef<str>,
    ) -> Result<(), ScheduleError> {
        self.push(Unannotate { place: place.into(), name: name.as_ref().into() }, None).map(drop)
    }
}
