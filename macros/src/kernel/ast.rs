//! A kernel definition as this crate understands it: parsed from Rust, ready to be checked and emitted.
//!
//! Not a Rust syntax tree: only the forms of the kernel language are here. The parser has reported
//! all other forms, and keeps them as `Invalid` tokens, for editors.

use proc_macro2::{Ident, Span, TokenStream};
use tilewright_vocabulary::{BinaryOp, Operands, UnaryOp};

use super::class::Generic;
use super::types::{ScalarType, TypeVar, Types};
use crate::diagnostics::Extent;

/// A kernel definition.
pub(crate) struct Kernel {
    /// How far a product may be off, where it says so.
    pub(crate) accuracy: Option<f64>,
    /// Whether products with padding are formed.
    pub(crate) multiplies_padding: bool,
    pub(crate) attributes: Vec<syn::Attribute>,
    pub(crate) visibility: syn::Visibility,
    pub(crate) name: Ident,
    /// The name in records and messages: that of the function, behind that of its type if it belongs to one.
    pub(crate) title: String,
    /// The `enum` that holds what belongs to the kernel: it has the function's name, unless that is a function of a type.
    pub(crate) namespace: Ident,
    /// The type parameters; the checker narrows them.
    pub(crate) generics: Vec<Generic>,
    pub(crate) parameters: Vec<Parameter>,
    /// The types of the returned tensors, in order.
    pub(crate) returns: Vec<TensorType>,
    /// Whether something is missing from the signature because it was reported.
    pub(crate) incomplete: bool,
    /// The closing brace, where a missing result is reported.
    pub(crate) end: Span,
    pub(crate) body: Vec<Statement>,
    /// The names in the final expression.
    pub(crate) results: Vec<Name>,
    /// Filled by the checker.
    pub(crate) dims: Vec<Dimension>,
    /// Filled by the checker.
    pub(crate) bindings: Vec<Binding>,
    /// Filled by the checker.
    pub(crate) types: Types,
}

/// A `#[tensor_fn]`: a function of scalars that kernels call.
pub(crate) struct Function {
    pub(crate) attributes: Vec<syn::Attribute>,
    pub(crate) visibility: syn::Visibility,
    pub(crate) name: Ident,
    /// The type parameters; the checker narrows them.
    pub(crate) generics: Vec<Generic>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) result: ScalarType,
    pub(crate) result_span: Span,
    pub(crate) body: BlockExpr,
    /// Filled by the checker.
    pub(crate) bindings: Vec<Binding>,
    /// Filled by the checker.
    pub(crate) types: Types,
    /// The functions that it calls. Filled by the checker.
    pub(crate) callees: Vec<syn::Path>,
}

/// An argument of a `#[tensor_fn]`.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: ScalarType,
    pub(crate) ty_span: Span,
}

/// An argument of the definition.
pub(crate) struct Parameter {
    pub(crate) name: Ident,
    /// Whether it is a tensor marked `#[constant]`.
    pub(crate) is_constant: bool,
    pub(crate) kind: ParameterKind,
}

/// The kind of an argument.
pub(crate) enum ParameterKind {
    /// `&Tensor<…>`, or `&mut Tensor<…>` when `mutable`.
    Tensor { ty: TensorType, mutable: bool },
    /// `usize`: a compile-time parameter.
    Size,
    /// A run-time scalar.
    Scalar(ScalarType),
    /// Something that was reported.
    Invalid,
}

/// `Tensor<element, dims…>`
#[derive(Clone)]
pub(crate) struct TensorType {
    pub(crate) element: ScalarType,
    pub(crate) element_span: Span,
    pub(crate) dims: Vec<Dim>,
    /// `Tensor`, as the user wrote it, without its arguments.
    pub(crate) path: syn::Path,
    /// All of it, for messages.
    pub(crate) extent: Extent,
}

