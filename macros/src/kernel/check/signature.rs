//! Arguments and dimensions.

use std::collections::BTreeSet;

use tilewright_vocabulary::BinaryOp;

use super::Checker;
use super::expression::is_constant_name;
use crate::diagnostics::Extent;
use crate::kernel::ast::{
    BinaryOperator, BindingKind, Dim, Dimension, Expr, ExprKind, Kernel, Method, ParameterKind, Role, Tensor,
    TensorType,
};
use crate::kernel::types::ScalarType;

impl Checker<'_> {
    /// Declares dimensions, then arguments, and resolves the dimensions of every type in the signature.
    pub(super) fn signature(&mut self, kernel: &mut Kernel) {
        self.declare_dims(kernel);
        for parameter in &mut kernel.parameters {
            let kind = match &mut parameter.kind {
                ParameterKind::Tensor { ty, mutable } => {
                    self.dims(ty, "no argument has it as a dimension of its own");
                    let role = if *mutable { Role::InOut } else { Role::Input };
                    BindingKind::Tensor(Tensor::new(Some(ty.clone()), role))
                }
                ParameterKind::Scalar(ty) => BindingKind::Scalar(self.types.known(*ty)),
                ParameterKind::Size => continue,
                // Declared all the same, so that its uses are not reported as well.
                ParameterKind::Invalid => BindingKind::Tensor(Tensor::new(None, Role::Invalid)),
            };
            self.declare(&parameter.name, kind);
        }
        for ty in &mut kernel.returns {
            self.dims(ty, "it cannot be inferred from the arguments");
        }
    }

    /// Symbolic dimensions in order of appearance, then `usize` arguments.
    fn declare_dims(&mut self, kernel: &Kernel) {
        let sizes =
            kernel.parameters.iter().filter(|parameter| matches!(parameter.kind, ParameterKind::Size));
        let sizes: Vec<_> = sizes.map(|parameter| parameter.name.clone()).collect();
        let mut seen: BTreeSet<_> = sizes.iter().map(ToString::to_string).collect();
        let types = kernel.parameters.iter().filter_map(|parameter| match &parameter.kind {
            ParameterKind::Tensor { ty, .. } => Some(ty),
            _ => None,
        });
        let symbols = types.flat_map(|ty| &ty.dims).filter_map(|dim| match dim {
            Dim::Symbol(name) => Some(name.ident.clone()),
            _ => None,
        });
        let symbols: Vec<_> = symbols.filter(|ident| seen.insert(ident.to_string())).collect();
        for name in symbols.into_iter().chain(sizes) {
            self.declare(&name, BindingKind::Dim(self.dims.len()));
            self.dims.push(Dimension { name });
        }
    }

    /// Resolves the dimensions of a tensor's type. `unknown` says why a name can stand for nothing.
    pub(super) fn dims(&mut self, ty: &mut TensorType, unknown: &str) {
        for dim in &mut ty.dims {
            match dim {
                Dim::Symbol(name) => match self.find(&name.ident) {
                    Some(id) if matches!(self.bindings[id.0].kind, BindingKind::Dim(_)) => {
                        name.binding = Some(id);
                    }
                    None if is_constant_name(&name.ident) => {
                        let constant = self.constant_dim(&name.ident);
                        *dim = Dim::Computed(Box::new(constant));
                    }
                    _ => self.unknown_dim(&name.ident, unknown),
                },
                Dim::Fixed(_) => {}
                Dim::Computed(expr) => self.dim_expression(expr, unknown),
            }
        }
    }

    fn unknown_dim(&self, ident: &proc_macro2::Ident, unknown: &str) {
        if self.incomplete {
            return;
        }
        let help = match self.in_other_case(ident) {
            Some(similar) => format!("write `{similar}`, as it is declared"),
            None => format!(
                "use one of the known dimensions ({}), or take it as an argument: `{ident}: usize`",
                self.dim_names()
            ),
        };
        self.diagnostics.error(ident, format!("the dimension `{ident}` is not known: {unknown}"), help);
    }

    /// A constant of the surrounding module as a dimension.
    fn constant_dim(&mut self, ident: &proc_macro2::Ident) -> Expr {
        let kind = ExprKind::Constant(ident.clone().into(), Some(ScalarType::Usize));
        let ty = self.types.known(ScalarType::Usize);
        Expr { kind, span: ident.span(), extent: Extent::of(ident), ty }
    }

    /// Resolves a computed dimension.
    fn dim_expression(&mut self, expr: &mut Expr, unknown: &str) {
        expr.ty = self.types.known(ScalarType::Usize);
        match &mut expr.kind {
            ExprKind::Int(..) | ExprKind::Invalid(_) | ExprKind::Constant(..) => {}
            ExprKind::Name(name) => match self.find(&name.ident) {
                Some(id) if matches!(self.bindings[id.0].kind, BindingKind::Dim(_)) => {
                    name.binding = Some(id)
                }
                None if is_constant_name(&name.ident) => {
                    expr.kind = ExprKind::Constant(name.ident.clone().into(), Some(ScalarType::Usize));
                }
                _ => self.unknown_dim(&name.ident, unknown),
            },
            ExprKind::Paren(inner) => self.dim_expression(inner, unknown),
            ExprKind::Binary(op, left, right) if is_dim_arithmetic(*op) => {
                self.dim_expression(left, unknown);
                self.dim_expression(right, unknown);
            }
            ExprKind::Call(Method::Binary(BinaryOp::Min | BinaryOp::Max), receiver, arguments) => {
                self.dim_expression(receiver, unknown);
                for argument in arguments {
                    self.dim_expression(argument, unknown);
                }
            }
            _ => self.diagnostics.error_over(
                expr.extent,
                "this cannot be part of a dimension",
                "use dimensions, `usize` arguments, whole numbers, `+ - * / %`, `max` and `min`",
            ),
        }
    }
}

fn is_dim_arithmetic(op: BinaryOperator) -> bool {
    use BinaryOp::{Add, Div, Mul, Rem, Sub};
    matches!(op, BinaryOperator::Of(Add | Sub | Mul | Div | Rem))
}

impl Tensor {
    /// A tensor that nothing has used yet.
    pub(super) fn new(ty: Option<TensorType>, role: Role) -> Self {
        Tensor { ty, role, written: false, read: false, result: None }
    }
}
