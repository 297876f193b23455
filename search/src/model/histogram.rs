//! Gradient histograms in fixed point.
//!
//! A row's gradient and hessian are rounded to integers and packed into one 64-bit word, the signed gradient in the
//! upper half and the hessian in the lower, so that adding a row to a bin is a single integer addition. The scales
//! are chosen such that no sum over rows can overflow its half. Integer sums are exact in any order: a histogram
//! found by subtracting a child from its parent equals the one found by visiting the rows, bit for bit. (The idea of
//! training on quantised gradients is that of Shi et al., "Quantized training of gradient boosting decision trees",
//! NeurIPS 2022; there they have 2 to 5 bits and random rounding, here 31 bits are shared by the sum.)

use super::bins::{BinnedRows, MAX_BINS};

/// The number of columns summed at a time: their bins, 512 bytes a column, have to stay in the first-level cache.
const COLUMN_BLOCK: usize = 48;

/// The first and second derivative of the loss with respect to a prediction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Derivatives {
    pub(super) gradient: f64,
    /// Not negative.
    pub(super) hessian: f64,
}

impl std::ops::Sub for Derivatives {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { gradient: self.gradient - other.gradient, hessian: self.hessian - other.hessian }
    }
}

/// A sum of rounded derivatives: `gradient · 2³² + hessian`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Packed(i64);

impl Packed {
    pub(super) fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum in fixed-point units, which an f64 holds exactly.
    pub(super) fn units(self) -> Derivatives {
        let hessian = self.0 as u32;
        // Taking the hessian away first keeps it from carrying into the gradient; what remains is a multiple of 2³².
        let gradient = ((self.0 - i64::from(hessian)) >> 32) as i32;
        Derivatives { gradient: f64::from(gradient), hessian: f64::from(hessian) }
    }
}

impl std::ops::AddAssign for Packed {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl std::ops::Sub for Packed {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl std::iter::Sum for Packed {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| Self(sum.0 + part.0))
    }
}

/// Converts derivatives to fixed point.
#[derive(Debug, Clone, Copy)]
pub(super) struct FixedPoint {
    gradient_scale: f64,
    hessian_scale: f64,
    gradient_unit: f64,
}

impl FixedPoint {
    /// The finest scales at which the sum over `rows` fits: rounding moves each row by at most one half, which the
    /// row count subtracted from the range pays for.
    pub(super) fn new(rows: impl Iterator<Item = Derivatives> + Clone) -> Self {
        let count = rows.clone().count() as f64;
        let gradient: f64 = rows.clone().map(|row| row.gradient.abs()).sum();
        let hessian: f64 = rows.map(|row| row.hessian).sum();
        let scale = |range: f64, sum: f64| if sum > 0.0 { (range - count) / sum } else { 0.0 };
        let gradient_scale = scale(f64::from(i32::MAX), gradient);
        let hessian_scale = scale(f64::from(u32::MAX), hessian);
        let gradient_unit = if gradient_scale > 0.0 { 1.0 / gradient_scale } else { 0.0 };
        Self { gradient_scale, hessian_scale, gradient_unit }
    }

    pub(super) fn pack(&self, row: Derivatives) -> Packed {
        let gradient = (row.gradient * self.gradient_scale).round() as i64;
        let hessian = (row.hessian * self.hessian_scale).round() as i64;
        Packed((gradient << 32) + hessian)
    }

    /// A hessian of one in fixed-point units; zero when all hessians are.
    pub(super) fn hessian_units(&self) -> f64 {
        self.hessian_scale
    }

    /// The value of a squared gradient over a hessian of one, each in fixed-point units.
    pub(super) fn score_unit(&self) -> f64 {
        self.hessian_scale * self.gradient_unit * self.gradient_unit
    }
}

/// Summed derivatives of some rows, by column and bin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Histogram {
    columns: Vec<[Packed; MAX_BINS]>,
}

impl Histogram {
    pub(super) fn new(column_count: usize) -> Self {
        Self { columns: vec![[Packed::default(); MAX_BINS]; column_count] }
    }

