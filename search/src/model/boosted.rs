//! The learned model: gradient-boosted trees that are refitted as measurements arrive.

use super::booster::{Booster, BoosterParameters};
use super::draft::finite_prior;
use super::text::{self, ModelTextError};
use super::{CostModel, ProgramFeatures, Sample};

/// The least number of successful measurements for a training; below it the draft model's order is the
/// better prediction.
const LEAST_SUCCESSES: usize = 16;

/// The model is refitted once the new samples are at least one in this many of those trained on (MetaSchedule's rule):
/// the total effort of training then grows in proportion to the samples.
const REFIT_FRACTION: usize = 5;

/// Gradient-boosted trees over all measurements so far.
///
/// Until 16 candidates have been measured successfully the scores are the programs' priors. From then on the model is
/// refitted from scratch on all samples of all tasks whenever the samples have grown by a fifth.
#[derive(Debug, Clone, Default)]
pub struct BoostedModel {
    parameters: BoosterParameters,
    /// The ensemble that was trained before this model's first sample: every refit corrects it anew.
    foundation: Option<Booster>,
    booster: Option<Booster>,
    samples: Vec<Sample>,
    successes: usize,
    /// The number of samples that the booster was trained on.
    trained_on: usize,
}

impl BoostedModel {
    /// A model that has learned nothing yet.
    pub fn new(parameters: BoosterParameters) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// A model that starts with the trees of another one, from [`to_json`](Self::to_json). These trees stay, and trees
    /// trained on new samples correct them.
    ///
    /// `width` is the number of features in a row as they are extracted now.
    ///
    /// # Errors
    /// When `text` is not a trained model, is of another version, or was trained on rows of another width.
    pub fn from_json(
        text: &str,
        width: usize,
        parameters: BoosterParameters,
    ) -> Result<Self, ModelTextError> {
        let foundation = Some(text::parse(text, width)?);
        Ok(Self { foundation, ..Self::new(parameters) })
    }

    /// The trained trees as JSON, or `None` as long as nothing has been learned. The samples are not part of it.
    pub fn to_json(&self) -> Option<String> {
        self.trained().map(text::print)
    }

    /// The trees that predict now, or `None` while the priors predict.
    pub fn trained(&self) -> Option<&Booster> {
        self.booster.as_ref().or(self.foundation.as_ref())
    }

    /// All samples, including those of the next refit.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Refits on all samples now, due or not. Without samples nothing changes.
    pub fn refit(&mut self) {
        if !self.samples.is_empty() {
            self.booster = Some(Booster::fit(&self.samples, &self.parameters, self.foundation.as_ref()));
            self.trained_on = self.samples.len();
        }
    }

    fn refit_is_due(&self) -> bool {
        let fresh = self.samples.len() - self.trained_on;
        self.successes >= LEAST_SUCCESSES && fresh > 0 && fresh * REFIT_FRACTION >= self.trained_on
    }
}

impl CostModel for BoostedModel {
    fn predict(&self, programs: &[ProgramFeatures]) -> Vec<f32> {
        match self.trained() {
            Some(booster) => booster.predict(programs),
            None => programs.iter().map(|program| finite_prior(program.prior())).collect(),
        }
    }

