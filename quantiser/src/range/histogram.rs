//! Histograms of numbers around zero.

/// The number of bins on each side of zero.
pub(super) const BINS: usize = 2048;

/// How many numbers lie in each of equally wide parts of a range around zero.
pub(crate) struct Histogram {
    reach: f32,
    /// The negative numbers, from those next to zero on.
    below: Vec<u64>,
    /// The others, from zero on.
    above: Vec<u64>,
}

impl Histogram {
    /// An empty histogram of numbers up to some distance from zero.
    pub(crate) fn new(reach: f32) -> Self {
        Histogram { reach, below: vec![0; BINS], above: vec![0; BINS] }
    }

    /// Counts a number; those beyond the reach are in the last bin.
    pub(crate) fn add(&mut self, number: f32) {
        let share = if self.reach > 0.0 { number.abs() / self.reach } else { 0.0 };
        let bin = ((share * BINS as f32) as usize).min(BINS - 1);
        let side = if number < 0.0 { &mut self.below } else { &mut self.above };
        side[bin] += 1;
    }

    /// The largest distance from zero.
    pub(super) fn reach(&self) -> f32 {
        self.reach
    }

    /// How many numbers lie at each distance from zero.
    pub(super) fn magnitudes(&self) -> Vec<u64> {
        self.below.iter().zip(&self.above).map(|(below, above)| below + above).collect()
    }

    /// The range between which `percent` percent of the numbers lie, with equally many below and above it.
    pub(super) fn percentiles(&self, percent: f64) -> (f32, f32) {
        let total: u64 = self.below.iter().chain(&self.above).sum();
        let outside = (total as f64 * (100.0 - percent) / 200.0) as u64;
        let width = self.reach / BINS as f32;
        // The bins from the least number to the greatest, with their distances from zero.
        let edges =
            |inner: bool, side: f32| move |bin: usize| side * (bin + usize::from(!inner)) as f32 * width;
        let ascending = || {
            let below = self.below.iter().copied().enumerate().rev().map(|(bin, count)| (bin, count, -1.0));
            below.chain(self.above.iter().copied().enumerate().map(|(bin, count)| (bin, count, 1.0f32)))
        };
        let first = |bins: &mut dyn Iterator<Item = (usize, u64, f32)>, from_low: bool| {
            let mut passed = 0;
            for (bin, count, side) in bins {
                passed += count;
                if passed > outside {
                    // The far edge of a bin on this end's own side of zero, the near one on the other.
                    let is_inner = (side < 0.0) != from_low;
                    return edges(is_inner, side)(bin);
                }
            }
            0.0
        };
        let low = first(&mut ascending(), true);
        let high = first(&mut ascending().collect::<Vec<_>>().into_iter().rev(), false);
        (low, high)
    }
}
