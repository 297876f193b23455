//! Elements in registers and in memory.

use half::{bf16, f16};

use crate::dtype::DType;
use crate::math::scalar::{Cast, Wide};
use crate::tensor::narrow;

/// An element in a register: its bits, extended by zeros. So a bitcast does nothing.
pub(super) trait Slot: Cast {
    /// The element's bits.
    fn to_slot(self) -> u64;
    /// The element of a register's low bits.
    fn from_slot(slot: u64) -> Self;
    /// The bits of the element at a position in memory.
    fn read(bytes: &[u8], position: usize) -> u64;
    /// Sets the element at a position in memory to a register's low bits.
    fn write(bytes: &mut [u8], position: usize, slot: u64);
}

macro_rules! slot {
    ($($type:ty, $bits:ty, $to:expr, $from:expr;)*) => {$(
        impl Slot for $type {
            #[inline(always)]
            fn to_slot(self) -> u64 {
                let bits: $bits = $to(self);
                u64::from(bits)
            }

            #[inline(always)]
            fn from_slot(slot: u64) -> Self {
                $from(slot as $bits)
            }

            #[inline(always)]
            fn read(bytes: &[u8], position: usize) -> u64 {
                const SIZE: usize = size_of::<$bits>();
                let mut element = [0; SIZE];
                element.copy_from_slice(&bytes[position * SIZE..][..SIZE]);
                <$type>::from_slot(u64::from(<$bits>::from_ne_bytes(element))).to_slot()
            }

            #[inline(always)]
            fn write(bytes: &mut [u8], position: usize, slot: u64) {
                const SIZE: usize = size_of::<$bits>();
                bytes[position * SIZE..][..SIZE].copy_from_slice(&(slot as $bits).to_ne_bytes());
            }
        }
    )*};
}

slot! {
    bool, u8, u8::from, |bits| bits != 0;
    i8, u8, i8::cast_unsigned, u8::cast_signed;
    u8, u8, |value| value, |bits| bits;
    i16, u16, i16::cast_unsigned, u16::cast_signed;
    u16, u16, |value| value, |bits| bits;
    i32, u32, i32::cast_unsigned, u32::cast_signed;
    u32, u32, |value| value, |bits| bits;
    u64, u64, |value| value, |bits| bits;
    i64, u64, i64::cast_unsigned, u64::cast_signed;
    f16, u16, f16::to_bits, f16::from_bits;
    bf16, u16, bf16::to_bits, bf16::from_bits;
    f32, u32, f32::to_bits, f32::from_bits;
    f64, u64, f64::to_bits, f64::from_bits;
}

/// Elements of a storage type: a register holds their code.
macro_rules! stored_slot {
    ($($name:ident $dtype:ident, $widen:expr, $narrow:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name(u8);

        impl Cast for $name {
            #[inline]
            fn widen(self) -> Wide {
                $widen(narrow::decode(DType::$dtype, self.0))
            }

            #[inline]
            fn narrow(wide: Wide) -> Self {
                $name($narrow(wide))
            }
        }

        impl Slot for $name {
            #[inline(always)]
            fn to_slot(self) -> u64 {
                u64::from(self.0)
            }

            #[inline(always)]
            fn from_slot(slot: u64) -> Self {
                $name(slot as u8)
            }

            #[inline]
            fn read(bytes: &[u8], position: usize) -> u64 {
                u64::from(narrow::read(DType::$dtype, bytes, position))
            }

            #[inline]
            fn write(bytes: &mut [u8], position: usize, slot: u64) {
                narrow::write(DType::$dtype, bytes, position, slot as u8);
            }
        }
    )*};
}

/// The code of an integer of 4 bits: other integers wrap, floats saturate.
fn narrow_integer(dtype: DType, wide: Wide) -> u8 {
    match wide {
        Wide::Int(value) => value as u8 & 0xF,
        Wide::Unsigned(value) => value as u8 & 0xF,
        Wide::Single(value) => narrow::encode(dtype, value),
        // Whole numbers beyond the range of an `f32`'s fraction are beyond that of the type, too.
        Wide::Double(value) => narrow::encode(dtype, value.trunc() as f32),
    }
}

stored_slot! {
    StoredE4M3FN Float8E4M3FN, Wide::Single, |wide| narrow::encode(DType::Float8E4M3FN, f32::narrow(wide));
    StoredE5M2 Float8E5M2, Wide::Single, |wide| narrow::encode(DType::Float8E5M2, f32::narrow(wide));
    StoredInt4 Int4, |value| Wide::Int(value as i64), |wide| narrow_integer(DType::Int4, wide);
    StoredUInt4 UInt4, |value| Wide::Int(value as i64), |wide| narrow_integer(DType::UInt4, wide);
}
