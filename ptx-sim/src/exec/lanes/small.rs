//! Floating-point formats narrower than 64 bits, converted from and to `f64` with every rounding of PTX.

/// How a value is rounded to a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rounding {
    /// To the nearest, ties to even.
    Nearest,
    /// To the nearest, ties away from zero.
    NearestAway,
    /// Towards zero.
    Zero,
    /// Downwards.
    Down,
    /// Upwards.
    Up,
}

/// A binary floating-point format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Format {
    exponent: u32,
    mantissa: u32,
    /// The largest finite value, as bits without sign.
    largest: u32,
    /// The code of an overflow: infinity, or NaN in a format without infinities.
    overflow: u32,
    nan: u32,
}

/// IEEE binary16.
pub(crate) const F16: Format =
    Format { exponent: 5, mantissa: 10, largest: 0x7bff, overflow: 0x7c00, nan: 0x7fff };
/// The upper half of binary32.
pub(crate) const BF16: Format =
    Format { exponent: 8, mantissa: 7, largest: 0x7f7f, overflow: 0x7f80, nan: 0x7fff };
/// IEEE binary32.
pub(crate) const F32: Format =
    Format { exponent: 8, mantissa: 23, largest: 0x7f7f_ffff, overflow: 0x7f80_0000, nan: 0x7fff_ffff };
/// The 19 bits of a tensor-float, without the 13 zeros below.
pub(crate) const TF32: Format =
    Format { exponent: 8, mantissa: 10, largest: 0x3_fbff, overflow: 0x3_fc00, nan: 0x3_ffff };
/// Eight bits with four of exponent; without infinities.
pub(crate) const E4M3: Format = Format { exponent: 4, mantissa: 3, largest: 0x7e, overflow: 0x7f, nan: 0x7f };
/// Eight bits with five of exponent.
pub(crate) const E5M2: Format = Format { exponent: 5, mantissa: 2, largest: 0x7b, overflow: 0x7c, nan: 0x7f };

impl Format {
    fn sign(self) -> u32 {
        1 << (self.exponent + self.mantissa)
    }

    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// Rounds to the format. Values beyond its range become infinite or the largest finite value as the rounding says; `finite`
    /// makes them the largest finite value always.
    pub(crate) fn encode(self, value: f64, rounding: Rounding, finite: bool) -> u32 {
        if value.is_nan() {
            return self.nan;
        }
        let bits = value.to_bits();
        let negative = bits >> 63 != 0;
        let sign = if negative { self.sign() } else { 0 };
        if value == 0.0 {
            return sign;
        }
        let up = match rounding {
            Rounding::Up => !negative,
            Rounding::Down => negative,
            _ => false,
        };
        let overflow = || {
            let infinite = up || matches!(rounding, Rounding::Nearest | Rounding::NearestAway);
            sign | if infinite && !finite { self.overflow } else { self.largest }
        };
        if value.is_infinite() {
            return sign | if finite { self.largest } else { self.overflow };
        }
        let biased = (bits >> 52 & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, power) =
            if biased == 0 { (fraction, -1022) } else { (fraction | 1 << 52, biased - 1023) };
        let place = power.max(1 - self.bias());
        if place > self.bias() + 1 {
            return overflow();
        }
        let dropped = (52 - self.mantissa as i32 + place - power) as u32;
        let (kept, rest, half) = if dropped > 62 {
            (0, 1, 2)
        } else {
            (mantissa >> dropped, mantissa & ((1 << dropped) - 1), 1 << dropped >> 1)
        };
        let away = match rounding {
            Rounding::Nearest => rest > half || rest == half && rest != 0 && kept & 1 != 0,
            Rounding::NearestAway => rest >= half && rest != 0,
            Rounding::Zero => false,
            Rounding::Down | Rounding::Up => up && rest != 0,
        };
        let kept = kept as u32 + u32::from(away);
        let magnitude = ((place + self.bias() - 1) as u32) << self.mantissa;
        let magnitude = magnitude + kept;
        if magnitude > self.largest { overflow() } else { sign | magnitude }
    }

    /// The value of these bits.
    pub(crate) fn decode(self, bits: u32) -> f64 {
        let magnitude = bits & (self.sign() - 1);
        let negative = bits & self.sign() != 0;
        let value = if magnitude > self.largest {
            if magnitude == self.overflow && self.overflow != self.nan { f64::INFINITY } else { f64::NAN }
        } else {
            let field = (magnitude >> self.mantissa) as i32;
            let fraction = magnitude & ((1 << self.mantissa) - 1);
            let (whole, power) = if field == 0 {
                (fraction, 1 - self.bias())
            } else {
                (fraction | 1 << self.mantissa, field - self.bias())
            };
            f64::from(whole) * power_of_two(power - self.mantissa as i32)
        };
        if negative { -value } else { value }
    }
}

/// `2^power` for powers of normal numbers.
fn power_of_two(power: i32) -> f64 {
    f64::from_bits(((power + 1023) as u64) << 52)
}

