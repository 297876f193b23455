//! The threshold whose 8-bit form differs least in distribution from the numbers (Migacz, "8-bit Inference with TensorRT", GTC 2017).
//!
//! Counts are a sample: within a level they differ by chance, the more bins it covers. For few numbers this alone makes a small threshold look good.
//! The divergence that chance explains is therefore taken away (Miller, "Note on the bias of information estimates", 1955).

/// The share of a histogram of magnitudes that is kept when numbers have `levels` levels: the one with the least Kullback-Leibler divergence
/// between the numbers, those beyond the threshold brought back to it, and the same numbers in as many levels, less what chance explains of it.
pub(super) fn threshold(bins: &[u64], levels: usize) -> f32 {
    let Some(last) = bins.iter().rposition(|&count| count > 0) else { return 1.0 };
    let mut best = (f64::INFINITY, last + 1);
    for kept in levels..=last + 1 {
        let divergence = divergence(bins, kept, levels) - expected_by_chance(bins, kept, levels);
        // Of equally good thresholds the largest one cuts least off.
        if divergence <= best.0 {
            best = (divergence, kept);
        }
    }
    best.1 as f32 / bins.len() as f32
}

/// The divergence when the first `kept` bins are kept.
fn divergence(bins: &[u64], kept: usize, levels: usize) -> f64 {
    let (inside, outside) = bins.split_at(kept);
    let clipped: u64 = outside.iter().sum();
    let total = (inside.iter().sum::<u64>() + clipped) as f64;
    let own: f64 = inside.iter().sum::<u64>() as f64;
    if own == 0.0 {
        return f64::INFINITY;
    }
    let mut sum = 0.0;
    for level in 0..levels {
        let own_bins = bins_of(level, kept, levels);
        let part = &inside[own_bins.clone()];
        let filled = part.iter().filter(|&&count| count > 0).count() as f64;
        // The numbers of a level are spread evenly over its bins that hold any.
        let spread = part.iter().sum::<u64>() as f64 / filled.max(1.0);
        for (bin, &count) in own_bins.zip(part) {
            let exact = (count + if bin + 1 == kept { clipped } else { 0 }) as f64 / total;
            if exact > 0.0 {
                // A bin that holds only what was cut off has no number in the 8-bit form; a small one stands for it.
                let coarse = if count > 0 { spread / own } else { 1e-9 };
                sum += exact * (exact / coarse).ln();
            }
        }
    }
    sum
}

/// The places of the bins of a level, when the first `kept` bins have `levels` levels.
fn bins_of(level: usize, kept: usize, levels: usize) -> std::ops::Range<usize> {
    level * kept / levels..(level + 1) * kept / levels
}

/// The mean divergence of samples of numbers that are spread evenly within each level: a half for each bin beyond the first one of its level,
/// divided by how many numbers there are. Only bins that hold any count.
fn expected_by_chance(bins: &[u64], kept: usize, levels: usize) -> f64 {
    let total: u64 = bins.iter().sum();
    let filled = |level: usize| bins[bins_of(level, kept, levels)].iter().filter(|&&count| count > 0).count();
    let free: usize = (0..levels).map(|level| filled(level).saturating_sub(1)).sum();
    free as f64 / (2 * total) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_bins_than_levels_are_kept_whole() {
        let mut bins = vec![0; 2048];
        bins[..20].fill(7);
        assert_eq!(threshold(&bins, 128), 20.0 / 2048.0);
        assert_eq!(threshold(&vec![0; 2048], 128), 1.0);
    }

    #[test]
    fn a_distribution_that_levels_describe_exactly_has_no_divergence() {
        let bins = vec![5u64; 512];
        assert!(divergence(&bins, 512, 128).abs() < 1e-12);
        assert!(divergence(&bins, 256, 128) > 0.1);
    }

    #[test]
    fn chance_explains_the_divergence_of_evenly_spread_samples() {
        let (levels, kept, numbers) = (128, 1024, 40_000);
        let (mut sum, mut expected, mut state) = (0.0, 0.0, 1u64);
        for _ in 0..20 {
            let mut bins = vec![0; kept];
            for _ in 0..numbers {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                bins[(state >> 54) as usize] += 1;
            }
            sum += divergence(&bins, kept, levels);
            expected += expected_by_chance(&bins, kept, levels);
        }
        assert!((sum / expected - 1.0).abs() < 0.05, "{sum} and {expected}");
    }
}
