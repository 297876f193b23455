//! Simplification of expressions and statements under the ranges of the variables.
//!
//! A simplified expression has the same value to the bit, including `-0.0`, NaN and integer wrap-around, with two
//! exceptions that hold everywhere in this crate: index arithmetic is taken not to overflow, and the bits
//! inside a NaN are not defined. A check ([`ExprKind::Bounded`]) that may fail is never removed.
//!
//! Constant folding is in [`fold`]; indices are simplified in [`crate::index::simplify`].

pub mod fold;

use std::sync::Arc;

use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind, UnaryOp};
use crate::index::{Base, Index, Ranges};
use crate::stmt::{Block, For, If, Stmt, Store};
use crate::visit::{for_each_expr, rewrite_all, rewrite_expr};

/// Simplifies an expression; `None` when it stays as it is.
pub fn simplify_expr(expr: &Expr, ranges: &Ranges) -> Option<Expr> {
    rewrite_expr(expr, &mut |node| simplify_node(node, ranges).filter(|simple| simple != node))
}

/// Whether evaluating the value may report a failed check, so that it must not be left out.
pub fn may_fail(value: &Expr) -> bool {
    let mut found = false;
    for_each_expr(value, &mut |node| match node.kind() {
        ExprKind::Bounded(..) => found = true,
        ExprKind::Index(index) => found |= index_may_fail(index),
        ExprKind::Load(_, indices) => found |= indices.iter().any(index_may_fail),
        _ => {}
    });
    found
}

fn index_may_fail(index: &Index) -> bool {
    index.terms().iter().any(|term| match &term.digit.base {
        Base::Var(_) | Base::Lane(_) => false,
        Base::Sum(sum) => index_may_fail(sum),
        Base::Value(value) => may_fail(value),
    })
}

/// Simplifies one node whose operands are simple already.
fn simplify_node(node: &Expr, ranges: &Ranges) -> Option<Expr> {
    match node.kind() {
        ExprKind::Constant(_) | ExprKind::Scalar(_) => None,
        ExprKind::Index(index) => match index.simplified(ranges) {
            Some(simple) => Some(simple.to_value()),
            None => Some(index.to_value()),
        },
        ExprKind::Load(buffer, indices) => {
            let indices = rewrite_all(indices, &|index| index.simplified(ranges))?;
            Some(Expr::new(node.dtype(), ExprKind::Load(*buffer, indices)))
        }
        ExprKind::Unary(op, a) => simplify_unary(*op, a),
        ExprKind::Binary(op, a, b) => simplify_binary(*op, a, b, ranges),
        ExprKind::MulAdd(a, b, c) => {
            fold::mul_add(node.dtype(), a.as_constant()?, b.as_constant()?, c.as_constant()?)
        }
        ExprKind::Select(condition, a, b) => simplify_select(condition, a, b),
        ExprKind::Cast(a) => fold::cast(a.dtype(), node.dtype(), a.as_constant()?),
        ExprKind::Bitcast(a) => (a.dtype() == node.dtype()).then(|| a.clone()),
        ExprKind::Bounded(a, extent) => simplify_bounded(a, extent, ranges),
    }
}

fn simplify_bounded(a: &Expr, extent: &Index, ranges: &Ranges) -> Option<Expr> {
    let simple = extent.simplified(ranges);
    let bound = simple.as_ref().unwrap_or(extent);
    if let Some(index) = affine(a)
        && index.is_provably_nonnegative(ranges)
        && index.is_provably_less(bound, ranges)
    {
        return Some(a.clone());
    }
    simple.map(|extent| Expr::new(DType::I64, ExprKind::Bounded(a.clone(), extent)))
}

/// The operand as an index, when it is index arithmetic and not data.
fn affine(operand: &Expr) -> Option<Index> {
    match operand.kind() {
        ExprKind::Index(index) => Some(index.clone()),
        ExprKind::Constant(Constant::Int(value)) if operand.dtype() == DType::I64 => {
            Some(Index::constant(*value))
        }
        _ => None,
    }
}

