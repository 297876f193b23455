//! The condition that a thread is the first lane of its warp.

use tilewright_core::expr::{BinaryOp, Expr, ExprKind};
use tilewright_core::ids::VarId;
use tilewright_core::stmt::{If, Stmt};

use super::{LANES, accesses_fragment};
use crate::emit::{Generator, Outcome, unsupported};

impl Generator<'_> {
    /// A conditional around statements of whole warps, without the condition that the thread is the first lane. The answer is
    /// `false` where there are no such statements inside.
    pub(in crate::emit) fn conditional_of_warp(&mut self, node: &If) -> Outcome<bool> {
        let Some(lane) = self.lane else { return Ok(false) };
        if !accesses_fragment(self.program, &node.then) || node.otherwise.is_some() {
            return Ok(false);
        }
        let mut parts = Vec::new();
        conjuncts(&node.condition, &mut parts);
        let (first, rest): (Vec<Expr>, Vec<Expr>) =
            parts.into_iter().partition(|part| holds_in_first(part, lane));
        if rest.iter().any(|part| mentions(part, lane)) {
            let what = format!(
                "`{}`, where a condition on the lane is around an access to a fragment",
                self.program.name
            );
            return Err(unsupported(what));
        }
        let Some(condition) = first.into_iter().next() else { return Ok(false) };
        let inside = rest.into_iter().rev().fold(node.then.clone(), |inside, part| Stmt::when(part, inside));
        let before = self.first_lane.replace(condition);
        let outcome = self.stmt(&inside);
        self.first_lane = before;
        outcome.map(|()| true)
    }

    /// A statement of one thread among those of a warp, under the condition that the thread is the first lane.
    pub(in crate::emit) fn by_first_lane(&mut self, condition: Expr, stmt: &Stmt) -> Outcome<()> {
        let outcome = self.stmt(&Stmt::when(condition.clone(), stmt.clone()));
        self.first_lane = Some(condition);
        outcome
    }
}

fn conjuncts(condition: &Expr, parts: &mut Vec<Expr>) {
    match condition.kind() {
        ExprKind::Binary(BinaryOp::And, a, b) => {
            conjuncts(a, parts);
            conjuncts(b, parts);
        }
        _ => parts.push(condition.clone()),
    }
}

fn mentions(condition: &Expr, lane: VarId) -> bool {
    let mut mentions = false;
    tilewright_core::visit::for_each_var(condition, &mut |var| mentions |= var == lane);
    mentions
}

/// Whether a comparison holds in the first lane of a warp and in no other one.
fn holds_in_first(condition: &Expr, lane: VarId) -> bool {
    let ExprKind::Binary(op, a, b) = condition.kind() else { return false };
    let value = |side: &Expr, number: i64| match side.kind() {
        ExprKind::Index(index) => index.evaluate(&|var| (var == lane).then_some(number)),
        ExprKind::Constant(tilewright_core::expr::Constant::Int(value)) => Some(*value),
        _ => None,
    };
    (0..LANES).all(|number| {
        let (Some(a), Some(b)) = (value(a, number), value(b, number)) else { return false };
        let holds = match op {
            BinaryOp::Lt => a < b,
            BinaryOp::Le => a <= b,
            BinaryOp::Gt => a > b,
            BinaryOp::Ge => a >= b,
            BinaryOp::Eq => a == b,
            _ => return false,
        };
        holds == (number == 0)
    })
}
