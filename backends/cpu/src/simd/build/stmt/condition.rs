//! Conditions that are the same in all lanes, in general registers.
//!
//! Comparisons of indices are made as far outside as their loops allow, and once there.

use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Expr, ExprKind};
use tilewright_core::index::Index;

use crate::simd::Refusal;
use crate::simd::build::memory::linear::Sum;
use crate::simd::build::scope::Key;
use crate::simd::build::stmt::nest::is_index;
use crate::simd::build::value::group::Group;
use crate::simd::build::value::mask::as_index;
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{GeneralOp, Operand, Order, Reg};

/// A condition, and the scope that it is computed in.
type Leveled = (usize, Reg);

impl Builder<'_> {
    /// A scalar mask in a general register: zero when false, all bits when true.
    pub(in crate::simd::build) fn condition(&mut self, expr: &Expr) -> Outcome<Reg> {
        Ok(self.leveled_condition(expr)?.1)
    }

    fn leveled_condition(&mut self, expr: &Expr) -> Outcome<Leveled> {
        match expr.kind() {
            ExprKind::Constant(constant) => Ok((self.level(), self.decided(constant.as_f64() != 0.0))),
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) if expr.dtype() == DType::Bool => {
                let op = if *op == BinaryOp::And { GeneralOp::And } else { GeneralOp::Or };
                let (a, b) = (self.leveled_condition(a)?, self.leveled_condition(b)?);
                let level = a.0.max(b.0);
                let joined = self.value_at(level, Key::Joined(op, a.1, b.1), |this| {
                    Ok::<_, Refusal>(this.general(op, [Operand::Reg(a.1), Operand::Reg(b.1)]))
                })?;
                Ok((level, joined))
            }
            ExprKind::Binary(op, a, b) if is_index(a) && is_index(b) => {
                let order = order(*op).ok_or(Refusal::Operation("a condition"))?;
                if let (Some(a), Some(b)) = (as_index(a), as_index(b)) {
                    return self.comparison(order, &(&a - &b));
                }
                let (a, b) = (self.integer_expr(a)?, self.integer_expr(b)?);
                let mask = self.general(GeneralOp::Compare(order), [Operand::Reg(a), Operand::Reg(b)]);
                Ok((self.level(), mask))
            }
            _ => {
                let mask = self.value(expr, Group::SCALAR)?;
                Ok((self.level(), self.mask_bit(mask)?))
            }
        }
    }

    /// How a difference compares with zero.
    fn comparison(&mut self, order: Order, difference: &Index) -> Outcome<Leveled> {
        let mut sum = Sum::of(&self.resolve(difference));
        if sum.products.is_empty() {
            return Ok((self.level(), self.decided(holds(order, sum.constant))));
        }
        let bound = std::mem::take(&mut sum.constant).checked_neg().ok_or(Refusal::Offset)?;
        let (level, varying) = self.sum_value(&sum)?;
        let key = Key::Comparison(order, varying, bound);
        let mask = self.value_at(level, key, |this| {
            let args = [Operand::Reg(varying), Operand::Imm(bound)];
            Ok::<_, Refusal>(this.general(GeneralOp::Compare(order), args))
        })?;
        Ok((level, mask))
    }

    fn decided(&mut self, mask: bool) -> Reg {
        self.integer(Operand::Imm(-i64::from(mask)))
    }
}

fn order(op: BinaryOp) -> Option<Order> {
    Some(match op {
        BinaryOp::Eq => Order::Equal,
        BinaryOp::Ne => Order::NotEqual,
        BinaryOp::Lt => Order::Less,
        BinaryOp::Le => Order::LessOrEqual,
        BinaryOp::Gt => Order::Greater,
        BinaryOp::Ge => Order::GreaterOrEqual,
        _ => return None,
    })
}

/// How a difference that is known compares with zero.
fn holds(order: Order, difference: i64) -> bool {
    match order {
        Order::Equal => difference == 0,
        Order::NotEqual => difference != 0,
        Order::Less => difference < 0,
        Order::LessOrEqual => difference <= 0,
        Order::Greater => difference > 0,
        Order::GreaterOrEqual => difference >= 0,
        Order::Below => false,
    }
}
