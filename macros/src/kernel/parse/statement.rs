//! Statements, and the final expression.

use proc_macro2::Span;
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use tilewright_vocabulary::BinaryOp;

use super::expression::{self, expression};
use super::{Context, refused, signature};
use crate::kernel::ast::{
    Allocate, Assignment, BinaryOperator, Expr, For, IfStatement, Let, Name, Statement, Store, Update,
};

/// The statements of the body, and the names in its final expression.
pub(super) fn body(block: &syn::Block, cx: &Context<'_>) -> (Vec<Statement>, Vec<Name>) {
    match block.stmts.split_last() {
        Some((syn::Stmt::Expr(last, None), rest)) if is_result(last) => {
            (statements(rest, cx), results(last, cx))
        }
        _ => (statements(&block.stmts, cx), Vec::new()),
    }
}

/// Whether a trailing expression is the result, rather than a last loop or `if` without a semicolon.
fn is_result(expr: &syn::Expr) -> bool {
    matches!(expr, syn::Expr::Path(_) | syn::Expr::Tuple(_) | syn::Expr::Paren(_))
}

fn results(expr: &syn::Expr, cx: &Context<'_>) -> Vec<Name> {
    match expr {
        syn::Expr::Path(path) if path.path.get_ident().is_some() => {
            path.path.get_ident().map(Name::new).into_iter().collect()
        }
        syn::Expr::Tuple(tuple) => tuple.elems.iter().flat_map(|element| results(element, cx)).collect(),
        syn::Expr::Paren(paren) => results(&paren.expr, cx),
        other => {
            cx.error(
                other,
                "the result of a kernel is a tensor's name, or a tuple of names",
                "compute in loops and end with the tensor, such as `c` or `(mean, variance)`",
            );
            Vec::new()
        }
    }
}

fn statements(statements: &[syn::Stmt], cx: &Context<'_>) -> Vec<Statement> {
    statements.iter().filter_map(|statement| self::statement(statement, cx)).collect()
}

/// `None` for a stray semicolon.
fn statement(statement: &syn::Stmt, cx: &Context<'_>) -> Option<Statement> {
    Some(match statement {
        syn::Stmt::Local(local) => binding(local, cx)
            .unwrap_or_else(|| Statement::Invalid(let_name(&local.pat), local.to_token_stream())),
        syn::Stmt::Item(item) => {
            cx.error(
                item,
                "a kernel's body holds no items",
                "move it outside; constants of the surrounding module can be used by their name",
            );
            Statement::Invalid(None, item.to_token_stream())
        }
        syn::Stmt::Macro(call) => {
            refused::macro_call(&call.mac, cx);
            Statement::Invalid(None, call.to_token_stream())
        }
        syn::Stmt::Expr(syn::Expr::Verbatim(tokens), _) if tokens.is_empty() => return None,
        syn::Stmt::Expr(expr, semicolon) => action(expr, semicolon.is_some(), cx),
    })
}

fn binding(local: &syn::Local, cx: &Context<'_>) -> Option<Statement> {
    refused::attributes(&local.attrs, cx);
    let (ident, annotation) = expression::let_pattern(&local.pat, cx)?;
    let value = expression::let_value(local, cx)?;
    let name = Name::new(&ident.ident);
    if let Some((function, call)) = tensor_call(value) {
        let annotation = match annotation {
            Some(ty) => Some(signature::tensor_type(ty, cx)?),
            None => None,
        };
        let fill = fill(&function, call, cx)?;
        let (mutable, span) = (ident.mutability, call.func.span());
        return Some(Statement::Allocate(Allocate { name, mutable, annotation, fill, span }));
    }
    let annotation = match annotation {
        Some(ty) if signature::is_tensor(ty) => {
            cx.error(
                value,
                "a tensor starts from a constant",
                "write `Tensor::zeros()` or `Tensor::full(value)`, then store its elements in loops",
            );
            return None;
        }
        Some(ty) => Some((signature::scalar_type(ty, cx)?, ty.span())),
        None => None,
    };
    let value = expression(value, cx);
    Some(Statement::Let(Let { name, mutable: ident.mutability, annotation, value }))
}

