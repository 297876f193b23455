//! Contracts products and sums: `a * b + c` becomes one fused multiply-add, rounded once.
//!
//! A product with another use stays, since it is computed anyway. So do the products in marked statements: the
//! instruction decides their rounding, and the statement is matched in this form.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::Stmt;
use crate::visit::rewrite_expr;

/// Contracts every sum with a product of its own.
pub(in crate::lower) fn contract_products(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    if options.contract {
        contract_stmt(&mut program.body);
    }
    Ok(())
}

fn contract_stmt(stmt: &mut Stmt) {
    match stmt {
        Stmt::Intrinsic(_) | Stmt::Barrier | Stmt::Copies(_) | Stmt::Shuffle(_) => return,
        // A fused product would hide that the store updates its own element.
        Stmt::Store(node) if node.is_atomic() => return,
        Stmt::Store(node) => {
            if let Some(value) = contract(&node.value) {
                Arc::make_mut(node).value = value;
            }
        }
        Stmt::If(node) => {
            if let Some(condition) = contract(&node.condition) {
                Arc::make_mut(node).condition = condition;
            }
        }
        Stmt::For(_) | Stmt::Seq(_) | Stmt::Alloc(_) | Stmt::Block(_) => {}
    }
    stmt.children_mut().into_iter().for_each(contract_stmt);
}

fn contract(expr: &Expr) -> Option<Expr> {
    let mut uses = FxHashMap::default();
    count_uses(expr, &mut uses);
    rewrite_expr(expr, &mut |node| contract_node(node, &uses))
}

/// How many nodes have each node as an operand, by address.
fn count_uses(expr: &Expr, uses: &mut FxHashMap<usize, u32>) {
    for operand in expr.operands() {
        let count = uses.entry(operand.address()).or_insert(0);
        *count += 1;
        if *count == 1 {
            count_uses(operand, uses);
        }
    }
}

fn contract_node(node: &Expr, uses: &FxHashMap<usize, u32>) -> Option<Expr> {
    if !matches!(node.dtype(), DType::F32 | DType::F64) {
        return None;
    }
    let ExprKind::Binary(op, left, right) = node.kind() else { return None };
    // A product whose operands were rewritten has a new address, at which it is used once.
    let product = |operand: &Expr| match operand.kind() {
        ExprKind::Binary(BinaryOp::Mul, a, b)
            if uses.get(&operand.address()).is_none_or(|uses| *uses == 1) =>
        {
            Some((a.clone(), b.clone()))
        }
        _ => None,
    };
    let negated = |operand: Expr| Expr::unary(UnaryOp::Neg, operand);
    match op {
        BinaryOp::Add => {
            if let Some((a, b)) = product(right) {
                return Some(Expr::mul_add(a, b, left.clone()));
            }
            let (a, b) = product(left)?;
            Some(Expr::mul_add(a, b, right.clone()))
        }
        BinaryOp::Sub => {
            if let Some((a, b)) = product(right) {
                return Some(Expr::mul_add(negated(a), b, left.clone()));
            }
            let (a, b) = product(left)?;
            Some(Expr::mul_add(a, b, negated(right.clone())))
        }
        _ => None,
    }
}
