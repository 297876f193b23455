//! Constructs of Rust that the kernel language lacks, with their replacements.

use quote::ToTokens;

use crate::diagnostics::Diagnostics;
use crate::kernel::ast::Method;
use crate::kernel::types::ScalarType;

/// Attributes inside a body.
pub(super) fn attributes(attributes: &[syn::Attribute], diagnostics: &Diagnostics) {
    if let Some(attribute) = attributes.first() {
        diagnostics.error(
            attribute,
            "attributes inside a kernel have no effect",
            "remove it; loops are scheduled by rules and by the tuner",
        );
    }
}

/// The attributes of the expressions that can stand as statements.
pub(super) fn attributes_of(expr: &syn::Expr) -> &[syn::Attribute] {
    match expr {
        syn::Expr::ForLoop(node) => &node.attrs,
        syn::Expr::If(node) => &node.attrs,
        syn::Expr::Block(node) => &node.attrs,
        syn::Expr::Assign(node) => &node.attrs,
        syn::Expr::Binary(node) => &node.attrs,
        _ => &[],
    }
}

/// A macro's call.
pub(super) fn macro_call(call: &syn::Macro, diagnostics: &Diagnostics) {
    let name = call.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
    let help = match name.as_str() {
        "println" | "print" | "eprintln" | "eprint" | "dbg" => {
            "look at the tensors that the kernel and its `reference` return"
        }
        "assert" | "assert_eq" | "assert_ne" | "debug_assert" | "panic" | "todo" | "unimplemented"
        | "unreachable" => "remove it: shapes are checked by each call, and a kernel cannot fail on a value",
        _ => "write the code out",
    };
    diagnostics.error(&call.path, format!("macros such as `{name}!` are not part of a kernel"), help);
}

/// An expression that stands as a statement. Whether it was reported.
pub(super) fn statement(expr: &syn::Expr, diagnostics: &Diagnostics) -> bool {
    match expr {
        syn::Expr::Path(_)
        | syn::Expr::Lit(_)
        | syn::Expr::Binary(_)
        | syn::Expr::Unary(_)
        | syn::Expr::Index(_)
        | syn::Expr::Cast(_)
        | syn::Expr::Paren(_)
        | syn::Expr::Tuple(_) => false,
        syn::Expr::MethodCall(call) if Method::from_name(&call.method.to_string()).is_some() => false,
        syn::Expr::MethodCall(call) => {
            method(call, diagnostics);
            true
        }
        syn::Expr::Call(call) => called_function(call, diagnostics).is_none(),
        other => {
            value(other, diagnostics);
            true
        }
    }
}

/// An expression that is no value of the kernel language.
pub(super) fn value(expr: &syn::Expr, diagnostics: &Diagnostics) {
    match expr {
        syn::Expr::Macro(node) => macro_call(&node.mac, diagnostics),
        syn::Expr::Assign(_) => nested_assignment(expr, diagnostics),
        _ => {
            let (token, problem, help) = control_flow(expr).unwrap_or_else(|| construct(expr));
            diagnostics.error(token.to_token_stream(), problem, help);
        }
    }
}

type Refusal<'a> = (&'a dyn ToTokens, &'static str, &'static str);

fn control_flow(expr: &syn::Expr) -> Option<Refusal<'_>> {
    const NO_EXIT: &str = "make the loop's bounds exact, or put an `if` around what happens only sometimes";
    Some(match expr {
        syn::Expr::While(node) => (
            &node.while_token,
            "`while` has no fixed number of iterations",
            "write `for i in 0..N`, with an `if` around what happens only sometimes",
        ),
        syn::Expr::Loop(node) => {
            (&node.loop_token, "`loop` has no fixed number of iterations", "write `for i in 0..N`")
        }
        syn::Expr::ForLoop(node) => {
            (&node.for_token, "a loop gives no value", "accumulate in a `let mut` scalar before this place")
        }
        syn::Expr::Break(node) => (&node.break_token, "a loop of a kernel runs to its end", NO_EXIT),
        syn::Expr::Continue(node) => (&node.continue_token, "a loop of a kernel runs to its end", NO_EXIT),
        syn::Expr::Return(node) => (
            &node.return_token,
            "a kernel does not return early",
            "end the body with the names of its results, such as `c`",
        ),
        syn::Expr::Match(node) => {
            (&node.match_token, "`match` is not part of a kernel", "write `if … { … } else { … }`")
        }
        syn::Expr::Let(node) => {
            (&node.let_token, "a kernel matches no patterns", "write a condition, such as `x > 0.0`")
        }
        syn::Expr::Try(node) => (&node.question_token, "nothing inside a kernel can fail", "remove the `?`"),
        syn::Expr::Await(node) => {
            (&node.await_token, "nothing inside a kernel is awaited", "remove `.await`")
        }
        syn::Expr::Async(node) => (&node.async_token, "a kernel is not asynchronous", "remove `async`"),
        syn::Expr::Unsafe(node) => {
            (&node.unsafe_token, "nothing inside a kernel is unsafe", "write the statements without `unsafe`")
        }
        _ => return None,
    })
}

