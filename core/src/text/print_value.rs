//! Printing of indices and value expressions.
//!
//! Indices and values have different operators (an index divides towards minus infinity, a value truncates),
//! so the text says where one stands inside the other: `index(…)` in a value, `value(…)` in an index. Where no
//! confusion is possible (a variable in a value; a load, a product or a minimum in an index) the words are left out.

use std::fmt::Write;

use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind};
use crate::ids::{BufferId, VarId};
use crate::index::{Base, Digit, Index, NO_MODULUS, Term};
use crate::program::Program;
use crate::text::canonical::is_index_value;

/// How tightly a printed index binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum IndexLevel {
    Sum,
    Product,
    Atom,
}

/// The precedence of a conversion, above every infix operator.
pub(crate) const CAST_PRECEDENCE: u8 = 8;

/// The precedence of an expression that needs no parentheses anywhere.
const ATOM_PRECEDENCE: u8 = 9;

/// Appends expressions of one program, which gives the names, to a text.
pub(crate) struct ValuePrinter<'a> {
    program: &'a Program,
    out: String,
}

impl<'a> ValuePrinter<'a> {
    /// The text of an index.
    pub(crate) fn index_text(program: &'a Program, index: &Index) -> String {
        let mut printer = ValuePrinter { program, out: String::new() };
        printer.index(index, IndexLevel::Sum);
        printer.out
    }

    /// The text of a list of indices.
    pub(crate) fn indices_text(program: &'a Program, indices: &[Index]) -> String {
        let mut printer = ValuePrinter { program, out: String::new() };
        printer.indices(indices);
        printer.out
    }

    /// The text of a value.
    pub(crate) fn expr_text(program: &'a Program, expr: &Expr) -> String {
        let mut printer = ValuePrinter { program, out: String::new() };
        printer.expr(expr, 0);
        printer.out
    }

    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn display(&mut self, value: impl std::fmt::Display) {
        // Writing to a `String` cannot fail.
        let _ = write!(self.out, "{value}");
    }

    fn variable(&mut self, id: VarId) {
        self.text(&self.program.variable(id).name);
    }

    fn buffer(&mut self, id: BufferId) {
        self.text(&self.program.buffer(id).name);
    }

    fn enclosed(&mut self, enclose: bool, write: impl FnOnce(&mut Self)) {
        if enclose {
            self.text("(");
        }
        write(self);
        if enclose {
            self.text(")");
        }
    }

    fn indices(&mut self, indices: &[Index]) {
        for (position, index) in indices.iter().enumerate() {
            if position > 0 {
                self.text(", ");
            }
            self.index(index, IndexLevel::Sum);
        }
    }

    fn index(&mut self, index: &Index, at_least: IndexLevel) {
        let level = index_level(index);
        self.enclosed(level < at_least, |printer| match (index.terms(), index.constant_part()) {
            ([], constant) => printer.display(constant),
            ([Term { digit, coefficient: 1 }], 0) => {
                printer.digit(digit, at_least);
            }
            _ => printer.sum(index),
        });
    }

    /// Positive terms, then negative ones, then the constant; a positive constant leads when no term is positive.
    fn sum(&mut self, index: &Index) {
        let constant = index.constant_part();
        let (positive, negative): (Vec<&Term>, Vec<&Term>) =
            index.terms().iter().partition(|term| term.coefficient > 0);
        let constant_leads = positive.is_empty() && constant > 0;
        if constant_leads {
            self.display(constant);
        }
        for (position, term) in positive.into_iter().chain(negative).enumerate() {
            let leads = position == 0 && !constant_leads;
            match (leads, term.coefficient > 0) {
                (true, true) => {}
                (true, false) => self.text("-"),
                (false, true) => self.text(" + "),
                (false, false) => self.text(" - "),
            }
            // A sign binds more tightly than a division.
            let enclosed = leads && term.coefficient < 0;
            self.term(term, if enclosed { IndexLevel::Atom } else { IndexLevel::Product });
        }
        if constant != 0 && !constant_leads {
            self.text(if constant > 0 { " + " } else { " - " });
            self.display(constant.unsigned_abs());
        }
    }