/// The name of a `let` that was reported, so that its uses are not.
fn let_name(pattern: &syn::Pat) -> Option<Name> {
    match pattern {
        syn::Pat::Ident(ident) => Some(Name::new(&ident.ident)),
        syn::Pat::Type(typed) => let_name(&typed.pat),
        _ => None,
    }
}

/// `Tensor::function(…)`
fn tensor_call(value: &syn::Expr) -> Option<(syn::Ident, &syn::ExprCall)> {
    let syn::Expr::Call(call) = value else { return None };
    let syn::Expr::Path(path) = call.func.as_ref() else { return None };
    let mut segments = path.path.segments.iter().rev();
    let function = segments.next()?;
    (segments.next()?.ident == "Tensor").then(|| (function.ident.clone(), call))
}

/// The initial value of a tensor: `Some(None)` for zeros.
fn fill(function: &syn::Ident, call: &syn::ExprCall, cx: &Context<'_>) -> Option<Option<Expr>> {
    match (function.to_string().as_str(), call.args.len()) {
        ("zeros", 0) => Some(None),
        ("full", 1) => Some(call.args.first().map(|value| expression(value, cx))),
        (_, arguments) => {
            cx.error(
                call,
                format!("`Tensor::{function}` with {arguments} arguments is not part of a kernel"),
                "write `Tensor::zeros()` or `Tensor::full(value)`; the shape comes from the type",
            );
            None
        }
    }
}

