//! Mappings of a box to a number of workers.

use super::{TaskMapping, TaskMappingError};

impl TaskMapping {
    /// `repeat(…) * spatial(…)` of a box over a number of workers, who lie along the last dimensions as far as these go.
    ///
    /// # Errors
    /// [`TaskMappingError::Uneven`] where some workers would have nothing to do, [`TaskMappingError::Shape`].
    pub fn even(shape: &[i64], workers: i64) -> Result<Self, TaskMappingError> {
        let (counts, extents, rest) = divide(shape, workers, gcd);
        if rest != 1 {
            return Err(TaskMappingError::Uneven { shape: shape.to_vec(), workers });
        }
        TaskMapping::repeat(&counts)?.compose(&TaskMapping::spatial(&extents)?)
    }

    /// As [`TaskMapping::even`], of a box that may be larger than the given one: its tasks outside are to be left out. All workers are
    /// used where there are enough tasks.
    ///
    /// # Errors
    /// [`TaskMappingError::Shape`].
    pub fn covering(shape: &[i64], workers: i64) -> Result<Self, TaskMappingError> {
        let (_, mut extents, rest) = divide(shape, workers.max(1), |extent, rest| {
            // Whole rows are shared evenly where they can be.
            if extent >= rest { rest } else { gcd((extent.max(1) as u64).next_power_of_two() as i64, rest) }
        });
        if let Some(first) = extents.first_mut() {
            *first *= rest;
        }
        let counts: Vec<i64> = shape.iter().zip(&extents).map(|(all, own)| (all - 1) / own + 1).collect();
        TaskMapping::repeat(&counts)?.compose(&TaskMapping::spatial(&extents)?)
    }
}

/// The repetitions and the workers along each dimension, from the last one on, and the workers that are left.
fn divide(shape: &[i64], workers: i64, take: impl Fn(i64, i64) -> i64) -> (Vec<i64>, Vec<i64>, i64) {
    let mut rest = workers;
    let (mut counts, mut extents) = (shape.to_vec(), vec![1; shape.len()]);
    for dimension in (0..shape.len()).rev() {
        let own = take(shape[dimension], rest).max(1);
        extents[dimension] = own;
        counts[dimension] = shape[dimension] / own;
        rest /= own;
    }
    (counts, extents, rest)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
