//! Conditions without which a term of a reduction is neutral.
//!
//! A product with padding is one: it is zero where the element lies outside of the tensor. Lowering leaves such terms out, and the
//! features of a schedule count only the others.

use crate::analysis::block::{Reducer, reduction_of};
use crate::analysis::condition::difference;
use crate::analysis::zeros::{ZeroElements, is_zero};
use crate::expr::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::index::Index;
use crate::program::Program;
use crate::stmt::Store;
use crate::visit::for_each_expr;

/// Which terms count as neutral.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// A product with a constant zero is zero, whatever the other factor is.
    WithZeroAreZero,
    /// The other factor may be infinite or not a number.
    OfFloatsAreFormed,
}

impl Products {
    /// As the kernel of a program wants it.
    pub fn of(program: &Program) -> Self {
        match program.multiplies_padding {
            true => Products::OfFloatsAreFormed,
            false => Products::WithZeroAreZero,
        }
    }
}

/// The differences of the comparisons, each once, without which the term that a store adds to a reduction is neutral: those in the term
/// itself, and those that hold for each element of an intermediate that differs from zero.
pub fn conditions_of_term(store: &Store, products: Products, zeros: &ZeroElements) -> Vec<Index> {
    let mut found = Vec::new();
    let Some(reduction) = reduction_of(store) else { return found };
    let mut candidates: Vec<Index> = Vec::new();
    for_each_expr(reduction.value, &mut |node| match node.kind() {
        ExprKind::Load(buffer, indices) => candidates.extend(zeros.conditions(*buffer, indices)),
        _ => candidates.extend(difference(node)),
    });
    for condition in candidates {
        let without = Without { condition: &condition, products, zeros };
        if !found.contains(&condition) && without.is_neutral(reduction.value, reduction.reducer) {
            found.push(condition);
        }
    }
    found
}

/// The values of expressions where a comparison fails.
struct Without<'a> {
    condition: &'a Index,
    products: Products,
    zeros: &'a ZeroElements,
}

impl Without<'_> {
    fn is_neutral(&self, value: &Expr, reducer: Reducer) -> bool {
        match (value.kind(), reducer) {
            (_, Reducer::Sum) => self.is_zero(value),
            (ExprKind::Constant(_), _) => *value == reducer.neutral(value.dtype()),
            (ExprKind::Select(condition, then, otherwise), _) => {
                self.is_neutral(otherwise, reducer)
                    && (self.fails(condition) || self.is_neutral(then, reducer))
            }
            _ => false,
        }
    }

    fn is_zero(&self, value: &Expr) -> bool {
        match value.kind() {
            ExprKind::Constant(_) => is_zero(value),
            ExprKind::Load(buffer, indices) => {
                self.zeros.conditions(*buffer, indices).any(|condition| condition == *self.condition)
            }
            ExprKind::Select(condition, then, otherwise) => {
                self.is_zero(otherwise) && (self.fails(condition) || self.is_zero(then))
            }
            ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => self.is_zero(a) && self.is_zero(b),
            ExprKind::Binary(BinaryOp::Mul, a, b) => {
                let is_decided = !value.dtype().is_float() || self.products == Products::WithZeroAreZero;
                is_decided && (self.is_zero(a) || self.is_zero(b))
            }
            ExprKind::Unary(UnaryOp::Neg, a) | ExprKind::Cast(a) => self.is_zero(a),
            _ => false,
        }
    }

    /// Whether a condition fails with the comparison.
    fn fails(&self, condition: &Expr) -> bool {
        match condition.kind() {
            ExprKind::Binary(BinaryOp::And, a, b) => self.fails(a) || self.fails(b),
            ExprKind::Binary(BinaryOp::Or, a, b) => self.fails(a) && self.fails(b),
            _ => difference(condition).as_ref() == Some(self.condition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stmt::Stmt;

    fn conditions(value: &str, products: Products) -> usize {
        let text = format!(
            "kernel k(in x: f32[8], in w: f32[8], in n: i32[8], inout y: f32[8], inout m: i32[8]) {{
               for i in 0..8 {{ {value} }}
             }}"
        );
        let program: Program = text.parse().expect("a program");
        let Stmt::For(node) = &program.body else { panic!("a loop") };
        let Stmt::Store(store) = &node.body else { panic!("a store") };
        conditions_of_term(store, products, &ZeroElements::default()).len()
    }

    #[test]
    fn a_product_with_a_selected_zero_is_neutral_unless_it_is_to_be_formed() {
        let product = "y[0] = y[0] + select((i >= 1) & (i < 7), x[i], 0.0) * w[i]";
        assert_eq!(conditions(product, Products::WithZeroAreZero), 2);
        assert_eq!(conditions(product, Products::OfFloatsAreFormed), 0);
        let of_integers = "m[0] = m[0] + select(i >= 1, n[i], 0i32) * n[i]";
        assert_eq!(conditions(of_integers, Products::OfFloatsAreFormed), 1, "integers are never infinite");
    }

    #[test]
    fn a_selected_neutral_element_is_neutral_whatever_products_mean() {
        for term in [
            "y[0] = y[0] + select(i >= 1, x[i] * w[i], 0.0)",
            "y[0] = max(y[0], select(i >= 1, x[i], f32::NEG_INFINITY))",
            "y[0] = min(select(i >= 1, x[i], f32::INFINITY), y[0])",
            "y[0] = y[0] * select(i >= 1, x[i], 1.0)",
        ] {
            assert_eq!(conditions(term, Products::OfFloatsAreFormed), 1, "{term}");
        }
    }

    #[test]
    fn other_terms_are_not_neutral() {
        for term in [
            "y[0] = y[0] + select(i >= 1, x[i], 1.0) * w[i]",
            "y[0] = y[0] + (select(i >= 1, x[i], 0.0) + w[i])",
            "y[0] = y[0] + select(i >= 1, 0.0, x[i]) * w[i]",
            "y[0] = max(y[0], select(i >= 1, x[i], 0.0))",
            "y[0] = y[0] + select((i >= 1) | (w[i] > 0.0), x[i], 0.0)",
            "y[0] = select(i >= 1, x[i], 0.0)",
        ] {
            assert_eq!(conditions(term, Products::WithZeroAreZero), 0, "{term}");
        }
    }
}
