//! `sample_perfect_tile`

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::tiling::{Tiling, draw, repair, sample_tile};
use crate::schedule::{IntRv, LoopRv, Schedule, ScheduleError};

/// Draws factors whose product is a loop's extent, the last at most `max_innermost`.
///
/// Each prime factor of the extent is distributed over the parts independently and uniformly, as MetaSchedule
/// does. A given decision that does not fit the extent is repaired from the right: a factor that does
/// not divide the rest becomes the divisor nearest to it.
///
/// A symbolic extent has an open first part (-1), and powers of two for the others, which the split guards.
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
/// %2, %3 = sample_perfect_tile %1, 2, 4 !decision [3, 4]
/// %4, %5 = split %1, [%2, %3]
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i_0 in 0..3 {
///     for i_1 in 0..4 {
///       block b(v: spatial 12 = i_0*4 + i_1) {
///         b[v] = a[v]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplePerfectTile {
    /// The loop.
    pub target: LoopRv,
    /// The number of parts.
    pub parts: i64,
    /// The largest innermost factor.
    pub max_innermost: i64,
}

impl Primitive for SamplePerfectTile {
    const NAME: &'static str = "sample_perfect_tile";
    const PURE: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Number(&mut self.parts))?;
        visitor.visit(Argument::Number(&mut self.max_innermost))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        sample_tile(context, self.target, self.parts, self.max_innermost, Tiling { repair, draw })
    }
}

impl Schedule {
    /// Draws factors whose product is a loop's extent. See [`SamplePerfectTile`].
    ///
    /// # Errors
    /// When the loop is gone, or there are no parts.
    pub fn sample_perfect_tile(
        &mut self,
        target: LoopRv,
        parts: usize,
        max_innermost: i64,
    ) -> Result<Vec<IntRv>, ScheduleError> {
        let parts = parts as i64;
        Ok(self.push_many(SamplePerfectTile { target, parts, max_innermost })?.map(IntRv).collect())
    }
}