fn simplify_unary(op: UnaryOp, a: &Expr) -> Option<Expr> {
    if let Some(constant) = a.as_constant()
        && let Some(folded) = fold::unary(op, a.dtype(), constant)
    {
        return Some(folded);
    }
    match (op, a.kind()) {
        // Negation only flips the sign bit, or wraps; either way twice is nothing.
        (UnaryOp::Neg, ExprKind::Unary(UnaryOp::Neg, inner))
        | (UnaryOp::Not, ExprKind::Unary(UnaryOp::Not, inner)) => Some(inner.clone()),
        (UnaryOp::Neg, ExprKind::Index(index)) => Some(index.scale(-1).to_value()),
        (UnaryOp::Not, ExprKind::Binary(comparison, left, right)) => {
            let opposite = opposite(*comparison, left.dtype().is_float())?;
            Some(Expr::binary(opposite, left.clone(), right.clone()))
        }
        _ => None,
    }
}

/// The comparison that holds exactly when the given one does not. NaN compares with nothing, so that
/// the order of floats has no opposite.
fn opposite(comparison: BinaryOp, float: bool) -> Option<BinaryOp> {
    match comparison {
        BinaryOp::Eq => Some(BinaryOp::Ne),
        BinaryOp::Ne => Some(BinaryOp::Eq),
        BinaryOp::Lt if !float => Some(BinaryOp::Ge),
        BinaryOp::Ge if !float => Some(BinaryOp::Lt),
        BinaryOp::Gt if !float => Some(BinaryOp::Le),
        BinaryOp::Le if !float => Some(BinaryOp::Gt),
        _ => None,
    }
}

fn simplify_select(condition: &Expr, a: &Expr, b: &Expr) -> Option<Expr> {
    if let Some(Constant::Int(value)) = condition.as_constant() {
        return Some(if value != 0 { a } else { b }.clone());
    }
    if a == b && !may_fail(condition) {
        return Some(a.clone());
    }
    match (a.dtype(), a.as_constant(), b.as_constant()) {
        (DType::Bool, Some(Constant::Int(1)), Some(Constant::Int(0))) => Some(condition.clone()),
        (DType::Bool, Some(Constant::Int(0)), Some(Constant::Int(1))) => {
            let not = Expr::unary(UnaryOp::Not, condition.clone());
            Some(simplify_unary(UnaryOp::Not, condition).unwrap_or(not))
        }
        _ => None,
    }
}

fn simplify_binary(op: BinaryOp, a: &Expr, b: &Expr, ranges: &Ranges) -> Option<Expr> {
    if let (Some(left), Some(right)) = (a.as_constant(), b.as_constant())
        && let Some(folded) = fold::binary(op, a.dtype(), left, right)
    {
        return Some(folded);
    }
    if a.dtype() == DType::I64
        && let (Some(left), Some(right)) = (affine(a), affine(b))
    {
        return simplify_index_operation(op, &left, &right, ranges);
    }
    simplify_identity(op, a, b)
}

fn simplify_index_operation(op: BinaryOp, a: &Index, b: &Index, ranges: &Ranges) -> Option<Expr> {
    if op.is_comparison() {
        return compare_indices(op, a, b, ranges).map(Expr::bool);
    }
    let simple = |index: Index| Some(index.simplified(ranges).unwrap_or(index).to_value());
    match op {
        BinaryOp::Add => simple(a + b),
        BinaryOp::Sub => simple(a - b),
        // Both are simplified already, and an opaque product of them would recurse without end.
        BinaryOp::Mul => Some(a.multiply(b).to_value()),
        BinaryOp::Min if a.is_provably_at_most(b, ranges) => simple(a.clone()),
        BinaryOp::Min if b.is_provably_at_most(a, ranges) => simple(b.clone()),
        BinaryOp::Max if a.is_provably_at_most(b, ranges) => simple(b.clone()),
        BinaryOp::Max if b.is_provably_at_most(a, ranges) => simple(a.clone()),
        // Truncation and rounding down agree for numbers that are not negative.
        BinaryOp::Div | BinaryOp::Rem if b.as_constant()? >= 1 && a.is_provably_nonnegative(ranges) => {
            simple(if op == BinaryOp::Div { a.divide(b) } else { a.remainder(b) })
        }
        _ => None,
    }
}

