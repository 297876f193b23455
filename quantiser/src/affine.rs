//! Scales and zero points, and integers of numbers.

use tilewright_graph::tensor::HostTensor;

use crate::options::{Activations, Weights};
use crate::range::Range;

/// The largest integer of a weight: the range is the same on both sides of zero.
const MOST_WEIGHT: f32 = 127.0;

/// The largest integer of a bias, which leaves as much room for the products that it is added to.
const MOST_BIAS: f32 = (1 << 30) as f32;

/// How the numbers of an activation become bytes: `number = scale · (byte - zero)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Affine {
    pub(crate) scale: f32,
    pub(crate) zero: Zero,
}

/// The byte of zero, with the type of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Zero {
    /// Unsigned bytes.
    Unsigned(u8),
    /// Signed bytes around zero.
    Signed,
}

impl Affine {
    /// The bytes of a range. A range of nothing but zero has that of numbers up to 1: biases are stored in units of it, and lose digits where it is large.
    pub(crate) fn of(range: Range, activations: Activations) -> Self {
        let (steps, width) = match activations {
            // The width of a range may be beyond the largest number.
            Activations::Asymmetric => (255.0, range.high / 255.0 - range.low / 255.0),
            Activations::Symmetric => (127.0, range.reach() / 127.0),
        };
        // Below this, scales of products would be too small for their digits.
        let scale = if width * steps > LEAST { width } else { 1.0 / steps };
        let zero = match activations {
            Activations::Asymmetric => Zero::Unsigned((-range.low / scale).round_ties_even() as u8),
            Activations::Symmetric => Zero::Signed,
        };
        Affine { scale, zero }
    }

    /// The zero point as a tensor.
    pub(crate) fn zero_tensor(self) -> HostTensor {
        match self.zero {
            Zero::Unsigned(zero) => HostTensor::scalar(zero),
            Zero::Signed => HostTensor::scalar(0i8),
        }
    }
}

/// The least width of a range; narrower ones are taken for zero. The product of two scales then has all of its digits.
const LEAST: f32 = 1e-15;

/// Weights as integers with their scales.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Integers {
    pub(crate) values: Vec<i8>,
    /// One for all, or one for each channel.
    pub(crate) scales: Vec<f32>,
}

/// Weights of `channels` channels as integers. The weight at `place` belongs to the channel `place / inner % channels`. `activation` is the scale of
/// what they are multiplied with, and `bias` has a number for each channel, or none: scales are large enough for biases in units of both scales
/// to fit.
pub(crate) fn integers(
    weights: &[f32],
    (channels, inner): (usize, usize),
    granularity: Weights,
    activation: f32,
    bias: &[f32],
) -> Integers {
    let channel = |place: usize| place / inner.max(1) % channels.max(1);
    let mut reaches = vec![0f32; channels];
    for (place, weight) in weights.iter().enumerate() {
        let reach = &mut reaches[channel(place)];
        *reach = reach.max(weight.abs());
    }
    let largest = reaches.iter().copied().fold(0f32, f32::max);
    let of_all = if largest > LEAST { largest } else { MOST_WEIGHT };
    let scale = |channel: usize| {
        // A channel of zeros has no scale of its own.
        let reach = if reaches[channel] > LEAST { reaches[channel] } else { of_all };
        let least = bias.get(channel).map_or(0.0, |bias| bias.abs() / MOST_BIAS / activation);
        (reach / MOST_WEIGHT).max(least)
    };
    let mut scales: Vec<f32> = (0..channels).map(scale).collect();
    if granularity == Weights::PerTensor {
        scales = vec![scales.into_iter().fold(of_all / MOST_WEIGHT, f32::max)];
    }
    let values = weights.iter().enumerate().map(|(place, weight)| {
        let scale = if scales.len() == 1 { scales[0] } else { scales[channel(place)] };
        (weight / scale).round_ties_even().clamp(-MOST_WEIGHT, MOST_WEIGHT) as i8
    });
    Integers { values: values.collect(), scales }
}

