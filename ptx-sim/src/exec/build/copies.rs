//! Builders of asynchronous copies and mbarrier operations.

use crate::exec::build::memory::window;
use crate::exec::build::{Build, Use};
use crate::exec::op::{CopyAsync, Mbarrier, MbarrierOp, NONE, Op, Window};
use crate::isa::types::Type;
use crate::program::{Literal, Operand};

type Built = Result<Op, String>;

fn constant(operand: &Operand) -> Option<u64> {
    match operand {
        Operand::Literal(Literal::Integer(value)) => Some(*value),
        _ => None,
    }
}

/// `cp.async`
pub(crate) fn copy(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (to, to_offset, _) = b.address(u.operand(0)?, Window::Shared)?;
    let (from, from_offset, from_window) = b.address(u.operand(1)?, Window::Global)?;
    let bytes = constant(u.operand(2)?).ok_or("the size has to be a constant")?;
    let right = if u.get("cop") == Some("cg") { bytes == 16 } else { matches!(bytes, 4 | 8 | 16) };
    if !right {
        return Err(format!("{bytes} bytes cannot be copied: 4, 8 or 16 by .ca, 16 by .cg"));
    }
    let (mut source_bytes, mut ignore) = (NONE, (NONE, false));
    // The last operand of a form with a hint is the cache policy.
    let sizes = u.operands.len() - usize::from(u.has("L2::cache_hint"));
    if let Some(operand) = u.operands[..sizes].get(3) {
        if is_predicate(b, operand) {
            ignore = b.predicate(operand)?;
        } else {
            source_bytes = b.source(operand, Type::U32)?;
        }
    }
    Ok(Op::CopyAsync(Box::new(CopyAsync {
        to,
        to_offset,
        from_window,
        from,
        from_offset,
        bytes: bytes as u32,
        source_bytes,
        ignore,
    })))
}

fn is_predicate(b: &Build<'_>, operand: &Operand) -> bool {
    match operand {
        Operand::Negated(_) => true,
        Operand::Register(id) => b.function.register_type(*id) == Type::Pred,
        _ => false,
    }
}

/// `cp.async.commit_group`
pub(crate) fn commit(_: &mut Build<'_>, _: &Use<'_>) -> Built {
    Ok(Op::CommitCopies)
}

/// `cp.async.wait_group` and `cp.async.wait_all`
pub(crate) fn wait(_: &mut Build<'_>, u: &Use<'_>) -> Built {
    match u.operands.first() {
        None => Ok(Op::WaitCopies { left: 0, all: true }),
        Some(operand) => {
            let left = constant(operand).ok_or("the number of groups has to be a constant")?;
            Ok(Op::WaitCopies { left: u32::try_from(left).unwrap_or(u32::MAX), all: false })
        }
    }
}

/// `cp.async.mbarrier.arrive`
pub(crate) fn copy_arrive(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (base, offset, window) = b.address(u.operand(0)?, window(u))?;
    let op = MbarrierOp::CopyArrive { counted: u.has("noinc") };
    Ok(mbarrier(op, window, base, offset, NONE, NONE, false))
}

fn mbarrier(
    op: MbarrierOp,
    window: Window,
    base: u32,
    offset: i64,
    result: u32,
    source: u32,
    waits: bool,
) -> Op {
    Op::Mbarrier(Box::new(Mbarrier { op, window, base, offset, result, source, waits }))
}

/// `mbarrier.init`, `.inval`, `.expect_tx`, `.complete_tx`
pub(crate) fn manage(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (base, offset, window) = b.address(u.operand(0)?, window(u))?;
    let source = match u.operands.get(1) {
        Some(operand) => b.source(operand, Type::U32)?,
        None => NONE,
    };
    let op = match u.get("op") {
        Some("init") => MbarrierOp::Init,
        Some("inval") => MbarrierOp::Invalidate,
        Some("expect_tx") => MbarrierOp::ExpectTransaction,
        _ => MbarrierOp::CompleteTransaction,
    };
    Ok(mbarrier(op, window, base, offset, NONE, source, false))
}

/// `mbarrier.arrive` and `mbarrier.arrive_drop`
pub(crate) fn arrive(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let result = b.target_at(u, 0)?;
    let (base, offset, window) = b.address(u.operand(1)?, window(u))?;
    let source = match u.operands.get(2) {
        Some(operand) => b.source(operand, Type::U32)?,
        None => NONE,
    };
    let expect = u.has("expect_tx");
    if expect && source == NONE {
        return Err("the number of expected bytes is missing".into());
    }
    let op = MbarrierOp::Arrive { expect, drop: u.get("op") == Some("arrive_drop") };
    Ok(mbarrier(op, window, base, offset, result, source, false))
}

/// `mbarrier.test_wait` and `mbarrier.try_wait`
pub(crate) fn test(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let result = b.target_at(u, 0)?;
    let (base, offset, window) = b.address(u.operand(1)?, window(u))?;
    let (op, ty) =
        if u.has("parity") { (MbarrierOp::TestParity, Type::B32) } else { (MbarrierOp::Test, Type::B64) };
    let source = b.source_at(u, 2, ty)?;
    Ok(mbarrier(op, window, base, offset, result, source, u.get("op") == Some("try_wait")))
}

/// `mbarrier.pending_count`
pub(crate) fn pending(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let result = b.target_at(u, 0)?;
    let source = b.source_at(u, 1, Type::B64)?;
    Ok(mbarrier(MbarrierOp::PendingCount, Window::Shared, NONE, 0, result, source, false))
}
