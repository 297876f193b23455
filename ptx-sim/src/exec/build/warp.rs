//! Builders of instructions between the lanes of a warp.

use crate::exec::build::memory::operation;
use crate::exec::build::{Build, Use};
use crate::exec::op::{NONE, Op, Shuffle, Vote};
use crate::isa::types::Type;
use crate::program::Operand;

type Built = Result<Op, String>;

/// `shfl.sync`
pub(crate) fn shuffle(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let mode = match u.get("mode") {
        Some("up") => Shuffle::Up,
        Some("down") => Shuffle::Down,
        Some("bfly") => Shuffle::Butterfly,
        _ => Shuffle::Index,
    };
    let (to, predicate) = match u.operand(0)? {
        Operand::Pair(to, predicate) => (b.target(to)?, b.target(predicate)?),
        operand => (b.target(operand)?, NONE),
    };
    Ok(Op::Shuffle {
        mode,
        to,
        predicate,
        from: b.source_at(u, 1, Type::B32)?,
        by: b.source_at(u, 2, Type::B32)?,
        clamp: b.source_at(u, 3, Type::B32)?,
        members: b.source_at(u, 4, Type::B32)?,
    })
}

/// `vote.sync`
pub(crate) fn vote(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let vote = match u.get("mode") {
        Some("all") => Vote::All,
        Some("any") => Vote::Any,
        Some("uni") => Vote::Uniform,
        _ => Vote::Ballot,
    };
    let (from, negated) = b.predicate(u.operand(1)?)?;
    Ok(Op::Vote { vote, to: b.target_at(u, 0)?, from, negated, members: b.source_at(u, 2, Type::B32)? })
}

/// `match.sync`
pub(crate) fn matching(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (to, predicate) = b.pair(u.operand(0)?)?;
    let from = b.source_at(u, 1, u.ty("t")?)?;
    let members = b.source_at(u, 2, Type::B32)?;
    Ok(Op::Match { all: u.get("mode") == Some("all"), to, predicate, from, members })
}

/// `redux.sync`
pub(crate) fn reduce(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let ty = u.ty("t")?;
    Ok(Op::Reduce {
        op: operation(u.get("op").unwrap_or("add")),
        ty,
        to: b.target_at(u, 0)?,
        from: b.source_at(u, 1, ty)?,
        members: b.source_at(u, 2, Type::B32)?,
    })
}

/// `elect.sync`
pub(crate) fn elect(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let (to, predicate) = match u.operand(0)? {
        Operand::Pair(to, predicate) => (b.target(to)?, b.target(predicate)?),
        _ => return Err("the destination has to be `d|p`".into()),
    };
    Ok(Op::Elect { to, predicate, members: b.source_at(u, 1, Type::B32)? })
}

/// `activemask`
pub(crate) fn active(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    Ok(Op::ActiveMask { to: b.target_at(u, 0)? })
}
