//! Numbers for expressions: equal expressions have equal numbers.
//!
//! A function that was expanded shares its argument by address, but an intermediate that was inlined at several
//! places, or a program that was read from text, holds equal expressions at different addresses. Both are
//! to be computed once.

use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::index::Index;
use rustc_hash::FxHashMap;

/// The numbers given so far.
#[derive(Default)]
pub struct Numbers {
    by_address: FxHashMap<usize, Number>,
    by_node: FxHashMap<Node, Number>,
    lanes: Vec<u32>,
    /// Expressions whose address is known: they must outlive that knowledge.
    kept: Vec<Expr>,
}

/// Identifies an expression up to equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number(u32);

/// An expression whose operands are numbers.
#[derive(PartialEq, Eq, Hash)]
enum Node {
    Leaf(Expr),
    Operation(DType, Operation, [Option<Number>; 3]),
}

#[derive(PartialEq, Eq, Hash)]
enum Operation {
    Unary(UnaryOp),
    Binary(BinaryOp),
    MulAdd,
    Select,
    Cast,
    Bitcast,
    Bounded(Index),
}

impl Numbers {
    /// The number of an expression.
    pub fn of(&mut self, expr: &Expr) -> Number {
        if let Some(number) = self.by_address.get(&expr.address()) {
            return *number;
        }
        let mut operands = [None; 3];
        let mut lanes = own_lanes(expr);
        for (slot, operand) in operands.iter_mut().zip(expr.operands()) {
            let number = self.of(operand);
            lanes = lanes.max(self.lanes(number));
            *slot = Some(number);
        }
        let node = match operation(expr) {
            None => Node::Leaf(expr.clone()),
            Some(operation) => Node::Operation(expr.dtype(), operation, operands),
        };
        let number = *self.by_node.entry(node).or_insert_with(|| {
            self.lanes.push(lanes);
            Number(self.lanes.len() as u32 - 1)
        });
        self.kept.push(expr.clone());
        self.by_address.insert(expr.address(), number);
        number
    }

    /// The number of lanes of the expressions with a number.
    pub fn lanes(&self, number: Number) -> u32 {
        self.lanes[number.0 as usize]
    }

    /// The two sides `low < high` of a comparison of floats that chooses one of these very two, and whether it is the
    /// lower one: a minimum or maximum, which has an instruction of its own.
    pub fn as_min_max<'e>(
        &mut self,
        condition: &'e Expr,
        then: &Expr,
        otherwise: &Expr,
    ) -> Option<(&'e Expr, &'e Expr, bool)> {
        let (low, high) = match condition.kind() {
            ExprKind::Binary(BinaryOp::Lt, a, b) => (a, b),
            ExprKind::Binary(BinaryOp::Gt, a, b) => (b, a),
            _ => return None,
        };
        let [a, b, c, d] = [low, high, then, otherwise].map(|expr| self.of(expr));
        let is_lower = (a, b) == (c, d);
        (low.dtype().is_float() && (is_lower || (a, b) == (d, c))).then_some((low, high, is_lower))
    }
}

/// The lanes of an expression's own index.
fn own_lanes(expr: &Expr) -> u32 {
    match expr.kind() {
        ExprKind::Index(index) => index.lanes(),
        ExprKind::Load(_, indices) => indices.iter().map(Index::lanes).max().unwrap_or(1),
        _ => 1,
    }
}

fn operation(expr: &Expr) -> Option<Operation> {
    Some(match expr.kind() {
        ExprKind::Constant(_) | ExprKind::Scalar(_) | ExprKind::Index(_) | ExprKind::Load(..) => return None,
        ExprKind::Unary(op, _) => Operation::Unary(*op),
        ExprKind::Binary(op, ..) => Operation::Binary(*op),
        ExprKind::MulAdd(..) => Operation::MulAdd,
        ExprKind::Select(..) => Operation::Select,
        ExprKind::Cast(_) => Operation::Cast,
        ExprKind::Bitcast(_) => Operation::Bitcast,
        ExprKind::Bounded(_, extent) => Operation::Bounded(extent.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::BufferId;

    #[test]
    fn equal_expressions_have_equal_numbers_wherever_they_are() {
        let load = |offset| Expr::load(DType::F32, BufferId(0), [Index::lane(4).offset(offset)]);
        let sum = |offset| Expr::binary(BinaryOp::Add, load(offset), Expr::float(DType::F32, 1.0));
        let mut numbers = Numbers::default();
        let first = numbers.of(&sum(0));
        assert_eq!(numbers.of(&sum(0)), first);
        assert_ne!(numbers.of(&sum(1)), first);
        assert_ne!(numbers.of(&load(0)), first);
        assert_eq!(numbers.lanes(first), 4);
        let cast = numbers.of(&Expr::cast(DType::F64, sum(0)));
        assert_ne!(cast, numbers.of(&Expr::cast(DType::I32, sum(0))));
        let one = numbers.of(&Expr::float(DType::F32, 1.0));
        assert_eq!(numbers.lanes(one), 1);
    }
}
