//! `sample_covering_tile`

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::tiling::{Tiling, draw, repair, sample_tile};
use crate::schedule::{IntRv, LoopRv, Rng, Schedule, ScheduleError};

/// Draws factors that cover a loop's extent and need not divide it, the last at most `max_innermost`. The split guards what
/// is beyond.
///
/// The last factor is drawn among those of which whole multiples exceed the extent by an eighth at most; the others multiply
/// to how often it is needed, drawn as `sample_perfect_tile` does. Prime extents get tiles in this way. A given decision
/// keeps its last factor, and the others are repaired as those of `sample_perfect_tile`, which also says what becomes of
/// symbolic extents.
///
/// ```text
/// before
/// kernel copy(in a: f32[13], out b: f32[13]) {
///   for i in 0..13 {
///     block b(v: spatial 13 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = get_loops %0
/// %2, %3 = sample_covering_tile %1, 2, 8 !decision [2, 7]
/// %4, %5 = split %1, [%2, %3]
/// after
/// kernel copy(in a: f32[13], out b: f32[13]) {
///   for i_0 in 0..2 {
///     for i_1 in 0..7 {
///       block b(v: spatial 13 = i_0*7 + i_1) where i_0*7 + i_1 < 13 {
///         b[v] = a[v]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleCoveringTile {
    /// The loop.
    pub target: LoopRv,
    /// The number of parts.
    pub parts: i64,
    /// The largest innermost factor.
    pub max_innermost: i64,
}

/// The most that tiles drawn afresh may stand out, as the extent over this.
const MAX_EXCESS: i64 = 8;

impl Primitive for SampleCoveringTile {
    const NAME: &'static str = "sample_covering_tile";
    const PURE: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Number(&mut self.parts))?;
        visitor.visit(Argument::Number(&mut self.max_innermost))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        if self.parts < 2 {
            return Err(ScheduleError::BadFactors(context.values.target_loop(self.target)?));
        }
        let tiling = Tiling { repair: cover, draw: draw_cover };
        sample_tile(context, self.target, self.parts, self.max_innermost, tiling)
    }
}

/// Makes factors cover `extent` as tightly as the last one allows.
fn cover(extent: i64, mut factors: Vec<i64>, max_innermost: i64) -> Vec<i64> {
    let innermost = factors.pop().unwrap_or(1).clamp(1, max_innermost.min(extent));
    let mut factors = repair(tiles(extent, innermost), factors, i64::MAX);
    factors.push(innermost);
    factors
}

/// How many tiles cover an extent.
fn tiles(extent: i64, tile: i64) -> i64 {
    (extent - 1) / tile + 1
}

fn draw_cover(extent: i64, parts: usize, max_innermost: i64, rng: &mut Rng) -> Vec<i64> {
    let fits = |tile: &i64| tiles(extent, *tile) * tile - extent <= extent / MAX_EXCESS;
    let fitting: Vec<i64> = (1..=max_innermost.min(extent)).filter(fits).collect();
    let innermost = fitting[rng.below(fitting.len())];
    let mut factors = draw(tiles(extent, innermost), parts - 1, i64::MAX, rng);
    factors.push(innermost);
    factors
}

impl Schedule {
    /// Draws factors that cover a loop's extent. See [`SampleCoveringTile`].
    ///
    /// # Errors
    /// When the loop is gone, or there are fewer than two parts.
    pub fn sample_covering_tile(
        &mut self,
        target: LoopRv,
        parts: usize,
        max_innermost: i64,
    ) -> Result<Vec<IntRv>, ScheduleError> {
        let parts = parts as i64;
        Ok(self.push_many(SampleCoveringTile { target, parts, max_innermost })?.map(IntRv).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_tightly() {
        assert_eq!(cover(109, vec![1, 14, 1, 8], 32), [1, 14, 1, 8]);
        assert_eq!(cover(109, vec![3, 3, 3, 8], 32), [1, 7, 2, 8]);
        assert_eq!(cover(109, vec![1, 1, 64], 32), [4, 1, 32]);
        assert_eq!(cover(5, vec![1, 64], 32), [1, 5]);
        assert_eq!(cover(1, vec![0, -7], 32), [1, 1]);
        let mut rng = Rng::new(3);
        for extent in [1, 2, 13, 109, 197, 1009] {
            for round in 0..100 {
                let factors = draw_cover(extent, 3, 32, &mut rng);
                let covered: i64 = factors.iter().product();
                assert!(factors[2] <= 32, "{extent}, round {round}: {factors:?}");
                assert!(
                    (extent..=extent + extent / MAX_EXCESS).contains(&covered),
                    "{extent}, round {round}: {factors:?}"
                );
            }
        }
    }
}
