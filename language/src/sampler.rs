//! The choice of the next token from logits.

use crate::error::Error;

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// The most likely token; of equally likely ones the first.
    Greedy,
    /// A random token among the most likely ones, which together have at least the probability `top_p`.
    TopP {
        /// The least probability of the tokens that are chosen from, above 0 and at most 1.
        top_p: f32,
        /// The divisor of logits, above 0. One below 1 favours likely tokens.
        temperature: f32,
    },
}

/// Chooses tokens. The same seed chooses the same tokens.
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    state: u64,
}

impl Sampler {
    /// A sampler.
    ///
    /// # Errors
    /// When a probability or a temperature is out of range.
    pub fn new(sampling: Sampling, seed: u64) -> Result<Self, Error> {
        if let Sampling::TopP { top_p, temperature } = sampling {
            if !(top_p > 0.0 && top_p <= 1.0) {
                return Err(Error::Sampling(format!(
                    "top-p is {top_p}; a number above 0 up to 1 is expected"
                )));
            }
            if !(temperature > 0.0 && temperature.is_finite()) {
                return Err(Error::Sampling(format!(
                    "the temperature is {temperature}; a number above 0 is expected"
                )));
            }
        }
        Ok(Sampler { sampling, state: seed })
    }

    /// The next token.
    ///
    /// # Errors
    /// When there are no logits, or one is no number.
    pub fn choose(&mut self, logits: &[f32]) -> Result<u32, Error> {
        if let Some(place) = logits.iter().position(|logit| logit.is_nan()) {
            return Err(Error::Sampling(format!("the logit of token {place} is not a number")));
        }
        let best =
            (0..logits.len()).reduce(|best, next| if logits[next] > logits[best] { next } else { best });
        let best = best.ok_or_else(|| Error::Sampling("there are no logits".to_owned()))?;
        match self.sampling {
            Sampling::Greedy => Ok(best as u32),
            Sampling::TopP { top_p, temperature } => Ok(self.draw(logits, logits[best], top_p, temperature)),
        }
    }

    fn draw(&mut self, logits: &[f32], largest: f32, top_p: f32, temperature: f32) -> u32 {
        let weight = |logit: f32| f64::from((logit - largest) / temperature).exp();
        let mut order: Vec<(f64, u32)> =
            logits.iter().enumerate().map(|(token, &logit)| (weight(logit), token as u32)).collect();
        order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let total: f64 = order.iter().map(|(weight, _)| weight).sum();
        let mut kept = 0.0;
        let count = order.iter().position(|(weight, _)| {
            kept += weight;
            kept >= f64::from(top_p) * total
        });
        let nucleus = &order[..count.map_or(order.len(), |count| count + 1)];
        let mut left = self.uniform() * nucleus.iter().map(|(weight, _)| weight).sum::<f64>();
        let chosen = nucleus.iter().find(|(weight, _)| {
            left -= weight;
            left < 0.0
        });
        chosen.unwrap_or(&nucleus[nucleus.len() - 1]).1
    }

    /// A number from 0 to 1, without 1: SplitMix64 (Steele, Lea and Flood, 2014).
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_takes_the_first_of_the_largest() {
        let mut sampler = Sampler::new(Sampling::Greedy, 0).unwrap();
        assert_eq!(sampler.choose(&[0.0, 2.0, 1.0, 2.0]).unwrap(), 1);
        assert!(sampler.choose(&[]).is_err());
        assert!(sampler.choose(&[0.0, f32::NAN]).is_err());
    }

    #[test]
    fn top_p_draws_by_probability_from_the_likely_tokens() {
        let logits: Vec<f32> = [0.5f32, 0.3, 0.15, 0.05].iter().map(|p| p.ln()).collect();
        let mut sampler = Sampler::new(Sampling::TopP { top_p: 0.9, temperature: 1.0 }, 7).unwrap();
        let mut counts = [0usize; 4];
        for _ in 0..20_000 {
            counts[sampler.choose(&logits).unwrap() as usize] += 1;
        }
        assert_eq!(counts[3], 0, "{counts:?}");
        for (count, expected) in counts.iter().zip([0.5, 0.3, 0.15]) {
            let share = *count as f64 / 20_000.0;
            assert!((share - expected / 0.95).abs() < 0.015, "{counts:?}");
        }
    }

    #[test]
    fn settings_out_of_range_are_errors() {
        for (top_p, temperature) in
            [(0.0, 1.0), (1.5, 1.0), (f32::NAN, 1.0), (0.9, 0.0), (0.9, f32::INFINITY)]
        {
            assert!(Sampler::new(Sampling::TopP { top_p, temperature }, 0).is_err());
        }
    }
}
