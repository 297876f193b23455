//! From observed numbers to the range that is kept.

mod entropy;
mod histogram;

use crate::options::{Activations, Method};
pub(crate) use histogram::Histogram;

/// A range of numbers that holds zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f32,
    pub(crate) high: f32,
}

impl Range {
    /// The range of nothing but zero.
    pub(crate) const ZERO: Range = Range { low: 0.0, high: 0.0 };

    /// The smallest range that holds this one and a number.
    pub(crate) fn with(self, number: f32) -> Self {
        Range { low: self.low.min(number), high: self.high.max(number) }
    }

    /// The largest distance from zero.
    pub(crate) fn reach(self) -> f32 {
        self.high.max(-self.low)
    }

    /// The part that lies within another range.
    fn within(self, low: f32, high: f32) -> Self {
        Range { low: self.low.max(low).min(0.0), high: self.high.min(high).max(0.0) }
    }
}

/// The numbers of one activation: their extremes, and a histogram where the method needs one.
pub(crate) struct Observed {
    pub(crate) range: Range,
    pub(crate) count: u64,
    pub(crate) histogram: Option<Histogram>,
}

impl Observed {
    /// The range that is kept.
    pub(crate) fn kept(&self, method: Method, activations: Activations) -> Range {
        let Some(histogram) = &self.histogram else { return self.range };
        match method {
            Method::MinMax => self.range,
            Method::Percentile(percent) => {
                let (low, high) = histogram.percentiles(percent);
                self.range.within(low, high)
            }
            Method::Entropy => {
                // With all numbers on one side of zero, unsigned bytes have all of their levels there.
                let is_one_sided = self.range.low == 0.0 || self.range.high == 0.0;
                let levels = if is_one_sided && activations == Activations::Asymmetric { 256 } else { 128 };
                let threshold = entropy::threshold(&histogram.magnitudes(), levels) * histogram.reach();
                self.range.within(-threshold, threshold)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(numbers: &[f32]) -> Observed {
        let range = numbers.iter().fold(Range::ZERO, |range, &number| range.with(number));
        let mut histogram = Histogram::new(range.reach());
        numbers.iter().for_each(|&number| histogram.add(number));
        Observed { range, count: numbers.len() as u64, histogram: Some(histogram) }
    }

    /// Numbers spread evenly over [-1, 1], and one far away.
    fn with_outlier() -> Observed {
        let mut numbers: Vec<f32> = (0..20_000).map(|place| place as f32 / 10_000.0 - 1.0).collect();
        numbers.push(50.0);
        observed(&numbers)
    }

    #[test]
    fn extremes_keep_everything() {
        let kept = with_outlier().kept(Method::MinMax, Activations::Asymmetric);
        assert_eq!(kept, Range { low: -1.0, high: 50.0 });
    }

    #[test]
    fn percentiles_leave_out_as_many_numbers_at_both_ends() {
        let kept = with_outlier().kept(Method::Percentile(90.0), Activations::Asymmetric);
        assert!((kept.low + 0.9).abs() < 0.03 && (kept.high - 0.9).abs() < 0.03, "{kept:?}");
        let all = with_outlier().kept(Method::Percentile(100.0), Activations::Asymmetric);
        assert_eq!(all, Range { low: -1.0, high: 50.0 });
    }

    #[test]
    fn entropy_leaves_out_what_is_rare_and_far_away() {
        // Quantiles of the logistic distribution, from -2 to 2, and one number far away.
        let quantile = |place: u32| {
            let share = (place as f32 + 0.5) / 20_000.0;
            0.2 * (share / (1.0 - share)).ln()
        };
        let mut numbers: Vec<f32> = (0..20_000).map(quantile).collect();
        numbers.push(50.0);
        let kept = observed(&numbers).kept(Method::Entropy, Activations::Symmetric);
        assert!(kept.low < -1.0 && kept.high < 10.0 && kept.high >= 1.0, "{kept:?}");
        // Without anything far away, the evenly spread numbers are kept.
        let numbers: Vec<f32> = (0..20_000).map(|place| place as f32 / 10_000.0 - 1.0).collect();
        let kept = observed(&numbers).kept(Method::Entropy, Activations::Symmetric);
        assert!(kept.low < -0.97 && kept.high > 0.97, "{kept:?}");
    }

    /// Sums of twelve random numbers each, which are nearly normal, from the standard deviation 1.
    fn normal(count: usize) -> Vec<f32> {
        let mut state = 7u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 24) as f32
        };
        (0..count).map(|_| (0..12).map(|_| uniform()).sum::<f32>() - 6.0).collect()
    }

    #[test]
    fn entropy_keeps_what_few_numbers_are_spread_over() {
        for count in [100, 1000, 10_000, 100_000] {
            let all = observed(&normal(count));
            for activations in [Activations::Symmetric, Activations::Asymmetric] {
                let kept = all.kept(Method::Entropy, activations);
                assert!(
                    kept.reach() > 0.85 * all.range.reach(),
                    "{count} numbers: {kept:?} of {:?}",
                    all.range
                );
            }
        }
    }

    #[test]
    fn kept_ranges_hold_zero() {
        let numbers: Vec<f32> = (0..1000).map(|place| 5.0 + place as f32 / 1000.0).collect();
        for method in [Method::MinMax, Method::Percentile(50.0), Method::Entropy] {
            let kept = observed(&numbers).kept(method, Activations::Asymmetric);
            assert!(kept.low == 0.0 && kept.high > 5.0, "{method}: {kept:?}");
        }
    }
}
