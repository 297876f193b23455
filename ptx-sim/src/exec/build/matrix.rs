//! Builders of `ldmatrix`, `stmatrix`, `movmatrix` and `mma`.

use crate::exec::build::memory::window;
use crate::exec::build::{Build, Use};
use crate::exec::op::{MatrixMove, Op, Product};
use crate::isa::types::Type;

type Built = Result<Op, String>;

fn count(u: &Use<'_>) -> usize {
    match u.get("num") {
        Some("x1") => 1,
        Some("x2") => 2,
        _ => 4,
    }
}

pub(super) fn checked(registers: Vec<u32>, wanted: usize, name: &str) -> Result<Vec<u32>, String> {
    if registers.len() == wanted {
        return Ok(registers);
    }
    Err(format!("{name} has {} registers, but {wanted} are wanted", registers.len()))
}

/// `ldmatrix`
pub(crate) fn load(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let registers = checked(b.targets(u.operand(0)?)?, count(u), "the destination")?;
    let (base, offset, window) = b.address(u.operand(1)?, window(u))?;
    let transposed = u.has("trans");
    Ok(Op::MatrixMove(Box::new(MatrixMove { window, base, offset, transposed, registers, stores: false })))
}

/// `stmatrix`
pub(crate) fn store(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (base, offset, window) = b.address(u.operand(0)?, window(u))?;
    let registers = checked(b.sources(u.operand(1)?, Type::B32)?, count(u), "the source")?;
    let transposed = u.has("trans");
    Ok(Op::MatrixMove(Box::new(MatrixMove { window, base, offset, transposed, registers, stores: true })))
}

/// `movmatrix`
pub(crate) fn transpose(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    Ok(Op::TransposeMatrix { to: b.target_at(u, 0)?, from: b.source_at(u, 1, Type::B32)? })
}

/// `m16n8k16` as numbers.
pub(super) fn shape(name: &str) -> Option<(usize, usize, usize)> {
    let (m, rest) = name.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
}

/// How many registers of a lane hold a fragment.
fn registers(rows: usize, columns: usize, ty: Type) -> usize {
    let bits = match ty {
        Type::Tf32 => 32,
        _ => ty.bits() as usize,
    };
    let per_register = if bits == 64 { 1 } else { 32 / bits };
    rows * columns / 32 / per_register
}

/// `mma.sync`
pub(crate) fn product(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (m, n, k) = u.get("shape").and_then(shape).ok_or("the shape is unknown")?;
    let (d_type, a_type) = (u.ty("d")?, u.ty("a")?);
    let (b_type, c_type) = (u.ty("b")?, u.ty("c")?);
    let of = |ty: Type| if matches!(ty, Type::F64 | Type::F32) { ty } else { Type::B32 };
    let d = checked(b.targets(u.operand(0)?)?, registers(m, n, d_type), "d")?;
    let a = checked(b.sources(u.operand(1)?, of(a_type))?, registers(m, k, a_type), "a")?;
    let b_registers = checked(b.sources(u.operand(2)?, of(b_type))?, registers(k, n, b_type), "b")?;
    let c = checked(b.sources(u.operand(3)?, of(c_type))?, registers(m, n, c_type), "c")?;
    Ok(Op::Product(Box::new(Product {
        m,
        n,
        k,
        a_type,
        b_type,
        c_type,
        d_type,
        a,
        b: b_registers,
        c,
        d,
        saturates: u.has("satfinite"),
        spread: false,
    })))
}
