//! Parsing of value expressions.

use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind, UnaryOp};
use crate::text::parse::cost::{Cost, ExprTree};
use crate::text::parse::lexer::{Number, Token, shorten};
use crate::text::parse::{ParseProblem, Parsed, Parser};

impl Parser<'_> {
    /// A value.
    pub(super) fn value(&mut self) -> Parsed<ExprTree> {
        self.infix(0)
    }

    /// Operands joined by operators that bind at least as tightly as `at_least`.
    fn infix(&mut self, at_least: u8) -> Parsed<ExprTree> {
        let mut left = self.conversion()?;
        while let Some((op, level)) = self.infix_operator().filter(|(_, level)| *level >= at_least) {
            self.advance()?;
            let right = self.nested(|parser| parser.infix(level + 1))?;
            let cost = Cost::around(&[left.cost, right.cost])?;
            left = ExprTree { expr: Expr::binary(op, left.expr, right.expr), cost };
            let next = self.infix_operator();
            if op.is_comparison() && next.is_some_and(|(next, _)| next.is_comparison()) {
                return self.expected("no second comparison; use parentheses");
            }
        }
        Ok(left)
    }

    fn infix_operator(&self) -> Option<(BinaryOp, u8)> {
        let Token::Symbol(symbol) = self.token else { return None };
        let op = BinaryOp::ALL.iter().copied().find(|op| op.text() == symbol)?;
        Some((op, op.precedence()?))
    }

    /// `operand { as DTYPE }`
    fn conversion(&mut self) -> Parsed<ExprTree> {
        let mut value = self.prefixed()?;
        while self.accept_word("as")? {
            let cost = Cost::around(&[value.cost])?;
            value = ExprTree { expr: Expr::new(self.dtype()?, ExprKind::Cast(value.expr)), cost };
        }
        Ok(value)
    }

    fn prefixed(&mut self) -> Parsed<ExprTree> {
        let Token::Symbol(symbol) = self.token else { return self.operand() };
        let Some(op) = UnaryOp::ALL.iter().copied().find(|op| op.prefix() == Some(symbol)) else {
            return self.operand();
        };
        self.advance()?;
        if let (UnaryOp::Neg, Token::Number(number)) = (op, &self.token) {
            let number = *number;
            return self.literal(number, true);
        }
        let operand = self.nested(Self::prefixed)?;
        let cost = Cost::around(&[operand.cost])?;
        Ok(ExprTree { expr: Expr::unary(op, operand.expr), cost })
    }

    fn operand(&mut self) -> Parsed<ExprTree> {
        match self.token {
            Token::Symbol("(") => {
                self.advance()?;
                let inner = self.nested(Self::value)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Number(number) => self.literal(number, false),
            Token::Word(word) => self.value_word(word),
            _ => self.expected("a value"),
        }
    }

    fn value_word(&mut self, word: &str) -> Parsed<ExprTree> {
        // A declared name hides an operator or type that came into the language after it.
        if self.names.contains_key(word) {
            return self.named_value("a value");
        }
        if let Some(op) = UnaryOp::ALL.iter().find(|op| op.text() == word) {
            return self.call(|[operand]| Expr::unary(*op, operand));
        }
        if let Some(op) = BinaryOp::from_method(word) {
            return self.call(|[left, right]| Expr::binary(op, left, right));
        }
        match word {
            "true" | "false" => {
                self.advance()?;
                Ok(leaf(Expr::bool(word == "true")))
            }
            "mul_add" => self.call(|[a, b, c]| Expr::mul_add(a, b, c)),
            "select" => self.call(|[condition, then, otherwise]| Expr::select(condition, then, otherwise)),
            "bounded" => self.bounded_value(),
            "bitcast" => self.bitcast(),
            "index" => {
                self.advance()?;
                self.expect("(")?;
                let index = self.nested(Self::index_sum)?;
                self.expect(")")?;
                Ok(ExprTree { expr: Expr::index(index.index), cost: Cost::around(&[index.cost])? })
            }
            _ => match word.parse() {
                Ok(dtype) => self.special_float(dtype),
                Err(_) => self.named_value("a value"),
            },
        }
    }

    /// A function's name, which is the current token, and `COUNT` operands in parentheses.
    fn call<const COUNT: usize>(&mut self, build: impl FnOnce([Expr; COUNT]) -> Expr) -> Parsed<ExprTree> {
        self.advance()?;
        self.expect("(")?;
        let mut operands = Vec::with_capacity(COUNT);
        let mut costs = [Cost::LEAF; COUNT];
        for (position, cost) in costs.iter_mut().enumerate() {
            if position > 0 {
                self.expect(",")?;
            }
            let operand = self.nested(Self::value)?;
            *cost = operand.cost;
            operands.push(operand.expr);
        }
        self.accept(",")?;
        self.expect(")")?;
        let cost = Cost::around(&costs)?;
        let operands = operands.try_into().expect("as many operands were read as are needed");
        Ok(ExprTree { expr: build(operands), cost })
    }

    fn bitcast(&mut self) -> Parsed<ExprTree> {
        self.advance()?;
        self.expect("<")?;
        let dtype = self.dtype()?;
        if !self.at_symbol(">") {
            return self.expected("`>`");
        }
        self.call(|[operand]| Expr::new(dtype, ExprKind::Bitcast(operand)))
    }

    /// `f32::INFINITY` and its like.
    fn special_float(&mut self, dtype: DType) -> Parsed<ExprTree> {
        self.advance()?;
        self.expect("::")?;
        let value = match self.token {
            Token::Word("INFINITY") => f64::INFINITY,
            Token::Word("NEG_INFINITY") => f64::NEG_INFINITY,
            Token::Word("NAN") => f64::NAN,
            _ => return self.expected("`INFINITY`, `NEG_INFINITY` or `NAN`"),
        };
        if !dtype.is_float() {
            return self.expected("a floating-point type before `::`");
        }
        self.advance()?;
        Ok(leaf(Expr::new(dtype, ExprKind::Constant(Constant::float(value)))))
    }

    /// A literal, which is the current token.
    fn literal(&mut self, number: Number<'_>, negative: bool) -> Parsed<ExprTree> {
        let default = if number.is_float { DType::F32 } else { DType::I64 };
        let dtype = number.suffix.unwrap_or(default);
        let constant = if dtype.is_float() {
            float_literal(number.digits, negative, dtype)
        } else {
            integer(number, negative, dtype)
        };
        let Some(constant) = constant else {
            let sign = if negative { "-" } else { "" };
            return Err(ParseProblem::Literal {
                literal: format!("{sign}{}", shorten(number.digits)),
                dtype,
            });
        };
        self.advance()?;
        Ok(leaf(Expr::new(dtype, ExprKind::Constant(constant))))
    }
}

/// The nearest value of a type; `None` when that would be infinite.
fn float_literal(digits: &str, negative: bool, dtype: DType) -> Option<Constant> {
    // Narrow types are read as `f32`, in which they are printed: rounding twice from `f64` could
    // give a neighbour.
    let size =
        if dtype == DType::F64 { digits.parse().ok()? } else { f64::from(digits.parse::<f32>().ok()?) };
    let rounded = Expr::float(dtype, if negative { -size } else { size }).as_constant()?;
    rounded.as_f64().is_finite().then_some(rounded)
}

fn integer(number: Number<'_>, negative: bool, dtype: DType) -> Option<Constant> {
    if number.is_float {
        return None;
    }
    let size: i128 = number.digits.parse().ok()?;
    let value = if negative { -size } else { size };
    // A `bool` is written `true` or `false`.
    let (least, greatest) = dtype.int_range().filter(|_| dtype.is_int())?;
    (least..=greatest).contains(&value).then_some(Constant::Int(value as i64))
}

fn leaf(expr: Expr) -> ExprTree {
    ExprTree { expr, cost: Cost::LEAF }
}
