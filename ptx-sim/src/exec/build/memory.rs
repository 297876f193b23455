//! Builders of loads, stores and atomic operations.

use crate::exec::build::{Build, Use};
use crate::exec::lanes::pure;
use crate::exec::op::{Access, Atomic, AtomicOp, NONE, Op, Order, Window};
use crate::program::Operand;

type Built = Result<Op, String>;

/// The window that a modifier names.
pub(crate) fn window(u: &Use<'_>) -> Window {
    match u.get("space") {
        Some("global") => Window::Global,
        Some("shared" | "shared::cta") => Window::Shared,
        Some("local") => Window::Local,
        Some("const") => Window::Constant,
        Some("param" | "param::entry" | "param::func") => Window::Param,
        _ => Window::Generic,
    }
}

fn order(u: &Use<'_>) -> Order {
    let sem = u.get("sem");
    Order {
        strong: matches!(sem, Some("relaxed" | "acquire" | "release" | "acq_rel" | "volatile" | "mmio")),
        acquire: matches!(sem, Some("acquire" | "acq_rel")),
        release: matches!(sem, Some("release" | "acq_rel")),
    }
}

/// `ld`, `ldu`
pub(crate) fn load(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let to = u.operand(0)?;
    let (base, offset, window) = b.address(u.operand(1)?, window(u))?;
    Ok(Op::Load(Box::new(Access {
        window,
        base,
        offset,
        bytes: ty.bytes(),
        registers: b.targets(to)?,
        sign_from: if ty.is_signed() { ty.bits() } else { 0 },
        register_bits: b.bits(to, ty),
        order: order(u),
    })))
}

/// `st`
pub(crate) fn store(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let (base, offset, window) = b.address(u.operand(0)?, window(u))?;
    Ok(Op::Store(Box::new(Access {
        window,
        base,
        offset,
        bytes: ty.bytes(),
        registers: b.sources(u.operand(1)?, ty)?,
        sign_from: 0,
        register_bits: ty.bits(),
        order: order(u),
    })))
}

/// The operation that a modifier names.
pub(crate) fn operation(name: &str) -> AtomicOp {
    match name {
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        "exch" => AtomicOp::Exchange,
        "cas" => AtomicOp::CompareAndSwap,
        "inc" => AtomicOp::Increment,
        "dec" => AtomicOp::Decrement,
        "min" => AtomicOp::Min,
        "max" => AtomicOp::Max,
        _ => AtomicOp::Add,
    }
}

/// `atom` and `red`
pub(crate) fn atomic(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    let gives = u.opcode() == "atom";
    let results = if gives { b.targets(u.operand(0)?)? } else { Vec::new() };
    let first = usize::from(gives);
    let (base, offset, window) = b.address(u.operand(first)?, window(u))?;
    let sources = b.sources(u.operand(first + 1)?, ty)?;
    if gives && results.len() != sources.len() {
        return Err("results and sources are vectors of different lengths".into());
    }
    let op = operation(u.get("op").unwrap_or("add"));
    let swap = match op {
        AtomicOp::CompareAndSwap => b.source_at(u, first + 2, ty)?,
        _ => NONE,
    };
    let order = Order { strong: true, ..order(u) };
    Ok(Op::Atomic(Box::new(Atomic { op, ty, window, base, offset, results, sources, swap, order })))
}

/// `createpolicy`: no access looks at the word that it gives.
pub(crate) fn policy(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let word = b.constant(0);
    Ok(Op::Pure { f: pure!(|word: u64| word), to: b.target_at(u, 0)?, from: [word, NONE, NONE, NONE] })
}

/// `prefetch` and other hints with an address: the address is not looked at.
pub(crate) fn hint(_: &mut Build<'_>, u: &Use<'_>) -> Built {
    match u.operand(0)? {
        Operand::Address { .. } => Ok(Op::Nothing),
        _ => Err("an address in brackets is wanted".into()),
    }
}