/// An expression in the place of a statement.
fn action(expr: &syn::Expr, semicolon: bool, cx: &Context<'_>) -> Statement {
    refused::attributes(refused::attributes_of(expr), cx);
    let parsed = match expr {
        syn::Expr::ForLoop(node) => for_loop(node, cx),
        syn::Expr::If(node) => Some(conditional(node, cx)),
        syn::Expr::Block(node) if node.label.is_none() => {
            Some(Statement::Block(statements(&node.block.stmts, cx)))
        }
        syn::Expr::Assign(node) => {
            let (op, value) = recognise(&node.left, &node.right);
            assignment(&node.left, op, value, node.eq_token.span, cx)
        }
        syn::Expr::Binary(node) => match expression::compound(&node.op) {
            Some(op) => assignment(&node.left, Assignment::Compound(op), &node.right, node.op.span(), cx),
            None => unused(expr, semicolon, cx),
        },
        other => unused(other, semicolon, cx),
    };
    parsed.unwrap_or_else(|| Statement::Invalid(None, quote!(#expr;)))
}

/// An expression that is evaluated for nothing, or one that is no part of the language.
fn unused(expr: &syn::Expr, semicolon: bool, cx: &Context<'_>) -> Option<Statement> {
    if !refused::statement(expr, cx) {
        let help = if semicolon {
            "store it, as in `c[[i, j]] = …;`, or name it with `let`"
        } else {
            "a kernel ends with the names of its results, such as `c` or `(c, d)`"
        };
        cx.error(expr, "this value is not used", help);
    }
    None
}

fn for_loop(node: &syn::ExprForLoop, cx: &Context<'_>) -> Option<Statement> {
    if let Some(label) = &node.label {
        cx.error(label, "loops of a kernel have no labels", "remove the label");
    }
    let variable = loop_variable(&node.pat, cx);
    let range = range(&node.expr, cx);
    let body = statements(&node.body.stmts, cx);
    let (range, step) = range?;
    let (Some(start), Some(end)) = (&range.start, &range.end) else {
        cx.error(
            range,
            "a loop has a first and a last value",
            "write both bounds, such as `0..N` or `1..=K`",
        );
        return None;
    };
    Some(Statement::For(Box::new(For {
        variable: variable?,
        start: expression(start, cx),
        end: expression(end, cx),
        inclusive: matches!(range.limits, syn::RangeLimits::Closed(_)),
        step: step.map(|step| expression(step, cx)),
        body,
        for_span: node.for_token.span,
        range_span: range.limits.span(),
    })))
}

fn loop_variable(pattern: &syn::Pat, cx: &Context<'_>) -> Option<Name> {
    match pattern {
        syn::Pat::Ident(ident)
            if ident.by_ref.is_none() && ident.mutability.is_none() && ident.subpat.is_none() =>
        {
            Some(Name::new(&ident.ident))
        }
        syn::Pat::Wild(wild) => Some(Name::new(&syn::Ident::new("_repeat", wild.underscore_token.span))),
        other => {
            cx.error(other, "a loop variable is a plain name", "write `for i in 0..N`");
            None
        }
    }
}

/// `a..b`, `(a..b)` or `(a..b).step_by(n)`
fn range<'a>(expr: &'a syn::Expr, cx: &Context<'_>) -> Option<(&'a syn::ExprRange, Option<&'a syn::Expr>)> {
    let (problem, help) = match expr {
        syn::Expr::Range(range) => return Some((range, None)),
        syn::Expr::Paren(paren) => return range(&paren.expr, cx),
        syn::Expr::MethodCall(call) if call.method == "step_by" && call.args.len() == 1 => {
            let (range, step) = range(&call.receiver, cx)?;
            if step.is_none() {
                return Some((range, call.args.first()));
            }
            ("one `step_by` is enough", "multiply the steps: `.step_by(a * b)`")
        }
        syn::Expr::MethodCall(call) if call.method == "rev" => (
            "loops of a kernel have no order that could be reversed",
            "write the range alone; an index that counts down is `N - 1 - i`",
        ),
        _ => ("a kernel loops over ranges only", "write `for i in 0..N` and use `i` as an index"),
    };
    match expr {
        syn::Expr::MethodCall(call) => cx.error(&call.method, problem, help),
        other => cx.error(other, problem, help),
    }
    None
}

fn conditional(node: &syn::ExprIf, cx: &Context<'_>) -> Statement {
    let condition = expression(&node.cond, cx);
    let then = statements(&node.then_branch.stmts, cx);
    let otherwise = match node.else_branch.as_ref().map(|(_, branch)| branch.as_ref()) {
        None => None,
        Some(syn::Expr::Block(block)) => Some(statements(&block.block.stmts, cx)),
        Some(other) => Some(vec![action(other, false, cx)]),
    };
    Statement::If(Box::new(IfStatement { condition, then, otherwise, span: node.if_token.span }))
}

/// Sees `x = x.max(v)`, `x = x + v` and their like as the reductions that they are.
fn recognise<'a>(left: &syn::Expr, right: &'a syn::Expr) -> (Assignment, &'a syn::Expr) {
    let (op, first, second) = match right {
        syn::Expr::Paren(paren) => return recognise(left, &paren.expr),
        syn::Expr::MethodCall(call) if call.args.len() == 1 => {
            let op = match BinaryOp::from_method(&call.method.to_string()) {
                Some(op) if op.is_associative() => Assignment::Extremum(op),
                _ => return (Assignment::Set, right),
            };
            (op, call.receiver.as_ref(), &call.args[0])
        }
        syn::Expr::Binary(binary) => {
            let op = match binary.op {
                syn::BinOp::Add(_) => BinaryOperator::Of(BinaryOp::Add),
                syn::BinOp::Mul(_) => BinaryOperator::Of(BinaryOp::Mul),
                syn::BinOp::Sub(_) => BinaryOperator::Of(BinaryOp::Sub),
                _ => return (Assignment::Set, right),
            };
            (Assignment::Compound(op), binary.left.as_ref(), binary.right.as_ref())
        }
        _ => return (Assignment::Set, right),
    };
    if first == left {
        (op, second)
    } else if second == left && op != Assignment::Compound(BinaryOperator::Of(BinaryOp::Sub)) {
        (op, first)
    } else {
        (Assignment::Set, right)
    }
}

fn assignment(
    left: &syn::Expr,
    op: Assignment,
    value: &syn::Expr,
    op_span: Span,
    cx: &Context<'_>,
) -> Option<Statement> {
    let value = expression(value, cx);
    match left {
        syn::Expr::Index(index) => {
            let load = expression::element(index, cx)?;
            let (tensor, indices, brackets) = (load.tensor, load.indices, load.brackets);
            Some(Statement::Store(Box::new(Store { tensor, indices, brackets, op, value, op_span })))
        }
        syn::Expr::Path(path) if path.path.get_ident().is_some() => {
            let scalar = Name::new(path.path.get_ident()?);
            Some(Statement::Update(Update { scalar, op, value, op_span }))
        }
        other => {
            cx.error(
                other,
                "only an element of a tensor or a `let mut` scalar is assigned",
                "write `c[[i, j]] = …;` or `x = …;`",
            );
            None
        }
    }
}