    /// The term without its sign, a digit alone binding at least as `alone`.
    fn term(&mut self, term: &Term, alone: IndexLevel) {
        let size = term.coefficient.unsigned_abs();
        if size == 1 {
            return self.digit(&term.digit, alone);
        }
        let is_product = term.digit.is_whole() && digit_level(&term.digit) == IndexLevel::Product;
        self.digit(&term.digit, if is_product { IndexLevel::Product } else { IndexLevel::Atom });
        self.text("*");
        self.display(size);
    }

    fn digit(&mut self, digit: &Digit, at_least: IndexLevel) {
        if digit.is_whole() {
            return self.base(&digit.base, at_least);
        }
        self.enclosed(at_least == IndexLevel::Atom, |printer| {
            printer.base(&digit.base, IndexLevel::Atom);
            if digit.divisor != 1 {
                printer.text("/");
                printer.display(digit.divisor);
            }
            if digit.modulus != NO_MODULUS {
                printer.text("%");
                printer.display(digit.modulus);
            }
        });
    }

    fn base(&mut self, base: &Base, at_least: IndexLevel) {
        match base {
            Base::Var(var) => self.variable(*var),
            Base::Lane(lanes) => {
                self.text("lane<");
                self.display(lanes);
                self.text(">");
            }
            Base::Sum(sum) => self.index(sum, at_least),
            Base::Value(value) => self.opaque(value, at_least),
        }
    }

