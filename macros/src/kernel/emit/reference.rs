//! The definition as ordinary Rust.
//!
//! The user's loops, statements and operators keep their tokens and spans. Operations that Rust computes differently from a
//! program go through functions of the crate: transcendental functions, integers (which wrap), narrow floats,
//! and subscripts (which end in an `Err` rather than in a panic).

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use tilewright_vocabulary::{BinaryOp, UnaryOp};

use super::{constant_path, local, numbered, rust_type, text};
use crate::kernel::ast::{
    Allocate, Assignment, BinaryOperator, Binding, BindingKind, BlockExpr, Expr, ExprKind, For, Function,
    Kernel, Load, Name, ParameterKind, Statement, Store, Tensor, Update,
};
use crate::kernel::class;
use crate::kernel::types::{ScalarType, Types};

/// `fn __loops`: dimensions, scalars and tensors in, results written in place.
pub(super) fn loops(kernel: &Kernel) -> TokenStream {
    let cx = Emitter::new(kernel);
    let dims = local("dims");
    let arguments = kernel.parameters.iter().filter_map(argument);
    let outputs = kernel.returns.iter().take(kernel.results.len()).enumerate().map(|(position, ty)| {
        let (output, rank) = (numbered("output", position), ty.dims.len());
        let element = rust_type(ty.element, ty.element_span);
        quote!(#output: ::tilewright::__private::Elements<&mut [#element], #rank>)
    });
    let sizes = sizes(kernel, &dims);
    let body = cx.statements(&kernel.body);
    let generics = class::declared(&kernel.generics, None);
    quote! {
        #[doc(hidden)]
        #[allow(
            non_snake_case, unused_parens, unused_braces,
            clippy::all, clippy::pedantic, clippy::nursery
        )]
        fn __loops #generics(
            #dims: &[i64], #(#arguments,)* #(#outputs,)*
        ) -> ::tilewright::__private::Result<(), ::tilewright::__private::Error> {
            #sizes
            #body
            ::tilewright::__private::Ok(())
        }
    }
}

