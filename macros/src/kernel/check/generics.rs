//! The operations of a body on values of a type parameter, and the classes of types that they need.

use super::Checker;
use crate::diagnostics::Extent;
use crate::kernel::ast::{Assignment, BinaryOperator, Expr, Method};
use crate::kernel::class::{Class, Generic};
use crate::kernel::types::{ScalarType, TypeVar};
use tilewright_vocabulary::{BinaryOp, Operands, UnaryOp};

/// A value whose type must belong to a class.
pub(super) struct Use {
    ty: TypeVar,
    class: Class,
    extent: Extent,
}

impl Checker<'_> {
    /// Notes that the type of a value must belong to a class.
    pub(super) fn use_as(&mut self, ty: TypeVar, class: Class, extent: Extent) {
        self.uses.push(Use { ty, class, extent });
    }

    /// Notes what an operator asks of the type of its operands.
    pub(super) fn use_operator(&mut self, op: BinaryOperator, operand: &Expr) {
        if let Some(class) = class_of(op) {
            self.use_as(operand.ty, class, operand.extent);
        }
    }

    /// Notes what a method asks of the type of its receiver.
    pub(super) fn use_method(&mut self, method: Method, receiver: &Expr) {
        let class = if method.needs_floats() { Class::Float } else { Class::Number };
        self.use_as(receiver.ty, class, receiver.extent);
    }

    /// Notes what a prefix asks of the type of its operand.
    pub(super) fn use_prefix(&mut self, op: UnaryOp, operand: &Expr) {
        let class = if op == UnaryOp::Not { Class::Bits } else { Class::Number };
        self.use_as(operand.ty, class, operand.extent);
    }

    /// Notes what an assignment asks of the type of its value.
    pub(super) fn use_assignment(&mut self, op: Assignment, value: &Expr) {
        match op {
            Assignment::Set => {}
            Assignment::Extremum(op) => self.use_operator(BinaryOperator::Of(op), value),
            Assignment::Compound(op) => self.use_operator(op, value),
        }
    }

    /// Narrows the type parameters to the types that the body has a meaning for; reports one that no type is left for.
    pub(super) fn narrow(&self, generics: &mut [Generic]) {
        for Use { ty, class, extent } in &self.uses {
            let Some(ScalarType::Parameter(parameter)) = self.types.decided(*ty) else { continue };
            let Some(generic) = generics.get_mut(parameter.position) else { continue };
            let before = generic.classes.clone();
            if !generic.narrow(*class) {
                let bounds: Vec<_> = before.iter().map(|class| format!("`{}`", class.name())).collect();
                self.diagnostics.error_over(
                    *extent,
                    format!(
                        "`{}` is bound by {}, and here a `{}` is needed",
                        generic.name,
                        bounds.join(" and "),
                        class.name()
                    ),
                    "no element type is both: convert the value with `as`, or use another type",
                );
                generic.classes = before;
            }
        }
    }
}

/// The class of the operands of an operator; `None` where every element type has it.
fn class_of(op: BinaryOperator) -> Option<Class> {
    let BinaryOperator::Of(op) = op else { return None };
    match op {
        _ if op.is_comparison() => None,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => Some(Class::Bits),
        BinaryOp::Shl | BinaryOp::Shr => Some(Class::Integer),
        _ if op.operands() == Operands::Floats => Some(Class::Float),
        _ => Some(Class::Number),
    }
}
