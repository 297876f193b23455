//! Scales the score of the analytic draft model to the labels.

/// A line from a program's prior to its expected label: where boosting starts.
///
/// Trees then learn only the errors of the draft model. A few samples suffice to be no worse than the draft, and
/// priors beyond the measured range still order programs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Draft {
    pub(super) offset: f32,
    /// Not negative: a higher prior is never worse.
    pub(super) slope: f32,
}

/// The line from the origin counts as a sample of full weight, this far from the mean prior, as a share of it.
const SPREAD: f64 = 0.25;

impl Draft {
    /// The line of least weighted squared error through `(prior, label, weight)` points, drawn towards the one from the
    /// origin: priors and labels are both shares of the best there is. The first samples are all among those with the
    /// highest priors, from which no slope can be told. Priors that are not finite tell nothing and are left out; so is
    /// the slope if the draft model ranks worse than chance.
    pub(super) fn fit(points: impl Iterator<Item = (f32, f64, f64)> + Clone) -> Self {
        let points = points.filter(|(prior, ..)| prior.is_finite());
        let total: f64 = points.clone().map(|(.., weight)| weight).sum();
        let mean = |of: &dyn Fn(f64, f64) -> f64| {
            let sum: f64 =
                points.clone().map(|(prior, label, weight)| weight * of(f64::from(prior), label)).sum();
            if total > 0.0 { sum / total } else { 0.0 }
        };
        let (prior_mean, label_mean) = (mean(&|prior, _| prior), mean(&|_, label| label));
        let covariance = mean(&|prior, label| (prior - prior_mean) * (label - label_mean));
        let variance = mean(&|prior, _| (prior - prior_mean).powi(2));
        let (weight, proportional) = match prior_mean > 0.0 {
            true => ((SPREAD * prior_mean).powi(2), label_mean / prior_mean),
            false => (0.0, 0.0),
        };
        let evidence = variance * total + weight;
        let slope = (covariance * total + weight * proportional) / evidence;
        let slope = if evidence > 0.0 { slope.max(0.0) as f32 } else { 0.0 };
        let offset = (label_mean - f64::from(slope) * prior_mean) as f32;
        if slope.is_finite() && offset.is_finite() {
            Self { offset, slope }
        } else {
            Self { offset: label_mean as f32, slope: 0.0 }
        }
    }

    /// The label to expect for a prior; a prior that is not finite counts as the nearest finite one, NaN as the
    /// lowest.
    pub(super) fn score(&self, prior: f32) -> f64 {
        f64::from(self.offset) + f64::from(self.slope) * f64::from(finite_prior(prior))
    }
}

/// A prior as a finite number, so that it can stand for a prediction: NaN is the lowest.
pub(super) fn finite_prior(prior: f32) -> f32 {
    if prior.is_nan() { f32::MIN } else { prior.clamp(f32::MIN, f32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(points: &[(f32, f64, f64)]) -> Draft {
        Draft::fit(points.iter().copied())
    }

    #[test]
    fn a_line_is_found() {
        let draft = fit(&[(1.0, 0.25, 1.0), (2.0, 0.5, 0.1), (4.0, 1.0, 3.0)]);
        for (prior, label) in [(1.0, 0.25), (3.0, 0.75), (8.0, 2.0)] {
            assert!((draft.score(prior) - label).abs() < 1e-6, "{draft:?} at {prior}");
        }
    }

    #[test]
    fn a_draft_that_ranks_backwards_is_ignored() {
        assert_eq!(fit(&[(1.0, 0.75, 1.0), (2.0, 0.25, 1.0)]), Draft { offset: 0.5, slope: 0.0 });
    }

    #[test]
    fn what_says_nothing_gives_a_constant() {
        assert_eq!(fit(&[]), Draft::default());
        assert_eq!(fit(&[(3.0, 0.5, 0.0)]), Draft::default());
        assert_eq!(fit(&[(-3.0, 0.5, 1.0)]), Draft { offset: 0.5, slope: 0.0 });
    }

    #[test]
    fn little_evidence_leaves_the_prior_as_it_is() {
        assert_eq!(fit(&[(4.0, 0.5, 1.0)]), Draft { offset: 0.0, slope: 0.125 });
        let strange = [(f32::NAN, 1.0, 1.0), (f32::INFINITY, 1.0, 1.0), (2.0, 0.5, 1.0)];
        assert_eq!(fit(&strange), Draft { offset: 0.0, slope: 0.25 });
        // Among priors that hardly differ, noise would hide which is better.
        let close = fit(&[(0.50, 0.9, 1.0), (0.51, 0.8, 1.0), (0.52, 0.95, 1.0), (0.53, 0.7, 1.0)]);
        assert!(close.slope > 1.0, "{close:?}");
        let apart = fit(&[(0.1, 0.5, 8.0), (0.5, 0.6, 8.0), (0.9, 0.7, 8.0)]);
        assert!((apart.slope - 0.25).abs() < 0.1, "{apart:?}");
    }

    #[test]
    fn extreme_priors_keep_the_score_finite() {
        let draft = fit(&[(f32::MIN, 0.0, 1.0), (f32::MAX, 1.0, 1.0), (0.0, 0.5, 1.0)]);
        for prior in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE] {
            assert!(draft.score(prior).is_finite(), "{draft:?} at {prior}");
            assert!(Draft { offset: f32::MAX, slope: f32::MAX }.score(prior).is_finite(), "{prior}");
        }
    }
}
