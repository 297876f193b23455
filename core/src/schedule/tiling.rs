//! Factors of tiles: drawn at random, given by a decision, or repaired to fit another extent.

use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs};
use crate::schedule::{Decision, LoopRv, Rng, ScheduleError, Value};

/// More parts than any tiling has; a bound for hostile traces.
pub(in crate::schedule) const MAX_PARTS: i64 = 16;

/// The largest tile of a symbolic extent: a partial tile at its end costs little even where the extent is small.
const MAX_OPEN_TILE: i64 = 64;

/// How often a draw whose innermost factor is too large is repeated.
const DRAWS: usize = 32;

/// How the factors of a constant extent are found: `repair` takes the extent, given factors and the largest innermost factor,
/// `draw` the number of factors in place of given ones.
pub(in crate::schedule) struct Tiling {
    pub(in crate::schedule) repair: fn(i64, Vec<i64>, i64) -> Vec<i64>,
    pub(in crate::schedule) draw: fn(i64, usize, i64, &mut Rng) -> Vec<i64>,
}

/// Draws or repairs the factors of a loop. The factors of a symbolic extent are [open](open).
pub(in crate::schedule) fn sample_tile(
    context: &mut Context<'_>,
    target: LoopRv,
    parts: i64,
    max_innermost: i64,
    tiling: Tiling,
) -> Result<Outputs, ScheduleError> {
    let id = context.values.target_loop(target)?;
    let extent = require_loop(context.program, id)?.extent.as_constant();
    if !(1..=MAX_PARTS).contains(&parts) || max_innermost < 1 {
        return Err(ScheduleError::BadFactors(id));
    }
    let parts = parts as usize;
    let factors = match (extent, given_factors(context.decision, parts)?) {
        (None, Some(factors)) => open(factors, max_innermost),
        (None, None) => open(draw_powers(parts, context.rng), max_innermost),
        (Some(extent), Some(factors)) => (tiling.repair)(extent.max(1), factors, max_innermost),
        (Some(extent), None) => (tiling.draw)(extent.max(1), parts, max_innermost, context.rng),
    };
    *context.decision = Some(Decision::Tile(factors.clone()));
    Ok(factors.into_iter().map(Value::Int).collect())
}

/// The factors of a given decision.
pub(in crate::schedule) fn given_factors(
    decision: &Option<Decision>,
    parts: usize,
) -> Result<Option<Vec<i64>>, ScheduleError> {
    match decision {
        Some(Decision::Tile(factors)) if factors.len() == parts => Ok(Some(factors.clone())),
        Some(Decision::Tile(_)) => Err(ScheduleError::BadDecision("as many factors as parts")),
        Some(_) => Err(ScheduleError::BadDecision("a sampled tile takes `[factors]`")),
        None => Ok(None),
    }
}

/// Leaves the first of given factors open.
fn open(mut factors: Vec<i64>, max_innermost: i64) -> Vec<i64> {
    if let Some(innermost) = factors.last_mut() {
        *innermost = (*innermost).min(max_innermost);
    }
    factors.iter_mut().for_each(|factor| *factor = (*factor).clamp(1, MAX_OPEN_TILE));
    factors[0] = -1;
    factors
}

/// Powers of two for a symbolic extent, at most [`MAX_OPEN_TILE`] together, with a first part of one.
fn draw_powers(parts: usize, rng: &mut Rng) -> Vec<i64> {
    let mut factors = vec![1i64; parts];
    if parts > 1 {
        let total = rng.below(MAX_OPEN_TILE.ilog2() as usize + 1) as u32;
        for (factor, share) in factors.iter_mut().skip(1).zip(composition(total, parts - 1, rng)) {
            *factor <<= share;
        }
    }
    factors
}

/// Makes factors multiply to `extent`, from the right, keeping those that divide the rest. Another one becomes
/// the divisor nearest to it, so that a schedule that was tuned for one shape keeps its character for another.
pub(in crate::schedule) fn repair(extent: i64, mut factors: Vec<i64>, max_innermost: i64) -> Vec<i64> {
    let mut rest = extent;
    let mut most = max_innermost;
    for factor in factors.iter_mut().skip(1).rev() {
        if *factor < 1 || rest % *factor != 0 {
            *factor = nearest_divisor(rest, (*factor).max(1), most);
        }
        rest /= *factor;
        most = i64::MAX;
    }
    factors[0] = rest;
    factors
}