    /// Replaces the contents by the sums over `members`, given the packed derivatives of all rows.
    pub(super) fn fill(&mut self, rows: &BinnedRows, members: &[u32], packed: &[Packed]) {
        for (block, columns) in self.columns.chunks_mut(COLUMN_BLOCK).enumerate() {
            columns.fill([Packed::default(); MAX_BINS]);
            let first = block * COLUMN_BLOCK;
            for &member in members {
                let value = packed[member as usize];
                let bins = &rows.row(member as usize)[first..][..columns.len()];
                for (sums, &bin) in columns.iter_mut().zip(bins) {
                    // The remainder changes no bin; it shows the compiler that the index is in range.
                    sums[usize::from(bin) % MAX_BINS] += value;
                }
            }
        }
    }

    /// Turns the histogram of a node into that of one child, given the other child's.
    pub(super) fn subtract(&mut self, child: &Self) {
        for (sums, parts) in self.columns.iter_mut().zip(&child.columns) {
            for (sum, &part) in sums.iter_mut().zip(parts) {
                *sum = *sum - part;
            }
        }
    }

    /// The sums of one column, bin by bin.
    pub(super) fn column(&self, index: usize) -> &[Packed; MAX_BINS] {
        &self.columns[index]
    }
}

#[cfg(test)]
mod tests {
    use super::super::ProgramFeatures;
    use super::*;
    use proptest::prelude::*;

    fn derivatives() -> impl Strategy<Value = Derivatives> {
        (-1e3..1e3f64, 0.0..1e3f64).prop_map(|(gradient, hessian)| Derivatives { gradient, hessian })
    }

    /// A sum of packed rows as the number it stands for.
    fn sum(rows: &[Derivatives]) -> Derivatives {
        let scale = FixedPoint::new(rows.iter().copied());
        let units = rows.iter().map(|&row| scale.pack(row)).sum::<Packed>().units();
        Derivatives {
            gradient: units.gradient * scale.gradient_unit,
            hessian: units.hessian / scale.hessian_scale,
        }
    }

    proptest! {
        #[test]
        fn sums_survive_packing(rows in prop::collection::vec(derivatives(), 1..200)) {
            let sum = sum(&rows);
            let (mut exact, mut magnitude) = (Derivatives::default(), 0.0);
            for row in &rows {
                exact.gradient += row.gradient;
                exact.hessian += row.hessian;
                magnitude += row.gradient.abs();
            }
            // Half a unit for each row, where a unit is the total over the range.
            let slack = 0.51 * rows.len() as f64 / f64::from(i32::MAX - 200);
            prop_assert!((sum.gradient - exact.gradient).abs() <= slack * magnitude, "{sum:?} {exact:?}");
            prop_assert!((sum.hessian - exact.hessian).abs() <= slack * exact.hessian, "{sum:?} {exact:?}");
        }

        #[test]
        fn subtraction_equals_direct_histograms(
            values in prop::collection::vec((any::<f32>(), -9i8..9, derivatives()), 2..200), cut in 0.0..1.0f64,
        ) {
            let programs: Vec<ProgramFeatures> = values
                .iter()
                .map(|(a, b, _)| ProgramFeatures::new(vec![*a, f32::from(*b)], 2, 0.0).unwrap())
                .collect();
            let rows = BinnedRows::new(&programs.iter().collect::<Vec<_>>(), MAX_BINS);
            let scale = FixedPoint::new(values.iter().map(|value| value.2));
            let packed: Vec<Packed> = values.iter().map(|value| scale.pack(value.2)).collect();
            let members: Vec<u32> = (0..values.len() as u32).collect();
            let (left, right) = members.split_at((cut * members.len() as f64) as usize);
            let of = |members: &[u32]| {
                let mut histogram = Histogram::new(rows.columns().len());
                histogram.fill(&rows, members, &packed);
                histogram
            };
            let mut subtracted = of(&members);
            subtracted.subtract(&of(left));
            prop_assert_eq!(subtracted, of(right));
        }
    }

    #[test]
    fn the_extremes_of_the_range_do_not_overflow() {
        for gradient in [-1.0, 1.0] {
            let rows = vec![Derivatives { gradient, hessian: 1e-30 }; 100_000];
            let sum = sum(&rows);
            assert!((sum.gradient - gradient * 1e5).abs() < 3.0, "{sum:?}");
            assert!((sum.hessian * 1e25 - 1.0).abs() < 3e-5, "{sum:?}");
        }
    }

    #[test]
    fn all_zero_derivatives_pack_to_zero() {
        let scale = FixedPoint::new(std::iter::repeat_n(Derivatives::default(), 3));
        assert!(scale.pack(Derivatives::default()).is_zero());
        assert_eq!(scale.pack(Derivatives::default()).units(), Derivatives::default());
    }
}