/// The dimensions as `usize`s under the user's names. Where such a name is that of a constant in scope, the pattern is the
/// constant: the size must be equal to it.
pub(super) fn sizes(kernel: &Kernel, dims: &Ident) -> TokenStream {
    let sizes = kernel.dims.iter().enumerate().map(|(position, dim)| {
        let (name, text) = (&dim.name, text(&dim.name));
        quote! {
            #[allow(unused_variables, irrefutable_let_patterns)]
            let #name = ::tilewright::__private::size(#dims, #position) else {
                return ::tilewright::__private::Err(::tilewright::__private::constant_dimension(#text, #dims, #position));
            };
        }
    });
    quote!(#(#sizes)*)
}

/// The body of a `#[tensor_fn]` as ordinary Rust.
pub(super) fn body(function: &Function) -> TokenStream {
    Emitter { types: &function.types, bindings: &function.bindings }.block(&function.body)
}

fn argument(parameter: &crate::kernel::ast::Parameter) -> Option<TokenStream> {
    let name = &parameter.name;
    match &parameter.kind {
        ParameterKind::Tensor { ty, mutable } => {
            let (element, rank) = (rust_type(ty.element, ty.element_span), ty.dims.len());
            let (mutability, reference) =
                if *mutable { (Some(quote!(mut)), quote!(&mut)) } else { (None, quote!(&)) };
            Some(quote!(#mutability #name: ::tilewright::__private::Elements<#reference [#element], #rank>))
        }
        ParameterKind::Scalar(ty) => {
            let ty = rust_type(*ty, name.span());
            Some(quote!(#name: #ty))
        }
        ParameterKind::Size | ParameterKind::Invalid => None,
    }
}

struct Emitter<'a> {
    types: &'a Types,
    bindings: &'a [Binding],
}

impl<'a> Emitter<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        Emitter { types: &kernel.types, bindings: &kernel.bindings }
    }

    fn statements(&self, statements: &[Statement]) -> TokenStream {
        statements.iter().map(|statement| self.statement(statement)).collect()
    }

    fn statement(&self, statement: &Statement) -> TokenStream {
        match statement {
            Statement::Allocate(node) => self.allocate(node),
            Statement::Let(node) => {
                let (mutable, name) = (&node.mutable, &node.name.ident);
                let value = self.value(&node.value);
                let ty = node.annotation.map(|(ty, span)| rust_type(ty, span)).map(|ty| quote!(: #ty));
                quote!(let #mutable #name #ty = #value;)
            }
            Statement::For(node) => self.for_loop(node),
            Statement::Store(node) => self.store(node),
            Statement::Update(node) => self.update(node),
            Statement::If(node) => {
                let (condition, then) = (self.value(&node.condition), self.statements(&node.then));
                let otherwise = node.otherwise.as_ref().map(|body| {
                    let body = self.statements(body);
                    quote!(else { #body })
                });
                quote_spanned!(node.span=> if #condition { #then } #otherwise)
            }
            Statement::Block(body) => {
                let body = self.statements(body);
                quote!({ #body })
            }
            Statement::Invalid(_, tokens) => tokens.clone(),
        }
    }

    fn allocate(&self, node: &Allocate) -> TokenStream {
        let (name, mutable) = (&node.name.ident, &node.mutable);
        let fill = match &node.fill {
            Some(value) => self.value(value),
            None => quote_spanned!(node.span=> ::tilewright::__private::zero()),
        };
        let Some(Tensor { ty, result, .. }) = self.tensor(&node.name) else {
            return quote!(let #mutable #name = #fill;);
        };
        if let Some(position) = result {
            let output = numbered("output", *position);
            return quote_spanned!(node.span=> let #mutable #name = #output.filled(#fill););
        }
        let Some(ty) = ty else { return quote!(let #mutable #name = #fill;) };
        let text = text(name);
        let (element, rank) = (rust_type(ty.element, ty.element_span), ty.dims.len());
        let dims = ty.dims.iter().map(|dim| self.dim(dim));
        quote_spanned! {node.span=>
            let #mutable #name =
                ::tilewright::__private::intermediate::<#element, #rank>(#text, [#(#dims),*], #fill)?;
        }
    }

    fn tensor(&self, name: &Name) -> Option<&Tensor> {
        match &self.bindings[name.binding?.0].kind {
            BindingKind::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    fn dim(&self, dim: &crate::kernel::ast::Dim) -> TokenStream {
        use crate::kernel::ast::Dim;
        match dim {
            Dim::Symbol(name) => {
                let ident = &name.ident;
                quote!(#ident)
            }
            Dim::Fixed(extent) => {
                let extent = proc_macro2::Literal::i64_unsuffixed(*extent);
                quote!(#extent)
            }
            Dim::Computed(expr) => self.value(expr),
        }
    }

    fn for_loop(&self, node: &For) -> TokenStream {
        let variable = &node.variable.ident;
        let (start, end) = (self.value(&node.start), self.value(&node.end));
        let dots = if node.inclusive {
            quote_spanned!(node.range_span=> ..=)
        } else {
            quote_spanned!(node.range_span=> ..)
        };
        let range = match &node.step {
            None => quote!(#start #dots #end),
            Some(step) => {
                let step = self.value(step);
                quote_spanned!(node.range_span=> ::tilewright::__private::stepped(#start #dots #end, #step)?)
            }
        };
        let body = self.statements(&node.body);
        // The second `let` makes the variable a `usize` even where only literals bound it.
        quote_spanned! {node.for_span=>
            for #variable in #range {
                let #variable: usize = #variable;
                #body
            }
        }
    }

    fn store(&self, node: &Store) -> TokenStream {
        let tensor = &node.tensor.ident;
        let indices = node.indices.iter().map(|index| self.value(index));
        let value = self.value(&node.value);
        let indices = quote_spanned!(node.brackets=> [#(#indices),*]);
        let function = match node.op {
            Assignment::Set => return quote_spanned!(node.op_span=> #tensor.store(#indices, #value)?;),
            Assignment::Extremum(op) => op.scalar_function(),
            Assignment::Compound(op) => op.op().scalar_function(),
        };
        let function = Ident::new(function, node.op_span);
        quote_spanned!(node.op_span=> #tensor.update(#indices, #value, ::tilewright::__private::#function)?;)
    }

    fn update(&self, node: &Update) -> TokenStream {
        let (scalar, value, span) = (&node.scalar.ident, self.value(&node.value), node.op_span);
        let ty = self.types.resolve(node.value.ty);
        match node.op {
            Assignment::Set => quote_spanned!(span=> #scalar = #value;),
            Assignment::Extremum(op) => {
                let updated = function(op.scalar_function(), ty, &[quote!(#scalar), value], span);
                quote_spanned!(span=> #scalar = #updated;)
            }
            Assignment::Compound(op) => {
                let updated = binary(op, ty, quote!(#scalar), quote!((#value)), span);
                quote_spanned!(span=> #scalar = #updated;)
            }
        }
    }

    fn value(&self, expr: &Expr) -> TokenStream {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Int(literal, value) => match self.parameter(expr) {
                Some(ty) => super::integer_literal(ty, *value, span),
                None => quote!(#literal),
            },
            ExprKind::Float(literal) => match self.parameter(expr) {
                Some(ty) => super::float_literal(ty, literal, span),
                None => quote!(#literal),
            },
            ExprKind::Bool(value) => quote_spanned!(span=> #value),
            ExprKind::Name(name) => {
                let ident = &name.ident;
                quote!(#ident)
            }
            ExprKind::Constant(path, _) => constant_path(path),
            ExprKind::Load(load) => self.load(load),
            ExprKind::Unary(op, operand) => self.unary(*op, operand, span),
            ExprKind::Binary(op, left, right) => {
                let ty = self.types.resolve(left.ty);
                binary(*op, ty, self.value(left), self.value(right), span)
            }
            ExprKind::Call(method, receiver, arguments) => {
                let ty = self.types.resolve(receiver.ty);
                let operands = std::iter::once(&**receiver).chain(arguments);
                let operands: Vec<_> = operands.map(|operand| self.value(operand)).collect();
                function(method.name(), ty, &operands, span)
            }
            ExprKind::Function(path, arguments) => {
                let arguments = arguments.iter().map(|argument| self.value(argument));
                quote_spanned!(span=> #path(#(#arguments),*))
            }
            ExprKind::Cast(operand, ty, ty_span) => {
                let is_parameter = self.parameter(operand).is_some();
                let (mut operand, rust_type) = (self.value(operand), rust_type(*ty, *ty_span));
                if is_parameter {
                    operand = quote_spanned!(span=> ::tilewright::__private::Of(#operand));
                }
                if ty.is_parameter() {
                    quote_spanned!(span=> ::tilewright::__private::cast_to_parameter::<#rust_type, _>(#operand))
                } else if ty.is_element() {
                    quote_spanned!(span=> ::tilewright::__private::cast::<#rust_type, _>(#operand))
                } else {
                    quote_spanned!(span=> ::tilewright::__private::index::cast::<#rust_type, _>(#operand)?)
                }
            }
            ExprKind::If(node) => {
                let condition = self.value(&node.condition);
                let (then, otherwise) = (self.block(&node.then), self.block(&node.otherwise));
                quote_spanned!(span=> if #condition #then else #otherwise)
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::Paren(inner) => {
                let inner = self.value(inner);
                quote_spanned!(span=> (#inner))
            }
            ExprKind::Invalid(tokens) => tokens.clone(),
        }
    }

    /// The type parameter that is the type of a value.
    fn parameter(&self, expr: &Expr) -> Option<ScalarType> {
        self.types.resolve(expr.ty).filter(|ty| ty.is_parameter())
    }

    fn load(&self, load: &Load) -> TokenStream {
        let tensor = &load.tensor.ident;
        let indices = load.indices.iter().map(|index| self.value(index));
        quote_spanned!(load.brackets=> #tensor.load([#(#indices),*])?)
    }

    fn unary(&self, op: UnaryOp, operand: &Expr, span: Span) -> TokenStream {
        let value = self.value(operand);
        let literal = matches!(operand.kind, ExprKind::Int(..) | ExprKind::Float(_));
        let ty = self.types.resolve(operand.ty);
        let native = ty.is_none_or(ScalarType::is_native_float);
        let literal = literal && !ty.is_some_and(ScalarType::is_parameter);
        match op {
            UnaryOp::Not if !ty.is_some_and(ScalarType::is_parameter) => quote_spanned!(span=> !#value),
            UnaryOp::Neg if literal || native => quote_spanned!(span=> -#value),
            _ => function(op.text(), ty, &[value], span),
        }
    }

    fn block(&self, block: &BlockExpr) -> TokenStream {
        let lets = block.lets.iter().map(|node| {
            let (name, value) = (&node.name.ident, self.value(&node.value));
            let ty = node.annotation.map(|(ty, span)| rust_type(ty, span)).map(|ty| quote!(: #ty));
            quote!(let #name #ty = #value;)
        });
        let value = self.value(&block.value);
        quote!({ #(#lets)* #value })
    }
}

/// The operator where Rust computes it as programs do, otherwise a function of the crate.
///
/// Constants from outside, whose type is not known here, are computed by the operator.
fn binary(
    op: BinaryOperator,
    ty: Option<ScalarType>,
    left: TokenStream,
    right: TokenStream,
    span: Span,
) -> TokenStream {
    use BinaryOp::{Add, And, Div, Mul, Or, Rem, Sub, Xor};
    let native = op.is_logic()
        || match op.op() {
            And | Or | Xor => !ty.is_some_and(ScalarType::is_parameter),
            Add | Mul if ty == Some(ScalarType::Usize) => true,
            Add | Sub | Mul | Div | Rem => ty.is_none_or(ScalarType::is_native_float),
            other => other.is_comparison(),
        };
    if native {
        let op = op.token(span);
        return quote!(#left #op #right);
    }
    function(op.op().scalar_function(), ty, &[left, right], span)
}

/// A call of the crate's arithmetic; that of `usize` and `isize` can fail.
fn function(name: &str, ty: Option<ScalarType>, arguments: &[TokenStream], span: Span) -> TokenStream {
    let name = Ident::new(name, span);
    match ty {
        Some(ScalarType::Usize | ScalarType::Isize) => {
            quote_spanned!(span=> ::tilewright::__private::index::#name(#(#arguments),*)?)
        }
        _ => quote_spanned!(span=> ::tilewright::__private::#name(#(#arguments),*)),
    }
}
