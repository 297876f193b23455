//! Element types.
//!
//! A [`DType`] names how an element is stored and computed with. Index arithmetic always uses
//! [`DType::I64`]; Rust's `usize` and `isize` in a kernel definition become `I64`.
//!
//! The last rows are [storage types](DType::is_storage_only): programs convert their elements and do not compute with them. Their
//! names are those of ONNX and of NumPy's extension `ml_dtypes`.

use std::fmt;
use std::str::FromStr;

/// The meaning of the bits of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of two values.
    Bool,
    /// A signed integer in two's complement.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// A floating-point number.
    Float,
}

macro_rules! types {
    ($count:literal: $($(#[$doc:meta])* $variant:ident $name:literal $kind:ident $bits:literal;)*) => {
        /// The type of one element.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType {
            $($(#[$doc])* $variant,)*
        }

        impl DType {
            /// Every element type, in declaration order.
            pub const ALL: [DType; $count] = [$(DType::$variant),*];

            /// The name used in the text form and in Rust: `f32`, `bool`, ….
            pub const fn name(self) -> &'static str {
                match self {
                    $(DType::$variant => $name,)*
                }
            }

            /// The meaning of the bits.
            pub const fn kind(self) -> Kind {
                match self {
                    $(DType::$variant => Kind::$kind,)*
                }
            }

            /// The size of one stored element, in bits.
            pub const fn bits(self) -> usize {
                match self {
                    $(DType::$variant => $bits,)*
                }
            }
        }
    };
}

types! { 17:
    /// A byte that is 0 or 1.
    Bool "bool" Bool 8;
    /// 8-bit signed integer.
    I8 "i8" Signed 8;
    /// 8-bit unsigned integer.
    U8 "u8" Unsigned 8;
    /// 16-bit signed integer.
    I16 "i16" Signed 16;
    /// 16-bit unsigned integer.
    U16 "u16" Unsigned 16;
    /// 32-bit signed integer.
    I32 "i32" Signed 32;
    /// 32-bit unsigned integer.
    U32 "u32" Unsigned 32;
    /// 64-bit signed integer, also the type of every index.
    I64 "i64" Signed 64;
    /// 64-bit unsigned integer.
    U64 "u64" Unsigned 64;
    /// IEEE 754 binary16. Arithmetic is done in `f32` and rounded after each operation.
    F16 "f16" Float 16;
    /// bfloat16. Arithmetic is done in `f32` and rounded after each operation.
    BF16 "bf16" Float 16;
    /// IEEE 754 binary32.
    F32 "f32" Float 32;
    /// IEEE 754 binary64.
    F64 "f64" Float 64;
    /// A float of 8 bits with 4 bits of exponent and 3 of fraction, without infinities: from 2⁻⁹ to 448 (Micikevicius et al.,
    /// "FP8 Formats for Deep Learning", 2022). Conversions to it round to nearest, ties to even, and saturate.
    Float8E4M3FN "float8_e4m3fn" Float 8;
    /// A float of 8 bits with 5 bits of exponent and 2 of fraction: the upper half of an `f16`. Conversions to it round to
    /// nearest, ties to even, and saturate at 57344.
    Float8E5M2 "float8_e5m2" Float 8;
    /// 4-bit signed integer. Two lie in a byte, the first in the lower half.
    Int4 "int4" Signed 4;
    /// 4-bit unsigned integer. Two lie in a byte, the first in the lower half.
    UInt4 "uint4" Unsigned 4;
}

impl DType {
    /// The types that programs compute with, in declaration order.
    pub const COMPUTED: &'static [DType] = DType::ALL.split_at(13).0;

    /// Whether programs only load, convert and store elements of this type.
    pub const fn is_storage_only(self) -> bool {
        matches!(self, DType::Float8E4M3FN | DType::Float8E5M2 | DType::Int4 | DType::UInt4)
    }

    /// Whether a byte holds several elements.
    pub const fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// The size of one element by itself, in bytes. Elements beside each other may take less: see [`DType::storage_bytes`].
    pub const fn bytes(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// The bytes of a number of elements beside each other; `None` where there are more than a `usize` counts.
    pub const fn storage_bytes(self, elements: usize) -> Option<usize> {
        if self.is_packed() {
            return Some(elements.div_ceil(8 / self.bits()));
        }
        elements.checked_mul(self.bytes())
    }

    /// Whether this is an unsigned integer type.
    pub const fn is_unsigned(self) -> bool {
        matches!(self.kind(), Kind::Unsigned)
    }

    /// The least and the greatest value of an integer type or of `bool`; `None` for floats.
    pub const fn int_range(self) -> Option<(i128, i128)> {
        match self.kind() {
            Kind::Bool => Some((0, 1)),
            Kind::Signed => Some((-1 << (self.bits() - 1), (1 << (self.bits() - 1)) - 1)),
            Kind::Unsigned => Some((0, (1 << self.bits()) - 1)),
            Kind::Float => None,
        }
    }

    /// An integer reduced to the values of the type, wrapping around, with those of [`DType::U64`] as the `i64` of the same bits. `bool`s
    /// are 0 and 1; floats are not changed.
    pub const fn wrap(self, value: i64) -> i64 {
        match self.kind() {
            Kind::Bool => value & 1,
            Kind::Signed => value << (64 - self.bits()) >> (64 - self.bits()),
            Kind::Unsigned => ((value as u64) << (64 - self.bits()) >> (64 - self.bits())) as i64,
            Kind::Float => value,
        }
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Whether this is an integer type ([`DType::Bool`] is not).
    pub const fn is_int(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or_else(|| UnknownDType(text.to_owned()))
    }
}

/// A name that is no element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDType(pub String);

impl fmt::Display for UnknownDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = DType::ALL.map(DType::name).join(", ");
        write!(f, "unknown element type `{}`; expected one of {names}", self.0)
    }
}

impl std::error::Error for UnknownDType {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_rust() {
        assert_eq!(DType::I8.int_range(), Some((i8::MIN.into(), i8::MAX.into())));
        assert_eq!(DType::U16.int_range(), Some((0, u16::MAX.into())));
        assert_eq!(DType::I64.int_range(), Some((i64::MIN.into(), i64::MAX.into())));
        assert_eq!(DType::U64.int_range(), Some((0, u64::MAX.into())));
        assert_eq!((DType::Bool.int_range(), DType::F32.int_range()), (Some((0, 1)), None));
    }

    #[test]
    fn storage_types_follow_the_computed_ones() {
        let (computed, stored): (Vec<_>, Vec<_>) =
            DType::ALL.into_iter().partition(|dtype| !dtype.is_storage_only());
        assert_eq!(computed, DType::COMPUTED);
        assert_eq!(stored.len() + computed.len(), DType::ALL.len());
        assert_eq!((DType::Int4.int_range(), DType::UInt4.int_range()), (Some((-8, 7)), Some((0, 15))));
        assert_eq!((DType::Int4.wrap(9), DType::UInt4.wrap(-1)), (-7, 15));
    }

    #[test]
    fn integers_wrap_as_casts_of_rust_do() {
        for value in
            [0, 1, -1, 127, 128, 255, 256, -129, 40_000, 70_000, 1 << 31, 1 << 40, i64::MIN, i64::MAX]
        {
            assert_eq!(DType::I8.wrap(value), i64::from(value as i8));
            assert_eq!(DType::U8.wrap(value), i64::from(value as u8));
            assert_eq!(DType::I16.wrap(value), i64::from(value as i16));
            assert_eq!(DType::U16.wrap(value), i64::from(value as u16));
            assert_eq!(DType::I32.wrap(value), i64::from(value as i32));
            assert_eq!(DType::U32.wrap(value), i64::from(value as u32));
            assert_eq!((DType::I64.wrap(value), DType::U64.wrap(value)), (value, value));
        }
    }

    #[test]
    fn names_are_parsed_back() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse(), Ok(dtype));
        }
        let message = "u17".parse::<DType>().expect_err("there is no such type").to_string();
        assert!(message.contains("`u17`") && message.contains("u16, "), "{message}");
    }

    #[test]
    fn elements_take_whole_bytes_together() {
        assert_eq!((DType::U16.storage_bytes(3), DType::Bool.storage_bytes(0)), (Some(6), Some(0)));
        assert_eq!(
            (DType::Int4.storage_bytes(3), DType::UInt4.storage_bytes(usize::MAX)),
            (Some(2), Some(usize::MAX / 2 + 1))
        );
        assert_eq!(DType::F64.storage_bytes(usize::MAX), None);
    }
}
