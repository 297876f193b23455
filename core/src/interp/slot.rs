//! Elements in registers and in memory.

use half::{bf16, f16};

use crate::math::scalar::Cast;

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
