//! How exactly a kernel's `f32` products are to be formed, and ways of forming them from `bf16` pieces.
//!
//! # The contract
//! Without a contract, products and sums of `f32` are those of `f32`: each operation rounds once, a sum's terms are added
//! in any order, and a product may be added without being rounded first. A program with an [`Accuracy`] `ε` lets each
//! product `a·b` of a sum of products be off by `ε·|a·b|` besides. For an output that sums `K` products this means
//!
//! > `|error| ≤ ε·Σ|a·b|` + what adding up the terms in `f32` costs,
//!
//! relative to the sum of the magnitudes: where terms cancel, the error relative to the result is larger, as it is for
//! every sum in floating point. Sums stay sums of `f32`; there may be nine terms for each product, and each addition
//! rounds by at most `2^-24` of the sum so far. Three things besides are left open, which only a contract permits:
//!
//! - An output with an infinity or a NaN among its operands is a NaN. Operands of at least `2^128 - 2^119`, the largest
//!   eight binary digits of `f32` rounded up, count as infinite.
//! - An output may overflow where `1.01·Σ|a·b|` does.
//! - Denormals may be taken for zero, in pieces and in sums: below `2^-126` nothing is promised. Each product may then be
//!   off by `2^-125·(|a| + |b|)`, and each addition by `2^-126`, besides.
//!
//! # Padding
//! A product of a float with a zero that the definition selects in place of an element, `select(inside, x[i], 0.0) * w`, may be left
//! out of a sum. It is zero unless `w` is infinite or a NaN; then the definition gives a NaN, and a schedule may give the sum of
//! the other products. [`multiplies_padding`](crate::program::Program::multiplies_padding) has these products formed.
//!
//! # Pieces
//! `bf16` has eight of the 24 digits of an `f32`. Let `x₀` be `x` rounded to `bf16`, `x₁` what is left rounded to `bf16`, and
//! `x₂` what is left then. All differences are exact, and
//!
//! - `|x₁| ≤ |x|·2^-8`, since rounding to eight digits errs by half a unit of the eighth, which is `2^-8` of the power of two below `x`;
//! - `|x₂| ≤ |x|·2^-17`: what was left is at most that power of two times `2^-8`; at that size it is a power of two itself, which leaves
//!   nothing, and below, the unit is half as large;
//! - `x₂` has no more than eight digits, so that `x = x₀ + x₁ + x₂`.
//!
//! A product of two pieces has 16 digits and is exact in `f32`. A product `a·b` is the sum of all nine `aᵢ·bⱼ`; leaving some
//! out leaves an error ([`PieceProducts`]):
//!
//! | products | left out | error relative to `a·b` |
//! |---|---|---|
//! | 1: `a₀·b₀` | `(a - a₀)·b + a₀·(b - b₀)`, each at most `2^-8/(1 + 2^-8)` by the relative form of the rounding error | below `2^-7` |
//! | 3: `i + j ≤ 1` | `a₁·b₁ + a₂·b + (a - a₂)·b₂`, at most `2^-16/(1 + 2^-8)² + 2·2^-17 + 2^-34` | below `2^-15` |
//! | 6: `i + j ≤ 2` | `a₁·b₂ + a₂·b₁ + a₂·b₂`, at most `2·2^-25/(1 + 2^-8) + 2^-34` | below `2^-24`, as the rounding of a product in `f32` |
//! | 9: all | nothing | 0 |
//!
//! These are the worst cases. Errors of products point in all directions, so that a long sum is far closer than they say.
//!
//! # Rounded factors
//! Tensor cores multiply factors with eleven binary digits, the format `tf32`. A factor [rounded to it](rounded_to_tf32) is off by
//! at most `u/(1 + u)` of itself, `u = 2^-11`, and a product of two of them by `2·u/(1 + u) + (u/(1 + u))²`, which is below `2^-10`
//! ([`ROUNDED_FACTORS`]). Their product has 22 digits and is exact in `f32`.

use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::index::Index;

/// How far a product of a sum of products may be off, relative to itself; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Accuracy {
    /// The bits of an `f64`, so that equality is exact.
    bits: u64,
}