/// One dimension in a tensor's type.
#[derive(Clone)]
pub(crate) enum Dim {
    /// `M`
    Symbol(Name),
    /// `64`
    Fixed(i64),
    /// `{ H - KH + 1 }`
    Computed(Box<Expr>),
}

/// A symbolic dimension, or a `usize` parameter, which stands in the same table after them.
pub(crate) struct Dimension {
    pub(crate) name: Ident,
}

/// A use of a name, with what it stands for once that is known.
#[derive(Clone)]
pub(crate) struct Name {
    pub(crate) ident: Ident,
    pub(crate) binding: Option<BindingId>,
}

impl Name {
    /// A name that has not been looked up.
    pub(crate) fn new(ident: &Ident) -> Self {
        Name { ident: ident.clone(), binding: None }
    }
}

/// An index into [`Kernel::bindings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BindingId(pub(crate) usize);

/// Something with a name.
pub(crate) struct Binding {
    pub(crate) name: Ident,
    pub(crate) kind: BindingKind,
}

/// The meaning of a name.
#[derive(Clone)]
pub(crate) enum BindingKind {
    /// An entry of [`Kernel::dims`].
    Dim(usize),
    /// A run-time scalar argument.
    Scalar(TypeVar),
    /// A tensor, argument or not.
    Tensor(Tensor),
    /// A loop variable.
    Loop,
    /// A `let` without `mut`.
    Let {
        ty: TypeVar,
        /// Whether it depends on data: elements, run-time scalars, accumulators.
        data: bool,
    },
    /// A `let mut` scalar.
    Accumulator { ty: TypeVar },
}

/// The properties of a tensor that the checker knows.
#[derive(Clone)]
pub(crate) struct Tensor {
    pub(crate) ty: Option<TensorType>,
    pub(crate) role: Role,
    pub(crate) written: bool,
    pub(crate) read: bool,
    /// The position among the results, when it is returned.
    pub(crate) result: Option<usize>,
}

/// Where a tensor comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `&Tensor`
    Input,
    /// `&mut Tensor`
    InOut,
    /// `let mut c = Tensor::…`
    Local,
    /// An argument that was reported: nothing more is said of it.
    Invalid,
}

/// A statement.
pub(crate) enum Statement {
    Allocate(Allocate),
    Let(Let),
    For(Box<For>),
    Store(Box<Store>),
    Update(Update),
    If(Box<IfStatement>),
    Block(Vec<Statement>),
    /// A statement with a reported error; its name, when it is a `let`.
    Invalid(Option<Name>, TokenStream),
}

/// `let mut c: Tensor<…> = Tensor::zeros();`
pub(crate) struct Allocate {
    pub(crate) name: Name,
    pub(crate) mutable: Option<syn::Token![mut]>,
    pub(crate) annotation: Option<TensorType>,
    /// `None` for zeros.
    pub(crate) fill: Option<Expr>,
    /// The call, for locations.
    pub(crate) span: Span,
}

/// `let x: f32 = value;`
pub(crate) struct Let {
    pub(crate) name: Name,
    pub(crate) mutable: Option<syn::Token![mut]>,
    pub(crate) annotation: Option<(ScalarType, Span)>,
    pub(crate) value: Expr,
}

/// `for variable in start..end { body }`
pub(crate) struct For {
    pub(crate) variable: Name,
    pub(crate) start: Expr,
    pub(crate) end: Expr,
    pub(crate) inclusive: bool,
    pub(crate) step: Option<Expr>,
    pub(crate) body: Vec<Statement>,
    /// The word `for`.
    pub(crate) for_span: Span,
    /// The dots of the range.
    pub(crate) range_span: Span,
}

/// `tensor[[indices]] op value;`
pub(crate) struct Store {
    pub(crate) tensor: Name,
    pub(crate) indices: Vec<Expr>,
    pub(crate) brackets: Span,
    pub(crate) op: Assignment,
    pub(crate) value: Expr,
    pub(crate) op_span: Span,
}

