//! `sample_partitioned_tile`

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::tiling::{MAX_PARTS, draw, given_factors, repair};
use crate::schedule::{Decision, IntRv, LoopRv, Schedule, ScheduleError, Value};

/// Draws factors whose product is a loop's extent, where those from `position` on multiply to a multiple of
/// `inner_factor`, such as the size of a tensor intrinsic or of a group of threads.
///
/// A given decision that does not fit is repaired as that of `sample_perfect_tile` is, for the extent divided by the
/// inner factor.
///
/// ```text
/// before
/// kernel copy(in a: f32[48], out b: f32[48]) {
///   for i in 0..48 {
///     block b(v: spatial 48 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = get_loops %0
/// %2, %3, %4 = sample_partitioned_tile %1, 3, 1, 8 !decision [3, 2, 8]
/// %5, %6, %7 = split %1, [%2, %3, %4]
/// after
/// kernel copy(in a: f32[48], out b: f32[48]) {
///   for i_0 in 0..3 {
///     for i_1 in 0..2 {
///       for i_2 in 0..8 {
///         block b(v: spatial 48 = i_0*16 + i_1*8 + i_2) {
///           b[v] = a[v]
///         }
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplePartitionedTile {
    /// The loop, of constant extent.
    pub target: LoopRv,
    /// The number of parts.
    pub parts: i64,
    /// The first of the inner parts, from 0.
    pub position: i64,
    /// The divisor of the product of the inner parts.
    pub inner_factor: i64,
}

impl Primitive for SamplePartitionedTile {
    const NAME: &'static str = "sample_partitioned_tile";
    const PURE: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Number(&mut self.parts))?;
        visitor.visit(Argument::Number(&mut self.position))?;
        visitor.visit(Argument::Number(&mut self.inner_factor))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.target_loop(self.target)?;
        let extent = require_loop(context.program, id)?.extent.as_constant();
        let extent = extent.ok_or(ScheduleError::SymbolicExtent(id))?;
        let has_parts = (1..=MAX_PARTS).contains(&self.parts) && (0..self.parts).contains(&self.position);
        if !has_parts || self.inner_factor < 1 || extent < 1 || extent % self.inner_factor != 0 {
            return Err(ScheduleError::BadFactors(id));
        }
        let parts = self.parts as usize;
        let given = given_factors(context.decision, parts)?;
        let factors = match given {
            Some(factors) if self.fits(extent, &factors) => factors,
            Some(factors) => self.repaired(extent, factors),
            None => {
                let mut factors = draw(extent / self.inner_factor, parts, i64::MAX, context.rng);
                let inner = draw(self.inner_factor, parts - self.position as usize, i64::MAX, context.rng);
                let inside = factors.iter_mut().skip(self.position as usize);
                inside.zip(inner).for_each(|(factor, share)| *factor *= share);
                factors
            }
        };
        *context.decision = Some(Decision::Tile(factors.clone()));
        Ok(factors.into_iter().map(Value::Int).collect())
    }
}

impl SamplePartitionedTile {
    fn fits(&self, extent: i64, factors: &[i64]) -> bool {
        let product = |factors: &[i64]| {
            let all = factors.iter().try_fold(1i64, |product, factor| product.checked_mul(*factor));
            all.filter(|_| factors.iter().all(|factor| *factor >= 1))
        };
        let inner = product(&factors[self.position as usize..]);
        product(factors) == Some(extent) && inner.is_some_and(|inner| inner % self.inner_factor == 0)
    }

    /// Factors near the given ones that fit: the innermost takes the inner factor.
    fn repaired(&self, extent: i64, mut factors: Vec<i64>) -> Vec<i64> {
        if let Some(last) = factors.last_mut() {
            *last /= self.inner_factor;
        }
        let mut factors = repair(extent / self.inner_factor, factors, i64::MAX);
        if let Some(last) = factors.last_mut() {
            *last *= self.inner_factor;
        }
        factors
    }
}

impl Schedule {
    /// Draws factors of a loop's extent, the inner ones with a given factor. See [`SamplePartitionedTile`].
    ///
    /// # Errors
    /// When the extent is symbolic, or not a multiple of the inner factor.
    pub fn sample_partitioned_tile(
        &mut self,
        target: LoopRv,
        parts: usize,
        position: usize,
        inner_factor: i64,
    ) -> Result<Vec<IntRv>, ScheduleError> {
        let (parts, position) = (parts as i64, position as i64);
        let made = self.push_many(SamplePartitionedTile { target, parts, position, inner_factor })?;
        Ok(made.map(IntRv).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Rng;

    fn tile(parts: i64, position: i64, inner_factor: i64) -> SamplePartitionedTile {
        SamplePartitionedTile { target: LoopRv::default(), parts, position, inner_factor }
    }

    #[test]
    fn repaired_tiles_fit() {
        let tile = tile(3, 1, 8);
        for given in [vec![3, 2, 8], vec![1, 1, 1], vec![5, 7, 64], vec![-1, 0, i64::MIN], vec![48, 1, 1]] {
            let factors = tile.repaired(48, given.clone());
            assert!(tile.fits(48, &factors), "{given:?} became {factors:?}");
        }
        assert!(tile.fits(48, &[3, 2, 8]) && tile.fits(48, &[3, 4, 4]));
        assert!(!tile.fits(48, &[12, 2, 2]), "the inner parts multiply to 4");
    }

    #[test]
    fn drawn_tiles_fit_and_differ() {
        let program: crate::program::Program =
            "kernel k(out b: f32[96]) { for i in 0..96 { block b(v: spatial 96 = i) { b[v] = 0.0 } } }"
                .parse()
                .unwrap();
        let id = crate::analysis::scope::loops_around(&program.body, crate::ids::BlockId(0)).unwrap()[0].id;
        let mut values = crate::schedule::Values::default();
        values.extend(&[Value::Loop(id)]);
        let mut rng = Rng::new(3);
        let mut seen = std::collections::BTreeSet::new();
        let tile = tile(4, 2, 16);
        for _ in 0..100 {
            let (mut program, mut decision) = (program.clone(), None);
            let mut context = Context {
                program: &mut program,
                values: &values,
                decision: &mut decision,
                rng: &mut rng,
                intrinsics: &Default::default(),
            };
            tile.apply(&mut context).unwrap();
            let Some(Decision::Tile(factors)) = decision else { panic!("a tile") };
            assert!(tile.fits(96, &factors), "{factors:?}");
            seen.insert(factors);
        }
        assert!(seen.len() > 5, "{seen:?}");
    }
}
