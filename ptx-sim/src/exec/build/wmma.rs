//! Builders of `wmma`.

use crate::exec::build::matrix::{checked, shape};
use crate::exec::build::memory::window;
use crate::exec::build::{Build, Use};
use crate::exec::mma::elements_per_register;
use crate::exec::op::{FragmentMove, NONE, Op, Product};
use crate::isa::types::Type;

type Built = Result<Op, String>;

/// How many registers of a lane hold a fragment: `A` and `B` of `f16` always have eight, which hold copies where they need fewer.
fn registers(elements: usize, ty: Type, is_sum: bool) -> usize {
    match (ty, is_sum) {
        (Type::F16, false) => 8,
        _ => elements / 32 / elements_per_register(ty),
    }
}

/// The type of the registers.
fn held(ty: Type) -> Type {
    if matches!(ty, Type::F64 | Type::F32) { ty } else { Type::B32 }
}

/// `wmma.load`, `wmma.store`
pub(crate) fn transfer(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (m, n, k) = u.get("shape").and_then(shape).ok_or("the shape is unknown")?;
    let ty = u.ty("t")?;
    let matrix = u.get("matrix").ok_or("the matrix is missing")?;
    let stores = matrix == "d";
    let by_rows = u.get("layout") == Some("row");
    let (rows, columns) = match matrix {
        "a" => (m, k),
        "b" => (k, n),
        _ => (m, n),
    };
    let (inner, outer) = if by_rows { (columns, rows) } else { (rows, columns) };
    let (address, vector) = if stores { (0, 1) } else { (1, 0) };
    let registers_wanted = registers(rows * columns, ty, matches!(matrix, "c" | "d"));
    let operand = u.operand(vector)?;
    let registers = if stores { b.sources(operand, held(ty))? } else { b.targets(operand)? };
    let registers = checked(registers, registers_wanted, "the fragment")?;
    let (base, offset, window) = b.address(u.operand(address)?, window(u))?;
    let stride = if u.operands.len() > 2 { b.source_at(u, 2, Type::U32)? } else { NONE };
    // Products take the elements of `B` column by column, all others row by row.
    let same_order = by_rows != (matrix == "b");
    Ok(Op::FragmentMove(Box::new(FragmentMove {
        window,
        base,
        offset,
        stride,
        inner,
        outer,
        same_order,
        ty,
        registers,
        stores,
    })))
}

/// `wmma.mma`
pub(crate) fn product(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (m, n, k) = u.get("shape").and_then(shape).ok_or("the shape is unknown")?;
    let (d_type, c_type) = (u.ty("d")?, u.ty("c")?);
    // Products of `f16` do not say so.
    let a_type = if u.has("a") { u.ty("a")? } else { Type::F16 };
    let b_type = if u.has("b") { u.ty("b")? } else { Type::F16 };
    if a_type != b_type {
        return Err("elements of both factors have to be of one type".into());
    }
    let d = checked(b.targets(u.operand(0)?)?, registers(m * n, d_type, true), "d")?;
    let a = checked(b.sources(u.operand(1)?, held(a_type))?, registers(m * k, a_type, false), "a")?;
    let right = checked(b.sources(u.operand(2)?, held(b_type))?, registers(k * n, b_type, false), "b")?;
    let c = checked(b.sources(u.operand(3)?, held(c_type))?, registers(m * n, c_type, true), "c")?;
    Ok(Op::Product(Box::new(Product {
        m,
        n,
        k,
        a_type,
        b_type,
        c_type,
        d_type,
        a,
        b: right,
        c,
        d,
        saturates: u.has("satfinite"),
        spread: true,
    })))
}