/// The divisor of `number`, at most `most`, whose ratio to `wanted` is closest to one; the smaller of two.
fn nearest_divisor(number: i64, wanted: i64, most: i64) -> i64 {
    let ratio = |divisor: i64| {
        let ratio = divisor as f64 / wanted as f64;
        ratio.max(ratio.recip())
    };
    let pairs =
        (1..).take_while(|divisor| divisor * divisor <= number).filter(|divisor| number % divisor == 0);
    pairs
        .flat_map(|divisor| [divisor, number / divisor])
        .filter(|divisor| *divisor <= most)
        .min_by(|a, b| ratio(*a).total_cmp(&ratio(*b)).then(a.cmp(b)))
        .unwrap_or(1)
}

pub(in crate::schedule) fn draw(extent: i64, parts: usize, max_innermost: i64, rng: &mut Rng) -> Vec<i64> {
    let primes = prime_powers(extent);
    for _ in 0..DRAWS {
        let mut factors = vec![1i64; parts];
        for (prime, exponent) in &primes {
            for (factor, share) in factors.iter_mut().zip(composition(*exponent, parts, rng)) {
                *factor *= prime.pow(share);
            }
        }
        if factors[parts - 1] <= max_innermost || parts == 1 {
            return factors;
        }
    }
    // The innermost factor is still too large: leave it at 1.
    let mut factors = vec![1; parts];
    factors[0] = extent;
    factors
}

/// The prime factors of a positive number with their exponents.
fn prime_powers(number: i64) -> Vec<(i64, u32)> {
    let mut powers = Vec::new();
    let mut rest = number;
    let mut prime = 2;
    while prime * prime <= rest {
        let mut exponent = 0;
        while rest % prime == 0 {
            rest /= prime;
            exponent += 1;
        }
        if exponent > 0 {
            powers.push((prime, exponent));
        }
        prime += 1;
    }
    if rest > 1 {
        powers.push((rest, 1));
    }
    powers
}

/// `total` as an ordered sum of `parts` numbers, uniformly ("stars and bars": a choice of `parts - 1` of
/// `total + parts - 1` places for the bars, drawn by selection sampling).
fn composition(total: u32, parts: usize, rng: &mut Rng) -> Vec<u32> {
    let places = total as usize + parts - 1;
    let mut bars = parts - 1;
    let mut shares = Vec::with_capacity(parts);
    let mut stars = 0;
    for place in 0..places {
        if rng.below(places - place) < bars {
            bars -= 1;
            shares.push(stars);
            stars = 0;
        } else {
            stars += 1;
        }
    }
    shares.push(stars);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repaired_tiles_fit_and_stay_close() {
        for (extent, factors, expected) in [
            (64, vec![4, 16], [4, 16]),
            (1000, vec![64, 16], [50, 20]),
            (96, vec![8, 128], [1, 96]),
            (11, vec![2, 4], [1, 11]),
            (1009, vec![64, 16], [1009, 1]),
            (1, vec![8, 8], [1, 1]),
            (12, vec![1, -5], [12, 1]),
        ] {
            assert_eq!(repair(extent, factors.clone(), 128), expected, "{factors:?} for {extent}");
        }
        assert_eq!(repair(61, vec![4, 16], 16), [61, 1], "61 is more than the innermost may be");
        assert_eq!(repair(24, vec![2, 5, 7], 64), [1, 3, 8]);
    }

    #[test]
    fn tiles_of_a_symbolic_extent_are_open_and_small() {
        assert_eq!(open(vec![4, 2, 64], 16), [-1, 2, 16]);
        assert_eq!(open(vec![7], 16), [-1]);
        assert_eq!(open(vec![1, -3, i64::MAX], i64::MAX), [-1, 1, MAX_OPEN_TILE]);
        let mut rng = Rng::new(5);
        for round in 0..200 {
            let factors = open(draw_powers(4, &mut rng), 8);
            assert_eq!(factors[0], -1, "round {round}");
            assert!(factors[1..].iter().all(|factor| factor.count_ones() == 1), "round {round}: {factors:?}");
            assert!(factors[1..].iter().product::<i64>() <= MAX_OPEN_TILE, "round {round}: {factors:?}");
            assert!(factors[3] <= 8, "round {round}: {factors:?}");
        }
    }
}