/// A bias in units of the scales of products.
pub(crate) fn integer_bias(bias: &[f32], scales: &[f32]) -> Vec<i32> {
    let scale = |place: usize| if scales.len() == 1 { scales[0] } else { scales[place] };
    let integer = |(place, bias): (usize, &f32)| {
        let quotient = f64::from(*bias) / f64::from(scale(place));
        // The quotient fits but for a rounding of the scale.
        quotient.round_ties_even().clamp(f64::from(-MOST_BIAS), f64::from(MOST_BIAS)) as i32
    };
    bias.iter().enumerate().map(integer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(affine: Affine, byte: f32) -> f32 {
        let zero = match affine.zero {
            Zero::Unsigned(zero) => f32::from(zero),
            Zero::Signed => 0.0,
        };
        affine.scale * (byte - zero)
    }

    #[test]
    fn the_ends_of_a_range_are_the_ends_of_bytes() {
        let affine = Affine::of(Range { low: -1.0, high: 4.1 }, Activations::Asymmetric);
        assert!((read(affine, 0.0) + 1.0).abs() < 0.011 && (read(affine, 255.0) - 4.1).abs() < 0.011);
        let affine = Affine::of(Range { low: -1.0, high: 4.0 }, Activations::Symmetric);
        assert!((read(affine, 127.0) - 4.0).abs() < 1e-6);
        let whole = Affine::of(Range { low: f32::MIN, high: f32::MAX }, Activations::Asymmetric);
        assert!(whole.scale.is_finite() && whole.zero == Zero::Unsigned(128), "{whole:?}");
    }

    #[test]
    fn constant_tensors_are_stored_exactly() {
        for constant in [0.0f32, 3.7, -0.01] {
            for activations in [Activations::Asymmetric, Activations::Symmetric] {
                let affine = Affine::of(Range::ZERO.with(constant), activations);
                let zero = match affine.zero {
                    Zero::Unsigned(zero) => f32::from(zero),
                    Zero::Signed => 0.0,
                };
                let byte = (constant / affine.scale).round_ties_even() + zero;
                assert!(
                    (read(affine, byte) - constant).abs() <= constant.abs() * 1e-6,
                    "{constant} {affine:?}"
                );
            }
        }
    }

    #[test]
    fn channels_have_scales_of_their_own() {
        let weights = [1.27f32, -0.5, 0.0, 0.0, 12.7, 6.35];
        let integers = integers(&weights, (3, 2), Weights::PerChannel, 1.0, &[]);
        assert_eq!(integers.values, [127, -50, 0, 0, 127, 64]);
        assert!((integers.scales[0] - 0.01).abs() < 1e-8 && (integers.scales[2] - 0.1).abs() < 1e-7);
        assert!(integers.scales[1] > 0.0);
        // Channels are the last dimension.
        let columns = super::integers(&[1.0, 20.0, -2.0, 10.0], (2, 1), Weights::PerChannel, 1.0, &[]);
        assert_eq!(columns.values, [64, 127, -127, 64]);
    }

    #[test]
    fn large_biases_make_scales_larger_instead_of_being_cut() {
        let found = integers(&[1e-6, 2e-6], (2, 1), Weights::PerChannel, 1e-3, &[1e6, 1e-3]);
        let products: Vec<f32> = found.scales.iter().map(|scale| scale * 1e-3).collect();
        let bias = integer_bias(&[1e6, 1e-3], &products);
        assert!((bias[0] as f32 * products[0] - 1e6).abs() < 1.0, "{bias:?}");
        assert!((bias[1] as f32 * products[1] - 1e-3).abs() < 1e-7, "{bias:?}");
    }

    #[test]
    fn weights_of_zeros_have_a_scale() {
        let found = integers(&[0.0; 4], (2, 2), Weights::PerTensor, 1.0, &[]);
        assert_eq!(found, Integers { values: vec![0; 4], scales: vec![1.0] });
    }
}
