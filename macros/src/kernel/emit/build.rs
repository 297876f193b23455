//! The definition as calls of the builder, which make the program when they run.

use super::{constant_path, dtype, location, numbered, text};
use crate::kernel::ast::{
    Allocate, Assignment, BinaryOperator, Binding, BindingKind, BlockExpr, Dim, Expr, ExprKind, For, Kernel,
    Let, Load, Method, Name, ParameterKind, Statement, Store, Update,
};
use crate::kernel::class;
use crate::kernel::types::{ScalarType, Types};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use tilewright_vocabulary::{BinaryOp, DType, UnaryOp};

/// `fn build`.
pub(super) fn build(kernel: &Kernel) -> TokenStream {
    let cx = Emitter::new(kernel);
    let dims = kernel.dims.iter().enumerate().map(|(position, dim)| {
        let (name, text) = (dimension(position), text(&dim.name));
        quote_hygienic!(let #name = builder.dim(#text);)
    });
    let scalars = kernel.parameters.iter().filter_map(|parameter| match &parameter.kind {
        ParameterKind::Scalar(ty) => {
            let (name, text, dtype) = (&parameter.name, text(&parameter.name), dtype(*ty));
            Some(quote_hygienic!(let #name = builder.scalar(#text, #dtype);))
        }
        _ => None,
    });
    let tensors = kernel.parameters.iter().filter_map(|parameter| match &parameter.kind {
        ParameterKind::Tensor { ty, mutable } => {
            let (name, text, dtype) = (&parameter.name, text(&parameter.name), dtype(ty.element));
            let (shape, rank) = (ty.dims.iter().map(|dim| cx.dim(dim)), ty.dims.len());
            let declare = match (mutable, parameter.is_constant) {
                (true, _) => "inout",
                (false, true) => "constant",
                (false, false) => "input",
            };
            let declare = Ident::new(declare, Span::call_site());
            Some(quote_hygienic! {
                let #name = { let shape: [::tilewright::__private::Value; #rank] = [#(#shape),*]; builder.#declare(#text, #dtype, &shape) };
            })
        }
        _ => None,
    });
    let accuracy = kernel.accuracy.map(|accuracy| quote_hygienic!(builder.accuracy(#accuracy);));
    let padding = kernel.multiplies_padding.then(|| quote_hygienic!(builder.multiply_padding();));
    let body = cx.statements(&kernel.body);
    let outputs = kernel.results.iter().map(|name| &name.ident);
    let generics = class::declared(&kernel.generics, None);
    quote_hygienic! {
        #[allow(
            non_snake_case, unused_variables, unused_parens, unused_braces,
            clippy::all, clippy::pedantic, clippy::nursery
        )]
        fn build #generics(builder: &mut ::tilewright::__private::KernelBuilder) {
            #(#dims)*
            #(#scalars)*
            #(#tensors)*
            #accuracy
            #padding
            #body
            #(builder.output(#outputs);)*
        }
    }
}

/// The local that holds a dimension: not the user's name, which may also be that of a constant.
fn dimension(position: usize) -> Ident {
    numbered("dimension", position)
}

/// Emits calls of the builder for statements and values.
pub(super) struct Emitter<'a> {
    pub(super) types: &'a Types,
    pub(super) bindings: &'a [Binding],
    /// Whether the code can name the type parameters. That of a `#[tensor_fn]` cannot: its literals take the types that they meet.
    pub(super) knows_types: bool,
}

impl<'a> Emitter<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        Emitter { types: &kernel.types, bindings: &kernel.bindings, knows_types: true }
    }

    fn statements(&self, statements: &[Statement]) -> TokenStream {
        statements.iter().map(|statement| self.statement(statement)).collect()
    }

    fn statement(&self, statement: &Statement) -> TokenStream {
        match statement {
            Statement::Allocate(node) => self.allocate(node),
            Statement::Let(node) => self.binding(node),
            Statement::For(node) => self.for_loop(node),
            Statement::Store(node) => self.store(node),
            Statement::Update(node) => self.update(node),
            Statement::If(node) => {
                let condition = self.value(&node.condition);
                let then = self.statements(&node.then);
                let otherwise = node.otherwise.as_ref().map(|body| self.statements(body));
                let location = location(node.span);
                quote_hygienic! {
                    let condition = #condition;
                    builder.if_else(condition, #location, |builder| { #then }, |builder| { #otherwise });
                }
            }
            Statement::Block(body) => {
                let body = self.statements(body);
                quote_hygienic!({ #body })
            }
            Statement::Invalid(..) => unreachable!("a definition with errors is not emitted"),
        }
    }

    fn allocate(&self, node: &Allocate) -> TokenStream {
        let (name, text) = (&node.name.ident, node.name.text());
        let ty = match node.name.binding.map(|id| &self.bindings[id.0].kind) {
            Some(BindingKind::Tensor(tensor)) => tensor.ty.as_ref(),
            _ => None,
        };
        let Some(ty) = ty else { unreachable!("tensors of a checked definition have types") };
        let dtype_tokens = dtype(ty.element);
        let (shape, rank) = (ty.dims.iter().map(|dim| self.dim(dim)), ty.dims.len());
        let fill = match &node.fill {
            Some(value) => self.value(value),
            None if ty.element == ScalarType::Element(DType::Bool) => {
                quote_hygienic!(::tilewright::__private::Value::bool(false))
            }
            None if ty.element.is_parameter() => {
                quote_hygienic!(::tilewright::__private::Value::int(0).of_type(#dtype_tokens))
            }
            None if ty.element.is_float() => {
                quote_hygienic!(::tilewright::__private::Value::typed_float(#dtype_tokens, 0.0))
            }
            None => quote_hygienic!(::tilewright::__private::Value::typed_int(#dtype_tokens, 0)),
        };
        let location = location(node.span);
        quote_hygienic! {
            let #name = {
                let shape: [::tilewright::__private::Value; #rank] = [#(#shape),*];
                let fill = #fill;
                builder.tensor(#text, #dtype_tokens, &shape, ::tilewright::__private::Some(fill), #location)
            };
        }
    }

    fn dim(&self, dim: &Dim) -> TokenStream {
        match dim {
            Dim::Symbol(name) => self.name(name),
            Dim::Fixed(extent) => integer(ScalarType::Usize, *extent),
            Dim::Computed(expr) => self.value(expr),
        }
    }

    fn binding(&self, node: &Let) -> TokenStream {
        let (name, text) = (&node.name.ident, node.name.text());
        let (value, location) = (self.value(&node.value), location(name.span()));
        if node.mutable.is_some() {
            return quote_hygienic! {
                let #name = { let value = #value; builder.accumulator(#text, value, #location) };
            };
        }
        match &node.value.kind {
            ExprKind::Int(..) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Constant(..) => {
                quote_hygienic!(let #name = #value;)
            }
            _ => quote_hygienic!(let #name = { let value = #value; builder.bind(#text, value, #location) };),
        }
    }

    fn for_loop(&self, node: &For) -> TokenStream {
        let (name, text) = (&node.variable.ident, node.variable.text());
        let start = self.value(&node.start);
        let mut end = self.value(&node.end);
        if node.inclusive {
            let one = integer(ScalarType::Usize, 1);
            end = quote_hygienic!((#end).binary(::tilewright::__private::BinaryOp::Add, #one));
        }
        let body = self.statements(&node.body);
        let location = location(node.for_span);
        match &node.step {
            Some(Expr { kind: ExprKind::Int(_, step), .. }) => quote_hygienic! {{
                let (start, end) = (#start, #end);
                builder.for_loop(#text, start, end, #step, #location, |builder, #name| { #body });
            }},
            None => quote_hygienic! {{
                let (start, end) = (#start, #end);
                builder.for_loop(#text, start, end, 1, #location, |builder, #name| { #body });
            }},
            // The builder's steps are constants; a parameter's steps are counted.
            Some(step) => {
                let step = self.value(step);
                quote_hygienic! {{
                    let (start, end, step) = (#start, #end, #step);
                    let count = ::tilewright::__private::steps(&start, &end, &step);
                    let zero = ::tilewright::__private::Value::int(0);
                    builder.for_loop(#text, zero, count, 1, #location, |builder, counter| {
                        let #name = ::tilewright::__private::stepped_index(&start, &counter, &step);
                        #body
                    });
                }}
            }
        }
    }

    fn store(&self, node: &Store) -> TokenStream {
        let tensor = &node.tensor.ident;
        let (indices, rank) = (node.indices.iter().map(|index| self.value(index)), node.indices.len());
        let old = quote_hygienic!(builder.load(#tensor, &indices));
        let (op, value) = update(node.op, self.value(&node.value), &old);
        let location = location(node.op_span);
        quote_hygienic! {{
            let indices: [::tilewright::__private::Value; #rank] = [#(#indices),*];
            let value = #value;
            builder.store(#tensor, &indices, ::tilewright::__private::UpdateOp::#op, value, #location);
        }}
    }

    fn update(&self, node: &Update) -> TokenStream {
        let scalar = &node.scalar.ident;
        let old = quote_hygienic!(builder.read(#scalar));
        let (op, value) = update(node.op, self.value(&node.value), &old);
        let location = location(node.op_span);
        quote_hygienic! {{
            let value = #value;
            builder.update(#scalar, ::tilewright::__private::UpdateOp::#op, value, #location);
        }}
    }

    fn value(&self, expr: &Expr) -> TokenStream {
        match &expr.kind {
            ExprKind::Int(_, value) => self.integer(expr, *value),
            ExprKind::Float(literal) => self.float(expr, literal, false),
            ExprKind::Bool(value) => quote_hygienic!(::tilewright::__private::Value::bool(#value)),
            ExprKind::Name(name) => self.name(name),
            ExprKind::Constant(path, Some(ty)) if ty.is_parameter() => {
                quote_hygienic!(::tilewright::__private::value(::tilewright::__private::Of(#path)))
            }
            ExprKind::Constant(path, _) => {
                let path = constant_path(path);
                quote_hygienic!(::tilewright::__private::value(#path))
            }
            ExprKind::Load(load) => self.load(load),
            ExprKind::Unary(op, operand) => self.unary(*op, operand),
            ExprKind::Binary(op, left, right) => binary(*op, &self.value(left), &self.value(right)),
            ExprKind::Call(method, receiver, arguments) => self.call(*method, receiver, arguments),
            ExprKind::Function(path, arguments) => {
                let arguments = arguments.iter().map(|argument| self.value(argument));
                quote_hygienic!(#path::__value(&[#(#arguments),*]))
            }
            ExprKind::Cast(operand, ty, _) => {
                let (operand, dtype) = (self.value(operand), dtype(*ty));
                quote_hygienic!((#operand).cast(#dtype))
            }
            ExprKind::If(node) => {
                let condition = self.value(&node.condition);
                let (then, otherwise) = (self.block(&node.then), self.block(&node.otherwise));
                quote_hygienic!((#condition).select(#then, #otherwise))
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::Paren(inner) => self.value(inner),
            ExprKind::Invalid(_) => unreachable!("a definition with errors is not emitted"),
        }
    }

    fn integer(&self, expr: &Expr, value: i64) -> TokenStream {
        match self.types.resolve(expr.ty) {
            Some(ty) if ty.is_parameter() && self.knows_types => {
                let literal = super::integer_literal(ty, value, Span::mixed_site());
                quote_hygienic!(::tilewright::__private::value(::tilewright::__private::Of(#literal)))
            }
            Some(ty) if !ty.is_parameter() => integer(ty, value),
            _ => {
                let value = Literal::i64_unsuffixed(value);
                quote_hygienic!(::tilewright::__private::Value::int(#value))
            }
        }
    }

    /// Literals are rounded once, from their decimal digits to their type.
    fn float(&self, expr: &Expr, literal: &syn::LitFloat, negative: bool) -> TokenStream {
        let digits: TokenStream = literal.base10_digits().parse().unwrap_or_default();
        let digits = if negative { quote_hygienic!(-#digits) } else { digits };
        match self.types.resolve(expr.ty) {
            Some(ScalarType::Element(DType::F32)) => quote_hygienic! {
                ::tilewright::__private::Value::typed_float(
                    ::tilewright::__private::DType::F32,
                    ::tilewright::__private::single(#digits as f32),
                )
            },
            Some(ty) if ty.is_parameter() && self.knows_types => {
                let literal = super::float_literal(ty, literal, Span::mixed_site());
                quote_hygienic!(::tilewright::__private::value(::tilewright::__private::Of(#literal)))
            }
            Some(ty) if !ty.is_parameter() => {
                let dtype = dtype(ty);
                quote_hygienic!(::tilewright::__private::Value::typed_float(#dtype, #digits as f64))
            }
            _ => quote_hygienic!(::tilewright::__private::Value::float(#digits as f64)),
        }
    }

    fn name(&self, name: &Name) -> TokenStream {
        let ident = &name.ident;
        match name.binding.map(|id| &self.bindings[id.0].kind) {
            Some(BindingKind::Accumulator { .. }) => {
                quote_hygienic!(builder.read(#ident))
            }
            Some(BindingKind::Dim(position)) => {
                let ident = dimension(*position);
                quote_hygienic!(#ident.clone())
            }
            _ => quote_hygienic!(#ident.clone()),
        }
    }

    fn load(&self, load: &Load) -> TokenStream {
        let tensor = &load.tensor.ident;
        let indices = load.indices.iter().map(|index| self.value(index));
        quote_hygienic!(builder.load(#tensor, &[#(#indices),*]))
    }

    fn unary(&self, op: UnaryOp, operand: &Expr) -> TokenStream {
        // The element type of a type parameter, and so the value of its literals, is known when the program is built.
        let folded = !self.types.resolve(operand.ty).is_some_and(ScalarType::is_parameter);
        match (op, &operand.kind) {
            (UnaryOp::Neg, ExprKind::Int(_, value)) if folded => self.integer(operand, -value),
            (UnaryOp::Neg, ExprKind::Float(literal)) if folded => self.float(operand, literal, true),
            _ => {
                let operand = self.value(operand);
                let op = variant(op);
                quote_hygienic!((#operand).unary(::tilewright::__private::UnaryOp::#op))
            }
        }
    }

    fn call(&self, method: Method, receiver: &Expr, arguments: &[Expr]) -> TokenStream {
        let value = self.value(receiver);
        let others: Vec<_> = arguments.iter().map(|argument| self.value(argument)).collect();
        match method {
            Method::Unary(op) => {
                let op = variant(op);
                quote_hygienic!((#value).unary(::tilewright::__private::UnaryOp::#op))
            }
            Method::Binary(op) => {
                let op = variant(op);
                quote_hygienic!((#value).binary(::tilewright::__private::BinaryOp::#op, #(#others),*))
            }
            Method::MulAdd => quote_hygienic!((#value).mul_add(#(#others),*)),
            Method::Powi => {
                let exponent =
                    arguments.first().and_then(Expr::as_literal_exponent).map(Literal::i32_suffixed);
                quote_hygienic!((#value).powi(#exponent))
            }
        }
    }

    pub(super) fn block(&self, block: &BlockExpr) -> TokenStream {
        // Plain names, not bindings of the builder: nothing can change inside a value, and what stands in a
        // branch must not be evaluated outside of it.
        let lets = block.lets.iter().map(|node| {
            let (name, value) = (&node.name.ident, self.value(&node.value));
            quote_hygienic!(let #name = #value;)
        });
        let value = self.value(&block.value);
        quote_hygienic!({ #(#lets)* #value })
    }
}

/// The variant of an operator or type, which its `Debug` form names.
pub(super) fn variant(item: impl std::fmt::Debug) -> Ident {
    Ident::new(&format!("{item:?}"), Span::call_site())
}

fn integer(ty: ScalarType, value: i64) -> TokenStream {
    let (dtype, value) = (dtype(ty), Literal::i64_unsuffixed(value));
    quote_hygienic!(::tilewright::__private::Value::typed_int(#dtype, #value))
}

fn binary(op: BinaryOperator, left: &TokenStream, right: &TokenStream) -> TokenStream {
    let op = variant(op.op());
    quote_hygienic!((#left).binary(::tilewright::__private::BinaryOp::#op, #right))
}

/// The builder's update and its value. An update that the builder lacks becomes a `Set` of the changed old value.
fn update(op: Assignment, value: TokenStream, old: &TokenStream) -> (Ident, TokenStream) {
    let (name, value) = match op {
        Assignment::Set => ("Set", value),
        Assignment::Extremum(BinaryOp::Max) => ("Max", value),
        Assignment::Extremum(BinaryOp::Min) => ("Min", value),
        Assignment::Extremum(BinaryOp::Maximum) => ("Maximum", value),
        Assignment::Extremum(BinaryOp::Minimum) => ("Minimum", value),
        Assignment::Extremum(op) => ("Set", binary(BinaryOperator::Of(op), old, &value)),
        Assignment::Compound(BinaryOperator::Of(BinaryOp::Add)) => ("Add", value),
        Assignment::Compound(BinaryOperator::Of(BinaryOp::Mul)) => ("Mul", value),
        Assignment::Compound(BinaryOperator::Of(BinaryOp::Sub)) => {
            ("Add", quote_hygienic!((#value).unary(::tilewright::__private::UnaryOp::Neg)))
        }
        Assignment::Compound(op) => ("Set", binary(op, old, &value)),
    };
    (Ident::new(name, Span::call_site()), value)
}
