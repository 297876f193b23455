//! `enter_postproc`

use crate::schedule::argument::ArgumentVisitor;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{Schedule, ScheduleError};

/// Marks where postprocessing begins. The search mutates only what stands before the mark.
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
/// enter_postproc
/// parallel %1
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   parallel for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnterPostproc;

impl Primitive for EnterPostproc {
    const NAME: &'static str = "enter_postproc";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, _: &mut V) -> Result<(), V::Error> {
        Ok(())
    }

    fn apply(&self, _: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Marks where postprocessing begins. See [`EnterPostproc`].
    ///
    /// # Errors
    /// Never; the signature is that of every primitive.
    pub fn enter_postproc(&mut self) -> Result<(), ScheduleError> {
        self.push(EnterPostproc, None).map(drop)
    }
}
