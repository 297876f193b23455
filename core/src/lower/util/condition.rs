//! Conditions on loops and dimensions, split into comparisons.
//!
//! A comparison of indices is kept as one difference that is negative exactly when it holds, so that
//! `a < b`, `b > a` and `a - b + 1 <= 0` are handled alike.

use crate::analysis::condition::is_movable;
use crate::expr::{BinaryOp, Expr};
use crate::index::{Index, Ranges, Term};
use crate::stmt::{For, If, Stmt};

/// The condition that an index is negative, written with positive terms on both sides.
pub(in crate::lower) fn is_negative(index: &Index) -> Expr {
    let positive = |term: &&Term| term.coefficient > 0;
    let constant = index.constant_part();
    let left = Index::from_terms(index.terms().iter().filter(positive).cloned(), constant.max(0));
    let right = &left - index;
    Expr::binary(BinaryOp::Lt, Expr::index(left), Expr::index(right))
}

/// The conditional, when the statement only guards another one by a movable condition.
pub(in crate::lower) fn guard(stmt: &Stmt) -> Option<&If> {
    match stmt {
        Stmt::If(node) if node.otherwise.is_none() && is_movable(&node.condition) => Some(node),
        _ => None,
    }
}

/// The conditions of the guards around a statement, outermost first, and the statement.
pub(in crate::lower) fn peel_guards(stmt: &Stmt) -> (Vec<Expr>, &Stmt) {
    let (mut conditions, mut body) = (Vec::new(), stmt);
    while let Some(node) = guard(body) {
        conditions.push(node.condition.clone());
        body = &node.then;
    }
    (conditions, body)
}

/// A statement under guards, the first outermost.
pub(in crate::lower) fn under_guards(
    conditions: impl IntoIterator<Item = Expr, IntoIter: DoubleEndedIterator>,
    body: Stmt,
) -> Stmt {
    conditions.into_iter().rev().fold(body, |body, condition| Stmt::when(condition, body))
}

/// Whether a loop has an iteration whenever it is reached, with the loops around it running. A loop that
/// may have none is a guard in disguise: the statements of its body may only run there.
pub(in crate::lower) fn always_runs(node: &For, around: &Ranges) -> bool {
    node.extent.offset(-1).is_provably_nonnegative(around)
}

/// The statement under the condition that a loop has an iteration, unless it always has one.
pub(in crate::lower) fn when_runs(node: &For, around: &Ranges, stmt: Stmt) -> Stmt {
    if always_runs(node, around) { stmt } else { Stmt::when(is_negative(&node.extent.scale(-1)), stmt) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::condition::difference;
    use crate::dtype::DType;
    use crate::ids::VarId;

    fn at(index: &Index, values: [i64; 2]) -> i64 {
        let bound = index.substitute(&|var| Some(Index::constant(values[var.0 as usize])));
        bound.as_constant().expect("all variables are replaced")
    }

    #[test]
    fn orderings_hold_exactly_where_their_difference_is_negative() {
        let (x, y) = (Index::var(VarId(0)), Index::var(VarId(1)));
        let (left, right) = (x.scale(2).offset(1), &y.scale(3) - &x);
        let holds = |op: BinaryOp, a: i64, b: i64| match op {
            BinaryOp::Lt => a < b,
            BinaryOp::Le => a <= b,
            BinaryOp::Gt => a > b,
            _ => a >= b,
        };
        for op in [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge] {
            let condition = Expr::binary(op, Expr::index(left.clone()), Expr::index(right.clone()));
            let found = difference(&condition).expect("an ordering of indices");
            let again = difference(&is_negative(&found)).expect("an ordering of indices");
            assert_eq!(found, again, "{op:?}");
            for values in (0..5).flat_map(|x| (0..5).map(move |y| [x, y])) {
                let expected = holds(op, at(&left, values), at(&right, values));
                assert_eq!(at(&found, values) < 0, expected, "{op:?} at {values:?}");
            }
        }
    }

    #[test]
    fn what_reads_memory_or_orders_nothing_has_no_difference() {
        let element = Expr::load(DType::I64, crate::ids::BufferId(0), [Index::constant(0)]);
        let one = Expr::index(Index::constant(1));
        assert_eq!(difference(&Expr::binary(BinaryOp::Lt, element, one.clone())), None);
        assert_eq!(difference(&Expr::binary(BinaryOp::Eq, one.clone(), one)), None);
    }

    #[test]
    fn a_loop_that_may_be_empty_is_a_guard() {
        let node = |extent: Index| For {
            id: crate::ids::LoopId(0),
            var: VarId(1),
            extent,
            kind: crate::stmt::LoopKind::Serial,
            annotations: Default::default(),
            body: Stmt::nothing(),
        };
        let around = Ranges::from_iter([(VarId(0), Index::constant(3))]);
        let tile = |size: i64| Index::constant(4).minimum(&Index::var(VarId(0)).scale(-4).offset(size));
        assert!(always_runs(&node(Index::constant(2)), &around));
        assert!(always_runs(&node(tile(10)), &around), "10 iterations in tiles of 4: the last has 2");
        assert!(!always_runs(&node(tile(8)), &around), "8 iterations in three tiles of 4: the last has none");
    }
}
