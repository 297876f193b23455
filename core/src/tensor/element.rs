//! The types that a tensor's element can have.

use std::fmt::{Debug, Display};

use half::{bf16, f16};

use crate::dtype::DType;
use crate::expr::Constant;
use crate::math::scalar::{Cast, Wide};
use crate::tensor::bytes::{BytesMut, MisfitBytes};
use crate::tensor::spare::Spares;

mod sealed {
    pub trait Sealed {}
}

/// A type that a tensor's element can have: `bool`, the integers of Rust with 8 to 64 bits, [`half::f16`],
/// [`half::bf16`], `f32` or `f64`. Sealed: the set is that of [`DType`].
pub trait Element:
    sealed::Sealed
    + bytemuck::NoUninit
    + Copy
    + Default
    + PartialEq
    + PartialOrd
    + Debug
    + Display
    + Send
    + Sync
    + 'static
{
    /// The same type as a value.
    const DTYPE: DType;

    /// The element nearest to a number: rounded to nearest for floats; truncated and saturated for
    /// integers, as Rust's `as`; whether it differs from zero for `bool`.
    fn from_f64(value: f64) -> Self;

    /// The element as `f64`: exact but for 64-bit integers beyond 2⁵³.
    fn to_f64(self) -> f64;

    /// The element that a constant of this type stands for. Integer constants wrap.
    fn from_constant(constant: Constant) -> Self;

    /// The element as a constant.
    fn to_constant(self) -> Constant;

    /// The bytes of elements.
    fn as_bytes(elements: &[Self]) -> &[u8] {
        bytemuck::cast_slice(elements)
    }

    /// The bytes of elements, for writing. For `bool` this is a copy that is written back when the
    /// guard is dropped, because not every byte is a `bool`.
    fn as_bytes_mut(elements: &mut [Self]) -> BytesMut<'_>;

    /// Bytes as elements.
    ///
    /// # Errors
    /// [`MisfitBytes`] when the length or the alignment does not fit, or a byte is no `bool`.
    fn from_bytes(bytes: &[u8]) -> Result<&[Self], MisfitBytes>;

    /// Bytes as elements, for writing.
    ///
    /// # Errors
    /// As [`Element::from_bytes`].
    fn from_bytes_mut(bytes: &mut [u8]) -> Result<&mut [Self], MisfitBytes>;

    /// The element in a type that holds it exactly, for casts.
    #[doc(hidden)]
    fn into_wide(self) -> Wide;

    /// The element that a wider value becomes, as by Rust's `as`.
    #[doc(hidden)]
    fn of_wide(wide: Wide) -> Self;

    /// Memory of dropped results with such elements.
    #[doc(hidden)]
    fn spares() -> &'static Spares<Self>;
}

macro_rules! own_spares {
    ($type:ty) => {
        fn into_wide(self) -> Wide {
            Cast::widen(self)
        }

        fn of_wide(wide: Wide) -> Self {
            Cast::narrow(wide)
        }

        fn spares() -> &'static Spares<Self> {
            static SPARES: Spares<$type> = Spares::new();
            &SPARES
        }
    };
}

/// The byte views of the types of which every bit pattern is a value.
macro_rules! plain_bytes {
    () => {
        fn as_bytes_mut(elements: &mut [Self]) -> BytesMut<'_> {
            BytesMut::direct(bytemuck::cast_slice_mut(elements))
        }

        fn from_bytes(bytes: &[u8]) -> Result<&[Self], MisfitBytes> {
            let length = bytes.len();
            bytemuck::try_cast_slice(bytes).map_err(|_| MisfitBytes { dtype: Self::DTYPE, length })
        }

        fn from_bytes_mut(bytes: &mut [u8]) -> Result<&mut [Self], MisfitBytes> {
            let length = bytes.len();
            bytemuck::try_cast_slice_mut(bytes).map_err(|_| MisfitBytes { dtype: Self::DTYPE, length })
        }
    };
}

