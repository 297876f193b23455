//! Maxima and minima of floats with an operand that is a number: one comparison and one choice, which
//! machines have as a single instruction.
//!
//! The maximum of the language ignores a NaN operand. When the one on the left is certainly a number,
//! `max(a, b)` is `select(b > a, b, a)`: a NaN on the right compares as false. Constants are numbers, and
//! so are the elements of a buffer to which only numbers are stored: the accumulator of a maximum.

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
    let ExprKind::Binary(op @ (BinaryOp::Max | BinaryOp::Min), left, right) = node.kind() else {
        return None;
    };
    if !node.dtype().is_float() {
        return None;
    }
    let (number, other) = if is_number(left, numbers) {
        (left, right)
    } else if is_number(right, numbers) {
        (right, left)
    } else {
        return None;
    };
    let comparison = if *op == BinaryOp::Max { BinaryOp::Gt } else { BinaryOp::Lt };
    let exceeds = Expr::binary(comparison, other.clone(), number.clone());
    Some(Expr::select(exceeds, other.clone(), number.clone()))
}

/// Whether a float is certainly not NaN.
fn is_number(expr: &Expr, numbers: &FxHashSet<BufferId>) -> bool {
    match expr.kind() {
        ExprKind::Constant(Constant::Float(bits)) => !f64::from_bits(*bits).is_nan(),
        ExprKind::Load(buffer, _) => numbers.contains(buffer),
        ExprKind::Binary(BinaryOp::Max | BinaryOp::Min, left, right) => {
            is_number(left, numbers) || is_number(right, numbers)
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
