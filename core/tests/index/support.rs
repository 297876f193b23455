//! Helpers that the property tests share: their configuration, an evaluator that is independent of the
//! crate's own, and random index trees.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind, UnaryOp};
use tilewright_core::ids::VarId;
use tilewright_core::index::{Base, Index, NO_MODULUS, Ranges};

/// The same cases in every run; `TILEWRIGHT_CASES` sets how many.
pub(crate) fn config() -> ProptestConfig {
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(256);
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x7469_6c65),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The value of an index where variable `VarId(v)` has the value `point[v]`.
pub(crate) fn evaluate(index: &Index, point: &[i64]) -> i64 {
    index.terms().iter().fold(index.constant_part(), |sum, term| {
        let base = match &term.digit.base {
            Base::Var(VarId(var)) => point[*var as usize],
            Base::Lane(_) => panic!("a lane has no single value"),
            Base::Sum(sum) => evaluate(sum, point),
            Base::Value(value) => evaluate_expr(value, point),
        };
        let quotient = base.div_euclid(term.digit.divisor);
        let digit =
            if term.digit.modulus == NO_MODULUS { quotient } else { quotient.rem_euclid(term.digit.modulus) };
        sum + term.coefficient * digit
    })
}

/// The value of an `i64` or `bool` expression without loads.
pub(crate) fn evaluate_expr(expr: &Expr, point: &[i64]) -> i64 {
    let of = |operand: &Expr| evaluate_expr(operand, point);
    match expr.kind() {
        ExprKind::Constant(Constant::Int(value)) => *value,
        ExprKind::Index(index) => evaluate(index, point),
        ExprKind::Unary(UnaryOp::Neg, a) => of(a).wrapping_neg(),
        ExprKind::Unary(UnaryOp::Not, a) if expr.dtype() == tilewright_core::dtype::DType::Bool => 1 - of(a),
        ExprKind::Unary(UnaryOp::Not, a) => !of(a),
        ExprKind::Binary(op, a, b) => evaluate_binary(*op, of(a), of(b)),
        ExprKind::Select(condition, a, b) => {
            if of(condition) != 0 {
                of(a)
            } else {
                of(b)
            }
        }
        ExprKind::Bounded(a, extent) => {
            let value = of(a);
            if (0..evaluate(extent, point)).contains(&value) { value } else { 0 }
        }
        other => panic!("no value for {other:?}"),
    }
}

fn evaluate_binary(op: BinaryOp, a: i64, b: i64) -> i64 {
    match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div if b == 0 => 0,
        BinaryOp::Rem if b == 0 => 0,
        BinaryOp::Div => a.wrapping_div(b),
        BinaryOp::Rem => a.wrapping_rem(b),
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::Eq => i64::from(a == b),
        BinaryOp::Ne => i64::from(a != b),
        BinaryOp::Lt => i64::from(a < b),
        BinaryOp::Le => i64::from(a <= b),
        BinaryOp::Gt => i64::from(a > b),
        BinaryOp::Ge => i64::from(a >= b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        _ => panic!("no shifts or functions in these tests"),
    }
}

/// An index as it may be written, before any canonical form.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Var(usize),
    Constant(i64),
    Add(Box<Tree>, Box<Tree>),
    Sub(Box<Tree>, Box<Tree>),
    Scale(Box<Tree>, i64),
    Div(Box<Tree>, i64),
    Mod(Box<Tree>, i64),
    Mul(Box<Tree>, Box<Tree>),
    Min(Box<Tree>, Box<Tree>),
    Max(Box<Tree>, Box<Tree>),
}

impl Tree {
    /// The value by the definition of each operation.
    pub(crate) fn value(&self, point: &[i64]) -> i64 {
        match self {
            Tree::Var(var) => point[*var],
            Tree::Constant(value) => *value,
            Tree::Add(a, b) => a.value(point) + b.value(point),
            Tree::Sub(a, b) => a.value(point) - b.value(point),
            Tree::Scale(a, factor) => a.value(point) * factor,
            Tree::Div(a, divisor) => a.value(point).div_euclid(*divisor),
            Tree::Mod(a, modulus) => a.value(point).rem_euclid(*modulus),
            Tree::Mul(a, b) => a.value(point) * b.value(point),
            Tree::Min(a, b) => a.value(point).min(b.value(point)),
            Tree::Max(a, b) => a.value(point).max(b.value(point)),
        }
    }