impl Accuracy {
    /// An error of at least 0 and less than 1; `None` for any other number.
    pub fn new(relative: f64) -> Option<Self> {
        // Adding makes a zero positive.
        (0.0..1.0).contains(&relative).then(|| Accuracy { bits: (relative + 0.0).to_bits() })
    }

    /// The error as a number.
    pub fn relative(self) -> f64 {
        f64::from_bits(self.bits)
    }

    /// The bits of the number, for hashing.
    pub(crate) fn bits(self) -> u64 {
        self.bits
    }
}

/// The error of a product of two factors [rounded to `tf32`](rounded_to_tf32), relative to the product; an upper bound.
pub const ROUNDED_FACTORS: f64 = power_of_half(10);

/// The lowest digits of an `f32` that `tf32` lacks.
const LACKING_DIGITS: u32 = 13;

/// An `f32` rounded to the nearest number with eleven binary digits, ties away from zero. Infinities and NaN stay what they are; numbers
/// of at least `2^128 - 2^116` become infinite.
pub fn rounded_to_tf32(value: &Expr) -> Expr {
    let integer = |value: i64| Expr::int(DType::I32, value);
    let as_type = |dtype, value: Expr| Expr::new(dtype, ExprKind::Bitcast(value));
    let half = integer(1 << (LACKING_DIGITS - 1));
    let raised = Expr::binary(BinaryOp::Add, as_type(DType::I32, value.clone()), half);
    let rounded = Expr::binary(BinaryOp::And, raised, integer(-1 << LACKING_DIGITS));
    // The digits of a NaN may carry into the sign.
    let is_number = Expr::binary(BinaryOp::Eq, value.clone(), value.clone());
    Expr::select(is_number, as_type(DType::F32, rounded), value.clone())
}

/// A way of forming a product of `f32` from products of `bf16` pieces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieceProducts {
    /// How many products of pieces are added.
    pub count: i64,
    /// Into how many pieces each factor is split.
    pub pieces: i64,
    /// The error, relative to the product; an upper bound.
    pub error: f64,
}

impl PieceProducts {
    /// Every way, the one with the fewest products first.
    pub const ALL: [PieceProducts; 4] = [
        PieceProducts { count: 1, pieces: 1, error: power_of_half(7) },
        PieceProducts { count: 3, pieces: 2, error: power_of_half(15) },
        PieceProducts { count: 6, pieces: 3, error: power_of_half(24) },
        PieceProducts { count: 9, pieces: 3, error: 0.0 },
    ];

    /// The way with a number of products.
    pub fn of(count: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.count == count)
    }

    /// The way with the fewest products that an accuracy allows.
    pub fn fewest(accuracy: Accuracy) -> Self {
        let [.., exact] = Self::ALL;
        Self::ALL.into_iter().find(|way| way.is_allowed(accuracy)).unwrap_or(exact)
    }

    /// Whether an accuracy allows it.
    pub fn is_allowed(&self, accuracy: Accuracy) -> bool {
        self.error <= accuracy.relative()
    }

    /// Which pieces of the first and of the second factor the `product`-th product is of: index arithmetic that runs
    /// through the pairs of the table above once, small products first.
    pub(crate) fn pair(&self, product: &Index) -> (Index, Index) {
        let from = |last: i64| product.scale(-1).offset(last);
        match self.count {
            // (0, 1), (1, 0), (0, 0)
            3 => (product.modulo(2), from(2).floor_div(2)),
            // (0, 2), (1, 1), (2, 0), (0, 1), (1, 0), (0, 0)
            6 => {
                let second = product.scale(-5).offset(12).modulo(13);
                (product.scale(2).modulo(5).floor_div(2), second.floor_div(6))
            }
            // (2, 2), (2, 1), (2, 0), (1, 2), … (0, 0)
            9 => (from(8).floor_div(3), from(8).modulo(3)),
            _ => (Index::constant(0), Index::constant(0)),
        }
    }
}

