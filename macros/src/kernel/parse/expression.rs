//! Values.

use proc_macro2::Span;
use quote::ToTokens;
use syn::spanned::Spanned;
use tilewright_vocabulary::{BinaryOp, DType, UnaryOp};

use super::{Context, refused, signature};
use crate::diagnostics::Extent;
use crate::kernel::ast::{BinaryOperator, BlockExpr, Expr, ExprKind, IfExpr, LetExpr, Load, Method, Name};
use crate::kernel::types::{ScalarType, TypeVar};

/// Parses a value. An expression outside the language is reported and becomes `Invalid`.
pub(super) fn expression(expr: &syn::Expr, cx: &Context<'_>) -> Expr {
    refused::attributes(refused::attributes_of(expr), cx);
    let (kind, span) =
        parse(expr, cx).unwrap_or_else(|| (ExprKind::Invalid(expr.to_token_stream()), expr.span()));
    Expr { kind, span, extent: Extent::of(expr), ty: TypeVar::UNCHECKED }
}

fn boxed(expr: &syn::Expr, cx: &Context<'_>) -> Box<Expr> {
    Box::new(expression(expr, cx))
}

/// `None` after reporting.
fn parse(expr: &syn::Expr, cx: &Context<'_>) -> Option<(ExprKind, Span)> {
    Some(match expr {
        syn::Expr::Lit(literal) => (self::literal(&literal.lit, cx)?, literal.span()),
        syn::Expr::Path(path) if path.qself.is_none() => (self::path(&path.path, cx), path.span()),
        syn::Expr::Index(index) => {
            let load = element(index, cx)?;
            let span = load.tensor.ident.span();
            (ExprKind::Load(load), span)
        }
        syn::Expr::Unary(unary) => {
            let op = unary_operator(unary, cx)?;
            (ExprKind::Unary(op, boxed(&unary.expr, cx)), unary.op.span())
        }
        syn::Expr::Binary(binary) => {
            let Some(op) = operator(&binary.op) else {
                refused::nested_assignment(expr, cx);
                return None;
            };
            let (left, right) = (boxed(&binary.left, cx), boxed(&binary.right, cx));
            (ExprKind::Binary(op, left, right), binary.op.span())
        }
        syn::Expr::MethodCall(call) => (method(call, cx)?, call.method.span()),
        syn::Expr::Call(call) => {
            let path = refused::called_function(call, cx)?;
            let arguments = call.args.iter().map(|argument| expression(argument, cx)).collect();
            (ExprKind::Function(path.clone(), arguments), path.span())
        }
        syn::Expr::Cast(cast) => {
            let operand = boxed(&cast.expr, cx);
            let ty = signature::scalar_type(&cast.ty, cx)?;
            if ty == ScalarType::Element(DType::Bool) {
                cx.error(&cast.ty, "nothing is cast to `bool`", "compare, as in `x != 0.0`");
            }
            (ExprKind::Cast(operand, ty, cast.ty.span()), cast.as_token.span)
        }
        syn::Expr::If(node) => (ExprKind::If(Box::new(conditional(node, cx)?)), node.if_token.span),
        syn::Expr::Block(node) if node.label.is_none() => {
            (ExprKind::Block(Box::new(block(&node.block, cx)?)), node.span())
        }
        syn::Expr::Paren(paren) => (ExprKind::Paren(boxed(&paren.expr, cx)), paren.span()),
        syn::Expr::Group(group) => return parse(&group.expr, cx),
        other => {
            refused::value(other, cx);
            return None;
        }
    })
}

fn literal(literal: &syn::Lit, cx: &Context<'_>) -> Option<ExprKind> {
    let suffix = match literal {
        syn::Lit::Int(value) => value.suffix(),
        syn::Lit::Float(value) => value.suffix(),
        syn::Lit::Bool(value) => return Some(ExprKind::Bool(value.value)),
        other => {
            cx.error(other, "a kernel computes with numbers and bools", "use a number");
            return None;
        }
    };
    if !suffix.is_empty() && ScalarType::from_name(suffix).is_none() {
        cx.error(
            literal,
            format!("a kernel does not compute with `{suffix}`"),
            "use f32, f64, an integer of 8 to 64 bits or usize, or leave the suffix out",
        );
        return None;
    }
    match literal {
        syn::Lit::Float(value) => Some(ExprKind::Float(value.clone())),
        syn::Lit::Int(value) if ["f32", "f64"].contains(&suffix) => {
            Some(ExprKind::Float(syn::LitFloat::from(value.token())))
        }
        syn::Lit::Int(value) => match value.base10_parse::<i64>() {
            Ok(number) => Some(ExprKind::Int(value.clone(), number)),
            Err(_) => {
                cx.error(value, "this number does not fit in `i64`", "use a smaller number");
                None
            }
        },
        _ => None,
    }
}

