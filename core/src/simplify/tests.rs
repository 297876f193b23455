use std::sync::Arc;

use super::*;
use crate::ids::{BlockId, BufferId, LoopId, VarId};
use crate::index::Index;
use crate::stmt::{Annotations, Guard, Iter, IterKind, LoopKind};

fn var(number: u32) -> Index {
    Index::var(VarId(number))
}

fn ranges(extents: &[i64]) -> Ranges {
    (0..).map(VarId).zip(extents.iter().map(|extent| Index::constant(*extent))).collect()
}

/// An element of a buffer, which is not known.
fn data(dtype: DType) -> Expr {
    Expr::load(dtype, BufferId(0), [])
}

fn simple(expr: &Expr) -> Expr {
    simplify_expr(expr, &ranges(&[8, 8])).unwrap_or_else(|| expr.clone())
}

fn compare(op: BinaryOp, a: Index, b: Index) -> Expr {
    Expr::binary(op, Expr::index(a), Expr::index(b))
}

#[test]
fn float_identities_are_exact() {
    let x = data(DType::F32);
    let constant = |value| Expr::float(DType::F32, value);
    let same = [
        Expr::binary(BinaryOp::Mul, x.clone(), constant(1.0)),
        Expr::binary(BinaryOp::Mul, constant(1.0), x.clone()),
        Expr::binary(BinaryOp::Div, x.clone(), constant(1.0)),
        Expr::binary(BinaryOp::Add, x.clone(), constant(-0.0)),
        Expr::binary(BinaryOp::Sub, x.clone(), constant(0.0)),
        Expr::unary(UnaryOp::Neg, Expr::unary(UnaryOp::Neg, x.clone())),
    ];
    for expr in same {
        assert_eq!(simple(&expr), x, "{expr:?}");
    }
    let different = [
        Expr::binary(BinaryOp::Add, x.clone(), constant(0.0)),
        Expr::binary(BinaryOp::Sub, x.clone(), constant(-0.0)),
        Expr::binary(BinaryOp::Sub, constant(0.0), x.clone()),
        Expr::binary(BinaryOp::Mul, x.clone(), constant(0.0)),
        Expr::binary(BinaryOp::Sub, x.clone(), x.clone()),
        Expr::binary(BinaryOp::Eq, x.clone(), x.clone()),
        Expr::unary(UnaryOp::Not, Expr::binary(BinaryOp::Lt, x.clone(), constant(1.0))),
    ];
    for expr in different {
        assert_eq!(simplify_expr(&expr, &Ranges::new()), None, "{expr:?}");
    }
}

#[test]
fn integer_and_boolean_identities() {
    let x = data(DType::I32);
    let constant = |value| Expr::int(DType::I32, value);
    let binary = |op, b: Expr| simple(&Expr::binary(op, x.clone(), b));
    assert_eq!(binary(BinaryOp::Add, constant(0)), x);
    assert_eq!(binary(BinaryOp::Mul, constant(0)), constant(0));
    assert_eq!(binary(BinaryOp::Div, constant(0)), constant(0));
    assert_eq!(binary(BinaryOp::Sub, x.clone()), constant(0));
    assert_eq!(binary(BinaryOp::Le, x.clone()), Expr::bool(true));
    let flag = data(DType::Bool);
    let logic = |op, b: bool| simple(&Expr::binary(op, flag.clone(), Expr::bool(b)));
    assert_eq!(logic(BinaryOp::And, true), flag);
    assert_eq!(logic(BinaryOp::And, false), Expr::bool(false));
    assert_eq!(logic(BinaryOp::Or, true), Expr::bool(true));
    assert_eq!(logic(BinaryOp::Eq, true), flag);
    let select = Expr::select(flag.clone(), Expr::bool(true), Expr::bool(false));
    assert_eq!(simple(&select), flag);
}

#[test]
fn comparisons_of_indices_are_decided_by_their_ranges() {
    let (i, j, dim) = (var(0), var(1), var(9));
    let flat = i.scale(8).add_scaled(&j, 1);
    assert_eq!(simple(&compare(BinaryOp::Lt, flat.clone(), Index::constant(64))), Expr::bool(true));
    assert_eq!(simple(&compare(BinaryOp::Ge, flat.clone(), Index::constant(0))), Expr::bool(true));
    assert_eq!(simple(&compare(BinaryOp::Eq, flat.clone(), Index::constant(64))), Expr::bool(false));
    assert_eq!(simple(&compare(BinaryOp::Lt, dim.clone(), Index::constant(0))), Expr::bool(false));
    let open = compare(BinaryOp::Lt, flat, dim);
    assert_eq!(simple(&open), open);
}

#[test]
fn index_arithmetic_becomes_an_index() {
    let (i, j) = (Expr::index(var(0)), Expr::index(var(1)));
    let written = Expr::binary(
        BinaryOp::Div,
        Expr::binary(BinaryOp::Add, Expr::binary(BinaryOp::Mul, i, Expr::int(DType::I64, 8)), j),
        Expr::int(DType::I64, 8),
    );
    assert_eq!(simple(&written), Expr::index(var(0)));
}

