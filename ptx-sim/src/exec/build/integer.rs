//! Builders of integer instructions, comparisons and selections.

use crate::exec::build::{Build, Use};
use crate::exec::lanes::float::flush;
use crate::exec::lanes::{Pure, compare, integer, parts as words, pure};
use crate::exec::op::{Combine, NONE, Op, Slot};
use crate::isa::types::Type;

type Built = Result<Op, String>;

fn wanted(f: Option<Pure>) -> Result<Pure, String> {
    f.ok_or_else(|| "this form has no meaning".to_owned())
}

/// `add`, `sub`, `mul.lo`, `div` and others of two sources.
pub(crate) fn binary(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let name = match u.get("half") {
        Some(half) => format!("{}.{half}", u.opcode()),
        None => u.opcode().to_owned(),
    };
    let f = match (ty, u.has("sat")) {
        (_, true) => integer::saturating(&name),
        (Type::U16x2 | Type::S16x2, _) => integer::packed(&name, ty == Type::S16x2),
        (Type::Pred, _) => logic(&name),
        _ => integer::binary(&name, ty),
    };
    b.pure(u, wanted(f)?, &[ty, ty])
}

/// `vadd4`, `vabsdiff2` and others: the bytes or halves of words.
pub(crate) fn parts(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (name, count) = u.opcode().split_at(u.opcode().len() - 1);
    let op = words::PartOp::named(name).ok_or("this form has no meaning")?;
    let mode = words::Mode {
        op,
        are_bytes: count == "4",
        signed: [u.ty("d")?, u.ty("a")?, u.ty("b")?].map(Type::is_signed),
        saturates: u.get("how") == Some("sat"),
        accumulates: u.get("how") == Some("add"),
    };
    b.pure_with(u, words::operation(), &[Type::B32; 3], mode.word())
}

/// `min.relu` and `max.relu`: no less than zero.
pub(crate) fn clamped_extremum(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let f = integer::clamped_extremum(u.opcode() == "min", ty == Type::S16x2);
    b.pure(u, f, &[ty, ty])
}

fn logic(opcode: &str) -> Option<Pure> {
    Some(match opcode {
        "and" => pure!(|a: bool, b: bool| a & b),
        "or" => pure!(|a: bool, b: bool| a | b),
        "xor" => pure!(|a: bool, b: bool| a ^ b),
        _ => return None,
    })
}

/// `mad`, `sad`.
pub(crate) fn ternary(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let f = match (u.get("half"), u.has("sat")) {
        (Some("hi"), true) => Some(integer::multiply_add_saturating()),
        (Some(half), _) => integer::ternary(&format!("{}.{half}", u.opcode()), ty),
        (None, _) => integer::ternary(u.opcode(), ty),
    };
    b.pure(u, wanted(f)?, &[ty; 3])
}

/// `mul.wide` and `mad.wide`.
pub(crate) fn wide(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let wide = ty.widened().ok_or("this type has no wider one")?;
    if u.opcode() == "mul" {
        return b.pure(u, wanted(integer::multiply_wide(ty))?, &[ty, ty]);
    }
    b.pure(u, wanted(integer::multiply_add_wide(ty))?, &[ty, ty, wide])
}

/// `mul24` and `mad24`.
pub(crate) fn of_24_bits(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let high = u.get("half") == Some("hi");
    if u.opcode() == "mul24" {
        return b.pure(u, integer::multiply24(ty.is_signed(), high), &[ty, ty]);
    }
    b.pure(u, integer::multiply_add24(ty.is_signed(), high), &[ty; 3])
}

/// `neg`, `abs`, `not`, `popc` and others of one source.
pub(crate) fn unary(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let f = match ty {
        Type::Pred => Some(pure!(|a: bool| !a)),
        _ => integer::unary(u.opcode(), ty),
    };
    b.pure(u, wanted(f)?, &[ty])
}

/// `shl` and `shr`.
pub(crate) fn shift(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    b.pure(u, wanted(integer::shift(u.opcode() == "shl", ty))?, &[ty, Type::U32])
}

/// `shf`
pub(crate) fn funnel(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let f = integer::funnel(u.get("way") == Some("l"), u.get("end") == Some("wrap"));
    b.pure(u, f, &[Type::B32, Type::B32, Type::U32])
}

/// `lop3`
pub(crate) fn lop3(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    b.pure(u, integer::lop3(), &[Type::B32; 4])
}

/// `prmt`
pub(crate) fn permute(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    b.pure(u, integer::permute(u.get("mode")), &[Type::B32; 3])
}

/// `bfe`
pub(crate) fn extract(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    b.pure(u, wanted(integer::extract_field(ty))?, &[ty, Type::U32, Type::U32])
}