/// The value of binary16.
#[inline]
pub(crate) fn f16_value(bits: u16) -> f32 {
    let magnitude = f32::from_bits(u32::from(bits & 0x7fff) << 13) * f32::from_bits(0x7780_0000);
    let magnitude =
        if bits & 0x7c00 == 0x7c00 { f32::from_bits(magnitude.to_bits() | 0x7f80_0000) } else { magnitude };
    f32::from_bits(magnitude.to_bits() | u32::from(bits & 0x8000) << 16)
}

/// The value of the upper half of binary32.
#[inline]
pub(crate) fn bf16_value(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Operations in `f64` rounded to odd: an inexact result has its last bit set. Such a result can be rounded again to a format of
/// at most half the precision as if it were exact (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
pub(crate) mod odd {
    fn settle(rounded: f64, error: f64) -> f64 {
        if error == 0.0 || !error.is_finite() || !rounded.is_finite() || rounded.to_bits() & 1 != 0 {
            return rounded;
        }
        if (error > 0.0) == (rounded > 0.0) {
            f64::from_bits(rounded.to_bits() + 1)
        } else {
            f64::from_bits(rounded.to_bits() - 1)
        }
    }

    /// `a + b`
    pub(crate) fn add(a: f64, b: f64) -> f64 {
        let sum = a + b;
        let part = sum - a;
        let error = (a - (sum - part)) + (b - part);
        if sum == 0.0 { sum } else { settle(sum, error) }
    }

    /// `a · b + c`, where `a · b` is exact, as it is for values of at most 26 bits.
    pub(crate) fn multiply_add(a: f64, b: f64, c: f64) -> f64 {
        add(a * b, c)
    }

    /// `a / b`
    pub(crate) fn divide(a: f64, b: f64) -> f64 {
        let quotient = a / b;
        if !quotient.is_finite() || quotient == 0.0 || !b.is_finite() {
            return quotient;
        }
        let rest = (-quotient).mul_add(b, a);
        settle(quotient, if b < 0.0 { -rest } else { rest })
    }

    /// `√a`
    pub(crate) fn square_root(a: f64) -> f64 {
        let root = a.sqrt();
        if !root.is_finite() || root == 0.0 {
            return root;
        }
        settle(root, (-root).mul_add(root, a))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value of the format, decoded and encoded, is itself in every rounding.
    fn round_trips(format: Format, count: u32) {
        for bits in 0..count {
            let value = format.decode(bits);
            for rounding in
                [Rounding::Nearest, Rounding::NearestAway, Rounding::Zero, Rounding::Down, Rounding::Up]
            {
                let again = format.encode(value, rounding, false);
                if value.is_nan() {
                    assert!(format.decode(again).is_nan());
                } else {
                    assert_eq!(again, bits, "{format:?} {value}");
                }
            }
        }
    }

    #[test]
    fn every_value_of_a_format_survives() {
        round_trips(F16, 1 << 16);
        round_trips(BF16, 1 << 16);
        round_trips(E4M3, 1 << 8);
        round_trips(E5M2, 1 << 8);
        round_trips(TF32, 1 << 19);
    }

    #[test]
    fn binary16_has_one_meaning() {
        for bits in 0..=u16::MAX {
            let (fast, slow) = (f16_value(bits), F16.decode(u32::from(bits)));
            assert!(f64::from(fast) == slow || fast.is_nan() && slow.is_nan(), "{bits:x}");
        }
    }

    /// Midpoints between neighbours, and what lies beside them, go where the rounding says.
    #[test]
    fn between_neighbours() {
        for format in [F16, BF16, E5M2] {
            for bits in 0..format.largest {
                let (low, high) = (format.decode(bits), format.decode(bits + 1));
                let middle = low + (high - low) / 2.0;
                let even = if bits & 1 == 0 { bits } else { bits + 1 };
                assert_eq!(format.encode(middle, Rounding::Nearest, false), even);
                assert_eq!(format.encode(middle, Rounding::NearestAway, false), bits + 1);
                assert_eq!(format.encode(middle, Rounding::Zero, false), bits);
                assert_eq!(format.encode(middle, Rounding::Up, false), bits + 1);
                assert_eq!(format.encode(middle, Rounding::Down, false), bits);
                assert_eq!(format.encode(-middle, Rounding::Down, false), format.sign() | (bits + 1));
                let above = f64::from_bits(middle.to_bits() + 1);
                assert_eq!(format.encode(above, Rounding::Nearest, false), bits + 1);
            }
        }
    }

    /// `f32` arithmetic of the machine agrees with rounding to odd and then to `f32`.
    #[test]
    fn rounding_to_odd_is_exact() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f32::from_bits((state >> 32) as u32)
        };
        for _ in 0..200_000 {
            let (a, b, c) = (next(), next(), next());
            let wide = [a, b, c].map(f64::from);
            let same = |ours: f64, theirs: f32| {
                let ours = f32::from_bits(F32.encode(ours, Rounding::Nearest, false));
                assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan());
            };
            same(odd::add(wide[0], wide[1]), a + b);
            same(odd::multiply_add(wide[0], wide[1], wide[2]), a.mul_add(b, c));
            same(odd::divide(wide[0], wide[1]), a / b);
            same(odd::square_root(wide[0]), a.sqrt());
        }
    }
}
