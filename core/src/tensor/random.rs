//! Reproducible random tensors.

use crate::dtype::{DType, Kind};
use crate::tensor::any::with_element;
use crate::tensor::{AnyTensor, Element, ShapeError};

/// A small generator of reproducible numbers: SplitMix64 (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014). The same seed gives the same numbers on every machine and
/// in every version. For test data, not for secrets.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that starts from a seed.
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// An integer from `0..bound`; 0 when the bound is 0. The bias is below `bound / 2⁶⁴`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from [-1, 1), a multiple of 2⁻⁵².
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

impl AnyTensor {
    /// A tensor of reproducible random elements: floats uniform in [-1, 1), signed integers from
    /// -8 to 8, unsigned ones from 0 to 16, `bool`s by coin.
    ///
    /// # Errors
    /// As [`AnyTensor::zeros`].
    pub fn random(dtype: DType, shape: &[usize], seed: u64) -> Result<Self, ShapeError> {
        let mut random = Random::new(seed);
        Self::fill_random(dtype, shape, || match dtype.kind() {
            Kind::Bool => (random.bits() & 1) as f64,
            Kind::Unsigned => random.below(17) as f64,
            Kind::Signed => random.below(17) as f64 - 8.0,
            Kind::Float => random.unit(),
        })
    }

    /// A tensor of reproducible random indices: whole numbers from `0..bound` in any element type that holds them.
    ///
    /// # Errors
    /// As [`AnyTensor::zeros`].
    pub fn random_indices(dtype: DType, shape: &[usize], bound: u64, seed: u64) -> Result<Self, ShapeError> {
        let mut random = Random::new(seed);
        Self::fill_random(dtype, shape, || random.below(bound) as f64)
    }

    fn fill_random(dtype: DType, shape: &[usize], mut next: impl FnMut() -> f64) -> Result<Self, ShapeError> {
        let mut tensor = AnyTensor::zeros(dtype, shape)?;
        with_element!(dtype, T => {
            let elements = tensor.as_mut_slice::<T>().expect("aligned storage of the tensor's own type");
            elements.iter_mut().for_each(|element| *element = T::from_f64(next()));
            Ok(tensor)
        }, else {
            let values: Vec<f64> = (0..tensor.len()).map(|_| next()).collect();
            AnyTensor::from_f64s(dtype, &values, shape)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = Random::new(1234567);
        let expected = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        assert_eq!([random.bits(), random.bits(), random.bits()], expected);
    }

    #[test]
    fn a_seed_decides_the_elements_and_they_stay_in_range() {
        for dtype in DType::ALL {
            let tensor = AnyTensor::random(dtype, &[7, 31], 5).unwrap();
            assert_eq!(tensor, AnyTensor::random(dtype, &[7, 31], 5).unwrap(), "{dtype}");
            assert_ne!(tensor, AnyTensor::random(dtype, &[7, 31], 6).unwrap(), "{dtype}");
            let bound = if dtype.is_float() { 1.0 } else { 16.0 };
            assert!(tensor.to_f64_vec().iter().all(|value| value.abs() <= bound), "{dtype}");
        }
        let indices = AnyTensor::random_indices(DType::I32, &[1000], 5, 3).unwrap().to_f64_vec();
        assert!((0..5).all(|value| indices.contains(&f64::from(value))));
        assert!(indices.iter().all(|&value| (0.0..5.0).contains(&value)));
    }
}