/// `bfi`
pub(crate) fn insert(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    b.pure(u, integer::insert_field(ty), &[ty, ty, Type::U32, Type::U32])
}

/// `bfind`
pub(crate) fn find(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    b.pure(u, wanted(integer::find_bit(ty, u.has("shiftamt")))?, &[ty])
}

/// `fns`, `bmsk`, `szext`
pub(crate) fn bits(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let clamp = u.get("end") == Some("clamp");
    match u.opcode() {
        "fns" => b.pure(u, integer::find_nth_set(), &[Type::B32, Type::B32, Type::S32]),
        "bmsk" => b.pure(u, integer::bit_mask(clamp), &[Type::U32; 2]),
        _ => {
            let signed = u.ty("t")?.is_signed();
            b.pure(u, integer::extend(signed, clamp), &[Type::U32; 2])
        }
    }
}

/// `dp4a` and `dp2a`
pub(crate) fn dot(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (a_signed, b_signed) = (u.ty("a")?.is_signed(), u.ty("b")?.is_signed());
    let f = match u.get("half") {
        None => integer::dot4(a_signed, b_signed),
        Some(half) => integer::dot2(a_signed, b_signed, half == "hi"),
    };
    b.pure(u, f, &[Type::B32; 3])
}

/// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
pub(crate) fn carry(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let bits = ty.bits();
    let takes = u.opcode().ends_with('c');
    let (first, second) =
        carries(u.opcode(), u.get("half"), bits, ty.is_signed()).ok_or("this form has no meaning")?;
    let sources = if u.opcode().starts_with("mad") { 3 } else { 2 };
    let mut from = [NONE; 4];
    for (position, slot) in from.iter_mut().enumerate().take(sources) {
        *slot = b.source_at(u, position + 1, ty)?;
    }
    from[sources] = match (takes, u.opcode()) {
        (true, _) => b.carry(),
        // A difference is a sum with the complement and a carry.
        (false, "sub") => b.constant(1),
        (false, _) => b.constant(0),
    };
    let second_to = if u.has("cc") { b.carry() } else { NONE };
    Ok(Op::Twin { first, second, to: b.target_at(u, 0)?, second_to, from })
}

/// The result and the carry of an instruction with carries. The carry out of a difference is that of the sum with the complement: it is
/// there where nothing is borrowed. The manual speaks of a borrow, but the assembler adds the complement, and NVIDIA's division of 128-bit
/// integers asks by `addc` whether `subc.cc` has borrowed.
fn carries(opcode: &str, half: Option<&str>, bits: u32, signed: bool) -> Option<(Pure, Pure)> {
    macro_rules! of {
        ($ty:ty, $twice:ty) => {
            match opcode {
                "add" | "addc" => (
                    pure!(|a: $ty, b: $ty, c: $ty| a.wrapping_add(b).wrapping_add(c)),
                    pure!(|a: $ty, b: $ty, c: $ty| {
                        (a as $twice + b as $twice + c as $twice) >> <$ty>::BITS != 0
                    }),
                ),
                "sub" | "subc" => (
                    pure!(|a: $ty, b: $ty, c: $ty| a.wrapping_add(!b).wrapping_add(c)),
                    pure!(|a: $ty, b: $ty, c: $ty| {
                        (a as $twice + !b as $twice + c as $twice) >> <$ty>::BITS != 0
                    }),
                ),
                _ => return None,
            }
        };
    }
    if !opcode.starts_with("mad") {
        return Some(if bits == 32 { of!(u32, u64) } else { of!(u64, u128) });
    }
    let sum = match (bits, half?, signed) {
        (32, "lo", _) => (
            pure!(|a: u32, b: u32, c: u32, d: u32| a.wrapping_mul(b).wrapping_add(c).wrapping_add(d)),
            pure!(|a: u32, b: u32, c: u32, d: u32| over32(a.wrapping_mul(b), c, d)),
        ),
        (32, _, false) => (
            pure!(|a: u32, b: u32, c: u32, d: u32| high32(a, b).wrapping_add(c).wrapping_add(d)),
            pure!(|a: u32, b: u32, c: u32, d: u32| over32(high32(a, b), c, d)),
        ),
        (32, _, true) => (
            pure!(|a: i32, b: i32, c: u32, d: u32| high_signed32(a, b).wrapping_add(c).wrapping_add(d)),
            pure!(|a: i32, b: i32, c: u32, d: u32| over32(high_signed32(a, b), c, d)),
        ),
        (_, "lo", _) => (
            pure!(|a: u64, b: u64, c: u64, d: u64| a.wrapping_mul(b).wrapping_add(c).wrapping_add(d)),
            pure!(|a: u64, b: u64, c: u64, d: u64| over64(a.wrapping_mul(b), c, d)),
        ),
        (_, _, false) => (
            pure!(|a: u64, b: u64, c: u64, d: u64| high64(a, b).wrapping_add(c).wrapping_add(d)),
            pure!(|a: u64, b: u64, c: u64, d: u64| over64(high64(a, b), c, d)),
        ),
        (_, _, true) => (
            pure!(|a: i64, b: i64, c: u64, d: u64| high_signed64(a, b).wrapping_add(c).wrapping_add(d)),
            pure!(|a: i64, b: i64, c: u64, d: u64| over64(high_signed64(a, b), c, d)),
        ),
    };
    Some(sum)
}

