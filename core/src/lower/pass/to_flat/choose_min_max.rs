//! Maxima and minima of floats with an operand that is a number: one comparison and one choice, which
//! machines have as a single instruction.
//!
//! The maximum of the language ignores a NaN operand. When the one on the left is certainly a number,
//! `max(a, b)` is `select(b > a, b, a)`: a NaN on the right compares as false. Constants are numbers, and
//! so are the elements of a buffer to which only numbers are stored: the accumulator of a maximum.
//!
//! `maximum(x, c)` propagates a NaN, and is `select(c > x, c, x)` for a constant other than zero, whose sign would matter.

use rustc_hash::FxHashSet;

use crate::expr::{BinaryOp, Constant, Expr, ExprKind};
use crate::ids::BufferId;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Access, Program};
use crate::stmt::Stmt;
use crate::visit::{for_each_stmt, rewrite_expr, rewrite_stmt};

/// Rewrites maxima and minima that have an operand that is a number.
pub(in crate::lower) fn choose_min_max(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    let numbers = buffers_of_numbers(program);
    rewrite_stmt(&mut program.body, &|_| None, &|expr| {
        rewrite_expr(expr, &mut |node| choose(node, &numbers))
    });
    Ok(())
}

fn choose(node: &Expr, numbers: &FxHashSet<BufferId>) -> Option<Expr> {
    let ExprKind::Binary(op, left, right) = node.kind() else { return None };
    if !node.dtype().is_float() {
        return None;
    }
    let comparison = match op {
        BinaryOp::Max | BinaryOp::Maximum => BinaryOp::Gt,
        BinaryOp::Min | BinaryOp::Minimum => BinaryOp::Lt,
        _ => return None,
    };
    let ignores_nan = matches!(op, BinaryOp::Max | BinaryOp::Min);
    let is_suitable = |operand: &Expr| match ignores_nan {
        true => is_number(operand, numbers),
        false => is_number_but_zero(operand),
    };
    let (number, other) = if is_suitable(left) {
        (left, right)
    } else if is_suitable(right) {
        (right, left)
    } else {
        return None;
    };
    // A NaN compares as false, which takes the second choice.
    let [first, second] = if ignores_nan { [other, number] } else { [number, other] };
    let exceeds = Expr::binary(comparison, first.clone(), second.clone());
    Some(Expr::select(exceeds, first.clone(), second.clone()))
}

/// Whether a float is a constant that is neither NaN nor a zero.
fn is_number_but_zero(expr: &Expr) -> bool {
    matches!(expr.as_constant(), Some(Constant::Float(bits)) if {
        let value = f64::from_bits(bits);
        !value.is_nan() && value != 0.0
    })
}

/// Whether a float is certainly not NaN.
fn is_number(expr: &Expr, numbers: &FxHashSet<BufferId>) -> bool {
    match expr.kind() {
        ExprKind::Constant(Constant::Float(bits)) => !f64::from_bits(*bits).is_nan(),
        ExprKind::Load(buffer, _) => numbers.contains(buffer),
        ExprKind::Binary(BinaryOp::Max | BinaryOp::Min, left, right) => {
            is_number(left, numbers) || is_number(right, numbers)
        }
        ExprKind::Binary(BinaryOp::Maximum | BinaryOp::Minimum, left, right) => {
            is_number(left, numbers) && is_number(right, numbers)
        }
        ExprKind::Cast(operand) => !operand.dtype().is_float(),
        _ => false,
    }
}

/// The buffers to which only numbers are stored. Elements are stored to before they are read, so that
/// it is enough if each store keeps the property that the others established.
fn buffers_of_numbers(program: &Program) -> FxHashSet<BufferId> {
    let mut numbers: FxHashSet<BufferId> = program
        .buffers()
        .filter(|(id, buffer)| {
            buffer.dtype.is_float() && matches!(program.access(*id), None | Some(Access::Output))
        })
        .map(|(id, _)| id)
        .collect();
    loop {
        let before = numbers.len();
        for_each_stmt(&program.body, &mut |stmt| {
            if let Stmt::Store(store) = stmt
                && numbers.contains(&store.buffer)
                && !is_number(&store.value, &numbers)
            {
                numbers.remove(&store.buffer);
            }
        });
        if numbers.len() == before {
            return numbers;
        }
    }
}
