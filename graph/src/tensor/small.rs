//! Elements of fewer than 8 bits, and floats of 8 bits, as models store them. In host memory each takes a byte.
//!
//! No kernel has them: they become numbers of other types, by [`HostTensor::cast`](crate::tensor::HostTensor::cast) or as integers that stand
//! for numbers.

use std::cmp::Ordering;
use std::fmt;

use crate::tensor::Element;

/// An element that is stored in a few bits.
pub trait Small: Element + Copy {
    /// How many bits it has.
    const BITS: u32;

    /// Whether it is a floating-point number.
    const IS_FLOAT: bool;

    /// The element that bits stand for; higher bits are ignored.
    fn from_bits(bits: u8) -> Self;

    /// The bits, the lowest ones of a byte.
    fn bits(self) -> u8;

    /// The number.
    fn to_f64(self) -> f64;

    /// The nearest element, ties to the even one. Beyond the range, `saturate` gives the largest number; otherwise floats that have
    /// them become infinities or NaN. Integers saturate always.
    fn from_f64(value: f64, saturate: bool) -> Self;

    /// The lowest bits of an integer; for floats, the nearest one.
    fn from_integer(value: i64) -> Self;
}

macro_rules! small_integers {
    ($($name:ident: $bits:literal, $low:literal..=$high:literal, $doc:literal;)*) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(i8);

        impl Small for $name {
            const BITS: u32 = $bits;
            const IS_FLOAT: bool = false;

            fn from_bits(bits: u8) -> Self {
                Self::from_integer(i64::from(bits))
            }

            fn bits(self) -> u8 {
                self.0 as u8 & ((1 << $bits) - 1)
            }

            fn to_f64(self) -> f64 {
                f64::from(self.0)
            }

            fn from_f64(value: f64, _: bool) -> Self {
                $name(value.round_ties_even().clamp(f64::from($low), f64::from($high)) as i8)
            }

            fn from_integer(value: i64) -> Self {
                let low = value & ((1 << $bits) - 1);
                $name(if low > $high { low - (1 << $bits) } else { low } as i8)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

small_integers! {
    I2: 2, -2..=1, "An integer of 2 bits.";
    U2: 2, 0..=3, "An integer of 2 bits without sign.";
    I4: 4, -8..=7, "An integer of 4 bits.";
    U4: 4, 0..=15, "An integer of 4 bits without sign.";
}

/// The fields of a small float, and which bits are no numbers.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    fraction: u32,
    bias: i32,
    special: Special,
}

/// The bits of a format that are no finite numbers.
#[derive(Clone, Copy, PartialEq)]
enum Special {
    /// None.
    None,
    /// All ones are NaN.
    Ones,
    /// Minus zero is NaN: there is one zero.
    MinusZero,
    /// The highest exponent has infinity and NaN, as in IEEE 754.
    HighestExponent,
}

impl Format {
    const fn sign(self) -> u8 {
        1 << (self.exponent + self.fraction)
    }

    /// The bits of NaN; those of zero where there is none.
    const fn nan(self) -> u8 {
        match self.special {
            Special::None => 0,
            Special::Ones | Special::HighestExponent => self.sign() - 1,
            Special::MinusZero => self.sign(),
        }
    }

    /// The bits of the largest finite number.
    const fn largest(self) -> u8 {
        match self.special {
            Special::None | Special::MinusZero => self.sign() - 1,
            Special::Ones => self.sign() - 2,
            Special::HighestExponent => self.sign() - 1 - (1 << self.fraction),
        }
    }

    fn decode(self, bits: u8) -> f64 {
        let magnitude = bits & (self.sign() - 1);
        let sign = if bits & self.sign() != 0 { -1.0 } else { 1.0 };
        if self.special == Special::MinusZero && bits == self.sign() {
            return f64::NAN;
        }
        if magnitude > self.largest() {
            let is_infinite = self.special == Special::HighestExponent && magnitude == self.largest() + 1;
            return if is_infinite { sign * f64::INFINITY } else { f64::NAN };
        }
        let (exponent, fraction) = (magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1));
        // Numbers below the lowest exponent have no leading one.
        let leading = if exponent > 0 { 1 << self.fraction } else { 0 };
        let place = i32::from(exponent.max(1)) - self.bias - self.fraction as i32;
        sign * f64::from(leading + u32::from(fraction)) * f64::from(place).exp2()
    }

    fn encode(self, value: f64, saturate: bool) -> u8 {
        if value.is_nan() {
            return if self.special == Special::None { self.sign() } else { self.nan() };
        }
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        let largest = self.decode(self.largest());
        let size = value.abs();
        // The lowest bit of a number of this size.
        let exponent = size.log2().floor().max(f64::from(1 - self.bias));
        let exponent = if exponent.exp2() > size && exponent > f64::from(1 - self.bias) {
            exponent - 1.0
        } else {
            exponent
        };
        let step = (exponent - f64::from(self.fraction)).exp2();
        let rounded = (size / step).round_ties_even() * step;
        if rounded > largest || size.is_infinite() {
            return match self.special {
                _ if saturate => sign | self.largest(),
                Special::None => sign | self.largest(),
                Special::HighestExponent => sign | (self.largest() + 1),
                Special::Ones => sign | self.nan(),
                Special::MinusZero => self.nan(),
            };
        }
        if rounded == 0.0 {
            return if self.special == Special::MinusZero { 0 } else { sign };
        }
        let exponent = rounded.log2().floor().max(f64::from(1 - self.bias));
        let fraction = rounded / (exponent - f64::from(self.fraction)).exp2();
        // The fraction has its leading one, but for numbers below the lowest exponent, which are one exponent further down.
        let field = (exponent as i32 + self.bias - 1) as u8;
        sign | ((field << self.fraction) + fraction as u8)
    }
}

macro_rules! small_floats {
    ($($name:ident: $bits:literal, $format:expr, $doc:literal;)*) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy, Default)]
        pub struct $name(u8);

        impl $name {
            const FORMAT: Format = $format;
        }

        impl Small for $name {
            const BITS: u32 = $bits;
            const IS_FLOAT: bool = true;

            fn from_bits(bits: u8) -> Self {
                $name(bits & (u8::MAX >> (8 - $bits)))
            }

            fn bits(self) -> u8 {
                self.0
            }

            fn to_f64(self) -> f64 {
                Self::FORMAT.decode(self.0)
            }

            fn from_f64(value: f64, saturate: bool) -> Self {
                $name(Self::FORMAT.encode(value, saturate))
            }

            fn from_integer(value: i64) -> Self {
                Self::from_f64(value as f64, true)
            }
        }
    )*};
}

