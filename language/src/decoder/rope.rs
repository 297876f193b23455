//! Positions turn queries and keys: pairs of neighbouring numbers by angles that grow with the position.

use crate::decoder::config::Config;
use crate::error::Error;
use crate::gguf::File;

/// The angle that each pair turns by from one position to the next.
pub(super) struct Rotation {
    steps: Vec<f64>,
}

/// Factors for the angles, which models for long contexts carry.
const FACTORS: &str = "rope_freqs.weight";

impl Rotation {
    /// The angles of a model.
    pub(super) fn of(config: &Config, file: &File) -> Result<Self, Error> {
        let pairs = config.rope_dims / 2;
        let mut steps: Vec<f64> = (0..pairs)
            .map(|pair| config.rope_base.powf(-2.0 * pair as f64 / config.rope_dims as f64))
            .collect();
        if let Some(stored) = file.find(FACTORS) {
            let factors = crate::block::dequantise(stored.kind, stored.bytes);
            if factors.len() != pairs || factors.iter().any(|factor| !(factor.is_finite() && *factor > 0.0)) {
                return Err(Error::tensor(FACTORS, format!("{pairs} factors above zero are expected")));
            }
            steps.iter_mut().zip(factors).for_each(|(step, factor)| *step /= f64::from(factor));
        }
        Ok(Rotation { steps })
    }

    /// The sine and the cosine of each pair of a head, for positions one after the other. Pairs without an angle stay as they are.
    pub(super) fn turns(&self, pairs: usize, positions: impl Iterator<Item = usize>) -> Vec<f32> {
        let turn = |position: usize| {
            let turned = self.steps.iter().flat_map(move |step| {
                let (sine, cosine) = (position as f64 * step).sin_cos();
                [sine as f32, cosine as f32]
            });
            turned.chain(std::iter::repeat_n([0.0, 1.0], pairs - self.steps.len()).flatten())
        };
        positions.flat_map(turn).collect()
    }
}