fn over32(a: u32, b: u32, c: u32) -> bool {
    (u64::from(a) + u64::from(b) + u64::from(c)) >> 32 != 0
}

fn over64(a: u64, b: u64, c: u64) -> bool {
    (u128::from(a) + u128::from(b) + u128::from(c)) >> 64 != 0
}

fn high32(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

fn high_signed32(a: i32, b: i32) -> u32 {
    ((i64::from(a) * i64::from(b)) >> 32) as u32
}

fn high64(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

fn high_signed64(a: i64, b: i64) -> u64 {
    ((i128::from(a) * i128::from(b)) >> 64) as u64
}

/// `setp`, also of pairs of halves.
pub(crate) fn set_predicate(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let cmp = u.get("cmp").unwrap_or("eq");
    let (to, complement) = b.pair(u.operand(0)?)?;
    if matches!(ty, Type::F16x2 | Type::Bf16x2) {
        if u.has("bool") {
            return Err("pairs combined with a predicate are not supported".into());
        }
        let brain = ty == Type::Bf16x2;
        let (first, second) = (compare::low(cmp, brain), compare::high(cmp, brain));
        let from = [b.source_at(u, 1, ty)?, b.source_at(u, 2, ty)?, NONE, NONE];
        let (first, second) = (wanted(first)?, wanted(second)?);
        return Ok(Op::Twin { first, second, to, second_to: complement, from });
    }
    let f = comparison(cmp, ty, u.has("ftz"))?;
    let from = [b.source_at(u, 1, ty)?, b.source_at(u, 2, ty)?];
    Ok(Op::Compare { f, to, complement, from, combine: combine(b, u)?, truth: 1 })
}

fn combine(b: &mut Build<'_>, u: &Use<'_>) -> Result<Option<(Combine, Slot, bool)>, String> {
    let how = match u.get("bool") {
        None => return Ok(None),
        Some("and") => Combine::And,
        Some("or") => Combine::Or,
        Some(_) => Combine::Xor,
    };
    let (predicate, negated) = b.predicate(u.operand(3)?)?;
    Ok(Some((how, predicate, negated)))
}

/// `set`: all ones or 1.0 where the comparison holds.
pub(crate) fn set(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let f = comparison(u.get("cmp").unwrap_or("eq"), ty, u.has("ftz"))?;
    let truth = match u.ty("d")? {
        Type::F32 => u64::from(1.0_f32.to_bits()),
        Type::F16 => 0x3c00,
        Type::Bf16 => 0x3f80,
        other => u64::MAX >> (64 - other.bits()),
    };
    let from = [b.source_at(u, 1, ty)?, b.source_at(u, 2, ty)?];
    let to = b.target_at(u, 0)?;
    Ok(Op::Compare { f, to, complement: NONE, from, combine: combine(b, u)?, truth })
}

/// A comparison as a pure function with a result of one bit.
fn comparison(cmp: &str, ty: Type, flush: bool) -> Result<Pure, String> {
    wanted(match ty {
        Type::F32 if flush => compare::flushed(cmp),
        Type::F32 => compare::singles(cmp),
        Type::F64 => compare::doubles(cmp),
        Type::F16 => compare::low(cmp, false),
        Type::Bf16 => compare::low(cmp, true),
        _ => compare::integers(cmp, ty),
    })
}

/// `selp`
pub(crate) fn select(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let (predicate, negated) = b.predicate(u.operand(3)?)?;
    Ok(Op::Select {
        to: b.target_at(u, 0)?,
        a: b.source_at(u, 1, ty)?,
        b: b.source_at(u, 2, ty)?,
        predicate,
        negated,
    })
}

/// `slct`: by the sign of the third source.
pub(crate) fn select_by_sign(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (ty, by) = (u.ty("t")?, u.ty("c")?);
    let f = match (by, u.has("ftz")) {
        (Type::F32, true) => {
            pure!(|a: u64, b: u64, c: f32| if flush(c) >= 0.0 { a } else { b })
        }
        (Type::F32, false) => pure!(|a: u64, b: u64, c: f32| if c >= 0.0 { a } else { b }),
        _ => pure!(|a: u64, b: u64, c: i32| if c >= 0 { a } else { b }),
    };
    b.pure(u, f, &[ty, ty, by])
}