/// Decides a comparison of indices that has the same value for all values of the variables.
pub fn compare_indices(op: BinaryOp, a: &Index, b: &Index, ranges: &Ranges) -> Option<bool> {
    let decide = |yes: bool, no: bool| match (yes, no) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    match op {
        BinaryOp::Lt => decide(a.is_provably_less(b, ranges), b.is_provably_at_most(a, ranges)),
        BinaryOp::Le => decide(a.is_provably_at_most(b, ranges), b.is_provably_less(a, ranges)),
        BinaryOp::Gt => compare_indices(BinaryOp::Lt, b, a, ranges),
        BinaryOp::Ge => compare_indices(BinaryOp::Le, b, a, ranges),
        BinaryOp::Eq => decide((a - b).is(0), a.is_provably_less(b, ranges) || b.is_provably_less(a, ranges)),
        BinaryOp::Ne => compare_indices(BinaryOp::Eq, a, b, ranges).map(|equal| !equal),
        _ => None,
    }
}

/// Identities of an operation with one constant, or with equal operands.
fn simplify_identity(op: BinaryOp, a: &Expr, b: &Expr) -> Option<Expr> {
    let dtype = a.dtype();
    if let Some(constant) = b.as_constant()
        && let Some(simple) = identity_with_constant(op, a, constant, Operand::Right)
    {
        return Some(simple);
    }
    if let Some(constant) = a.as_constant()
        && let Some(simple) = identity_with_constant(op, b, constant, Operand::Left)
    {
        return Some(simple);
    }
    if dtype.is_float() || a != b {
        return None;
    }
    match op {
        BinaryOp::And | BinaryOp::Or | BinaryOp::Min | BinaryOp::Max => Some(a.clone()),
        BinaryOp::Sub | BinaryOp::Xor if !may_fail(a) => Some(Expr::zero(dtype)),
        BinaryOp::Eq | BinaryOp::Le | BinaryOp::Ge if !may_fail(a) => Some(Expr::bool(true)),
        BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Gt if !may_fail(a) => Some(Expr::bool(false)),
        _ => None,
    }
}

/// The position of the constant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operand {
    Left,
    Right,
}

fn identity_with_constant(op: BinaryOp, x: &Expr, constant: Constant, place: Operand) -> Option<Expr> {
    match (x.dtype(), constant) {
        (DType::Bool, Constant::Int(value)) => bool_identity(op, x, value != 0),
        (_, Constant::Int(value)) => int_identity(op, x, value, place),
        (_, Constant::Float(bits)) => float_identity(op, x, f64::from_bits(bits), place),
    }
}

fn bool_identity(op: BinaryOp, x: &Expr, constant: bool) -> Option<Expr> {
    match (op, constant) {
        (BinaryOp::And, true) | (BinaryOp::Or, false) => Some(x.clone()),
        (BinaryOp::Eq, true) | (BinaryOp::Ne | BinaryOp::Xor, false) => Some(x.clone()),
        (BinaryOp::Eq, false) | (BinaryOp::Ne | BinaryOp::Xor, true) => {
            Some(simplify_unary(UnaryOp::Not, x).unwrap_or_else(|| Expr::unary(UnaryOp::Not, x.clone())))
        }
        (BinaryOp::And, false) | (BinaryOp::Or, true) if !may_fail(x) => Some(Expr::bool(constant)),
        _ => None,
    }
}

fn int_identity(op: BinaryOp, x: &Expr, constant: i64, place: Operand) -> Option<Expr> {
    let right = place == Operand::Right;
    let zero = |x: &Expr| (!may_fail(x)).then(|| Expr::zero(x.dtype()));
    match (op, constant) {
        (BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor, 0) | (BinaryOp::Mul, 1) => Some(x.clone()),
        (BinaryOp::Sub | BinaryOp::Shl | BinaryOp::Shr, 0) | (BinaryOp::Div, 1) if right => Some(x.clone()),
        (BinaryOp::Mul | BinaryOp::And, 0) => zero(x),
        (BinaryOp::Rem, 1) if right => zero(x),
        (BinaryOp::Div | BinaryOp::Rem, 0) => zero(x),
        _ => None,
    }
}

