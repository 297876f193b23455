//! Eligibility: the statements that cannot be leaves, found in one walk over the program before code is generated.
//!
//! A statement with a part that has no vector form is no leaf, nor is any statement around it. So
//! that statement is not tried again for each loop around it. Reasons that show only during code generation, above all a lack of
//! registers, are not known here.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Expr, ExprKind};
use tilewright_core::index::{Base, Index};
use tilewright_core::stmt::{LoopKind, Stmt};

use super::build::intrinsic::refusal;
use super::{Refusal, VectorExtension};
use crate::machine::FeatureSet;

/// The statements of a program that cannot be leaves, by address.
#[derive(Debug)]
pub(crate) struct Eligibility {
    refused: FxHashMap<usize, Refusal>,
    extension: VectorExtension,
    features: FeatureSet,
}

impl Eligibility {
    /// Looks at every statement.
    pub(crate) fn of(body: &Stmt, extension: VectorExtension, features: FeatureSet) -> Self {
        let mut eligibility = Eligibility { refused: FxHashMap::default(), extension, features };
        eligibility.stmt(body);
        eligibility
    }

    /// Why a statement cannot be a leaf, if that is known.
    pub(crate) fn refusal(&self, stmt: &Stmt) -> Option<Refusal> {
        self.refused.get(&address(stmt)).copied()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<Refusal> {
        let mut found = match stmt {
            Stmt::Intrinsic(node) => refusal(&node.name, self.extension, self.features),
            _ => own_refusal(stmt),
        };
        for child in stmt.children() {
            let refusal = self.stmt(child);
            found = found.or(refusal);
        }
        if let Some(refusal) = found {
            self.refused.insert(address(stmt), refusal);
        }
        found
    }
}

fn address(stmt: &Stmt) -> usize {
    match stmt {
        Stmt::Seq(node) => Arc::as_ptr(node).addr(),
        Stmt::For(node) => Arc::as_ptr(node).addr(),
        Stmt::Block(node) => Arc::as_ptr(node).addr(),
        Stmt::Store(node) => Arc::as_ptr(node).addr(),
        Stmt::If(node) => Arc::as_ptr(node).addr(),
        Stmt::Alloc(node) => Arc::as_ptr(node).addr(),
        Stmt::Intrinsic(node) => Arc::as_ptr(node).addr(),
        Stmt::Shuffle(node) => Arc::as_ptr(node).addr(),
        // All barriers are alike.
        Stmt::Barrier | Stmt::Copies(_) => 0,
    }
}

fn own_refusal(stmt: &Stmt) -> Option<Refusal> {
    let mut search = Search { seen: FxHashSet::default(), found: None };
    match stmt {
        // Cranelift has operations in one step.
        Stmt::Store(node) if node.is_atomic() => search.found = Some(Refusal::Statement),
        Stmt::Store(node) => {
            search.expr(&node.value);
            node.indices.iter().for_each(|index| search.index(index));
        }
        Stmt::For(node) if matches!(node.kind, LoopKind::Bound(_)) => search.found = Some(Refusal::Statement),
        Stmt::For(node) => search.index(&node.extent),
        Stmt::If(node) => search.expr(&node.condition),
        Stmt::Block(_) | Stmt::Barrier | Stmt::Copies(_) | Stmt::Shuffle(_) => {
            search.found = Some(Refusal::Statement)
        }
        Stmt::Seq(_) | Stmt::Alloc(_) | Stmt::Intrinsic(_) => {}
    }
    search.found
}

struct Search {
    seen: FxHashSet<usize>,
    found: Option<Refusal>,
}

impl Search {
    fn expr(&mut self, expr: &Expr) {
        if !self.seen.insert(expr.address()) {
            return;
        }
        let (is_float, is_wide) = (expr.dtype().is_float(), expr.dtype().bytes() == 8);
        let refusal = match expr.kind() {
            _ if !has_vector_form(expr.dtype()) => Some(Refusal::Operation(expr.dtype().name())),
            ExprKind::Unary(op, _) if op.is_function() => Some(Refusal::Operation(op.text())),
            ExprKind::Binary(op, ..) if op.is_function() => Some(Refusal::Operation(op.text())),
            ExprKind::Binary(BinaryOp::Rem, ..) if is_float || is_wide => {
                Some(Refusal::Operation(BinaryOp::Rem.text()))
            }
            ExprKind::Binary(BinaryOp::Div, ..) if !is_float && is_wide => {
                Some(Refusal::Operation(BinaryOp::Div.text()))
            }
            ExprKind::Bounded(..) => Some(Refusal::DataIndex),
            ExprKind::Load(_, indices) => {
                indices.iter().for_each(|index| self.index(index));
                None
            }
            ExprKind::Index(index) => {
                self.index(index);
                None
            }
            _ => None,
        };
        self.found = self.found.or(refusal);
        expr.operands().into_iter().for_each(|operand| self.expr(operand));
    }

    fn index(&mut self, index: &Index) {
        for term in index.terms() {
            match &term.digit.base {
                Base::Sum(sum) => self.index(sum),
                Base::Value(value) => self.index_value(value),
                Base::Var(_) | Base::Lane(_) => {}
            }
        }
    }

    /// A part of an index that is not affine: sums, products, minima and maxima of indices are eligible, data that is
    /// checked, and bytes.
    fn index_value(&mut self, value: &Expr) {
        use BinaryOp::{Add, Max, Min, Mul, Sub};
        match value.kind() {
            ExprKind::Constant(_) => {}
            ExprKind::Index(index) => self.index(index),
            ExprKind::Bounded(value, extent) => {
                self.expr(value);
                self.index(extent);
            }
            ExprKind::Cast(byte) if byte.dtype() == DType::U8 => self.expr(byte),
            ExprKind::Binary(Add | Sub | Mul | Min | Max, a, b) => {
                self.index_value(a);
                self.index_value(b);
            }
            _ => self.found = self.found.or(Some(Refusal::DataIndex)),
        }
    }
}

/// Whether the SIMD code generator holds elements of a type. It has no integers of 16 bits, and its comparisons, divisions and conversions
/// of 32 and 64 bits are signed.
fn has_vector_form(dtype: DType) -> bool {
    !matches!(dtype, DType::I16 | DType::U16 | DType::U32 | DType::U64)
}

#[cfg(test)]
mod tests {
    use tilewright_core::program::Program;

    use super::*;

    #[test]
    fn a_part_without_vector_form_rules_out_what_is_around_it() {
        let text = "kernel k(N, in x: i64[N], in z: f32[N], out y: i64[N], out w: f32[N]) {
          for i in 0..N {
            for j in 0..N { y[j] = x[j] / x[i] }
            for k in 0..N { w[k] = z[k] / z[i] }
          }
        }";
        let program: Program = text.parse().expect("a program");
        let eligibility = Eligibility::of(&program.body, VectorExtension::Avx2, FeatureSet::EMPTY);
        assert_eq!(eligibility.refusal(&program.body), Some(Refusal::Operation("/")));
        let Stmt::For(outer) = &program.body else { panic!("a loop") };
        let Stmt::Seq(inner) = &outer.body else { panic!("two loops") };
        assert_eq!(eligibility.refusal(&inner[0]), Some(Refusal::Operation("/")));
        assert_eq!(eligibility.refusal(&inner[1]), None);
    }
}
