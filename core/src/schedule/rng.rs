//! The random numbers of sampling: small, fast, and the same everywhere for the same seed.

/// A pseudo-random generator (SplitMix64, Steele, Lea & Flood 2014). Not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// A generator; the same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// A generator for the `stream`-th of many independent uses of one seed.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut rng = Rng(seed ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03));
        rng.next_u64();
        rng
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A uniform number below `bound`.
    ///
    /// # Panics
    /// When `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "a random number below 0");
        // The bias of the multiply-shift reduction is below 2^-32 for every bound that occurs here.
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A uniform number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The number of a candidate drawn by weight; weights that are not positive are never drawn.
    /// `None` when no weight is positive.
    pub fn weighted(&mut self, weights: &[f64]) -> Option<usize> {
        let total: f64 = weights.iter().filter(|weight| **weight > 0.0).sum();
        if total <= 0.0 || !total.is_finite() {
            return None;
        }
        let mut rest = self.unit() * total;
        let mut last = None;
        for (number, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            last = Some(number);
            rest -= weight;
            if rest < 0.0 {
                break;
            }
        }
        last
    }
}