/// Only identities that are exact for every operand: `x + 0.0` is not, because it turns `-0.0` into `0.0`.
fn float_identity(op: BinaryOp, x: &Expr, constant: f64, place: Operand) -> Option<Expr> {
    let right = place == Operand::Right;
    let negative_zero = constant == 0.0 && constant.is_sign_negative();
    let positive_zero = constant == 0.0 && constant.is_sign_positive();
    let keeps = match op {
        BinaryOp::Mul => constant == 1.0,
        BinaryOp::Div => right && constant == 1.0,
        BinaryOp::Add => negative_zero,
        BinaryOp::Sub => right && positive_zero,
        BinaryOp::Minimum => constant == f64::INFINITY,
        BinaryOp::Maximum => constant == f64::NEG_INFINITY,
        _ => false,
    };
    keeps.then(|| x.clone())
}

/// Simplifies a statement in place: decides conditions, drops loops that run zero times and guards that always
/// hold, and simplifies every index and value under the ranges of the loops and iterators around it.
pub fn simplify_stmt(stmt: &mut Stmt, ranges: &Ranges) {
    if let Some(simple) = (StmtSimplifier { ranges: ranges.clone() }).simplify(stmt) {
        *stmt = simple;
    }
}

struct StmtSimplifier {
    ranges: Ranges,
}

impl StmtSimplifier {
    /// `None` when the statement stays as it is.
    fn simplify(&mut self, stmt: &Stmt) -> Option<Stmt> {
        match stmt {
            Stmt::Seq(stmts) => self.simplify_seq(stmts),
            Stmt::For(node) => self.simplify_loop(node),
            Stmt::Block(node) => self.simplify_block(node),
            Stmt::Store(node) => self.simplify_store(node),
            Stmt::If(node) => self.simplify_if(node),
            Stmt::Alloc(node) => {
                let body = self.simplify(&node.body)?;
                let mut node = node.clone();
                Arc::make_mut(&mut node).body = body;
                Some(Stmt::Alloc(node))
            }
            Stmt::Intrinsic(node) => {
                let body = self.simplify(&node.body)?;
                if body.is_nothing() {
                    return Some(body);
                }
                let mut node = node.clone();
                Arc::make_mut(&mut node).body = body;
                Some(Stmt::Intrinsic(node))
            }
            Stmt::Shuffle(node) => {
                let body = self.simplify(&node.body)?;
                if body.is_nothing() {
                    return Some(body);
                }
                let mut node = node.clone();
                Arc::make_mut(&mut node).body = body;
                Some(Stmt::Shuffle(node))
            }
            Stmt::Barrier | Stmt::Copies(_) => None,
        }
    }

    fn simplify_seq(&mut self, stmts: &[Stmt]) -> Option<Stmt> {
        let changed: Vec<Option<Stmt>> = stmts.iter().map(|stmt| self.simplify(stmt)).collect();
        if changed.iter().all(Option::is_none) {
            return None;
        }
        Some(Stmt::seq(stmts.iter().zip(changed).map(|(old, new)| new.unwrap_or_else(|| old.clone()))))
    }

    fn simplify_loop(&mut self, node: &Arc<For>) -> Option<Stmt> {
        let extent = node.extent.simplified(&self.ranges);
        let bound = extent.as_ref().unwrap_or(&node.extent);
        if bound.interval(&self.ranges).max <= 0 {
            return Some(Stmt::nothing());
        }
        let outer = self.ranges.insert(node.var, bound.clone());
        let body = self.simplify(&node.body);
        self.restore(node.var, outer);
        if body.as_ref().unwrap_or(&node.body).is_nothing() {
            return Some(Stmt::nothing());
        }
        if extent.is_none() && body.is_none() {
            return None;
        }
        let mut node = node.clone();
        let edited = Arc::make_mut(&mut node);
        if let Some(extent) = extent {
            edited.extent = extent;
        }
        if let Some(body) = body {
            edited.body = body;
        }
        Some(Stmt::For(node))
    }

