//! Measures of ranking quality: how well scores order programs with known times.
//!
//! All measures take one task's candidates: `scores[i]` predicts the candidate that took `seconds[i]`. A candidate
//! without a valid time (failed, or not a positive finite number) counts as slower than all others.

/// The share of pairs that the scores put in the right order, in `[0, 1]`; guessing reaches 0.5.
///
/// Pairs of equal time have no right order and are left out; a pair of equal scores counts one half. `None` when no
/// pair is left.
///
/// # Panics
/// When the slices differ in length.
pub fn pairwise_accuracy(scores: &[f32], seconds: &[Option<f64>]) -> Option<f64> {
    let (halves, pairs) = in_order(scores, seconds);
    (pairs > 0).then(|| halves as f64 / (2 * pairs) as f64)
}

/// The number of half pairs that the scores put in the right order, and the number of pairs.
pub(super) fn in_order(scores: &[f32], seconds: &[Option<f64>]) -> (u64, u64) {
    assert_eq!(scores.len(), seconds.len(), "one score for each measured program");
    let speeds: Vec<f64> = seconds.iter().map(|&time| speed(time)).collect();
    let (mut halves, mut pairs) = (0u64, 0u64);
    for first in 0..scores.len() {
        for second in first + 1..scores.len() {
            let (faster, slower) = match speeds[first].total_cmp(&speeds[second]) {
                std::cmp::Ordering::Equal => continue,
                std::cmp::Ordering::Greater => (scores[first], scores[second]),
                std::cmp::Ordering::Less => (scores[second], scores[first]),
            };
            pairs += 1;
            halves += if faster > slower { 2 } else { u64::from(faster == slower) };
        }
    }
    (halves, pairs)
}

/// The share of the `k` truly fastest candidates that are among the `k` best scored, in `[0, 1]`.
///
/// Ties go to the earlier candidate on both sides. With fewer than `k` candidates all of them are the top; `None`
/// when there are none or `k` is zero.
///
/// # Panics
/// When the slices differ in length.
pub fn top_k_recall(scores: &[f32], seconds: &[Option<f64>], k: usize) -> Option<f64> {
    assert_eq!(scores.len(), seconds.len(), "one score for each measured program");
    let k = k.min(scores.len());
    let fastest = top(scores.len(), k, |index| speed(seconds[index]));
    let predicted = top(scores.len(), k, |index| f64::from(scores[index]));
    let found = fastest.iter().filter(|index| predicted.contains(index)).count();
    (k > 0).then(|| found as f64 / k as f64)
}

/// The speed reached by measuring only the `k` best scored candidates, as a share of the fastest one's, in `[0, 1]`.
///
/// This is the effect of a model's quality on a search. `None` when nothing has a valid time or `k` is zero.
///
/// # Panics
/// When the slices differ in length.
pub fn peak_at_k(scores: &[f32], seconds: &[Option<f64>], k: usize) -> Option<f64> {
    assert_eq!(scores.len(), seconds.len(), "one score for each measured program");
    let best = seconds.iter().map(|&time| speed(time)).fold(0.0, f64::max);
    let predicted = top(scores.len(), k.min(scores.len()), |index| f64::from(scores[index]));
    let reached = predicted.iter().map(|&index| speed(seconds[index])).fold(0.0, f64::max);
    (best > 0.0 && k > 0).then(|| reached / best)
}

/// Runs per second; zero for a candidate without a valid time.
fn speed(seconds: Option<f64>) -> f64 {
    seconds.filter(|time| time.is_finite() && *time > 0.0).map_or(0.0, |time| 1.0 / time)
}

/// The indices of the `k` largest keys among `0..count`, ties in favour of the lower index, NaN last.
fn top(count: usize, k: usize, key: impl Fn(usize) -> f64) -> Vec<usize> {
    let ordered = |index: usize| Some(key(index)).filter(|key| !key.is_nan()).unwrap_or(f64::NEG_INFINITY);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| ordered(b).total_cmp(&ordered(a)));
    order.truncate(k);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS: [Option<f64>; 4] = [Some(4.0), Some(1.0), None, Some(2.0)];

    #[test]
    fn a_perfect_order_scores_one_and_its_reverse_zero() {
        let scores = [0.25, 1.0, 0.0, 0.5];
        let reverse = scores.map(|score| -score);
        assert_eq!(pairwise_accuracy(&scores, &SECONDS), Some(1.0));
        assert_eq!(pairwise_accuracy(&reverse, &SECONDS), Some(0.0));
        assert_eq!(top_k_recall(&scores, &SECONDS, 2), Some(1.0));
        assert_eq!(top_k_recall(&reverse, &SECONDS, 2), Some(0.0));
        assert_eq!(peak_at_k(&scores, &SECONDS, 1), Some(1.0));
        assert_eq!(peak_at_k(&reverse, &SECONDS, 1), Some(0.0));
        assert_eq!(peak_at_k(&reverse, &SECONDS, 2), Some(0.25));
    }

    #[test]
    fn one_swapped_pair_of_six_costs_a_sixth() {
        let accuracy = pairwise_accuracy(&[0.25, 0.5, 0.0, 1.0], &SECONDS).unwrap();
        assert!((accuracy - 5.0 / 6.0).abs() < 1e-12, "{accuracy}");
    }

    #[test]
    fn equal_scores_are_worth_a_guess() {
        assert_eq!(pairwise_accuracy(&[1.0; 4], &SECONDS), Some(0.5));
    }

    #[test]
    fn equal_times_do_not_count() {
        assert_eq!(pairwise_accuracy(&[1.0, 2.0], &[Some(1.0), Some(1.0)]), None);
        assert_eq!(pairwise_accuracy(&[1.0, 2.0], &[None, Some(f64::NAN)]), None);
    }

    #[test]
    fn recall_counts_what_both_tops_share() {
        let seconds: Vec<Option<f64>> = (1..=6).map(|time| Some(f64::from(time))).collect();
        let scores = [6.0, 1.0, 5.0, 4.0, 2.0, 3.0];
        assert_eq!(top_k_recall(&scores, &seconds, 2), Some(0.5));
        assert_eq!(top_k_recall(&scores, &seconds, 3), Some(2.0 / 3.0));
        assert_eq!(top_k_recall(&scores, &seconds, 100), Some(1.0));
    }

    #[test]
    fn nothing_to_measure_is_none() {
        assert_eq!(pairwise_accuracy(&[], &[]), None);
        assert_eq!(top_k_recall(&[], &[], 3), None);
        assert_eq!(top_k_recall(&[1.0], &[Some(1.0)], 0), None);
        assert_eq!(peak_at_k(&[1.0], &[None], 1), None);
    }

    #[test]
    fn a_nan_score_ranks_last() {
        let seconds = [Some(1.0), Some(2.0)];
        assert_eq!(peak_at_k(&[f32::NAN, -5.0], &seconds, 1), Some(0.5));
    }
}
