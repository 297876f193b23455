//! Builders of conversions and moves.

use crate::exec::build::float::mode;
use crate::exec::build::{Build, Use};
use crate::exec::lanes::{Pure, convert, pure};
use crate::exec::op::{Op, Window};
use crate::isa::types::Type;
use crate::program::Operand;

type Built = Result<Op, String>;

fn wanted(f: Option<Pure>) -> Result<Pure, String> {
    f.ok_or_else(|| "there is no conversion between these types".to_owned())
}

/// `cvt` of one value.
pub(crate) fn scalar(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (to, from) = (u.ty("d")?, u.ty("s")?);
    let rounding = u.get("rnd");
    let integral = rounding.is_some_and(|rounding| rounding.ends_with('i'));
    let f = match (to.is_float(), from.is_float()) {
        (false, false) => return integers(b, u, to, from),
        (false, true) if !integral => {
            return Err("a conversion to an integer needs .rni, .rzi, .rmi or .rpi".into());
        }
        (false, true) => convert::to_integer(to, from),
        (true, false) if rounding.is_none() || integral => {
            return Err("a conversion from an integer needs .rn, .rz, .rm or .rp".into());
        }
        (true, false) => convert::from_integer(to, from),
        (true, true) => {
            if to.bits() < from.bits() && rounding.is_none() {
                return Err("a conversion to a narrower type needs a rounding".into());
            }
            convert::floats(to, from, integral)
        }
    };
    let register = b.bits(u.operand(0)?, to);
    if !to.is_float() && to.is_signed() && register > to.bits() {
        return Err("a float to a narrow integer in a wider register is not supported".into());
    }
    b.pure_with(u, wanted(f)?, &[from], mode(u).word())
}

/// Between integers; a result in a wider register is extended by its sign.
fn integers(b: &mut Build<'_>, u: &Use<'_>, to: Type, from: Type) -> Built {
    let register = b.bits(u.operand(0)?, to);
    let saturates = u.has("sat");
    if to.is_signed() && register > to.bits() {
        if saturates {
            return Err("a clamped value in a wider register is not supported".into());
        }
        let f = narrow_signed(to, from, register);
        return b.pure(u, wanted(f)?, &[from]);
    }
    b.pure(u, wanted(convert::integers(to, from, saturates))?, &[from])
}

/// To a signed narrow type, extended to the register.
fn narrow_signed(to: Type, from: Type, register: u32) -> Option<Pure> {
    if from.bits() <= to.bits() && !from.is_signed() && from.bits() < to.bits() {
        return convert::integers(to, from, false);
    }
    Some(match (to, register) {
        (Type::S8, 16) => pure!(|a: i8| i16::from(a)),
        (Type::S8, 32) => pure!(|a: i8| i32::from(a)),
        (Type::S8, 64) => pure!(|a: i8| i64::from(a)),
        (Type::S16, 32) if from.bits() >= 16 => pure!(|a: i16| i32::from(a)),
        (Type::S16, 64) if from.bits() >= 16 => pure!(|a: i16| i64::from(a)),
        (Type::S32, 64) if from.bits() >= 32 => pure!(|a: i32| i64::from(a)),
        (_, 32) => return convert::integers(Type::S32, from, false),
        (_, 64) => return convert::integers(Type::S64, from, false),
        _ => return None,
    })
}

/// `cvt` of two `f32` to a packed type.
pub(crate) fn pack(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let f = convert::pack(u.ty("d")?);
    b.pure_with(u, wanted(f)?, &[Type::F32; 2], mode(u).word())
}

/// `cvt` between packed types.
pub(crate) fn repack(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (to, from) = (u.ty("d")?, u.ty("s")?);
    b.pure_with(u, wanted(convert::repack(to, from))?, &[from], mode(u).word())
}

/// `cvt.pack.sat`
pub(crate) fn pack_integers(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let third = u.operands.len() == 4;
    let f = wanted(convert::pack_integers(u.ty("d")?, third))?;
    let types = [Type::S32, Type::S32, Type::B32];
    b.pure(u, f, &types[..u.operands.len() - 1])
}

/// `cvta` in both directions: windows have fixed generic addresses.
pub(crate) fn to_or_from_generic(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let window = u.get("space").unwrap_or("global");
    let to_generic = !u.has("to");
    let f = match (window, to_generic) {
        ("shared" | "shared::cta", true) => {
            pure!(|a: u64| a | crate::memory::SHARED)
        }
        ("local", true) => pure!(|a: u64| a | crate::memory::LOCAL),
        ("param", true) => pure!(|a: u64| a | crate::memory::PARAMS),
        ("shared" | "shared::cta", false) => pure!(|a: u64| a & !crate::memory::SHARED),
        ("local", false) => pure!(|a: u64| a & !crate::memory::LOCAL),
        ("param", false) => pure!(|a: u64| a & !crate::memory::PARAMS),
        // Global and constant memory have the same addresses in both.
        _ => pure!(|a: u64| a),
    };
    b.pure(u, f, &[Type::U64])
}

/// `isspacep`
pub(crate) fn in_window(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let window = match u.get("space") {
        Some("shared" | "shared::cta" | "shared::cluster") => Window::Shared,
        Some("local") => Window::Local,
        Some("const") => Window::Constant,
        Some("param") => Window::Param,
        _ => Window::Global,
    };
    Ok(Op::InWindow { to: b.target_at(u, 0)?, from: b.source_at(u, 1, Type::U64)?, window })
}

/// `mov`: a value, an address, several values into one, or one into several.
pub(crate) fn copy(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    match (u.operand(0)?, u.operand(1)?) {
        (Operand::Vector(parts), from) => {
            let bits = ty.bits() / parts.len().max(1) as u32;
            let from = b.source(from, ty)?;
            let parts = b.targets(&Operand::Vector(parts.clone()))?;
            check_parts(parts.len(), bits)?;
            Ok(Op::Unpack { from, parts, bits })
        }
        (to, Operand::Vector(parts)) => {
            let bits = ty.bits() / parts.len().max(1) as u32;
            check_parts(parts.len(), bits)?;
            let part = match bits {
                8 => Type::B8,
                16 => Type::B16,
                _ => Type::B32,
            };
            let parts = parts.iter().map(|operand| b.source(operand, part));
            let parts = parts.collect::<Result<Vec<_>, _>>()?;
            Ok(Op::Pack { to: b.target(to)?, parts, bits })
        }
        (to, Operand::Special(special)) if special.is_dynamic() => {
            Ok(Op::Read { to: b.target(to)?, special: *special })
        }
        _ => {
            let f = match ty.bits() {
                1 => pure!(|a: bool| a),
                16 => pure!(|a: u16| a),
                32 => pure!(|a: u32| a),
                _ => pure!(|a: u64| a),
            };
            b.pure(u, f, &[ty])
        }
    }
}

fn check_parts(count: usize, bits: u32) -> Result<(), String> {
    if matches!(count, 2 | 4) && bits >= 8 {
        return Ok(());
    }
    Err(format!("{count} parts do not make a value of this type"))
}
