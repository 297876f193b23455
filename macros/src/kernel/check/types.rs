//! Types that do not fit.
//!
//! rustc would find them too, in code that the user did not write; here they are told in the user's terms.

use tilewright_vocabulary::DType;

use super::Checker;
use crate::kernel::ast::{Expr, ExprKind, Method};
use crate::kernel::types::{ScalarType, TypeVar};

impl Checker<'_> {
    /// Makes the type of a value known; reports when it is another.
    pub(super) fn expect_known(&mut self, expr: &Expr, ty: ScalarType) {
        let ty = self.types.known(ty);
        self.expect(expr, ty);
    }

    /// Makes the type of a value that of another one; reports when they differ.
    pub(super) fn expect(&mut self, expr: &Expr, ty: TypeVar) {
        let (found, expected) = (self.types.describe(expr.ty), self.types.describe(ty));
        let wanted = self.types.decided(ty);
        let given = self.types.decided(expr.ty);
        if !self.types.unify(expr.ty, ty) {
            self.diagnostics.error_over(
                expr.extent,
                format!("this is {found}, and {expected} is needed"),
                conversion(expr, given, wanted),
            );
        }
    }

    /// Reports a function of real numbers on something else.
    pub(super) fn expect_float(&mut self, method: Method, receiver: &Expr) {
        if let Some(ty) = self.types.decided(receiver.ty)
            && method.needs_floats()
            && !ty.is_float()
            && !ty.is_parameter()
        {
            self.diagnostics.error_over(
                receiver.extent,
                format!("`{}` is a function of floats, and this is `{ty}`", method.name()),
                match method {
                    Method::Powi => "multiply, as in `x * x`, or convert it with `as f32`",
                    _ => "convert it with `as f32`",
                },
            );
        }
    }
}

/// How a value becomes what is wanted.
fn conversion(expr: &Expr, given: Option<ScalarType>, wanted: Option<ScalarType>) -> String {
    match (&expr.kind, wanted) {
        (ExprKind::Int(literal, _), Some(ty)) if ty.is_native_float() => {
            format!("write `{}.0`", literal.base10_digits())
        }
        (
            ExprKind::Int(..) | ExprKind::Float(_),
            Some(ty @ ScalarType::Element(DType::F16 | DType::BF16)),
        ) => {
            format!("write the literal with `as {ty}`, as in `0.5 as {ty}`")
        }
        (_, Some(ScalarType::Element(DType::Bool))) => "compare, as in `x != 0`".to_owned(),
        (_, Some(_)) if given == Some(ScalarType::Element(DType::Bool)) => {
            "write `if … { … } else { … }` with a number in each branch".to_owned()
        }
        (_, Some(ty)) => format!("convert it with `as {ty}`"),
        _ => "convert one of the two with `as`".to_owned(),
    }
}