    fn restore(&mut self, var: crate::ids::VarId, extent: Option<Index>) {
        match extent {
            Some(extent) => self.ranges.insert(var, extent),
            None => self.ranges.remove(var),
        };
    }

    fn simplify_block(&mut self, node: &Arc<Block>) -> Option<Stmt> {
        let mut block = Block::clone(node);
        for iter in &mut block.iters {
            iter.extent = iter.extent.simplify(&self.ranges);
            iter.binding = iter.binding.simplify(&self.ranges);
        }
        for guard in &mut block.guards {
            guard.index = guard.index.simplify(&self.ranges);
            guard.bound = guard.bound.simplify(&self.ranges);
        }
        block.guards.retain(|guard| !guard.index.is_provably_less(&guard.bound, &self.ranges));
        let outer: Vec<_> = block
            .iters
            .iter()
            .map(|iter| (iter.var, self.ranges.insert(iter.var, iter.extent.clone())))
            .collect();
        if let Some(init) = block.init.as_ref().and_then(|init| self.simplify(init)) {
            block.init = Some(init);
        }
        if let Some(body) = self.simplify(&block.body) {
            block.body = body;
        }
        for (var, extent) in outer {
            self.restore(var, extent);
        }
        (block != **node).then(|| Stmt::Block(Arc::new(block)))
    }

    fn simplify_store(&mut self, node: &Store) -> Option<Stmt> {
        let indices = rewrite_all(&node.indices, &|index| index.simplified(&self.ranges));
        let value = simplify_expr(&node.value, &self.ranges);
        if indices.is_none() && value.is_none() {
            return None;
        }
        Some(Stmt::Store(Arc::new(Store {
            buffer: node.buffer,
            indices: indices.unwrap_or_else(|| node.indices.clone()),
            value: value.unwrap_or_else(|| node.value.clone()),
            kind: node.kind,
        })))
    }

    fn simplify_if(&mut self, node: &If) -> Option<Stmt> {
        let condition = simplify_expr(&node.condition, &self.ranges);
        if let Some(constant) = condition.as_ref().unwrap_or(&node.condition).as_constant() {
            let taken = if constant == Constant::Int(0) { node.otherwise.as_ref() } else { Some(&node.then) };
            return Some(match taken {
                Some(stmt) => self.simplify(stmt).unwrap_or_else(|| stmt.clone()),
                None => Stmt::nothing(),
            });
        }
        let then = self.simplify(&node.then);
        let otherwise = node.otherwise.as_ref().and_then(|stmt| self.simplify(stmt));
        let is_same = condition.is_none() && then.is_none() && otherwise.is_none();
        let branches = If {
            condition: condition.unwrap_or_else(|| node.condition.clone()),
            then: then.unwrap_or_else(|| node.then.clone()),
            otherwise: otherwise.or_else(|| node.otherwise.clone()),
        };
        simplify_branches(&branches).or_else(|| (!is_same).then(|| Stmt::If(Arc::new(branches))))
    }
}

/// Removes a conditional that does nothing or the same either way, and branches that do nothing.
fn simplify_branches(node: &If) -> Option<Stmt> {
    let otherwise = node.otherwise.as_ref().filter(|stmt| !stmt.is_nothing());
    // A check of an index that depends on data must stay.
    let is_needed = may_fail(&node.condition);
    match otherwise {
        None if node.then.is_nothing() && !is_needed => Some(Stmt::nothing()),
        Some(otherwise) if *otherwise == node.then && !is_needed => Some(node.then.clone()),
        Some(otherwise) if node.then.is_nothing() => {
            let not = Expr::unary(UnaryOp::Not, node.condition.clone());
            let condition = simplify_unary(UnaryOp::Not, &node.condition).unwrap_or(not);
            Some(Stmt::If(Arc::new(If { condition, then: otherwise.clone(), otherwise: None })))
        }
        None if node.otherwise.is_some() => {
            Some(Stmt::If(Arc::new(If { otherwise: None, ..If::clone(node) })))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
