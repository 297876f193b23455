//! The input of a cost model: programs as feature rows, and measured programs.

use std::hash::Hasher;

use rustc_hash::FxHasher;
use thiserror::Error;

/// The features of one candidate program: a row of `width` numbers for each of its buffer stores.
///
/// The model's prediction for a program is the sum of its predictions for the rows, so a row should describe
/// the whole cost of its store, the enclosing loops included.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramFeatures {
    values: Vec<f32>,
    width: usize,
    prior: f32,
}

/// Feature values that do not form whole rows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{values} feature values do not form rows of {width} columns: give each buffer store exactly {width} values"
)]
pub struct FeatureShapeError {
    /// The number of values.
    pub values: usize,
    /// The stated number of columns of a row.
    pub width: usize,
}

impl ProgramFeatures {
    /// A program with `values.len() / width` rows, laid out row after row.
    ///
    /// `prior` is the score of the analytic draft model, higher for faster; a model falls back to it until it has
    /// learned something, and reads it as one more column afterwards. A dimensionless prior serves best, such as the
    /// predicted share of the machine's peak, because one model learns from all tasks at once.
    ///
    /// Any value is allowed, NaN and the infinities included: models order NaN below every number.
    ///
    /// # Errors
    /// When `values` is not a whole number of rows. A program without rows is legal with any width.
    pub fn new(values: Vec<f32>, width: usize, prior: f32) -> Result<Self, FeatureShapeError> {
        let whole = if width == 0 { values.is_empty() } else { values.len().is_multiple_of(width) };
        if !whole {
            return Err(FeatureShapeError { values: values.len(), width });
        }
        Ok(Self { values, width, prior })
    }

    /// The rows, each of [`width`](Self::width) values.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.width.max(1))
    }

    /// The number of rows, one for each buffer store.
    pub fn row_count(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// The number of columns of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The score of the analytic draft model, higher for faster.
    pub fn prior(&self) -> f32 {
        self.prior
    }

    /// A hash of all values: every model gives programs of equal hashes equal scores.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        for value in self.values.iter().chain([&self.prior]) {
            hasher.write_u32(value.to_bits());
        }
        hasher.finish()
    }
}

/// One candidate that was measured on the device.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The task (kernel, shape and target) the candidate belongs to; candidates compare within a task only.
    pub task: u64,
    /// The features the candidate had.
    pub features: ProgramFeatures,
    /// The measured time of one run in seconds, or `None` for a candidate that failed to build, run or agree with the
    /// reference.
    pub seconds: Option<f64>,
}

impl Sample {
    /// The measured time in seconds where it is one: positive and finite. Anything else counts as a failure.
    pub fn valid_seconds(&self) -> Option<f64> {
        self.seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_order() {
        let program = ProgramFeatures::new(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 0.5).unwrap();
        let rows: Vec<&[f32]> = program.rows().collect();
        assert_eq!(rows, [&[1.0, 2.0, 3.0][..], &[4.0, 5.0, 6.0][..]]);
        assert_eq!((program.row_count(), program.width(), program.prior()), (2, 3, 0.5));
    }

    #[test]
    fn a_program_without_rows_is_legal() {
        for width in [0, 4] {
            let program = ProgramFeatures::new(Vec::new(), width, 0.0).unwrap();
            assert_eq!((program.row_count(), program.rows().len()), (0, 0), "width {width}");
        }
    }

    #[test]
    fn broken_rows_are_refused() {
        for (values, width) in [(5, 3), (1, 0), (2, 4)] {
            let error = ProgramFeatures::new(vec![0.0; values], width, 0.0).unwrap_err();
            assert_eq!(error, FeatureShapeError { values, width });
        }
    }

    #[test]
    fn impossible_times_count_as_failures() {
        let features = ProgramFeatures::new(vec![], 1, 0.0).unwrap();
        for seconds in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)] {
            let sample = Sample { task: 0, features: features.clone(), seconds };
            assert_eq!(sample.valid_seconds(), None, "{seconds:?}");
        }
        let sample = Sample { task: 0, features, seconds: Some(1e-6) };
        assert_eq!(sample.valid_seconds(), Some(1e-6));
    }
}
