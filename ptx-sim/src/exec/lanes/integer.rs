//! Integer arithmetic.

use crate::exec::lanes::{Pure, pure, with_integer};
use crate::isa::types::Type;

/// Integers with the operations that need twice the width, or differ by sign.
trait Wide: Copy {
    /// The upper half of the product.
    fn high(self, other: Self) -> Self;
    /// The quotient; all ones where the divisor is zero, as the hardware gives it.
    fn quotient(self, other: Self) -> Self;
    /// The remainder; the dividend where the divisor is zero.
    fn rest(self, other: Self) -> Self;
    /// The distance of two numbers.
    fn distance(self, other: Self) -> Self;
}

macro_rules! wide {
    ($($ty:ty, $twice:ty, $bits:literal);*) => { $(
        impl Wide for $ty {
            #[inline(always)]
            fn high(self, other: $ty) -> $ty {
                ((self as $twice * other as $twice) >> $bits) as $ty
            }
            #[inline(always)]
            fn quotient(self, other: $ty) -> $ty {
                if other == 0 { !0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn rest(self, other: $ty) -> $ty {
                if other == 0 { self } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn distance(self, other: $ty) -> $ty {
                if self > other { self.wrapping_sub(other) } else { other.wrapping_sub(self) }
            }
        }
    )* };
}

wide!(u8, u16, 8; u16, u32, 16; u32, u64, 32; u64, u128, 64; i8, i16, 8; i16, i32, 16; i32, i64, 32; i64, i128, 64);

/// Instructions with two sources of one type, and a result of that type.
pub(crate) fn binary(opcode: &str, ty: Type) -> Option<Pure> {
    with_integer!(ty, T => Some(match opcode {
        "add" => pure!(|a: T, b: T| a.wrapping_add(b)),
        "sub" => pure!(|a: T, b: T| a.wrapping_sub(b)),
        "mul.lo" => pure!(|a: T, b: T| a.wrapping_mul(b)),
        "mul.hi" => pure!(|a: T, b: T| a.high(b)),
        "div" => pure!(|a: T, b: T| a.quotient(b)),
        "rem" => pure!(|a: T, b: T| a.rest(b)),
        "min" => pure!(|a: T, b: T| a.min(b)),
        "max" => pure!(|a: T, b: T| a.max(b)),
        "and" => pure!(|a: T, b: T| a & b),
        "or" => pure!(|a: T, b: T| a | b),
        "xor" => pure!(|a: T, b: T| a ^ b),
        _ => return None,
    }))
    .flatten()
}

/// Instructions with three sources of one type, and a result of that type.
pub(crate) fn ternary(opcode: &str, ty: Type) -> Option<Pure> {
    with_integer!(ty, T => Some(match opcode {
        "mad.lo" => pure!(|a: T, b: T, c: T| a.wrapping_mul(b).wrapping_add(c)),
        "mad.hi" => pure!(|a: T, b: T, c: T| a.high(b).wrapping_add(c)),
        "sad" => pure!(|a: T, b: T, c: T| c.wrapping_add(a.distance(b))),
        _ => return None,
    }))
    .flatten()
}

/// Instructions with one source, and a result of its type.
pub(crate) fn unary(opcode: &str, ty: Type) -> Option<Pure> {
    if opcode == "abs" {
        return Some(match ty {
            Type::S16 => pure!(|a: i16| a.wrapping_abs()),
            Type::S32 => pure!(|a: i32| a.wrapping_abs()),
            Type::S64 => pure!(|a: i64| a.wrapping_abs()),
            _ => return None,
        });
    }
    with_integer!(ty, T => Some(match opcode {
        "neg" => pure!(|a: T| (0 as T).wrapping_sub(a)),
        "not" => pure!(|a: T| !a),
        "cnot" => pure!(|a: T| T::from(a == 0)),
        "brev" => pure!(|a: T| a.reverse_bits()),
        "popc" => pure!(|a: T| a.count_ones()),
        "clz" => pure!(|a: T| a.leading_zeros()),
        _ => return None,
    }))
    .flatten()
}

/// `mul.wide`.
pub(crate) fn multiply_wide(ty: Type) -> Option<Pure> {
    Some(match ty {
        Type::U16 => pure!(|a: u16, b: u16| u32::from(a) * u32::from(b)),
        Type::S16 => pure!(|a: i16, b: i16| i32::from(a) * i32::from(b)),
        Type::U32 => pure!(|a: u32, b: u32| u64::from(a) * u64::from(b)),
        Type::S32 => pure!(|a: i32, b: i32| i64::from(a) * i64::from(b)),
        _ => return None,
    })
}

/// `mad.wide`.
pub(crate) fn multiply_add_wide(ty: Type) -> Option<Pure> {
    Some(match ty {
        Type::U16 => pure!(|a: u16, b: u16, c: u32| (u32::from(a) * u32::from(b)).wrapping_add(c)),
        Type::S16 => pure!(|a: i16, b: i16, c: i32| (i32::from(a) * i32::from(b)).wrapping_add(c)),
        Type::U32 => pure!(|a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c)),
        Type::S32 => pure!(|a: i32, b: i32, c: i64| (i64::from(a) * i64::from(b)).wrapping_add(c)),
        _ => return None,
    })
}

/// `mul24` and `mad24` on the low 24 bits; `high` gives the upper 32 of 48 bits.
pub(crate) fn multiply24(signed: bool, high: bool) -> Pure {
    match (signed, high) {
        (false, false) => pure!(|a: u32, b: u32| (low24(a) * low24(b)) as u32),
        (false, true) => pure!(|a: u32, b: u32| ((low24(a) * low24(b)) >> 16) as u32),
        (true, false) => pure!(|a: i32, b: i32| (signed24(a) * signed24(b)) as i32),
        (true, true) => pure!(|a: i32, b: i32| ((signed24(a) * signed24(b)) >> 16) as i32),
    }
}

/// The same, with a third source added.
pub(crate) fn multiply_add24(signed: bool, high: bool) -> Pure {
    match (signed, high) {
        (false, false) => {
            pure!(|a: u32, b: u32, c: u32| ((low24(a) * low24(b)) as u32).wrapping_add(c))
        }
        (false, true) => {
            pure!(|a: u32, b: u32, c: u32| (((low24(a) * low24(b)) >> 16) as u32).wrapping_add(c))
        }
        (true, false) => {
            pure!(|a: i32, b: i32, c: i32| ((signed24(a) * signed24(b)) as i32).wrapping_add(c))
        }
        (true, true) => {
            pure!(|a: i32, b: i32, c: i32| (((signed24(a) * signed24(b)) >> 16) as i32).wrapping_add(c))
        }
    }
}

#[inline(always)]
fn low24(value: u32) -> u64 {
    u64::from(value & 0xff_ffff)
}

#[inline(always)]
fn signed24(value: i32) -> i64 {
    i64::from(value << 8 >> 8)
}

/// `add.sat.s32` and `sub.sat.s32`.
pub(crate) fn saturating(opcode: &str) -> Option<Pure> {
    Some(match opcode {
        "add" => pure!(|a: i32, b: i32| a.saturating_add(b)),
        "sub" => pure!(|a: i32, b: i32| a.saturating_sub(b)),
        _ => return None,
    })
}

/// `mad.hi.sat.s32`.
pub(crate) fn multiply_add_saturating() -> Pure {
    pure!(|a: i32, b: i32, c: i32| a.high(b).saturating_add(c))
}

/// Shifts; amounts beyond the width shift everything out.
pub(crate) fn shift(left: bool, ty: Type) -> Option<Pure> {
    if left {
        return with_integer!(ty, T => pure!(|a: T, n: u32| a.checked_shl(n).unwrap_or(0)));
    }
    with_integer!(ty, T => pure!(|a: T, n: u32| a >> n.min(T::BITS - 1) >> (if n < T::BITS { 0 } else { 1 })))
}

/// `shf`: 32 bits of the 64 bits `b:a`, shifted; the amount wraps or is clamped to 32.
pub(crate) fn funnel(left: bool, wrap: bool) -> Pure {
    match (left, wrap) {
        (true, true) => pure!(|a: u32, b: u32, n: u32| funnel_left(a, b, n & 31)),
        (true, false) => pure!(|a: u32, b: u32, n: u32| funnel_left(a, b, n.min(32))),
        (false, true) => pure!(|a: u32, b: u32, n: u32| funnel_right(a, b, n & 31)),
        (false, false) => pure!(|a: u32, b: u32, n: u32| funnel_right(a, b, n.min(32))),
    }
}

#[inline(always)]
fn funnel_left(a: u32, b: u32, n: u32) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    ((both << n) >> 32) as u32
}

#[inline(always)]
fn funnel_right(a: u32, b: u32, n: u32) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    (both >> n) as u32
}