#[test]
fn checks_stay_unless_they_cannot_fail() {
    let bounded =
        |value: Expr, extent| Expr::new(DType::I64, ExprKind::Bounded(value, Index::constant(extent)));
    assert_eq!(simple(&bounded(Expr::index(var(0)), 8)), Expr::index(var(0)));
    let kept = bounded(Expr::index(var(0)), 7);
    assert_eq!(simple(&kept), kept);
    let check = bounded(data(DType::I64), 1);
    let zero = Expr::binary(BinaryOp::Mul, check.clone(), Expr::int(DType::I64, 0));
    assert_eq!(simple(&zero), zero, "the product is zero, but the check must be made");
    let index = Expr::index(Index::value(check).scale(4).offset(1));
    assert_eq!(simple(&index), index, "the value is 1, but the check must be made");
}

fn repeat(number: u32, extent: Index, body: Stmt) -> Stmt {
    Stmt::For(Arc::new(For {
        id: LoopId(number),
        var: VarId(number),
        extent,
        kind: LoopKind::Serial,
        annotations: Annotations::new(),
        body,
    }))
}

fn store(index: Index) -> Stmt {
    Stmt::store(BufferId(0), [index], Expr::float(DType::F32, 1.0))
}

#[test]
fn conditions_are_decided_and_empty_loops_dropped() {
    let inside = compare(BinaryOp::Lt, var(0), Index::constant(8));
    let outside = compare(BinaryOp::Ge, var(0), Index::constant(8));
    let body = Stmt::seq([
        Stmt::when(inside, store(var(0).modulo(8))),
        Stmt::when(outside, store(var(0))),
        repeat(1, Index::constant(0), store(var(1))),
    ]);
    let mut stmt = repeat(0, Index::constant(8), body);
    simplify_stmt(&mut stmt, &Ranges::new());
    assert_eq!(stmt, repeat(0, Index::constant(8), store(var(0))));
    let mut nothing = repeat(0, Index::constant(8), Stmt::when(Expr::bool(false), store(var(0))));
    simplify_stmt(&mut nothing, &Ranges::new());
    assert!(nothing.is_nothing());
}

#[test]
fn conditionals_that_make_no_difference_are_dropped() {
    let condition = || compare(BinaryOp::Lt, var(0), Index::constant(5));
    let branches = |then: Stmt, otherwise: Stmt| {
        let otherwise = Some(otherwise);
        repeat(0, Index::constant(8), Stmt::If(Arc::new(If { condition: condition(), then, otherwise })))
    };
    let simple = |mut stmt: Stmt| {
        simplify_stmt(&mut stmt, &Ranges::new());
        stmt
    };
    let empty = || repeat(1, Index::constant(4), Stmt::nothing());
    assert!(simple(branches(empty(), empty())).is_nothing());
    assert_eq!(simple(branches(store(var(0)), store(var(0)))), repeat(0, Index::constant(8), store(var(0))));
    let not = compare(BinaryOp::Ge, var(0), Index::constant(5));
    let guarded =
        |condition: Expr| simple(repeat(0, Index::constant(8), Stmt::when(condition, store(var(0)))));
    assert_eq!(simple(branches(store(var(0)), empty())), guarded(condition()));
    assert_eq!(simple(branches(empty(), store(var(0)))), guarded(not));
}

#[test]
fn unchanged_statements_stay_shared() {
    let stmt = repeat(0, Index::constant(8), store(var(0)));
    let mut simplified = stmt.clone();
    simplify_stmt(&mut simplified, &Ranges::new());
    let (Stmt::For(before), Stmt::For(after)) = (&stmt, &simplified) else { panic!("{simplified:?}") };
    assert!(Arc::ptr_eq(before, after));
}

#[test]
fn guards_that_always_hold_are_dropped() {
    let joined = var(0).scale(4).add_scaled(&var(1), 1);
    let block = |guards: Vec<Guard>, binding: Index| {
        Stmt::Block(Arc::new(Block {
            id: BlockId(0),
            name: "b".into(),
            iters: vec![Iter {
                var: VarId(2),
                extent: Index::constant(12),
                kind: IterKind::Spatial,
                binding,
            }],
            guards,
            init: None,
            body: store(var(2).modulo(12)),
            annotations: Annotations::new(),
            location: None,
        }))
    };
    let guard = |bound| Guard { index: joined.clone(), bound: Index::constant(bound) };
    let nest = |inner| repeat(0, Index::constant(3), repeat(1, Index::constant(4), inner));
    let mut stmt = nest(block(vec![guard(12), guard(11)], joined.clone()));
    simplify_stmt(&mut stmt, &Ranges::new());
    let Stmt::For(outer) = &stmt else { panic!("{stmt:?}") };
    let Stmt::For(inner) = &outer.body else { panic!("{stmt:?}") };
    let Stmt::Block(block) = &inner.body else { panic!("{stmt:?}") };
    assert_eq!(block.guards, [guard(11)]);
    assert_eq!(block.body, store(var(2)));
}
