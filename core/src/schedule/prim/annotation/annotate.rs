//! `annotate`

use crate::annotation;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::edit_annotations;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::rv::AnnotationArgument;
use crate::schedule::{BlockOrLoopRv, Schedule, ScheduleError};
use crate::stmt::{Annotation, Symbol};

/// Annotates a block or loop, in place of an annotation of the same name. [`annotation`] lists the names that
/// have a meaning; others may be used as well.
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
/// %1 = get_loops %0
/// annotate loop %1, "unroll_factor", 4
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   @unroll_factor 4
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Annotate {
    /// The block or loop.
    pub place: BlockOrLoopRv,
    /// The hint's name.
    pub name: Symbol,
    /// Its value.
    pub value: AnnotationArgument,
}

impl Default for Annotate {
    fn default() -> Self {
        Annotate { place: BlockOrLoopRv::default(), name: "".into(), value: AnnotationArgument::Int(0.into()) }
    }
}

impl Primitive for Annotate {
    const NAME: &'static str = "annotate";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Place(&mut self.place))?;
        visitor.visit(Argument::Text(&mut self.name))?;
        visitor.visit(Argument::Annotation(&mut self.value))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let value = match &self.value {
            AnnotationArgument::Int(argument) => Annotation::Int(context.values.int(*argument)?),
            AnnotationArgument::Text(text) => Annotation::Text(text.clone()),
            AnnotationArgument::Numbers(numbers) => Annotation::Numbers(numbers.clone()),
        };
        annotation::check(&self.name, &value)
            .map_err(|(key, expected)| ScheduleError::AnnotationType { key, expected })?;
        edit_annotations(context, self.place, &mut |annotations| {
            annotations.insert(self.name.clone(), value.clone());
        })?;
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Annotates a block or loop. See [`Annotate`].
    ///
    /// # Errors
    /// When the block or loop is gone, or the value is of another type than the name's [key](annotation::Key) has.
    pub fn annotate(
        &mut self,
        place: impl Into<BlockOrLoopRv>,
        name: impl AsRef<str>,
        value: impl Into<AnnotationArgument>,
    ) -> Result<(), ScheduleError> {
        let value = value.into();
        self.push(Annotate { place: place.into(), name: name.as_ref().into(), value }, None).map(drop)
    }
}