/// `lop3`: any function of three bits, as a table of eight.
pub(crate) fn lop3() -> Pure {
    pure!(|a: u32, b: u32, c: u32, table: u32| {
        let mut out = 0;
        for row in 0..8 {
            let x = if row & 4 != 0 { a } else { !a };
            let y = if row & 2 != 0 { b } else { !b };
            let z = if row & 1 != 0 { c } else { !c };
            let chosen = 0u32.wrapping_sub(table >> row & 1);
            out |= x & y & z & chosen;
        }
        out
    })
}

/// `prmt`: bytes of `b:a` by the selectors in `c`.
pub(crate) fn permute(mode: Option<&str>) -> Pure {
    match mode {
        None => pure!(|a: u32, b: u32, c: u32| permute_by(a, b, |n| c >> (4 * n) & 15)),
        Some("f4e") => pure!(|a: u32, b: u32, c: u32| permute_by(a, b, |n| (n + (c & 3)) & 7)),
        Some("b4e") => {
            pure!(|a: u32, b: u32, c: u32| permute_by(a, b, |n| (c & 3).wrapping_sub(n) & 7))
        }
        Some("rc8") => pure!(|a: u32, b: u32, c: u32| permute_by(a, b, |_| c & 3)),
        Some("ecl") => pure!(|a: u32, b: u32, c: u32| permute_by(a, b, |n| n.max(c & 3))),
        Some("ecr") => pure!(|a: u32, b: u32, c: u32| permute_by(a, b, |n| n.min(c & 3))),
        Some(_) => pure!(|a: u32, b: u32, c: u32| permute_by(a, b, |n| n & 1 | (c & 1) << 1)),
    }
}