fn construct(expr: &syn::Expr) -> Refusal<'_> {
    const USE_TENSOR: &str = "use a tensor: `let mut t: Tensor<f32, 4> = Tensor::zeros();`";
    match expr {
        syn::Expr::Closure(node) => (node, "closures are not part of a kernel", "write the loop out"),
        syn::Expr::Reference(node) => (
            node,
            "a kernel's values are no references",
            "remove the `&`: elements and scalars are used by value",
        ),
        syn::Expr::Struct(node) => {
            (node, "a kernel builds no structures", "use a tensor, or one `let` for each value")
        }
        syn::Expr::Tuple(node) => (node, "a value is one number", "use one `let` for each number"),
        syn::Expr::Array(node) => (node, "a value is one number", USE_TENSOR),
        syn::Expr::Repeat(node) => (node, "a value is one number", USE_TENSOR),
        syn::Expr::Range(node) => (node, "a range stands only behind `in`", "write `for i in 0..N`"),
        syn::Expr::Field(node) => (node, "a kernel's values have no fields", "use tensors and numbers"),
        syn::Expr::Block(node) => (&node.label, "blocks of a kernel have no labels", "remove the label"),
        other => (other, "this is not part of a kernel", "write loops, arithmetic and `if`"),
    }
}

/// An assignment inside an expression.
pub(super) fn nested_assignment(expr: &syn::Expr, diagnostics: &Diagnostics) {
    diagnostics.error(expr, "an assignment gives no value", "make it a statement of its own");
}

/// The `#[tensor_fn]` that is called; reports a call of what cannot be one.
pub(super) fn called_function<'a>(
    call: &'a syn::ExprCall,
    diagnostics: &Diagnostics,
) -> Option<&'a syn::Path> {
    let path = match call.func.as_ref() {
        syn::Expr::Path(path) if path.qself.is_none() => &path.path,
        other => {
            diagnostics.error(
                other,
                "a kernel calls functions by their names only",
                "write the computation out, or call a `#[tensor_fn]`",
            );
            return None;
        }
    };
    if let Some(segment) = path.segments.iter().find(|segment| !segment.arguments.is_none()) {
        diagnostics.error(
            &segment.arguments,
            "a function that a kernel calls has no generic arguments",
            "remove them",
        );
        return None;
    }
    let Some((problem, help)) = foreign_function(path) else { return Some(path) };
    diagnostics.error(path, problem, help);
    None
}

/// Why a path names no `#[tensor_fn]`: it belongs to a type or to the standard library, or is a method's name.
fn foreign_function(path: &syn::Path) -> Option<(String, String)> {
    let first = path.segments.first().map(|segment| segment.ident.to_string());
    let mut segments = path.segments.iter().rev().map(|segment| segment.ident.to_string());
    let (last, owner) = (segments.next().unwrap_or_default(), segments.next());
    let help = match (last.as_str(), owner.as_deref()) {
        (_, Some("Tensor")) => {
            "a tensor is made by a `let` of its own: `let mut t: Tensor<f32, N> = Tensor::zeros();`"
                .to_owned()
        }
        ("from" | "from_f32" | "from_f64", Some(owner)) => format!("convert with `x as {owner}`"),
        (name, owner) => {
            let is_of_a_type = owner.is_some_and(is_type_name);
            let is_standard = matches!(first.as_deref(), Some("std" | "core" | "alloc")) && owner.is_some();
            let method = Method::from_name(name).filter(|_| owner.is_none() || is_of_a_type || is_standard);
            match method {
                Some(method) => format!("write it as a method: `{}`", method.example()),
                None if is_of_a_type || is_standard || is_type_name(name) => {
                    format!("write the computation out; the methods of a value are {}", Method::names())
                }
                None => return None,
            }
        }
    };
    Some((format!("`{last}` is no function that a kernel can call"), help))
}

