//! The threshold whose 8-bit form differs least in distribution from the numbers (Migacz, "8-bit Inference with TensorRT", GTC 2017).

/// The share of a histogram of magnitudes that is kept when numbers have `levels` levels: the one with the least Kullback-Leibler divergence
/// between the numbers, those beyond the threshold brought back to it, and the same numbers in as many levels.
pub(super) fn threshold(bins: &[u64], levels: usize) -> f32 {
    let Some(last) = bins.iter().rposition(|&count| count > 0) else { return 1.0 };
    let mut best = (f64::INFINITY, last + 1);
    for kept in levels..=last + 1 {
        let divergence = divergence(bins, kept, levels);
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
        let (from, to) = (level * kept / levels, (level + 1) * kept / levels);
        let part = &inside[from..to];
        let filled = part.iter().filter(|&&count| count > 0).count() as f64;
        // The numbers of a level are spread evenly over its bins that hold any.
        let spread = part.iter().sum::<u64>() as f64 / filled.max(1.0);
        for (bin, &count) in (from..to).zip(part) {
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
}
