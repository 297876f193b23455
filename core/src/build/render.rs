//! Elements and indices in error messages, in the user's words.

use super::statement::{Kernel, Target};
use crate::expr::{BinaryOp, Expr, ExprKind, Indices};
use crate::ids::VarId;
use crate::index::{Base, Digit, Index, NO_MODULUS};

/// `c[i, j + 1]`; the bare name for an accumulator.
pub(super) fn element(kernel: &Kernel, target: &Target, indices: &Indices) -> String {
    let own: Vec<String> =
        indices.iter().skip(target.prefix.len()).map(|index| render(kernel, index)).collect();
    if own.is_empty() { target.name.clone() } else { format!("{}[{}]", target.name, own.join(", ")) }
}

/// The user's name of a variable.
pub(super) fn variable(kernel: &Kernel, var: VarId) -> String {
    match kernel.loop_of(var) {
        Some(form) => form.name.clone(),
        None => kernel.names.get(var.0 as usize).cloned().unwrap_or_else(|| "…".to_owned()),
    }
}

/// An index in terms of the user's loop variables.
pub(super) fn render(kernel: &Kernel, index: &Index) -> String {
    // With a step, the loop's own counter stays: `start + step·i`.
    let in_user_terms = index.substitute(&|var| {
        let form = kernel.loop_of(var)?;
        let start = form.value.add_scaled(&Index::var(var), -1);
        (!start.mentions(var)).then(|| &Index::var(var) - &start)
    });
    sum(kernel, &in_user_terms)
}

fn sum(kernel: &Kernel, index: &Index) -> String {
    let mut text = String::new();
    for term in index.terms() {
        let negative = term.coefficient < 0;
        match (text.is_empty(), negative) {
            (true, true) => text.push('-'),
            (true, false) => {}
            (false, true) => text.push_str(" - "),
            (false, false) => text.push_str(" + "),
        }
        if term.coefficient.unsigned_abs() != 1 {
            text.push_str(&format!("{} * ", term.coefficient.unsigned_abs()));
        }
        text.push_str(&digit(kernel, &term.digit));
    }
    match index.constant_part() {
        0 if !text.is_empty() => text,
        constant if text.is_empty() => constant.to_string(),
        constant if constant < 0 => format!("{text} - {}", constant.unsigned_abs()),
        constant => format!("{text} + {constant}"),
    }
}

fn digit(kernel: &Kernel, digit: &Digit) -> String {
    let mut text = match &digit.base {
        Base::Var(var) => variable(kernel, *var),
        Base::Lane(_) => "lane".to_owned(),
        Base::Sum(inner) => format!("({})", sum(kernel, inner)),
        Base::Value(inner) => value(kernel, inner),
    };
    if digit.divisor != 1 {
        text = format!("{text} / {}", digit.divisor);
    }
    if digit.modulus != NO_MODULUS {
        text = format!("{text} % {}", digit.modulus);
    }
    if digit.is_whole() { text } else { format!("({text})") }
}

fn value(kernel: &Kernel, expr: &Expr) -> String {
    match expr.kind() {
        ExprKind::Index(index) => sum(kernel, index),
        ExprKind::Load(read, indices) => element(kernel, &kernel.targets[kernel.tensor_read(*read)], indices),
        ExprKind::Bounded(inner, _) | ExprKind::Cast(inner) => value(kernel, inner),
        ExprKind::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) => {
            format!("{}({}, {})", op.text(), value(kernel, a), value(kernel, b))
        }
        ExprKind::Binary(op, a, b) => format!("({} {} {})", value(kernel, a), op.text(), value(kernel, b)),
        _ => "…".to_owned(),
    }
}