/// `scalar op value;`
pub(crate) struct Update {
    pub(crate) scalar: Name,
    pub(crate) op: Assignment,
    pub(crate) value: Expr,
    pub(crate) op_span: Span,
}

/// How an element or scalar changes: `old = value`, `old = old + value`, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assignment {
    Set,
    /// `target = target.max(value)`, or `min`, `maximum`, `minimum`.
    Extremum(BinaryOp),
    Compound(BinaryOperator),
}

/// `if condition { then } else { otherwise }` as a statement.
pub(crate) struct IfStatement {
    pub(crate) condition: Expr,
    pub(crate) then: Vec<Statement>,
    pub(crate) otherwise: Option<Vec<Statement>>,
    /// The word `if`.
    pub(crate) span: Span,
}

/// An expression.
#[derive(Clone)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    /// The token that makes it what it is, which generated code takes the place of.
    pub(crate) span: Span,
    /// All of it, for messages.
    pub(crate) extent: Extent,
    pub(crate) ty: TypeVar,
}

/// The forms of expressions.
#[derive(Clone)]
pub(crate) enum ExprKind {
    Int(syn::LitInt, i64),
    Float(syn::LitFloat),
    Bool(bool),
    Name(Name),
    /// `f32::NEG_INFINITY` and constants from outside the definition; the type when the path tells it.
    Constant(syn::Path, Option<ScalarType>),
    Load(Load),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOperator, Box<Expr>, Box<Expr>),
    Call(Method, Box<Expr>, Vec<Expr>),
    /// A call of a `#[tensor_fn]`.
    Function(syn::Path, Vec<Expr>),
    Cast(Box<Expr>, ScalarType, Span),
    If(Box<IfExpr>),
    Block(Box<BlockExpr>),
    Paren(Box<Expr>),
    Invalid(TokenStream),
}

/// `tensor[[indices]]`
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) tensor: Name,
    pub(crate) indices: Vec<Expr>,
    pub(crate) brackets: Span,
}

/// `if condition { then } else { otherwise }` as a value.
#[derive(Clone)]
pub(crate) struct IfExpr {
    pub(crate) condition: Expr,
    pub(crate) then: BlockExpr,
    pub(crate) otherwise: BlockExpr,
}

/// `{ let …; value }`
#[derive(Clone)]
pub(crate) struct BlockExpr {
    pub(crate) lets: Vec<LetExpr>,
    pub(crate) value: Expr,
}

/// A `let` inside a value.
#[derive(Clone)]
pub(crate) struct LetExpr {
    pub(crate) name: Name,
    pub(crate) annotation: Option<(ScalarType, Span)>,
    pub(crate) value: Expr,
}

impl Expr {
    /// The number, when this is a whole literal that `powi` can take, perhaps negative.
    pub(crate) fn as_literal_exponent(&self) -> Option<i32> {
        match &self.kind {
            ExprKind::Int(_, value) => i32::try_from(*value).ok(),
            ExprKind::Paren(inner) => inner.as_literal_exponent(),
            ExprKind::Unary(UnaryOp::Neg, inner) => inner.as_literal_exponent()?.checked_neg(),
            _ => None,
        }
    }
}

impl Dim {
    /// As the user wrote it.
    pub(crate) fn text(&self) -> String {
        match self {
            Dim::Symbol(name) => name.ident.to_string(),
            Dim::Fixed(extent) => extent.to_string(),
            Dim::Computed(expr) => expr.dim_text(),
        }
    }
}

impl Expr {
    fn dim_text(&self) -> String {
        match &self.kind {
            ExprKind::Int(_, value) => value.to_string(),
            ExprKind::Name(name) => name.ident.to_string(),
            ExprKind::Constant(path, _) => path_text(path),
            ExprKind::Paren(inner) => format!("({})", inner.dim_text()),
            ExprKind::Binary(op, left, right) => {
                format!("{} {} {}", left.dim_text(), op.token(self.span), right.dim_text())
            }
            ExprKind::Call(method, receiver, arguments) => {
                let arguments: Vec<_> = arguments.iter().map(Expr::dim_text).collect();
                format!("{}.{}({})", receiver.dim_text(), method.name(), arguments.join(", "))
            }
            _ => "…".to_owned(),
        }
    }
}