    fn update(&mut self, samples: &[Sample]) {
        self.successes += samples.iter().filter(|sample| sample.valid_seconds().is_some()).count();
        self.samples.extend_from_slice(samples);
        if self.refit_is_due() {
            self.refit();
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::super::pairwise_accuracy;
    use super::*;

    /// Two rows a program, told apart by their last column. The time depends on both, with an interaction in the
    /// first; the prior sees one term of it, and the measurement is noisy.
    fn samples(count: usize, seed: u64) -> Vec<Sample> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut sample = || {
            let [a, b, c, d, e]: [f32; 5] = std::array::from_fn(|_| random.random_range(0.0..1.0));
            let miss = if b > 0.5 && c > 0.4 { 2.0 } else { 0.0 };
            let seconds = 1.0 + 2.0 * a + miss + 4.0 * (d - 0.5).abs();
            let noise = random.random_range(0.95..1.05);
            let features = ProgramFeatures::new(vec![a, b, c, 0.0, d, e, 0.5, 1.0], 4, 1.0 - a).unwrap();
            Sample { task: 7, features, seconds: Some(f64::from(seconds * noise)) }
        };
        (0..count).map(|_| sample()).collect()
    }

    fn features(samples: &[Sample]) -> Vec<ProgramFeatures> {
        samples.iter().map(|sample| sample.features.clone()).collect()
    }

    fn accuracy(model: &impl CostModel, test: &[Sample]) -> f64 {
        let seconds: Vec<Option<f64>> = test.iter().map(|sample| sample.seconds).collect();
        pairwise_accuracy(&model.predict(&features(test)), &seconds).unwrap()
    }

    fn failed(mut sample: Sample) -> Sample {
        sample.seconds = None;
        sample
    }

    #[test]
    fn the_prior_ranks_until_enough_has_succeeded() {
        let mut model = BoostedModel::default();
        let test = features(&samples(5, 1));
        let priors: Vec<f32> = test.iter().map(ProgramFeatures::prior).collect();
        assert_eq!(model.predict(&test), priors);
        model.update(&samples(15, 2));
        model.update(&samples(40, 3).into_iter().map(failed).collect::<Vec<_>>());
        assert_eq!(model.predict(&test), priors);
        assert!(model.to_json().is_none());
        model.update(&samples(1, 4));
        assert!(model.trained().is_some());
        assert_ne!(model.predict(&test), priors);
    }

    #[test]
    fn a_refit_waits_for_a_fifth_more() {
        let mut model = BoostedModel::default();
        model.update(&samples(100, 1));
        let first = model.trained().cloned();
        model.update(&samples(19, 2));
        assert_eq!(model.trained(), first.as_ref());
        model.update(&[]);
        assert_eq!(model.trained(), first.as_ref());
        model.update(&samples(1, 3));
        assert_ne!(model.trained(), first.as_ref());
        let due = model.trained().cloned();
        model.update(&samples(1, 4));
        model.refit();
        assert_ne!(model.trained(), due.as_ref());
        assert_eq!(model.samples().len(), 121);
    }

    #[test]
    fn learning_beats_the_prior_and_grows_with_the_samples() {
        let test = samples(500, 100);
        let prior = accuracy(&BoostedModel::default(), &test);
        let mut last = prior;
        let mut model = BoostedModel::default();
        for (seed, total) in [16, 64, 256, 1024].into_iter().enumerate() {
            model.update(&samples(total - model.samples().len(), seed as u64));
            model.refit();
            let learned = accuracy(&model, &test);
            assert!(learned > last, "{total} samples: {learned} after {last}");
            last = learned;
        }
        assert!(prior < 0.7 && last > 0.9, "prior {prior}, learned {last}");
    }

    #[test]
    fn failures_are_learned_to_be_avoided() {
        let fails = |sample: &Sample| sample.features.rows().next().is_some_and(|row| row[2] > 0.6);
        let train: Vec<Sample> = samples(300, 1)
            .into_iter()
            .map(|sample| if fails(&sample) { failed(sample) } else { sample })
            .collect();
        let test = samples(300, 2);
        let mut model = BoostedModel::default();
        model.update(&train);
        let scores = model.predict(&features(&test));
        let best = (0..300).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
        assert!(!fails(&test[best]));
        let mean = |failing: bool| {
            let of: Vec<f32> =
                (0..300).filter(|&i| fails(&test[i]) == failing).map(|index| scores[index]).collect();
            of.iter().sum::<f32>() / of.len() as f32
        };
        assert!(mean(true) + 0.2 < mean(false), "{} {}", mean(true), mean(false));
    }

    #[test]
    fn tasks_of_different_scale_are_learned_together() {
        let mut train = samples(200, 1);
        for sample in &mut train[100..] {
            sample.task = 8;
            sample.seconds = sample.seconds.map(|seconds| seconds * 1e-6);
        }
        let mut model = BoostedModel::default();
        model.update(&train);
        let learned = accuracy(&model, &samples(300, 2));
        assert!(learned > 0.85, "{learned}");
    }

    #[test]
    fn a_loaded_model_predicts_the_same_and_goes_on_learning() {
        let mut model = BoostedModel::default();
        model.update(&samples(200, 1));
        let test = samples(300, 2);
        let text = model.to_json().unwrap();
        let mut loaded = BoostedModel::from_json(&text, 4, BoosterParameters::default()).unwrap();
        assert_eq!(loaded.predict(&features(&test)), model.predict(&features(&test)));
        assert_eq!(loaded.to_json().unwrap(), text);
        let before = accuracy(&loaded, &test);
        loaded.update(&samples(200, 3));
        let after = accuracy(&loaded, &test);
        assert!(after > before, "{before} {after}");
        assert!(loaded.trained().unwrap().tree_count() > model.trained().unwrap().tree_count());
    }

    #[test]
    fn the_same_updates_give_the_same_model() {
        let train = || {
            let mut model = BoostedModel::default();
            for batch in samples(300, 5).chunks(64) {
                model.update(batch);
            }
            model.to_json().unwrap()
        };
        assert_eq!(train(), train());
    }
}
