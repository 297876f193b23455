//! Builders of floating-point instructions.

use crate::exec::build::{Build, Use};
use crate::exec::lanes::mode::Mode;
use crate::exec::lanes::{Pure, approximate, float, half};
use crate::exec::op::{NONE, Op};
use crate::isa::types::Type;

type Built = Result<Op, String>;

fn wanted(f: Option<Pure>) -> Result<Pure, String> {
    f.ok_or_else(|| "this form has no meaning".to_owned())
}

/// The mode that the modifiers of an instruction give.
pub(crate) fn mode(u: &Use<'_>) -> Mode {
    Mode {
        rounding: Mode::rounding(u.get("rnd")),
        flush: u.has("ftz"),
        saturate: u.has("sat"),
        relu: u.has("relu"),
        finite: u.has("satfinite"),
        brain: matches!(u.get("t"), Some("bf16" | "bf16x2")),
        propagate: u.has("NaN"),
    }
}

fn is_packed(ty: Type) -> bool {
    matches!(ty, Type::F16x2 | Type::Bf16x2)
}

/// `add`, `sub`, `mul`, `div` in a rounding.
pub(crate) fn binary(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (ty, mode) = (u.ty("t")?, mode(u));
    let f = match ty {
        Type::F32 => float::binary(u.opcode(), mode),
        Type::F64 => float::double(u.opcode(), mode),
        _ => half::binary(u.opcode(), is_packed(ty)),
    };
    b.pure_with(u, wanted(f)?, &[ty, ty], mode.word())
}

/// `min` and `max`, of two or three sources.
pub(crate) fn extremum(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (ty, mode) = (u.ty("t")?, mode(u));
    let xor_sign = u.has("xorsign");
    if u.operands.len() == 4 {
        let f = float::extremum3(u.opcode(), mode.flush, mode.propagate);
        return b.pure(u, wanted(f)?, &[ty; 3]);
    }
    let f = match ty {
        Type::F32 => float::extremum(u.opcode(), mode.flush, mode.propagate, xor_sign),
        Type::F64 => float::double(u.opcode(), Mode::PLAIN),
        _ if xor_sign => half::binary(&format!("{}.xorsign", u.opcode()), is_packed(ty)),
        _ => half::binary(u.opcode(), is_packed(ty)),
    };
    b.pure_with(u, wanted(f)?, &[ty, ty], mode.word())
}

/// `fma` and `mad`.
pub(crate) fn multiply_add(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (ty, mode) = (u.ty("t")?, mode(u));
    let f = match ty {
        Type::F32 => Some(float::multiply_add(mode)),
        Type::F64 => float::double("fma", mode),
        _ => Some(half::multiply_add(is_packed(ty))),
    };
    b.pure_with(u, wanted(f)?, &[ty; 3], mode.word())
}

/// `neg` and `abs`.
pub(crate) fn sign(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (ty, mode) = (u.ty("t")?, mode(u));
    let f = match ty {
        Type::F32 => float::sign(u.opcode(), mode.flush),
        Type::F64 => float::double(u.opcode(), Mode::PLAIN),
        _ => half::unary(u.opcode(), is_packed(ty)),
    };
    b.pure_with(u, wanted(f)?, &[ty], mode.word())
}

/// `rcp` and `sqrt` in a rounding.
pub(crate) fn root(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (ty, mode) = (u.ty("t")?, mode(u));
    let f = match ty {
        Type::F32 => float::root(u.opcode(), mode),
        _ => float::double(u.opcode(), mode),
    };
    b.pure_with(u, wanted(f)?, &[ty], mode.word())
}

/// `rcp.approx`, `ex2.approx` and others that the hardware approximates.
pub(crate) fn approximation(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (ty, mode) = (u.ty("t")?, mode(u));
    let f = match ty {
        Type::F32 => approximate::single(u.opcode(), mode.flush),
        Type::F64 if u.opcode() == "rsqrt" && !mode.flush => approximate::double("rsqrt.full"),
        Type::F64 => approximate::double(u.opcode()),
        _ => half::unary(u.opcode(), is_packed(ty)),
    };
    b.pure_with(u, wanted(f)?, &[ty], mode.word())
}

/// `div.approx` and `div.full`.
pub(crate) fn divide(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    b.pure(u, approximate::divide(u.has("ftz")), &[Type::F32; 2])
}

/// `testp`
pub(crate) fn test(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let class = u.get("class").unwrap_or("finite");
    b.pure(u, float::test(class, ty == Type::F64), &[ty])
}

/// `copysign`
pub(crate) fn copy_sign(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let op = b.pure(u, float::copy_sign(ty == Type::F64), &[ty, ty])?;
    debug_assert!(!matches!(op, Op::Pure { to: NONE, .. }));
    Ok(op)
}