#[inline(always)]
fn permute_by(a: u32, b: u32, selector: impl Fn(u32) -> u32) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    let mut out = 0;
    for n in 0..4 {
        let select = selector(n);
        let byte = (both >> (8 * (select & 7))) as u8;
        // The fourth bit of a selector asks for copies of the byte's sign.
        let byte = if select & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
        out |= u32::from(byte) << (8 * n);
    }
    out
}

/// `bfe`: a field of bits from position `b`, `c` bits long.
pub(crate) fn extract_field(ty: Type) -> Option<Pure> {
    Some(match ty {
        Type::U32 => pure!(|a: u32, b: u32, c: u32| field(u64::from(a), b, c, 32, false) as u32),
        Type::S32 => {
            pure!(|a: i32, b: u32, c: u32| field(i64::from(a) as u64, b, c, 32, true) as u32)
        }
        Type::U64 => pure!(|a: u64, b: u32, c: u32| field(a, b, c, 64, false)),
        Type::S64 => pure!(|a: u64, b: u32, c: u32| field(a, b, c, 64, true)),
        _ => return None,
    })
}

fn field(a: u64, b: u32, c: u32, width: u32, signed: bool) -> u64 {
    let (position, length) = (b & 255, c & 255);
    if length == 0 {
        return 0;
    }
    let sign_at = (position + length - 1).min(width - 1);
    let sign = signed && a >> sign_at & 1 != 0;
    let mut out = 0;
    for bit in 0..width {
        let from = position + bit;
        let set = if bit < length && from < width { a >> from & 1 != 0 } else { sign };
        out |= u64::from(set) << bit;
    }
    out
}

/// `bfi`: the low `d` bits of `a` put into `b` at position `c`.
pub(crate) fn insert_field(ty: Type) -> Pure {
    if ty == Type::B32 {
        pure!(|a: u32, b: u32, c: u32, d: u32| insert(u64::from(a), u64::from(b), c, d, 32) as u32)
    } else {
        pure!(|a: u64, b: u64, c: u32, d: u32| insert(a, b, c, d, 64))
    }
}

