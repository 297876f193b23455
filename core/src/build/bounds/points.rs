//! Enumerates small domains where a proof fails.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind, UnaryOp};
use crate::ids::VarId;
use crate::index::{Base, Index, NO_MODULUS, Ranges};

/// How many points may be looked at.
const MAX_POINTS: i64 = 1 << 16;

/// The values of variables at one point.
pub(super) type Point = FxHashMap<VarId, i64>;

/// The result of an enumeration.
pub(super) enum Verdict {
    /// The index stays inside wherever it is evaluated.
    Inside,
    /// At this point it is evaluated and lies outside, with this value.
    Outside(Vec<(VarId, i64)>, i64),
    /// There are too many points, or conditions or indices depend on data or on open dimensions.
    Unknown,
}

/// Looks for a point that satisfies the conditions and at which `index` is outside `0..extent`.
pub(super) fn search(index: &Index, extent: &Index, conditions: &[(Expr, bool)], ranges: &Ranges) -> Verdict {
    let mut vars = BTreeSet::new();
    index.for_each_var(&mut |var| {
        vars.insert(var);
    });
    for (condition, _) in conditions {
        crate::visit::for_each_var(condition, &mut |var| {
            vars.insert(var);
        });
    }
    let Some(extent) = extent.as_constant() else { return Verdict::Unknown };
    let mut sizes: Vec<(VarId, i64)> = Vec::new();
    for var in vars {
        match ranges.constant_extent(var) {
            Some(size) => sizes.push((var, size)),
            // A run-time scalar makes a condition uncertain; an open dimension has no size.
            None => continue,
        }
    }
    let count = sizes.iter().try_fold(1i64, |count, (_, size)| count.checked_mul(*size));
    match count {
        Some(count) if count <= MAX_POINTS => search_all(index, extent, conditions, &sizes),
        _ => search_corners(index, extent, conditions, &sizes),
    }
}

fn search_all(index: &Index, extent: i64, conditions: &[(Expr, bool)], sizes: &[(VarId, i64)]) -> Verdict {
    let mut point: Vec<i64> = vec![0; sizes.len()];
    let mut uncertain = false;
    if sizes.iter().any(|(_, size)| *size < 1) {
        return Verdict::Inside;
    }
    loop {
        match judge(index, extent, conditions, sizes, &point) {
            Verdict::Inside => {}
            Verdict::Unknown => uncertain = true,
            outside => return outside,
        }
        let advanced = (0..point.len()).rev().find(|&at| point[at] + 1 < sizes[at].1);
        let Some(at) = advanced else {
            return if uncertain { Verdict::Unknown } else { Verdict::Inside };
        };
        point[at] += 1;
        point[at + 1..].fill(0);
    }
}

/// Only the extreme values of each variable: finds most violations, and proves nothing.
fn search_corners(
    index: &Index,
    extent: i64,
    conditions: &[(Expr, bool)],
    sizes: &[(VarId, i64)],
) -> Verdict {
    for corner in 0..1u32 << sizes.len().min(10) {
        let value =
            |(at, (_, size)): (usize, &(VarId, i64))| if corner >> at & 1 == 1 { size - 1 } else { 0 };
        let point: Vec<i64> = sizes.iter().enumerate().map(value).collect();
        let outside = judge(index, extent, conditions, sizes, &point);
        if matches!(outside, Verdict::Outside(..)) {
            return outside;
        }
    }
    Verdict::Unknown
}

fn judge(
    index: &Index,
    extent: i64,
    conditions: &[(Expr, bool)],
    sizes: &[(VarId, i64)],
    point: &[i64],
) -> Verdict {
    let values: Point = sizes.iter().zip(point).map(|((var, _), value)| (*var, *value)).collect();
    let mut certain = true;
    for (condition, holds) in conditions {
        match evaluate(condition, &values) {
            Some(value) if (value != 0) != *holds => return Verdict::Inside,
            Some(_) => {}
            None => certain = false,
        }
    }
    match evaluate_index(index, &values) {
        Some(value) if (0..extent).contains(&value) => Verdict::Inside,
        Some(value) if certain => {
            Verdict::Outside(sizes.iter().zip(point).map(|((var, _), value)| (*var, *value)).collect(), value)
        }
        _ => Verdict::Unknown,
    }
}

/// The value of an index at a point, unless it depends on data or overflows.
fn evaluate_index(index: &Index, point: &Point) -> Option<i64> {
    index.terms().iter().try_fold(index.constant_part(), |sum, term| {
        let base = match &term.digit.base {
            Base::Var(var) => *point.get(var)?,
            Base::Lane(_) => return None,
            Base::Sum(inner) => evaluate_index(inner, point)?,
            Base::Value(value) => evaluate(value, point)?,
        };
        let quotient = base.div_euclid(term.digit.divisor);
        let digit =
            if term.digit.modulus == NO_MODULUS { quotient } else { quotient.rem_euclid(term.digit.modulus) };
        sum.checked_add(digit.checked_mul(term.coefficient)?)
    })
}

/// The value of an integer or logical expression at a point, unless it depends on data or overflows.
fn evaluate(expr: &Expr, point: &Point) -> Option<i64> {
    let dtype = expr.dtype();
    if dtype.is_float() {
        return None;
    }
    let value = match expr.kind() {
        ExprKind::Constant(Constant::Int(value)) => *value,
        ExprKind::Index(index) => evaluate_index(index, point)?,
        ExprKind::Unary(UnaryOp::Not, a) if dtype == DType::Bool => i64::from(evaluate(a, point)? == 0),
        ExprKind::Select(condition, a, b) => {
            evaluate(if evaluate(condition, point)? != 0 { a } else { b }, point)?
        }
        ExprKind::Cast(a) => evaluate(a, point)?,
        ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) if dtype == DType::Bool => {
            let decisive = i64::from(*op == BinaryOp::Or);
            match (evaluate(a, point), evaluate(b, point)) {
                (Some(value), _) | (_, Some(value)) if value == decisive => decisive,
                (Some(_), Some(_)) => 1 - decisive,
                _ => return None,
            }
        }
        ExprKind::Binary(op, a, b) => binary(*op, evaluate(a, point)?, evaluate(b, point)?)?,
        _ => return None,
    };
    // Values that would wrap around in a narrow type are not followed.
    let (least, greatest) = dtype.int_range()?;
    (least..=greatest).contains(&i128::from(value)).then_some(value)
}

fn binary(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    match op {
        BinaryOp::Eq => Some(i64::from(a == b)),
        BinaryOp::Ne => Some(i64::from(a != b)),
        BinaryOp::Lt => Some(i64::from(a < b)),
        BinaryOp::Le => Some(i64::from(a <= b)),
        BinaryOp::Gt => Some(i64::from(a > b)),
        BinaryOp::Ge => Some(i64::from(a >= b)),
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        BinaryOp::Div | BinaryOp::Rem if b == 0 => Some(0),
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem => a.checked_rem(b),
        _ => None,
    }
}
