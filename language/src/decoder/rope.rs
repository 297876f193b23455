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

    /// The sines and cosines of a position.
    pub(super) fn at(&self, position: usize) -> Vec<(f32, f32)> {
        let turn = |step: &f64| {
            let (sine, cosine) = (position as f64 * step).sin_cos();
            (sine as f32, cosine as f32)
        };
        self.steps.iter().map(turn).collect()
    }
}

/// Turns a head: the pairs that have an angle.
pub(super) fn rotate(head: &mut [f32], turns: &[(f32, f32)]) {
    for (pair, &(sine, cosine)) in head.chunks_exact_mut(2).zip(turns) {
        let (x, y) = (pair[0], pair[1]);
        pair[0] = x * cosine - y * sine;
        pair[1] = x * sine + y * cosine;
    }
}
