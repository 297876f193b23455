//! Comparisons, and logic on `bool`.

use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;

use super::{class_of, ordered_type};
use crate::emit::{Generator, Outcome};
use crate::ptx::operand::Operand;
use crate::ptx::table::Op;
use crate::ptx::types::{Class, Type};

impl Generator<'_> {
    /// A comparison of values of a type.
    pub(super) fn comparison(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        a: Operand,
        b: Operand,
    ) -> Outcome<Operand> {
        if class_of(dtype) == Class::Predicate {
            return self.logic(op, a, b);
        }
        let op = match op {
            BinaryOp::Eq => Op::Equal,
            BinaryOp::Ne => Op::NotEqual,
            BinaryOp::Lt => Op::Less,
            BinaryOp::Le => Op::LessEqual,
            BinaryOp::Gt => Op::Greater,
            BinaryOp::Ge => Op::GreaterEqual,
            _ => return Err(self.broken(&format!("`{}` is no comparison", op.text()))),
        };
        Ok(self.builder.compute(op, ordered_type(dtype), &[a, b]))
    }

    /// An operation on `bool`s, of which `false` is the lesser one.
    pub(super) fn logic(&mut self, op: BinaryOp, a: Operand, b: Operand) -> Outcome<Operand> {
        let [a, b] = [a, b].map(|operand| self.in_register(Class::Predicate, operand));
        let mut of = |op: Op, operands: &[Operand]| self.builder.compute(op, Type::Pred, operands);
        Ok(match op {
            BinaryOp::And | BinaryOp::Min => of(Op::And, &[a, b]),
            BinaryOp::Or | BinaryOp::Max => of(Op::Or, &[a, b]),
            BinaryOp::Xor | BinaryOp::Ne => of(Op::Xor, &[a, b]),
            BinaryOp::Eq => {
                let differs = of(Op::Xor, &[a, b]);
                of(Op::Not, &[differs])
            }
            BinaryOp::Lt => {
                let not = of(Op::Not, &[a]);
                of(Op::And, &[not, b])
            }
            BinaryOp::Le => {
                let not = of(Op::Not, &[a]);
                of(Op::Or, &[not, b])
            }
            BinaryOp::Gt => {
                let not = of(Op::Not, &[b]);
                of(Op::And, &[a, not])
            }
            BinaryOp::Ge => {
                let not = of(Op::Not, &[b]);
                of(Op::Or, &[a, not])
            }
            _ => return Err(self.broken(&format!("bool has no operator `{}`", op.text()))),
        })
    }
}