fn insert(a: u64, b: u64, c: u32, d: u32, width: u32) -> u64 {
    let (position, length) = (c & 255, (d & 255).min(width));
    if length == 0 || position >= width {
        return b;
    }
    let ones = if length == 64 { u64::MAX } else { (1 << length) - 1 };
    let mask = ones << position;
    b & !mask | (a << position) & mask
}

/// `bfind`: the position of the most significant bit that is not the sign; all ones if there is none.
pub(crate) fn find_bit(ty: Type, shift_amount: bool) -> Option<Pure> {
    Some(match (ty, shift_amount) {
        (Type::U32, false) => pure!(|a: u32| 31u32.wrapping_sub(a.leading_zeros())),
        (Type::U32, true) => pure!(|a: u32| amount(a.leading_zeros(), 32)),
        (Type::S32, false) => {
            pure!(|a: i32| 31u32.wrapping_sub((a ^ a >> 31).leading_zeros()))
        }
        (Type::S32, true) => pure!(|a: i32| amount((a ^ a >> 31).leading_zeros(), 32)),
        (Type::U64, false) => pure!(|a: u64| 63u32.wrapping_sub(a.leading_zeros())),
        (Type::U64, true) => pure!(|a: u64| amount(a.leading_zeros(), 64)),
        (Type::S64, false) => {
            pure!(|a: i64| 63u32.wrapping_sub((a ^ a >> 63).leading_zeros()))
        }
        (Type::S64, true) => pure!(|a: i64| amount((a ^ a >> 63).leading_zeros(), 64)),
        _ => return None,
    })
}

#[inline(always)]
fn amount(zeros: u32, width: u32) -> u32 {
    if zeros == width { u32::MAX } else { zeros }
}

/// `fns`: the position of the n-th set bit from a base, upwards or downwards; all ones if there is none.
pub(crate) fn find_nth_set() -> Pure {
    pure!(|mask: u32, base: u32, offset: i32| nth_set(mask, base & 31, offset))
}

fn nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    if offset == 0 {
        return if mask >> base & 1 != 0 { base } else { u32::MAX };
    }
    let step: i64 = if offset > 0 { 1 } else { -1 };
    let mut left = offset.unsigned_abs();
    let mut at = i64::from(base);
    while (0..32).contains(&at) {
        if mask >> at & 1 != 0 {
            left -= 1;
            if left == 0 {
                return at as u32;
            }
        }
        at += step;
    }
    u32::MAX
}

/// `bmsk`: `b` ones from position `a` on.
pub(crate) fn bit_mask(clamp: bool) -> Pure {
    if clamp {
        pure!(|a: u32, b: u32| mask_of(a, b))
    } else {
        pure!(|a: u32, b: u32| mask_of(a & 31, b & 31))
    }
}

fn mask_of(position: u32, length: u32) -> u32 {
    let ones = if length >= 32 { u64::from(u32::MAX) } else { (1 << length) - 1 };
    if position >= 32 { 0 } else { (ones << position) as u32 }
}

/// `szext`: sign or zero extension of the low `b` bits.
pub(crate) fn extend(signed: bool, clamp: bool) -> Pure {
    match (signed, clamp) {
        (true, true) => pure!(|a: u32, b: u32| extended(a, b.min(32), true)),
        (true, false) => pure!(|a: u32, b: u32| extended(a, b & 31, true)),
        (false, true) => pure!(|a: u32, b: u32| extended(a, b.min(32), false)),
        (false, false) => pure!(|a: u32, b: u32| extended(a, b & 31, false)),
    }
}

fn extended(a: u32, bits: u32, signed: bool) -> u32 {
    match bits {
        0 => 0,
        32.. => a,
        _ if signed => ((a << (32 - bits)) as i32 >> (32 - bits)) as u32,
        _ => a & ((1 << bits) - 1),
    }
}

