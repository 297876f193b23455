//! The ranking quality of a model's predictions.

use super::accuracy::in_order;

/// The rank correlation of scores with measured speeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranking {
    /// Candidates that were scored and measured.
    pub candidates: u64,
    /// Pairs of them that differ in speed; one that failed is slower than all others.
    pub pairs: u64,
    /// Kendall's τ over these pairs: 1 when the scores put all of them in order, 0 for guessing, -1 for the reverse. Equal
    /// scores count as a guess.
    pub correlation: f64,
}

impl Ranking {
    /// Of one task's candidates, as for [`pairwise_accuracy`](super::pairwise_accuracy); `None` when no two differ in
    /// speed.
    ///
    /// # Panics
    /// When the slices differ in length.
    pub fn of(scores: &[f32], seconds: &[Option<f64>]) -> Option<Self> {
        let (halves, pairs) = in_order(scores, seconds);
        (pairs > 0).then(|| Ranking {
            candidates: scores.len() as u64,
            pairs,
            correlation: halves as f64 / pairs as f64 - 1.0,
        })
    }

    /// Of several rounds, each pair counting alike; `None` without pairs. Candidates of different rounds are not
    /// compared: the scores of a model that has learned in between have another scale.
    pub fn overall(rounds: &[Ranking]) -> Option<Self> {
        let sum = |count: fn(&Ranking) -> u64| rounds.iter().map(count).fold(0, u64::saturating_add);
        let (candidates, pairs) = (sum(|round| round.candidates), sum(|round| round.pairs));
        let weighted: f64 = rounds.iter().map(|round| round.pairs as f64 * round.correlation).sum();
        (pairs > 0).then(|| Ranking {
            candidates,
            pairs,
            correlation: (weighted / pairs as f64).clamp(-1.0, 1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_decides_and_rounds_are_weighted_by_their_pairs() {
        let seconds = [Some(3.0), Some(2.0), Some(1.0), None];
        let right = Ranking::of(&[1.0, 2.0, 3.0, 0.0], &seconds).expect("they differ");
        assert_eq!(right, Ranking { candidates: 4, pairs: 6, correlation: 1.0 });
        let wrong = Ranking::of(&[2.0, 1.0], &seconds[..2]).expect("they differ");
        assert_eq!(wrong, Ranking { candidates: 2, pairs: 1, correlation: -1.0 });
        let guess = Ranking::of(&[0.0; 4], &seconds).expect("they differ");
        assert_eq!(guess.correlation, 0.0);
        let overall = Ranking::overall(&[right, wrong]).expect("there are pairs");
        assert_eq!((overall.candidates, overall.pairs), (6, 7));
        assert!((overall.correlation - 5.0 / 7.0).abs() < 1e-12, "{overall:?}");
        assert_eq!(Ranking::of(&[1.0], &seconds[..1]), None);
        assert_eq!(Ranking::overall(&[]), None);
        assert_eq!(Ranking::of(&[1.0, 2.0], &[Some(1.0), Some(1.0)]), None);
    }
}