/// A path as the user wrote it.
pub(crate) fn path_text(path: &syn::Path) -> String {
    let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let root = if path.leading_colon.is_some() { "::" } else { "" };
    format!("{root}{}", segments.join("::"))
}

/// Operators on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOperator {
    /// An operator of programs.
    Of(BinaryOp),
    /// `&&`
    And,
    /// `||`
    Or,
}

impl BinaryOperator {
    /// Whether the result is a `bool` and the operands are of one, other, type.
    pub(crate) fn is_comparison(self) -> bool {
        matches!(self, BinaryOperator::Of(op) if op.is_comparison())
    }

    /// Whether this is `&&` or `||`.
    pub(crate) fn is_logic(self) -> bool {
        matches!(self, BinaryOperator::And | BinaryOperator::Or)
    }

    /// The operator of programs that computes it.
    pub(crate) fn op(self) -> BinaryOp {
        match self {
            BinaryOperator::Of(op) => op,
            BinaryOperator::And => BinaryOp::And,
            BinaryOperator::Or => BinaryOp::Or,
        }
    }

    /// The operator as Rust writes it.
    pub(crate) fn token(self, span: Span) -> TokenStream {
        let text = match self {
            BinaryOperator::Of(op) => op.text(),
            BinaryOperator::And => "&&",
            BinaryOperator::Or => "||",
        };
        let tokens: TokenStream = text.parse().expect("operators are tokens of Rust");
        tokens
            .into_iter()
            .map(|mut token| {
                token.set_span(span);
                token
            })
            .collect()
    }
}

/// A method of the kernel language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// An operator on one operand.
    Unary(UnaryOp),
    /// An operator on two operands of one type.
    Binary(BinaryOp),
    /// `a * b + c`
    MulAdd,
    /// A power with a literal exponent.
    Powi,
}

impl Method {
    fn all() -> impl Iterator<Item = Method> {
        let unary = UnaryOp::ALL.iter().filter(|op| op.prefix().is_none()).map(|op| Method::Unary(*op));
        let binary =
            BinaryOp::ALL.iter().filter(|op| op.precedence().is_none()).map(|op| Method::Binary(*op));
        unary.chain(binary).chain([Method::MulAdd, Method::Powi])
    }

    /// The method with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|method| method.name() == name)
    }

    /// The name in Rust, and of the reference's function.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::Unary(op) => op.text(),
            Method::Binary(op) => op.text(),
            Method::MulAdd => "mul_add",
            Method::Powi => "powi",
        }
    }

    /// Whether it takes floats alone.
    pub(crate) fn needs_floats(self) -> bool {
        match self {
            Method::Unary(op) => op.operands() == Operands::Floats,
            Method::Binary(op) => op.operands() == Operands::Floats,
            Method::MulAdd | Method::Powi => true,
        }
    }

    /// How many arguments it takes beside the receiver.
    pub(crate) fn arguments(self) -> usize {
        match self {
            Method::Unary(_) => 0,
            Method::Binary(_) | Method::Powi => 1,
            Method::MulAdd => 2,
        }
    }

    /// A use of it, for messages.
    pub(crate) fn example(self) -> String {
        match self {
            Method::Unary(op) => format!("x.{}()", op.text()),
            Method::Binary(op) => format!("x.{}(y)", op.text()),
            Method::MulAdd => "x.mul_add(y, z)".to_owned(),
            Method::Powi => "x.powi(2)".to_owned(),
        }
    }

    /// Every name, for messages.
    pub(crate) fn names() -> String {
        Self::all().map(Method::name).collect::<Vec<_>>().join(", ")
    }
}
