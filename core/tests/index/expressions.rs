//! Simplification of expressions against their evaluation.

use proptest::prelude::*;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Expr, ExprKind, UnaryOp};
use tilewright_core::index::Index;
use tilewright_core::simplify::simplify_expr;

use super::support::{affine_tree, config, constant_ranges, evaluate_expr, points};

const VARS: usize = 3;

/// An `i64` value whose affine parts may still be written as operations.
fn integer() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        3 => affine_tree(VARS).prop_map(|tree| Expr::index(tree.index())),
        1 => (-3i64..=6).prop_map(|value| Expr::int(DType::I64, value)),
        1 => (0u32..VARS as u32).prop_map(|var| Expr::index(Index::var(tilewright_core::ids::VarId(var)))),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let op = prop::sample::select(vec![
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::Div,
            BinaryOp::Rem,
            BinaryOp::Min,
            BinaryOp::Max,
            BinaryOp::And,
            BinaryOp::Xor,
        ]);
        prop_oneof![
            4 => (op, inner.clone(), inner.clone()).prop_map(|(op, a, b)| Expr::binary(op, a, b)),
            1 => inner.clone().prop_map(|a| Expr::unary(UnaryOp::Neg, a)),
            1 => inner.clone().prop_map(|a| Expr::unary(UnaryOp::Not, a)),
            1 => (condition(inner.clone()), inner.clone(), inner.clone())
                .prop_map(|(condition, a, b)| Expr::select(condition, a, b)),
            1 => (inner, 1i64..=6).prop_map(|(a, extent)| {
                Expr::new(DType::I64, ExprKind::Bounded(a, Index::constant(extent)))
            }),
        ]
    })
}

/// A boolean expression over some integers.
fn condition(integer: impl Strategy<Value = Expr> + Clone + 'static) -> impl Strategy<Value = Expr> {
    let comparison = prop::sample::select(vec![
        BinaryOp::Eq,
        BinaryOp::Ne,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::Gt,
        BinaryOp::Ge,
    ]);
    let leaf = prop_oneof![
        4 => (comparison, integer.clone(), integer).prop_map(|(op, a, b)| Expr::binary(op, a, b)),
        1 => any::<bool>().prop_map(Expr::bool),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        let logic = prop::sample::select(vec![
            BinaryOp::And,
            BinaryOp::Or,
            BinaryOp::Xor,
            BinaryOp::Eq,
            BinaryOp::Ne,
        ]);
        prop_oneof![
            3 => (logic, inner.clone(), inner.clone()).prop_map(|(op, a, b)| Expr::binary(op, a, b)),
            1 => inner.prop_map(|a| Expr::unary(UnaryOp::Not, a)),
        ]
    })
}

/// The number of failed checks that evaluating an expression reports.
fn reports(expr: &Expr, point: &[i64]) -> u32 {
    match expr.kind() {
        ExprKind::Bounded(a, extent) => {
            let value = evaluate_expr(a, point);
            let failed = !(0..super::support::evaluate(extent, point)).contains(&value);
            u32::from(failed) + reports(a, point)
        }
        ExprKind::Select(condition, a, b) => {
            let chosen = if evaluate_expr(condition, point) != 0 { a } else { b };
            reports(condition, point) + reports(chosen, point)
        }
        _ => expr.operands().into_iter().map(|operand| reports(operand, point)).sum(),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn simplification_of_integers_keeps_the_value(
        expr in integer(), extents in prop::collection::vec(1i64..=5, VARS),
    ) {
        check(&expr, &extents)?;
    }

    #[test]
    fn simplification_of_conditions_keeps_the_value(
        expr in condition(integer().boxed()), extents in prop::collection::vec(1i64..=5, VARS),
    ) {
        check(&expr, &extents)?;
    }
}

fn check(expr: &Expr, extents: &[i64]) -> Result<(), TestCaseError> {
    let ranges = constant_ranges(extents);
    let simple = simplify_expr(expr, &ranges);
    let Some(simple) = simple else { return Ok(()) };
    prop_assert_ne!(&simple, expr, "a change that changes nothing");
    prop_assert_eq!(simple.dtype(), expr.dtype());
    for point in points(extents) {
        prop_assert_eq!(
            evaluate_expr(&simple, &point),
            evaluate_expr(expr, &point),
            "{:?} became {:?} at {:?}",
            expr,
            simple,
            point
        );
        let (before, after) = (reports(expr, &point) > 0, reports(&simple, &point) > 0);
        prop_assert_eq!(before, after, "checks of {:?} in {:?} at {:?}", expr, simple, point);
    }
    Ok(())
}