const fn format(exponent: u32, fraction: u32, bias: i32, special: Special) -> Format {
    Format { exponent, fraction, bias, special }
}

small_floats! {
    F4E2M1: 4, format(2, 1, 1, Special::None), "A float of 4 bits with 2 bits of exponent (OCP Microscaling Formats, 2023).";
    F8E4M3FN: 8, format(4, 3, 7, Special::Ones), "A float of 8 bits with 4 bits of exponent, without infinities (Micikevicius et al., \"FP8 Formats for Deep Learning\", 2022).";
    F8E4M3FNUZ: 8, format(4, 3, 8, Special::MinusZero), "A float of 8 bits with 4 bits of exponent and one zero (Noune et al., \"8-bit Numerical Formats for Deep Neural Networks\", 2022).";
    F8E5M2: 8, format(5, 2, 15, Special::HighestExponent), "A float of 8 bits with 5 bits of exponent: the upper half of a half float.";
    F8E5M2FNUZ: 8, format(5, 2, 16, Special::MinusZero), "A float of 8 bits with 5 bits of exponent and one zero.";
}

/// A power of two: the exponent field of a single float, without fraction and sign. All ones are NaN (OCP Microscaling Formats, 2023).
#[derive(Clone, Copy, Default)]
pub struct F8E8M0(u8);