/// `2^-exponent`
const fn power_of_half(exponent: u32) -> f64 {
    1.0 / (1u64 << exponent) as f64
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::schedule::Rng;

    fn pairs(way: &PieceProducts) -> Vec<(i64, i64)> {
        let value = |index: Index| index.as_constant().expect("a constant");
        let pair = |product| {
            let (first, second) = way.pair(&Index::constant(product));
            (value(first), value(second))
        };
        (0..way.count).map(pair).collect()
    }

    fn pieces(x: f32) -> [f32; 3] {
        let first = bf16::from_f32(x).to_f32();
        let second = bf16::from_f32(x - first).to_f32();
        let third = bf16::from_f32(x - first - second).to_f32();
        [first, second, third]
    }

    #[test]
    fn the_pairs_are_those_of_the_largest_products_and_small_ones_come_first() {
        for (way, most) in PieceProducts::ALL.iter().zip([0, 1, 2, 4]) {
            let found = pairs(way);
            let last = way.pieces - 1;
            let all = (0..=last).flat_map(|i| (0..=last).map(move |j| (i, j)));
            let mut wanted: Vec<_> = all.filter(|(i, j)| i + j <= most).collect();
            let mut sorted = found.clone();
            sorted.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(sorted, wanted, "{} products", way.count);
            assert_eq!(found.last(), Some(&(0, 0)));
            if way.count < 9 {
                assert!(found.is_sorted_by_key(|(i, j)| -(i + j)), "{found:?}");
            }
        }
    }

    /// Numbers of which pieces are as large as they can be: just below and above the middle between two `bf16`, also of what
    /// is left of them.
    fn adversarial(random: &mut Rng) -> f32 {
        let near = [0x8000u32, 0x7FFF, 0x8001, 0x7F80, 0x8080, 0x7F7F, 0x7FBF, 0x8041, 0x4000, 0];
        let bits = random.next_u64() as u32;
        let leading = if bits & 1 == 0 { (bits >> 8) & 0x7F } else { bits >> 31 };
        let exponent = 30 + (bits >> 9) % 190;
        let low = if bits & 6 == 0 { bits >> 16 } else { near[random.below(near.len())] };
        f32::from_bits((bits & (1 << 31)) | exponent << 23 | leading << 16 | low & 0xFFFF)
    }

    #[test]
    fn no_product_is_off_by_more_than_promised() {
        let mut random = Rng::new(1);
        let mut worst = [0.0f64; 4];
        for _ in 0..400_000 {
            let mut factor = || {
                // Neither the product nor its parts may leave the range of normal numbers of `f64`.
                let x = adversarial(&mut random);
                if x == 0.0 { 1.0 } else { x }
            };
            let (a, b) = (factor(), factor());
            let exact = f64::from(a) * f64::from(b);
            let (first, second) = (pieces(a), pieces(b));
            let sums = [first.iter().map(|x| f64::from(*x)).sum::<f64>(), f64::from(a)];
            assert_eq!(sums[0], sums[1], "three pieces are all of a number");
            for (way, worst) in PieceProducts::ALL.iter().zip(&mut worst) {
                let product =
                    |(i, j): (i64, i64)| f64::from(first[i as usize]) * f64::from(second[j as usize]);
                let sum: f64 = pairs(way).into_iter().map(product).sum();
                let error = ((sum - exact) / exact).abs();
                assert!(error <= way.error, "{} products of {a:e} and {b:e} are off by {error:e}", way.count);
                *worst = worst.max(error);
            }
        }
        // The bounds are not idle: adversarial numbers come close to them.
        for (way, worst) in PieceProducts::ALL.iter().zip(worst) {
            assert!(worst >= 0.9 * way.error, "{} products: at most {worst:e}", way.count);
        }
    }

    #[test]
    fn the_accuracy_decides_how_many_products_there_are() {
        let fewest = |relative| PieceProducts::fewest(Accuracy::new(relative).unwrap()).count;
        let expected = [(0.0, 9), (5e-8, 9), (1e-7, 6), (1e-5, 6), (4e-5, 3), (1e-3, 3), (0.01, 1)];
        for (relative, count) in expected {
            assert_eq!(fewest(relative), count, "{relative}");
        }
        for relative in [-1e-9, 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Accuracy::new(relative), None, "{relative}");
        }
        assert_eq!(Accuracy::new(-0.0), Accuracy::new(0.0));
    }
}
