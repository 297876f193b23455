//! Counts of arithmetic in a block's body.

use tilewright_core::analysis::block::{loads_in, stores};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{Cost, Expr, ExprKind};
use tilewright_core::ids::VarId;
use tilewright_core::stmt::Block;
use tilewright_core::visit::{for_each_root_expr, for_each_var};

/// Operations for one point of a block's domain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Arithmetic {
    /// Float additions, subtractions and multiplications.
    pub simple: f64,
    /// Float divisions and square roots.
    pub division: f64,
    /// Transcendental functions.
    pub transcendental: f64,
    /// Minima, maxima, comparisons and selections.
    pub comparison: f64,
    /// Integer operations.
    pub integer: f64,
    /// Conversions.
    pub conversion: f64,
    /// Loads.
    pub loads: f64,
    /// Stores.
    pub stores: f64,
    /// Loads under a condition that may differ between lanes, or at an address that depends on data.
    pub conditional: f64,
    /// Loads under a uniform condition, such as padding. The condition peels the boundary of a loop or selects between two addresses,
    /// so that it does not count as a comparison.
    pub uniform: f64,
}

/// The condition around a load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    None,
    /// The same for all lanes.
    Uniform,
    /// May differ between lanes.
    OfLanes,
}

impl Arithmetic {
    /// Counts the operations of a block's body. The block's iterators in `lanes` differ between lanes.
    pub(super) fn of(block: &Block, lanes: &[VarId]) -> Self {
        let mut counts = Arithmetic { stores: stores(&block.body).len() as f64, ..Arithmetic::default() };
        for_each_root_expr(&block.body, &mut |expr| counts.add(expr, lanes, Condition::None));
        counts
    }

    fn add(&mut self, expr: &Expr, lanes: &[VarId], condition: Condition) {
        match expr.kind() {
            ExprKind::Constant(_) | ExprKind::Scalar(_) | ExprKind::Index(_) => {}
            ExprKind::Load(..) => {
                self.loads += 1.0;
                match condition {
                    Condition::None => {}
                    Condition::Uniform => self.uniform += 1.0,
                    Condition::OfLanes => self.conditional += 1.0,
                }
            }
            ExprKind::Unary(op, _) => self.add_operator(op.cost(), expr.dtype()),
            ExprKind::Binary(op, left, _) => self.add_operator(op.cost(), left.dtype()),
            ExprKind::MulAdd(..) => self.simple += 2.0,
            ExprKind::Select(question, then, otherwise) if is_uniform(question, lanes) => {
                let inner = if condition == Condition::None { Condition::Uniform } else { condition };
                self.add(then, lanes, inner);
                self.add(otherwise, lanes, inner);
                return;
            }
            ExprKind::Select(..) => self.comparison += 1.0,
            ExprKind::Cast(_) | ExprKind::Bitcast(_) => self.conversion += 1.0,
            ExprKind::Bounded(..) => self.conditional += 1.0,
        }
        let inner = if matches!(expr.kind(), ExprKind::Select(..)) { Condition::OfLanes } else { condition };
        for operand in expr.operands() {
            self.add(operand, lanes, inner);
        }
    }

    /// One operator on operands of a type.
    fn add_operator(&mut self, cost: Cost, operands: DType) {
        match cost {
            Cost::Comparison => self.comparison += 1.0,
            _ if !operands.is_float() => self.integer += 1.0,
            Cost::Simple => self.simple += 1.0,
            Cost::Division(count) => self.division += f64::from(count),
            Cost::Transcendental(count) => self.transcendental += f64::from(count),
        }
    }
}

/// Whether a condition is the same for all lanes: it reads no data, and no iterator that differs between lanes.
fn is_uniform(condition: &Expr, lanes: &[VarId]) -> bool {
    let mut loads = Vec::new();
    loads_in(condition, &mut loads);
    let mut differs = false;
    for_each_var(condition, &mut |var| differs |= lanes.contains(&var));
    loads.is_empty() && !differs
}