/// `dp4a`: the scalar product of four bytes, added to `c`.
pub(crate) fn dot4(a_signed: bool, b_signed: bool) -> Pure {
    match (a_signed, b_signed) {
        (false, false) => pure!(|a: u32, b: u32, c: u32| dot(a, b, c, false, false)),
        (false, true) => pure!(|a: u32, b: u32, c: u32| dot(a, b, c, false, true)),
        (true, false) => pure!(|a: u32, b: u32, c: u32| dot(a, b, c, true, false)),
        (true, true) => pure!(|a: u32, b: u32, c: u32| dot(a, b, c, true, true)),
    }
}

/// Byte `n` as a number.
#[inline(always)]
fn byte(word: u32, n: u32, signed: bool) -> i32 {
    let byte = (word >> (8 * n)) as u8;
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}

fn dot(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    (0..4).fold(c, |sum, n| sum.wrapping_add((byte(a, n, a_signed) * byte(b, n, b_signed)) as u32))
}

/// `dp2a`: the scalar product of two 16-bit numbers of `a` and two bytes of `b`, added to `c`.
pub(crate) fn dot2(a_signed: bool, b_signed: bool, high: bool) -> Pure {
    match (a_signed, b_signed, high) {
        (false, false, false) => pure!(|a: u32, b: u32, c: u32| pairs(a, b, c, false, false, 0)),
        (false, true, false) => pure!(|a: u32, b: u32, c: u32| pairs(a, b, c, false, true, 0)),
        (true, false, false) => pure!(|a: u32, b: u32, c: u32| pairs(a, b, c, true, false, 0)),
        (true, true, false) => pure!(|a: u32, b: u32, c: u32| pairs(a, b, c, true, true, 0)),
        (false, false, true) => pure!(|a: u32, b: u32, c: u32| pairs(a, b, c, false, false, 2)),
        (false, true, true) => pure!(|a: u32, b: u32, c: u32| pairs(a, b, c, false, true, 2)),
        (true, false, true) => pure!(|a: u32, b: u32, c: u32| pairs(a, b, c, true, false, 2)),
        (true, true, true) => pure!(|a: u32, b: u32, c: u32| pairs(a, b, c, true, true, 2)),
    }
}

fn pairs(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, first: u32) -> u32 {
    (0..2).fold(c, |sum, n| {
        let half = (a >> (16 * n)) as u16;
        let half = if a_signed { i32::from(half as i16) } else { i32::from(half) };
        sum.wrapping_add(half.wrapping_mul(byte(b, first + n, b_signed)) as u32)
    })
}

/// Arithmetic on two halves of 16 bits: `add`, `min`, `max` of `.u16x2` and `.s16x2`.
pub(crate) fn packed(opcode: &str, signed: bool) -> Option<Pure> {
    Some(match (opcode, signed) {
        ("add", _) => pure!(|a: u32, b: u32| halves(a, b, |x, y| x.wrapping_add(y))),
        ("min", false) => pure!(|a: u32, b: u32| halves(a, b, |x, y| x.min(y))),
        ("max", false) => pure!(|a: u32, b: u32| halves(a, b, |x, y| x.max(y))),
        ("min", true) => {
            pure!(|a: u32, b: u32| halves(a, b, |x, y| (x as i16).min(y as i16) as u16))
        }
        ("max", true) => {
            pure!(|a: u32, b: u32| halves(a, b, |x, y| (x as i16).max(y as i16) as u16))
        }
        _ => return None,
    })
}

/// The smaller or the larger of two integers, or of two pairs of halves, and no less than zero.
pub(crate) fn clamped_extremum(is_smaller: bool, is_packed: bool) -> Pure {
    match (is_smaller, is_packed) {
        (true, false) => pure!(|a: i32, b: i32| a.min(b).max(0)),
        (false, false) => pure!(|a: i32, b: i32| a.max(b).max(0)),
        (true, true) => {
            pure!(|a: u32, b: u32| halves(a, b, |x, y| (x as i16).min(y as i16).max(0) as u16))
        }
        (false, true) => {
            pure!(|a: u32, b: u32| halves(a, b, |x, y| (x as i16).max(y as i16).max(0) as u16))
        }
    }
}

#[inline(always)]
fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}