    /// The canonical index.
    pub(crate) fn index(&self) -> Index {
        match self {
            Tree::Var(var) => Index::var(VarId(*var as u32)),
            Tree::Constant(value) => Index::constant(*value),
            Tree::Add(a, b) => &a.index() + &b.index(),
            Tree::Sub(a, b) => &a.index() - &b.index(),
            Tree::Scale(a, factor) => a.index().scale(*factor),
            Tree::Div(a, divisor) => a.index().floor_div(*divisor),
            Tree::Mod(a, modulus) => a.index().modulo(*modulus),
            Tree::Mul(a, b) => a.index().multiply(&b.index()),
            Tree::Min(a, b) => a.index().minimum(&b.index()),
            Tree::Max(a, b) => a.index().maximum(&b.index()),
        }
    }
}

fn leaf(vars: usize) -> impl Strategy<Value = Tree> + Clone {
    prop_oneof![4 => (0..vars).prop_map(Tree::Var), 1 => (-9i64..=9).prop_map(Tree::Constant)]
}

fn divisor() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![3 => prop::sample::select(vec![2i64, 4, 8, 16]), 1 => 1i64..=12]
}

fn factor() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![3 => prop::sample::select(vec![2i64, 4, 8, 16, -1, 3]), 1 => -12i64..=12]
}

/// Sums, multiples, quotients and remainders of `vars` variables.
pub(crate) fn affine_tree(vars: usize) -> impl Strategy<Value = Tree> {
    leaf(vars).prop_recursive(5, 24, 2, |inner| {
        let pair = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            3 => pair().prop_map(|(a, b)| Tree::Add(a, b)),
            1 => pair().prop_map(|(a, b)| Tree::Sub(a, b)),
            3 => (inner.clone().prop_map(Box::new), factor()).prop_map(|(a, f)| Tree::Scale(a, f)),
            2 => (inner.clone().prop_map(Box::new), divisor()).prop_map(|(a, d)| Tree::Div(a, d)),
            2 => (inner.clone().prop_map(Box::new), divisor()).prop_map(|(a, m)| Tree::Mod(a, m)),
        ]
    })
}

/// As [`affine_tree`], with products, minima and maxima as well.
pub(crate) fn general_tree(vars: usize) -> impl Strategy<Value = Tree> {
    affine_tree(vars).prop_recursive(2, 32, 2, |inner| {
        let pair = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            2 => pair().prop_map(|(a, b)| Tree::Add(a, b)),
            1 => pair().prop_map(|(a, b)| Tree::Mul(a, b)),
            1 => pair().prop_map(|(a, b)| Tree::Min(a, b)),
            1 => pair().prop_map(|(a, b)| Tree::Max(a, b)),
            1 => (inner.clone().prop_map(Box::new), divisor()).prop_map(|(a, d)| Tree::Div(a, d)),
            1 => (inner.clone().prop_map(Box::new), divisor()).prop_map(|(a, m)| Tree::Mod(a, m)),
        ]
    })
}

/// The ranges of variables `0..extents.len()` with constant extents.
pub(crate) fn constant_ranges(extents: &[i64]) -> Ranges {
    extents.iter().enumerate().map(|(var, extent)| (VarId(var as u32), Index::constant(*extent))).collect()
}

/// Every point of a box, the last coordinate fastest.
pub(crate) fn points(extents: &[i64]) -> Vec<Vec<i64>> {
    extents.iter().fold(vec![Vec::new()], |points, extent| {
        let longer = |point: Vec<i64>| {
            (0..*extent).map(move |value| point.iter().copied().chain([value]).collect::<Vec<i64>>())
        };
        points.into_iter().flat_map(longer).collect()
    })
}