impl Small for F8E8M0 {
    const BITS: u32 = 8;
    const IS_FLOAT: bool = true;

    fn from_bits(bits: u8) -> Self {
        F8E8M0(bits)
    }

    fn bits(self) -> u8 {
        self.0
    }

    fn to_f64(self) -> f64 {
        if self.0 == u8::MAX { f64::NAN } else { (f64::from(self.0) - 127.0).exp2() }
    }

    /// The next power of two upward, as ONNX's `Cast` rounds without an attribute.
    fn from_f64(value: f64, saturate: bool) -> Self {
        if value.is_nan() {
            return F8E8M0(u8::MAX);
        }
        let power = value.abs().log2().ceil();
        if power > 127.0 {
            return F8E8M0(if saturate { 254 } else { u8::MAX });
        }
        F8E8M0((power.max(-127.0) + 127.0) as u8)
    }

    fn from_integer(value: i64) -> Self {
        Self::from_f64(value as f64, true)
    }
}

macro_rules! compare_by_number {
    ($($name:ident),*) => {$(
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.to_f64() == other.to_f64()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.to_f64().partial_cmp(&other.to_f64())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_f64().fmt(f)
            }
        }
    )*};
}

compare_by_number!(F4E2M1, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0);

#[cfg(test)]
mod tests {
    use super::*;

    fn all<T: Small>() -> impl Iterator<Item = T> {
        (0..=u8::MAX >> (8 - T::BITS)).map(T::from_bits)
    }

    /// Every element is the nearest one to its own number, and numbers between two go to the nearer one, halves to the even one.
    fn check<T: Small>(largest: f64) {
        let mut known: Vec<(f64, u8)> = all::<T>()
            .map(|element| (element.to_f64(), element.bits()))
            .filter(|(number, _)| number.is_finite())
            .collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!(known.last().unwrap().0, largest);
        for &(number, bits) in &known {
            assert_eq!(T::from_f64(number, true).bits(), bits, "{number}");
        }
        for pair in known.windows(2).filter(|pair| pair[0].0 < pair[1].0) {
            let middle = (pair[0].0 + pair[1].0) / 2.0;
            let even = if pair[0].1 % 2 == 0 { pair[0] } else { pair[1] };
            assert_eq!(T::from_f64(middle, true).to_f64(), even.0, "{middle}");
            let above = middle + (pair[1].0 - middle) / 1024.0;
            assert_eq!(T::from_f64(above, true).to_f64(), pair[1].0, "{above}");
        }
    }

    #[test]
    fn elements_are_the_nearest_to_their_numbers() {
        check::<I2>(1.0);
        check::<U2>(3.0);
        check::<I4>(7.0);
        check::<U4>(15.0);
        check::<F4E2M1>(6.0);
        check::<F8E4M3FN>(448.0);
        check::<F8E4M3FNUZ>(240.0);
        check::<F8E5M2>(57344.0);
        check::<F8E5M2FNUZ>(57344.0);
    }

    #[test]
    fn numbers_beyond_the_range_saturate_or_are_none() {
        assert_eq!(F8E4M3FN::from_f64(f64::INFINITY, true).to_f64(), 448.0);
        assert!(F8E4M3FN::from_f64(-1e9, false).to_f64().is_nan());
        assert_eq!(F8E5M2::from_f64(-1e9, false).to_f64(), f64::NEG_INFINITY);
        assert!(F8E5M2FNUZ::from_f64(f64::NAN, true).to_f64().is_nan());
        assert_eq!(F8E4M3FNUZ::from_f64(-0.0, true).bits(), 0);
        assert_eq!((I4::from_f64(9.6, true).bits(), I4::from_integer(9).to_f64()), (7, -7.0));
        assert_eq!(F8E8M0::from_f64(1.1, true).to_f64(), 2.0);
        assert_eq!(F8E8M0::from_f64(0.0, true).bits(), 0);
    }
}
