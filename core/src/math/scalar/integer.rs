//! Integers and `bool`.

use super::{Bits, Cast, Integer, Number, Wide};

macro_rules! integer_scalar {
    ($($type:ident $abs:expr;)*) => {$(
        impl Number for $type {
            #[inline]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline]
            fn div(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline]
            fn rem(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            #[inline]
            fn neg(self) -> Self { self.wrapping_neg() }
            #[inline]
            fn abs(self) -> Self { $abs(self) }
            #[inline]
            fn min(self, other: Self) -> Self { Ord::min(self, other) }
            #[inline]
            fn max(self, other: Self) -> Self { Ord::max(self, other) }
            #[inline]
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                self.wrapping_mul(factor).wrapping_add(addend)
            }
        }

        impl Bits for $type {
            #[inline]
            fn and(self, other: Self) -> Self { self & other }
            #[inline]
            fn or(self, other: Self) -> Self { self | other }
            #[inline]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[inline]
            fn not(self) -> Self { !self }
        }

        impl Integer for $type {
            #[inline]
            fn shl(self, count: Self) -> Self { self.wrapping_shl(count as u32) }
            #[inline]
            fn shr(self, count: Self) -> Self { self.wrapping_shr(count as u32) }
        }

        impl Cast for $type {
            #[inline]
            fn widen(self) -> Wide { Wide::from(self) }
            #[inline]
            fn narrow(wide: Wide) -> Self {
                match wide {
                    Wide::Int(value) => value as $type,
                    Wide::Unsigned(value) => value as $type,
                    Wide::Single(value) => value as $type,
                    Wide::Double(value) => value as $type,
                }
            }
        }
    )*};
}

integer_scalar! {
    i8 i8::wrapping_abs;
    u8 |value| value;
    i16 i16::wrapping_abs;
    u16 |value| value;
    i32 i32::wrapping_abs;
    u32 |value| value;
    u64 |value| value;
    i64 i64::wrapping_abs;
}

impl Bits for bool {
    #[inline]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline]
    fn or(self, other: Self) -> Self {
        self | other
    }
    #[inline]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }
    #[inline]
    fn not(self) -> Self {
        !self
    }
}

impl Cast for bool {
    #[inline]
    fn widen(self) -> Wide {
        Wide::Int(i64::from(self))
    }
    #[inline]
    fn narrow(wide: Wide) -> Self {
        match wide {
            Wide::Int(value) => value != 0,
            Wide::Unsigned(value) => value != 0,
            Wide::Single(value) => value != 0.0,
            Wide::Double(value) => value != 0.0,
        }
    }
}