fn path(path: &syn::Path, cx: &Context<'_>) -> ExprKind {
    if let Some(ident) = path.get_ident() {
        return ExprKind::Name(Name::new(ident));
    }
    let owner = path.segments.iter().rev().nth(1);
    let ty = owner.and_then(|segment| cx.scalar(&segment.ident.to_string()));
    ExprKind::Constant(path.clone(), ty)
}

/// `tensor[[i, j]]`
pub(super) fn element(index: &syn::ExprIndex, cx: &Context<'_>) -> Option<Load> {
    let Some(ident) = tensor_name(&index.expr) else {
        refused::index_base(index, cx);
        return None;
    };
    match index.index.as_ref() {
        syn::Expr::Array(array) => Some(Load {
            tensor: Name::new(&ident),
            indices: array.elems.iter().map(|index| expression(index, cx)).collect(),
            brackets: array.bracket_token.span.join(),
        }),
        other => {
            refused::index(&ident, other, cx);
            None
        }
    }
}

fn tensor_name(expr: &syn::Expr) -> Option<syn::Ident> {
    match expr {
        syn::Expr::Path(path) => path.path.get_ident().cloned(),
        syn::Expr::Paren(paren) => tensor_name(&paren.expr),
        syn::Expr::Group(group) => tensor_name(&group.expr),
        _ => None,
    }
}

fn method(call: &syn::ExprMethodCall, cx: &Context<'_>) -> Option<ExprKind> {
    let receiver = expression(&call.receiver, cx);
    let Some(method) = Method::from_name(&call.method.to_string()) else {
        refused::method(call, cx);
        return None;
    };
    if let Some(turbofish) = &call.turbofish {
        cx.error(turbofish, "methods of a kernel have no type arguments", "remove them");
    }
    let name = method.name();
    if call.args.len() != method.arguments() {
        let (wanted, help) = match (name, method.arguments()) {
            ("mul_add", _) => ("two arguments", "`a.mul_add(b, c)` is `a * b + c`".to_owned()),
            ("powi", _) => ("one argument", "`x.powi(2)` is `x * x`".to_owned()),
            (_, 0) => ("no argument", format!("write `x.{name}()`")),
            _ => ("one argument", format!("write `x.{name}(y)`")),
        };
        let found = call.args.len();
        cx.error(&call.method, format!("`{name}` takes {wanted}, {found} given"), help);
        return None;
    }
    let arguments = call.args.iter().map(|argument| expression(argument, cx)).collect();
    Some(ExprKind::Call(method, Box::new(receiver), arguments))
}

fn conditional(node: &syn::ExprIf, cx: &Context<'_>) -> Option<IfExpr> {
    let condition = expression(&node.cond, cx);
    let Some((_, otherwise)) = &node.else_branch else {
        cx.error(
            node.if_token,
            "an `if` that gives a value has an `else`",
            "write `if condition { a[[i]] } else { 0.0 }`",
        );
        return None;
    };
    let otherwise = match otherwise.as_ref() {
        syn::Expr::Block(node) => block(&node.block, cx),
        other => Some(BlockExpr { lets: Vec::new(), value: expression(other, cx) }),
    };
    Some(IfExpr { condition, then: block(&node.then_branch, cx)?, otherwise: otherwise? })
}

/// `{ let …; value }`
pub(super) fn block(block: &syn::Block, cx: &Context<'_>) -> Option<BlockExpr> {
    let Some((syn::Stmt::Expr(value, None), rest)) = block.stmts.split_last() else {
        cx.error(
            block,
            "this block gives no value",
            "end it with the value, without a semicolon: `{ let y = x * x; y + 1.0 }`",
        );
        return None;
    };
    let lets = rest.iter().map(|statement| inner_let(statement, cx)).collect::<Vec<_>>();
    let value = expression(value, cx);
    Some(BlockExpr { lets: lets.into_iter().collect::<Option<_>>()?, value })
}

fn inner_let(statement: &syn::Stmt, cx: &Context<'_>) -> Option<LetExpr> {
    let syn::Stmt::Local(local) = statement else {
        cx.error(
            statement,
            "inside a value there are only `let`s",
            "compute before the value, in statements of their own, with a `let mut` scalar",
        );
        return None;
    };
    refused::attributes(&local.attrs, cx);
    let (pattern, annotation) = let_pattern(&local.pat, cx)?;
    if let Some(token) = &pattern.mutability {
        cx.error(token, "inside a value nothing is assigned twice", "remove the `mut`");
    }
    let annotation = match annotation {
        Some(ty) => Some((signature::scalar_type(ty, cx)?, ty.span())),
        None => None,
    };
    let value = expression(let_value(local, cx)?, cx);
    Some(LetExpr { name: Name::new(&pattern.ident), annotation, value })
}