    fn opaque(&mut self, value: &Expr, at_least: IndexLevel) {
        let is_index = is_index_value(value);
        match value.kind() {
            ExprKind::Scalar(var) => self.variable(*var),
            ExprKind::Load(..) | ExprKind::Bounded(..) => self.expr(value, 0),
            ExprKind::Binary(op @ (BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem), a, b) if is_index => {
                self.enclosed(at_least == IndexLevel::Atom, |printer| {
                    let left = if *op == BinaryOp::Mul && is_product(a) {
                        IndexLevel::Product
                    } else {
                        IndexLevel::Atom
                    };
                    printer.opaque_operand(a, left);
                    printer.text(op.text());
                    printer.opaque_operand(b, IndexLevel::Atom);
                });
            }
            ExprKind::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) if is_index => {
                self.text(op.text());
                self.text("(");
                self.opaque_operand(a, IndexLevel::Sum);
                self.text(", ");
                self.opaque_operand(b, IndexLevel::Sum);
                self.text(")");
            }
            _ => {
                self.text("value(");
                self.expr(value, 0);
                self.text(")");
            }
        }
    }

    /// An operand of an opaque operation, as an index.
    fn opaque_operand(&mut self, operand: &Expr, at_least: IndexLevel) {
        self.index(&Index::value(operand.clone()), at_least);
    }

    fn expr(&mut self, expr: &Expr, at_least: u8) {
        let own = expr_precedence(expr);
        self.enclosed(own < at_least, |printer| printer.expr_inside(expr, own));
    }

    fn expr_inside(&mut self, expr: &Expr, own: u8) {
        match expr.kind() {
            ExprKind::Constant(constant) => self.constant(expr.dtype(), *constant),
            ExprKind::Scalar(var) => self.variable(*var),
            ExprKind::Index(index) => match index.as_var() {
                Some(var) => self.variable(var),
                None => {
                    self.text("index(");
                    self.index(index, IndexLevel::Sum);
                    self.text(")");
                }
            },
            ExprKind::Load(buffer, indices) => {
                self.buffer(*buffer);
                self.text("[");
                self.indices(indices);
                self.text("]");
            }
            ExprKind::Binary(op, a, b) if op.precedence().is_some() => {
                // Operators of one level associate to the left; comparisons do not associate.
                self.expr(a, if op.is_comparison() { own + 1 } else { own });
                self.text(" ");
                self.text(op.text());
                self.text(" ");
                self.expr(b, own + 1);
            }
            ExprKind::Unary(op, a) => self.call(op.text(), &[a]),
            ExprKind::Binary(op, a, b) => self.call(op.text(), &[a, b]),
            ExprKind::MulAdd(a, b, c) => self.call("mul_add", &[a, b, c]),
            ExprKind::Select(a, b, c) => self.call("select", &[a, b, c]),
            ExprKind::Cast(a) => {
                self.expr(a, CAST_PRECEDENCE);
                self.text(" as ");
                self.display(expr.dtype());
            }
            ExprKind::Bitcast(a) => {
                self.text("bitcast<");
                self.display(expr.dtype());
                self.call(">", &[a]);
            }
            ExprKind::Bounded(a, extent) => {
                self.text("bounded(");
                self.expr(a, 0);
                self.text(", 0..");
                self.index(extent, IndexLevel::Sum);
                self.text(")");
            }
        }
    }

    fn call(&mut self, function: &str, arguments: &[&Expr]) {
        self.text(function);
        self.text("(");
        for (position, argument) in arguments.iter().enumerate() {
            if position > 0 {
                self.text(", ");
            }
            self.expr(argument, 0);
        }
        self.text(")");
    }

    /// A literal of `f32` or `i64` needs no suffix; every other carries its type.
    fn constant(&mut self, dtype: DType, constant: Constant) {
        match constant {
            Constant::Int(value) if dtype == DType::Bool => {
                self.text(if value == 0 { "false" } else { "true" });
            }
            Constant::Int(value) => {
                match dtype {
                    DType::U64 => self.display(value as u64),
                    _ => self.display(value),
                }
                if dtype != DType::I64 {
                    self.display(dtype);
                }
            }
            Constant::Float(bits) => self.float(dtype, f64::from_bits(bits)),
        }
    }

    fn float(&mut self, dtype: DType, value: f64) {
        if !value.is_finite() {
            self.display(dtype);
            self.text(match value {
                f64::INFINITY => "::INFINITY",
                f64::NEG_INFINITY => "::NEG_INFINITY",
                _ => "::NAN",
            });
            return;
        }
        // The shortest digits that give the value back when read as the type's own, or for the
        // half-width types as `f32`.
        let digits = if dtype == DType::F64 { format!("{value:?}") } else { format!("{:?}", value as f32) };
        self.text(&digits);
        if dtype != DType::F32 {
            self.display(dtype);
        }
    }
}

fn expr_precedence(expr: &Expr) -> u8 {
    match expr.kind() {
        ExprKind::Binary(op, ..) => op.precedence().unwrap_or(ATOM_PRECEDENCE),
        ExprKind::Cast(_) => CAST_PRECEDENCE,
        _ => ATOM_PRECEDENCE,
    }
}

fn is_product(expr: &Expr) -> bool {
    matches!(expr.kind(), ExprKind::Binary(BinaryOp::Mul, ..))
}

/// The level at which an index is printed, before parentheses.
fn index_level(index: &Index) -> IndexLevel {
    match (index.terms(), index.constant_part()) {
        ([], constant) => {
            if constant >= 0 {
                IndexLevel::Atom
            } else {
                IndexLevel::Sum
            }
        }
        // A digit encloses itself as its position needs.
        ([Term { coefficient: 1, .. }], 0) => IndexLevel::Atom,
        ([Term { coefficient, .. }], 0) if *coefficient > 0 => IndexLevel::Product,
        _ => IndexLevel::Sum,
    }
}

fn digit_level(digit: &Digit) -> IndexLevel {
    match &digit.base {
        _ if !digit.is_whole() => IndexLevel::Product,
        Base::Value(value) if is_product(value) => IndexLevel::Product,
        Base::Value(value) => match value.kind() {
            ExprKind::Binary(BinaryOp::Div | BinaryOp::Rem, ..) => IndexLevel::Sum,
            _ => IndexLevel::Atom,
        },
        _ => IndexLevel::Atom,
    }
}
