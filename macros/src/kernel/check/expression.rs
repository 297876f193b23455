//! Values: names, ranks and inferred types.

use proc_macro2::{Ident, Span};
use tilewright_vocabulary::DType;

use super::{Checker, count};
use crate::diagnostics::Extent;
use crate::kernel::ast::{
    BinaryOperator, BindingId, BindingKind, BlockExpr, Expr, ExprKind, IfExpr, Load, Method, Name,
};
use crate::kernel::class::Class;
use crate::kernel::types::{ScalarType, TypeVar, Types};

impl Checker<'_> {
    /// Checks a value and infers its type. Whether it depends on data.
    pub(super) fn expression(&mut self, expr: &mut Expr) -> bool {
        if let ExprKind::Name(name) = &expr.kind
            && self.find(&name.ident).is_none()
            && is_constant_name(&name.ident)
        {
            expr.kind = ExprKind::Constant(name.ident.clone().into(), None);
        }
        let (ty, data) = self.infer(expr);
        expr.ty = ty;
        data
    }

    fn infer(&mut self, expr: &mut Expr) -> (TypeVar, bool) {
        match &mut expr.kind {
            ExprKind::Int(literal, _) => {
                if let Some(ty) = ScalarType::from_name(literal.suffix()) {
                    self.refuse_position(ty, literal.span());
                }
                let ty = self.literal(literal.suffix(), Types::integer);
                self.use_as(ty, Class::Number, expr.extent);
                (ty, false)
            }
            ExprKind::Float(literal) => {
                let ty = self.literal(literal.suffix(), Types::float);
                self.use_as(ty, Class::Float, expr.extent);
                (ty, false)
            }
            ExprKind::Bool(_) => (self.types.known(ScalarType::Element(DType::Bool)), false),
            ExprKind::Constant(path, Some(ty)) => {
                let known = self.types.known(*ty);
                if ty.is_parameter() {
                    self.constant_of_parameter(path, known, expr.extent);
                }
                (known, false)
            }
            ExprKind::Constant(_, None) => (self.types.foreign(), false),
            ExprKind::Invalid(_) => {
                self.incomplete_body = true;
                (self.types.foreign(), false)
            }
            ExprKind::Name(name) => self.name(name),
            ExprKind::Load(load) => (self.load(load), true),
            ExprKind::Unary(op, operand) => {
                let data = self.expression(operand);
                self.use_prefix(*op, operand);
                (operand.ty, data)
            }
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right),
            ExprKind::Call(method, receiver, arguments) => self.call(*method, receiver, arguments),
            ExprKind::Function(path, arguments) => {
                self.callees.push(path.clone());
                (self.types.foreign(), self.arguments(arguments))
            }
            ExprKind::Cast(operand, ty, span) => {
                let data = self.expression(operand);
                self.refuse_position(*ty, *span);
                let known = self.types.known(*ty);
                // Nothing is cast to `bool`.
                self.use_as(known, Class::Number, expr.extent);
                (known, data)
            }
            ExprKind::If(node) => self.if_value(node),
            ExprKind::Block(block) => self.block(block),
            ExprKind::Paren(inner) => {
                let data = self.expression(inner);
                (inner.ty, data)
            }
        }
    }

    /// The arguments of a `#[tensor_fn]`, whose types rustc alone knows. Whether one depends on data.
    fn arguments(&mut self, arguments: &mut [Expr]) -> bool {
        let mut data = false;
        for argument in arguments {
            data |= self.expression(argument);
            // The function decides a type that is not known here.
            if self.types.decided(argument.ty).is_none() {
                let open = self.types.foreign();
                self.types.unify(argument.ty, open);
            }
        }
        data
    }

    /// A constant such as `T::MAX`.
    fn constant_of_parameter(&mut self, path: &syn::Path, ty: TypeVar, extent: Extent) {
        let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        match Class::of_constant(&name) {
            Some(_) if self.is_function => self.diagnostics.error_over(
                extent,
                "a generic `#[tensor_fn]` has no constants of its type parameter",
                "take it as an argument",
            ),
            Some(class) => self.use_as(ty, class, extent),
            None => self.diagnostics.error_over(
                extent,
                format!("a type parameter has no constant `{name}`"),
                "there are MIN and MAX, and for floats INFINITY, NEG_INFINITY, NAN, EPSILON and MIN_POSITIVE",
            ),
        }
    }

    /// Reports types that a `#[tensor_fn]` cannot name: `usize` and `isize`, and in a cast its own parameters.
    fn refuse_position(&self, ty: ScalarType, span: Span) {
        if self.is_function && ty.is_parameter() {
            self.diagnostics.error_at(
                span,
                format!("a generic `#[tensor_fn]` does not convert to `{ty}`"),
                "convert in the kernel that calls it",
            );
        }
        if self.is_function && !ty.is_element() {
            self.diagnostics.error_at(
                span,
                format!("a `#[tensor_fn]` does not compute with `{ty}`"),
                "use `i64`, and convert in the kernel: `f(i as i64)`",
            );
        }
    }

    fn literal(&mut self, suffix: &str, open: fn(&mut Types) -> TypeVar) -> TypeVar {
        match ScalarType::from_name(suffix) {
            Some(ty) => self.types.known(ty),
            None => open(&mut self.types),
        }
    }

    fn name(&mut self, name: &mut Name) -> (TypeVar, bool) {
        let Some(id) = self.find(&name.ident) else {
            self.unknown_name(&name.ident);
            return (self.types.foreign(), false);
        };
        name.binding = Some(id);
        match &self.bindings[id.0].kind {
            BindingKind::Dim(_) | BindingKind::Loop => (self.types.known(ScalarType::Usize), false),
            BindingKind::Scalar(ty) | BindingKind::Accumulator { ty } => (*ty, true),
            BindingKind::Let { ty, data } => (*ty, *data),
            BindingKind::Tensor(tensor) => {
                let ident = &name.ident;
                if tensor.ty.is_some() {
                    self.diagnostics.error(
                        ident,
                        format!("the tensor `{ident}` is used without indices"),
                        format!("name one element, as in `{ident}[[{}]]`", tensor.example_indices()),
                    );
                }
                (self.types.foreign(), true)
            }
        }
    }

    /// Reports a name that stands for nothing.
    pub(super) fn unknown_name(&self, ident: &Ident) {
        let perhaps_a_dim = ident.to_string().starts_with(|first: char| first.is_ascii_uppercase());
        if self.incomplete && perhaps_a_dim {
            return;
        }
        if let Some(similar) = self.in_other_case(ident) {
            self.diagnostics.error(
                ident,
                format!("nothing is named `{ident}` here"),
                format!("write `{similar}`, as it is declared"),
            );
            return;
        }
        if self.is_function {
            self.diagnostics.error(
                ident,
                format!("nothing is named `{ident}` here"),
                "use an argument, a `let`, or a constant of the module in UPPER_CASE",
            );
            return;
        }
        self.diagnostics.error(
            ident,
            format!("nothing is named `{ident}` here"),
            format!(
                "use an argument, a `let`, a loop variable, a dimension (there are: {}), or a constant of the \
                 module in UPPER_CASE",
                self.dim_names()
            ),
        );
    }

    fn load(&mut self, load: &mut Load) -> TypeVar {
        for index in &mut load.indices {
            self.expression(index);
            self.expect_known(index, ScalarType::Usize);
        }
        let Some(id) = self.tensor(&load.tensor.ident, load.indices.len(), load.brackets) else {
            return self.types.foreign();
        };
        load.tensor.binding = Some(id);
        let BindingKind::Tensor(tensor) = &mut self.bindings[id.0].kind else { return self.types.foreign() };
        tensor.read = true;
        match tensor.ty.as_ref().map(|ty| ty.element) {
            Some(element) => self.types.known(element),
            None => self.types.foreign(),
        }
    }

    /// The tensor that is indexed, after checking the number of indices.
    pub(super) fn tensor(&self, ident: &Ident, indices: usize, brackets: Span) -> Option<BindingId> {
        let Some(id) = self.find(ident) else {
            self.diagnostics.error(
                ident,
                format!("there is no tensor `{ident}` here"),
                format!("take it as an argument, or declare it: `let mut {ident}: Tensor<f32, N> = Tensor::zeros();`"),
            );
            return None;
        };
        let BindingKind::Tensor(tensor) = &self.bindings[id.0].kind else {
            let what = self.bindings[id.0].kind.describe();
            self.diagnostics.error(
                ident,
                format!("`{ident}` is {what} and has no elements"),
                format!("use it without brackets: `{ident}`"),
            );
            return None;
        };
        let rank = tensor.ty.as_ref().map_or(indices, |ty| ty.dims.len());
        if rank != indices {
            self.diagnostics.error_at(
                brackets,
                format!(
                    "`{ident}` has {}, and {} given",
                    count(rank, "dimension"),
                    if indices == 1 { "1 index is".to_owned() } else { format!("{indices} indices are") }
                ),
                format!("write `{ident}[[{}]]`", tensor.example_indices()),
            );
        }
        Some(id)
    }

    fn binary(&mut self, op: BinaryOperator, left: &mut Expr, right: &mut Expr) -> (TypeVar, bool) {
        let data = self.expression(left) | self.expression(right);
        if op.is_logic() {
            self.expect_known(left, ScalarType::Element(DType::Bool));
            self.expect_known(right, ScalarType::Element(DType::Bool));
        } else if self.types.decided(left.ty).is_none() && self.types.decided(right.ty).is_some() {
            self.expect(left, right.ty);
        } else {
            self.expect(right, left.ty);
        }
        self.use_operator(op, left);
        let ty =
            if op.is_comparison() { self.types.known(ScalarType::Element(DType::Bool)) } else { left.ty };
        (ty, data)
    }

    fn call(&mut self, method: Method, receiver: &mut Expr, arguments: &mut [Expr]) -> (TypeVar, bool) {
        let mut data = self.expression(receiver);
        for argument in arguments.iter_mut() {
            data |= self.expression(argument);
            if method != Method::Powi {
                self.expect(argument, receiver.ty);
            }
        }
        self.expect_float(method, receiver);
        self.use_method(method, receiver);
        if let (Method::Powi, [exponent]) = (method, arguments)
            && exponent.as_literal_exponent().is_none()
        {
            self.diagnostics.error_over(
                exponent.extent,
                "the exponent of `powi` is a whole number that is written out",
                "write `x.powi(3)`, or `x.powf(y)` for an exponent that varies",
            );
        }
        (receiver.ty, data)
    }

    fn if_value(&mut self, node: &mut IfExpr) -> (TypeVar, bool) {
        let mut data = self.expression(&mut node.condition);
        self.expect_known(&node.condition, ScalarType::Element(DType::Bool));
        let (then, then_data) = self.block(&mut node.then);
        let (_, otherwise_data) = self.block(&mut node.otherwise);
        self.expect(&node.otherwise.value, then);
        data |= then_data | otherwise_data;
        (then, data)
    }

    pub(super) fn block(&mut self, block: &mut BlockExpr) -> (TypeVar, bool) {
        self.scoped(|checker| {
            for node in &mut block.lets {
                let data = checker.expression(&mut node.value);
                if let Some((ty, span)) = node.annotation {
                    checker.refuse_position(ty, span);
                    checker.expect_known(&node.value, ty);
                }
                let kind = BindingKind::Let { ty: node.value.ty, data };
                node.name.binding = Some(checker.declare(&node.name.ident, kind));
            }
            let data = checker.expression(&mut block.value);
            (block.value.ty, data)
        })
    }
}

/// `EPSILON`, but not `M`: a single letter that is no dimension is a mistake.
pub(super) fn is_constant_name(ident: &Ident) -> bool {
    let name = ident.to_string();
    name.chars().count() > 1
        && name.chars().next().is_some_and(|first| first.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
