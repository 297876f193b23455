//! The difference of two tensors.

use crate::tensor::AnyTensor;

/// The greatest differences between a tensor and the expected one.
///
/// Equal infinities and two NaNs differ by nothing; any other difference that involves an infinity
/// or a NaN is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorSummary {
    /// The greatest absolute difference of two elements.
    pub max_abs: f64,
    /// `max_abs / scale`: the error relative to the whole tensor rather than to each element, because
    /// an element that cancels to nearly zero says nothing about the sum it came from. 0 when nothing
    /// differs, infinite when `scale` is 0 and something does.
    pub max_rel: f64,
    /// The greatest finite magnitude among the expected elements.
    pub scale: f64,
    /// The position, in row-major order, of the first element that differs at all.
    pub first_mismatch: Option<usize>,
}

/// Elements are compared in chunks of this number: a large tensor never exists as `f64` as a whole.
const CHUNK: usize = 1024;

impl ErrorSummary {
    /// Takes elements from a position on into account, in everything but `max_rel`.
    fn add(&mut self, first: usize, found: &[f64], expected: &[f64]) {
        let pairs = || found.iter().zip(expected).map(|(&found, &expected)| difference(found, expected));
        let max_abs = pairs().fold(0.0, f64::max);
        if max_abs > 0.0 && self.first_mismatch.is_none() {
            self.first_mismatch = pairs().position(|difference| difference > 0.0).map(|place| first + place);
        }
        self.max_abs = self.max_abs.max(max_abs);
        let finite = expected.iter().map(|value| value.abs()).filter(|value| value.is_finite());
        self.scale = finite.fold(self.scale, f64::max);
    }
}

impl AnyTensor {
    /// How far this tensor is from the expected one.
    ///
    /// # Panics
    /// When the shapes differ: then elements do not correspond.
    pub fn max_error(&self, expected: &AnyTensor) -> ErrorSummary {
        assert_eq!(self.shape(), expected.shape(), "tensors of different shapes cannot be compared");
        let mut summary = ErrorSummary { max_abs: 0.0, max_rel: 0.0, scale: 0.0, first_mismatch: None };
        let mut buffers = [[0.0; CHUNK]; 2];
        for first in (0..self.len()).step_by(CHUNK) {
            let count = CHUNK.min(self.len() - first);
            let [found, wanted] = buffers.each_mut().map(|buffer| &mut buffer[..count]);
            self.read_f64(first, found);
            expected.read_f64(first, wanted);
            summary.add(first, found, wanted);
        }
        if summary.max_abs > 0.0 {
            summary.max_rel = summary.max_abs / summary.scale;
        }
        summary
    }

    /// Whether every element differs from the expected one by at most `absolute + relative · scale`,
    /// where `scale` is the greatest finite magnitude among the expected elements; see [`ErrorSummary`].
    ///
    /// # Panics
    /// As [`AnyTensor::max_error`].
    pub fn all_close(&self, expected: &AnyTensor, relative: f64, absolute: f64) -> bool {
        let summary = self.max_error(expected);
        summary.max_abs <= absolute + relative * summary.scale
    }
}

fn difference(found: f64, expected: f64) -> f64 {
    if found == expected || (found.is_nan() && expected.is_nan()) {
        return 0.0;
    }
    let difference = (found - expected).abs();
    if difference.is_nan() { f64::INFINITY } else { difference }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &[f64]) -> AnyTensor {
        AnyTensor::from_slice(values, &[values.len()]).unwrap()
    }

    #[test]
    fn errors_are_relative_to_the_tensor() {
        let summary = tensor(&[100.0, 0.5]).max_error(&tensor(&[100.0, 0.0]));
        assert_eq!(
            summary,
            ErrorSummary { max_abs: 0.5, max_rel: 0.005, scale: 100.0, first_mismatch: Some(1) }
        );
        assert!(tensor(&[100.0, 0.5]).all_close(&tensor(&[100.0, 0.0]), 0.01, 0.0));
        assert!(!tensor(&[100.0, 0.5]).all_close(&tensor(&[100.0, 0.0]), 0.001, 0.0));
    }

    #[test]
    fn special_values_equal_themselves_only() {
        let special = tensor(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0]);
        assert_eq!(special.max_error(&special).first_mismatch, None);
        for (position, value) in [1.0, f64::NEG_INFINITY, 1e300, f64::NAN].into_iter().enumerate() {
            let mut other = special.clone();
            other.as_mut_slice::<f64>().unwrap()[position] = value;
            let summary = other.max_error(&special);
            assert_eq!(summary.max_abs, f64::INFINITY, "{value} at {position}");
            assert_eq!(summary.first_mismatch, Some(position), "{value}");
            assert!(!other.all_close(&special, 1e-3, 1e-3), "{value} at {position}");
        }
    }

    #[test]
    fn long_tensors_are_compared_to_their_ends() {
        for length in [CHUNK - 1, CHUNK, 3 * CHUNK + 7] {
            let mut expected = vec![1.0; length];
            expected[0] = 2.0;
            expected[length - 1] = -8.0;
            let mut found = expected.clone();
            found[length - 2] += 2.0;
            found[length - 1] -= 4.0;
            let (max_abs, first_mismatch) = (4.0, Some(length - 2));
            let summary = ErrorSummary { max_abs, max_rel: 0.5, scale: 8.0, first_mismatch };
            assert_eq!(tensor(&found).max_error(&tensor(&expected)), summary, "{length} elements");
        }
    }

    #[test]
    fn empty_tensors_are_equal() {
        assert!(tensor(&[]).all_close(&tensor(&[]), 0.0, 0.0));
    }
}
