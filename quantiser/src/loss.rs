//! How far two tensors differ.

use serde::Serialize;

/// The difference of two tensors, summed up over any number of pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Difference {
    signal: f64,
    noise: f64,
    other: f64,
    product: f64,
    /// The sum of the errors of each channel.
    channels: Vec<f64>,
    /// The number of elements of each channel.
    count: f64,
}

/// How well a tensor of a quantised model agrees with that of the model of floats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// The ratio of signal to noise, `10 · log₁₀(Σx² / Σ(x - y)²)`. In decibels; infinite for equal tensors.
    pub ratio: f64,
    /// The cosine of the angle between both tensors.
    pub cosine: f64,
}

impl Difference {
    /// Adds a pair of tensors in row-major order. An element belongs to the channel `place / inner % channels`.
    pub(crate) fn add(&mut self, exact: &[f32], found: &[f32], channels: usize, inner: usize) {
        self.channels.resize(channels, 0.0);
        for (place, (&x, &y)) in exact.iter().zip(found).enumerate() {
            let (x, y) = (f64::from(x), f64::from(y));
            self.signal += x * x;
            self.noise += (x - y) * (x - y);
            self.other += y * y;
            self.product += x * y;
            self.channels[place / inner % channels] += y - x;
        }
        self.count += exact.len() as f64 / channels.max(1) as f64;
    }

    /// The mean error of each channel.
    pub(crate) fn means(&self) -> Vec<f32> {
        self.channels.iter().map(|sum| (sum / self.count.max(1.0)) as f32).collect()
    }

    /// The loss.
    pub(crate) fn loss(&self) -> Loss {
        Loss { ratio: ratio(self.signal, self.noise), cosine: self.cosine() }
    }

    /// The ratio of signal to noise that is left when the mean error of each channel is taken away.
    pub(crate) fn corrected_ratio(&self) -> f64 {
        let means: f64 = self.channels.iter().map(|sum| sum * sum / self.count.max(1.0)).sum();
        ratio(self.signal, (self.noise - means).max(0.0))
    }

    fn cosine(&self) -> f64 {
        let lengths = (self.signal * self.other).sqrt();
        if lengths > 0.0 {
            return self.product / lengths;
        }
        // Two zeros point the same way, a zero and another number do not.
        f64::from(u8::from(self.signal == self.other))
    }
}

fn ratio(signal: f64, noise: f64) -> f64 {
    if noise == 0.0 { f64::INFINITY } else { 10.0 * (signal / noise).log10() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_those_of_the_definition() {
        let mut difference = Difference::default();
        difference.add(&[3.0, 0.0], &[3.0, 0.3], 1, 1);
        difference.add(&[4.0, 0.0], &[4.0, 0.4], 1, 1);
        let loss = difference.loss();
        assert!((loss.ratio - 20.0).abs() < 1e-5, "{loss:?}");
        assert!((loss.cosine - 1.0 / 1.01f64.sqrt()).abs() < 1e-7, "{loss:?}");
        assert!((difference.means()[0] - 0.175).abs() < 1e-6, "{:?}", difference.means());
    }

    #[test]
    fn mean_errors_belong_to_channels() {
        let mut difference = Difference::default();
        // Two channels of two elements, twice.
        difference.add(&[0.0; 8], &[1.0, 1.0, -2.0, -2.0, 1.0, 1.0, -2.0, -2.0], 2, 2);
        assert_eq!(difference.means(), [1.0, -2.0]);
        assert_eq!(difference.corrected_ratio(), f64::INFINITY);
    }

    #[test]
    fn equal_tensors_have_no_noise() {
        let mut difference = Difference::default();
        difference.add(&[0.0, 0.0], &[0.0, 0.0], 1, 1);
        assert_eq!(difference.loss(), Loss { ratio: f64::INFINITY, cosine: 1.0 });
    }
}