macro_rules! integer_element {
    ($($type:ty: $dtype:ident),*) => {$(
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            fn from_f64(value: f64) -> Self {
                value as $type
            }

            fn to_f64(self) -> f64 {
                self as f64
            }

            fn from_constant(constant: Constant) -> Self {
                match constant {
                    Constant::Int(value) => value as $type,
                    Constant::Float(bits) => f64::from_bits(bits) as $type,
                }
            }

            fn to_constant(self) -> Constant {
                Constant::Int(self as i64)
            }

            plain_bytes!();
            own_spares!($type);
        }
    )*};
}

macro_rules! float_element {
    ($($type:ty: $dtype:ident, $from:expr;)*) => {$(
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            fn from_f64(value: f64) -> Self {
                $from(value)
            }

            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            fn from_constant(constant: Constant) -> Self {
                Self::from_f64(constant.as_f64())
            }

            fn to_constant(self) -> Constant {
                Constant::float(self.to_f64())
            }

            plain_bytes!();
            own_spares!($type);
        }
    )*};
}

integer_element!(i8: I8, u8: U8, i16: I16, u16: U16, i32: I32, u32: U32, i64: I64, u64: U64);
float_element! {
    f16: F16, f16::from_f64;
    bf16: BF16, bf16::from_f64;
    f32: F32, |value| value as f32;
    f64: F64, |value| value;
}

impl sealed::Sealed for bool {}

impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn from_f64(value: f64) -> Self {
        value != 0.0
    }

    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }

    fn from_constant(constant: Constant) -> Self {
        constant.as_f64() != 0.0
    }

    fn to_constant(self) -> Constant {
        Constant::Int(i64::from(self))
    }

    own_spares!(bool);

    fn as_bytes_mut(elements: &mut [Self]) -> BytesMut<'_> {
        BytesMut::copied(elements)
    }

    fn from_bytes(bytes: &[u8]) -> Result<&[Self], MisfitBytes> {
        let length = bytes.len();
        bytemuck::checked::try_cast_slice(bytes).map_err(|_| MisfitBytes { dtype: DType::Bool, length })
    }

    fn from_bytes_mut(bytes: &mut [u8]) -> Result<&mut [Self], MisfitBytes> {
        let length = bytes.len();
        bytemuck::checked::try_cast_slice_mut(bytes).map_err(|_| MisfitBytes { dtype: DType::Bool, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trips<T: Element>(values: &[f64]) {
        for &value in values {
            let element = T::from_f64(value);
            assert_eq!(element.to_f64(), value, "{} of {value}", T::DTYPE);
            assert_eq!(T::from_constant(element.to_constant()), element, "{} of {value}", T::DTYPE);
        }
    }

    #[test]
    fn every_type_keeps_its_values() {
        round_trips::<bool>(&[0.0, 1.0]);
        round_trips::<i8>(&[-128.0, 0.0, 127.0]);
        round_trips::<u8>(&[0.0, 255.0]);
        round_trips::<i32>(&[f64::from(i32::MIN), f64::from(i32::MAX)]);
        round_trips::<i64>(&[-9007199254740992.0, 9007199254740992.0]);
        round_trips::<i16>(&[-32768.0, 32767.0]);
        round_trips::<u16>(&[0.0, 65535.0]);
        round_trips::<u32>(&[0.0, f64::from(u32::MAX)]);
        round_trips::<u64>(&[0.0, 18446744073709549568.0]);
        round_trips::<f16>(&[-65504.0, 0.5, f64::INFINITY]);
        round_trips::<bf16>(&[-1.0078125, 0.5, f64::NEG_INFINITY]);
        round_trips::<f32>(&[f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)]);
        round_trips::<f64>(&[f64::MIN_POSITIVE, f64::MAX]);
    }

    #[test]
    fn numbers_out_of_range_saturate_in_integers() {
        assert_eq!(i8::from_f64(1e9), 127);
        assert_eq!(u8::from_f64(-3.7), 0);
        assert_eq!(i32::from_f64(f64::NAN), 0);
        assert_eq!(i64::from_f64(f64::INFINITY), i64::MAX);
        assert_eq!(i8::from_constant(Constant::Int(300)), 44);
    }
}