/// The name and the type of a `let`.
pub(super) fn let_pattern<'a>(
    pattern: &'a syn::Pat,
    cx: &Context<'_>,
) -> Option<(&'a syn::PatIdent, Option<&'a syn::Type>)> {
    match pattern {
        syn::Pat::Ident(ident) if ident.by_ref.is_none() && ident.subpat.is_none() => Some((ident, None)),
        syn::Pat::Type(typed) => {
            let_pattern(&typed.pat, cx).map(|(ident, _)| (ident, Some(typed.ty.as_ref())))
        }
        other => {
            cx.error(other, "a `let` names one value", "write `let x = …;`, one for each value");
            None
        }
    }
}

/// The value of a `let`.
pub(super) fn let_value<'a>(local: &'a syn::Local, cx: &Context<'_>) -> Option<&'a syn::Expr> {
    match &local.init {
        Some(syn::LocalInit { expr, diverge: None, .. }) => Some(expr),
        Some(syn::LocalInit { diverge: Some((token, _)), .. }) => {
            cx.error(token, "a `let` of a kernel has no `else`", "write `let x = if … { … } else { … };`");
            None
        }
        None => {
            cx.error(
                local,
                "this `let` has no value",
                "give it one where it is declared, such as `let mut sum = 0.0;`",
            );
            None
        }
    }
}

fn unary_operator(unary: &syn::ExprUnary, cx: &Context<'_>) -> Option<UnaryOp> {
    match unary.op {
        syn::UnOp::Neg(_) => Some(UnaryOp::Neg),
        syn::UnOp::Not(_) => Some(UnaryOp::Not),
        _ => {
            cx.error(
                unary,
                "a kernel's values are no references",
                "remove the `*`: an element is read as `a[[i]]`",
            );
            None
        }
    }
}

fn operator(op: &syn::BinOp) -> Option<BinaryOperator> {
    use BinaryOperator::Of;
    Some(match op {
        syn::BinOp::Add(_) => Of(BinaryOp::Add),
        syn::BinOp::Sub(_) => Of(BinaryOp::Sub),
        syn::BinOp::Mul(_) => Of(BinaryOp::Mul),
        syn::BinOp::Div(_) => Of(BinaryOp::Div),
        syn::BinOp::Rem(_) => Of(BinaryOp::Rem),
        syn::BinOp::And(_) => BinaryOperator::And,
        syn::BinOp::Or(_) => BinaryOperator::Or,
        syn::BinOp::BitXor(_) => Of(BinaryOp::Xor),
        syn::BinOp::BitAnd(_) => Of(BinaryOp::And),
        syn::BinOp::BitOr(_) => Of(BinaryOp::Or),
        syn::BinOp::Shl(_) => Of(BinaryOp::Shl),
        syn::BinOp::Shr(_) => Of(BinaryOp::Shr),
        syn::BinOp::Eq(_) => Of(BinaryOp::Eq),
        syn::BinOp::Ne(_) => Of(BinaryOp::Ne),
        syn::BinOp::Lt(_) => Of(BinaryOp::Lt),
        syn::BinOp::Le(_) => Of(BinaryOp::Le),
        syn::BinOp::Gt(_) => Of(BinaryOp::Gt),
        syn::BinOp::Ge(_) => Of(BinaryOp::Ge),
        _ => return None,
    })
}

/// The operator of a compound assignment.
pub(super) fn compound(op: &syn::BinOp) -> Option<BinaryOperator> {
    use BinaryOperator::Of;
    Some(match op {
        syn::BinOp::AddAssign(_) => Of(BinaryOp::Add),
        syn::BinOp::SubAssign(_) => Of(BinaryOp::Sub),
        syn::BinOp::MulAssign(_) => Of(BinaryOp::Mul),
        syn::BinOp::DivAssign(_) => Of(BinaryOp::Div),
        syn::BinOp::RemAssign(_) => Of(BinaryOp::Rem),
        syn::BinOp::BitXorAssign(_) => Of(BinaryOp::Xor),
        syn::BinOp::BitAndAssign(_) => Of(BinaryOp::And),
        syn::BinOp::BitOrAssign(_) => Of(BinaryOp::Or),
        syn::BinOp::ShlAssign(_) => Of(BinaryOp::Shl),
        syn::BinOp::ShrAssign(_) => Of(BinaryOp::Shr),
        _ => return None,
    })
}