/// Whether a name is that of a primitive type, or written as types and variants are.
fn is_type_name(name: &str) -> bool {
    ScalarType::from_name(name).is_some() || name.starts_with(|first: char| first.is_ascii_uppercase())
}

/// A method that the kernel language lacks.
pub(super) fn method(call: &syn::ExprMethodCall, diagnostics: &Diagnostics) {
    let name = call.method.to_string();
    let help = match name.as_str() {
        "pow" => "write `x.powf(y)`, or `x.powi(2)` for a whole exponent".to_owned(),
        "recip" => "write `1.0 / x`".to_owned(),
        "clamp" => "write `x.max(low).min(high)`".to_owned(),
        "log" => "write `x.ln() / base.ln()`, or `x.log2()` and `x.log10()`".to_owned(),
        "cbrt" => "write `x.powf(1.0 / 3.0)`, for `x` that is not negative".to_owned(),
        "log1p" => "write `x.ln_1p()`, as Rust does".to_owned(),
        "expm1" => "write `x.exp_m1()`, as Rust does".to_owned(),
        "signum" => "write `if x < 0.0 { -1.0 } else { 1.0 }`".to_owned(),
        "to_f32" | "into" | "to_f64" => "convert with `as`, as in `x as f32`".to_owned(),
        "clone" | "to_owned" => "use the value itself".to_owned(),
        "wrapping_add" | "wrapping_sub" | "wrapping_mul" => {
            "write the operator: integers of a kernel wrap".to_owned()
        }
        "saturating_sub" => "write `if a > b { a - b } else { 0 }`".to_owned(),
        "len" | "shape" | "dim" | "dims" => {
            "use the dimension's name from the tensor's type, such as `N`".to_owned()
        }
        "iter" | "iter_mut" | "into_iter" | "map" | "zip" | "sum" | "fold" | "for_each" | "product"
        | "enumerate" => "write a loop: `for i in 0..N { … }`".to_owned(),
        "step_by" | "rev" => "use it behind `in`: `for i in (0..N).step_by(2)`".to_owned(),
        "fill" => "start with `Tensor::full(value)`, or store in a loop".to_owned(),
        _ => format!("the methods of a value are {}", Method::names()),
    };
    diagnostics.error(&call.method, format!("`{name}` is not part of a kernel"), help);
}

/// `expr[…]` where `expr` is no tensor's name.
pub(super) fn index_base(index: &syn::ExprIndex, diagnostics: &Diagnostics) {
    let help = match index.expr.as_ref() {
        syn::Expr::Index(_) => "give all indices at once: `a[[i, j]]`",
        _ => "index a tensor by its name: `a[[i, j]]`",
    };
    diagnostics.error(index, "only a tensor is indexed", help);
}

/// `tensor[index]` without the inner brackets.
pub(super) fn index(tensor: &syn::Ident, index: &syn::Expr, diagnostics: &Diagnostics) {
    let inner = match index {
        syn::Expr::Tuple(tuple) => tuple.elems.to_token_stream(),
        syn::Expr::Range(_) => {
            diagnostics.error(
                index,
                "a kernel takes no slices of tensors",
                format!("read one element at a time: `{tensor}[[i]]`"),
            );
            return;
        }
        syn::Expr::Paren(paren) => paren.expr.to_token_stream(),
        other => other.to_token_stream(),
    };
    diagnostics.error(
        index,
        "the indices of a tensor stand in double brackets",
        format!("write `{tensor}[[{}]]`", inner.to_string().replace(" ,", ",")),
    );
}
