//! Parsing of indices.

use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind};
use crate::index::Index;
use crate::text::parse::cost::{Cost, ExprTree, IndexOp, IndexTree, MAX_LANES, MAX_MAGNITUDE};
use crate::text::parse::lexer::{Number, Token};
use crate::text::parse::{Named, ParseProblem, Parsed, Parser};

impl Parser<'_> {
    /// An index.
    pub(super) fn index(&mut self) -> Parsed<Index> {
        Ok(self.index_sum()?.index)
    }

    /// `product { (+ | -) product }`
    pub(super) fn index_sum(&mut self) -> Parsed<IndexTree> {
        let mut left = self.index_product()?;
        loop {
            let op = match self.token {
                Token::Symbol("+") => IndexOp::Add,
                Token::Symbol("-") => IndexOp::Sub,
                _ => return Ok(left),
            };
            self.advance()?;
            let right = self.index_product()?;
            left = self.budget.apply(op, &left, &right)?;
        }
    }

    /// `factor { (* | / | %) factor }`
    fn index_product(&mut self) -> Parsed<IndexTree> {
        let mut left = self.index_factor()?;
        loop {
            let op = match self.token {
                Token::Symbol("*") => IndexOp::Mul,
                Token::Symbol("/") => IndexOp::Div,
                Token::Symbol("%") => IndexOp::Rem,
                _ => return Ok(left),
            };
            self.advance()?;
            let right = self.index_factor()?;
            left = self.budget.apply(op, &left, &right)?;
        }
    }

    fn index_factor(&mut self) -> Parsed<IndexTree> {
        match self.token {
            Token::Symbol("-") => {
                self.advance()?;
                let operand = self.nested(Self::index_factor)?;
                self.budget.apply(IndexOp::Sub, &leaf(Index::constant(0)), &operand)
            }
            Token::Symbol("(") => {
                self.advance()?;
                let inner = self.nested(Self::index_sum)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Number(_) => Ok(leaf(Index::constant(self.bounded_integer(MAX_MAGNITUDE)? as i64))),
            Token::Word(word) => self.index_word(word),
            _ => self.expected("an index"),
        }
    }

    fn index_word(&mut self, word: &str) -> Parsed<IndexTree> {
        match word {
            "lane" => self.lane(),
            "min" => self.index_pick(IndexOp::Min),
            "max" => self.index_pick(IndexOp::Max),
            "bounded" => {
                let value = self.bounded_value()?;
                self.opaque(value)
            }
            "value" => {
                self.advance()?;
                self.expect("(")?;
                let value = self.nested(Self::value)?;
                let index = self.opaque(value)?;
                self.expect(")")?;
                Ok(index)
            }
            _ => {
                let value = self.named_value("an index")?;
                self.opaque(value)
            }
        }
    }

    /// `lane<8>`
    fn lane(&mut self) -> Parsed<IndexTree> {
        self.advance()?;
        self.expect("<")?;
        let lanes = self.bounded_integer(MAX_LANES)?;
        if lanes < 2 {
            return self.expected("at least 2 lanes");
        }
        self.expect(">")?;
        Ok(leaf(Index::lane(lanes as u32)))
    }

    fn index_pick(&mut self, op: IndexOp) -> Parsed<IndexTree> {
        self.advance()?;
        self.expect("(")?;
        let left = self.nested(Self::index_sum)?;
        self.expect(",")?;
        let right = self.nested(Self::index_sum)?;
        self.expect(")")?;
        self.budget.apply(op, &left, &right)
    }

    /// An integer without sign or suffix.
    pub(super) fn bounded_integer(&mut self, limit: u64) -> Parsed<u64> {
        let Token::Number(Number { digits, is_float: false, suffix: None }) = self.token else {
            return self.expected("an integer");
        };
        match digits.parse() {
            Ok(value) if value <= limit => {
                self.advance()?;
                Ok(value)
            }
            _ => Err(ParseProblem::Limit { what: "a number in an index", limit }),
        }
    }

    /// A value as an index, its affine parts decomposed as in [`Index::value`].
    fn opaque(&mut self, value: ExprTree) -> Parsed<IndexTree> {
        let found = value.expr.dtype();
        if found != DType::I64 {
            return Err(ParseProblem::Type { what: "a value inside an index", expected: DType::I64, found });
        }
        let cost = value.cost;
        match value.expr.kind() {
            ExprKind::Index(index) => Ok(IndexTree { index: index.clone(), cost }),
            ExprKind::Constant(Constant::Int(value)) if value.unsigned_abs() > MAX_MAGNITUDE => {
                Err(ParseProblem::Limit { what: "a number in an index", limit: MAX_MAGNITUDE })
            }
            ExprKind::Constant(Constant::Int(value)) => Ok(leaf(Index::constant(*value))),
            ExprKind::Binary(op, a, b) => match index_op(*op) {
                Some(op) => {
                    // The operands are no larger than the whole.
                    let left = self.opaque(ExprTree { expr: a.clone(), cost })?;
                    let right = self.opaque(ExprTree { expr: b.clone(), cost })?;
                    self.budget.apply(op, &left, &right)
                }
                None => opaque_leaf(value),
            },
            _ => opaque_leaf(value),
        }
    }

    /// A variable, scalar or load; the current token is its first.
    pub(super) fn named_value(&mut self, expected: &str) -> Parsed<ExprTree> {
        let Token::Word(word) = self.token else { return self.expected(expected) };
        if crate::text::names::is_keyword(word) {
            return self.expected(expected);
        }
        let named = self.lookup(word)?;
        self.advance()?;
        match named {
            Named::Variable(var) => Ok(ExprTree { expr: Expr::index(Index::var(var)), cost: Cost::LEAF }),
            Named::Scalar(var, dtype) => {
                Ok(ExprTree { expr: Expr::new(dtype, ExprKind::Scalar(var)), cost: Cost::LEAF })
            }
            Named::Buffer(buffer, dtype) => {
                self.expect("[")?;
                let indices = self.list("]", |parser| parser.nested(Self::index_sum))?;
                let costs: Vec<Cost> = indices.iter().map(|index| index.cost).collect();
                let expr = Expr::load(dtype, buffer, indices.into_iter().map(|index| index.index));
                Ok(ExprTree { expr, cost: Cost::around(&costs)? })
            }
        }
    }

    /// `bounded(value, 0..extent)`; the current token is its first.
    pub(super) fn bounded_value(&mut self) -> Parsed<ExprTree> {
        self.expect_word("bounded")?;
        self.expect("(")?;
        let value = self.nested(Self::value)?;
        self.expect(",")?;
        self.zero_to()?;
        let extent = self.nested(Self::index_sum)?;
        self.expect(")")?;
        let cost = Cost::around(&[value.cost, extent.cost])?;
        let dtype = value.expr.dtype();
        Ok(ExprTree { expr: Expr::new(dtype, ExprKind::Bounded(value.expr, extent.index)), cost })
    }
}

fn leaf(index: Index) -> IndexTree {
    IndexTree { index, cost: Cost::LEAF }
}

fn opaque_leaf(value: ExprTree) -> Parsed<IndexTree> {
    Ok(IndexTree { index: Index::value(value.expr), cost: Cost::around(&[value.cost])? })
}

/// The operation on indices for an operator on values.
fn index_op(op: BinaryOp) -> Option<IndexOp> {
    Some(match op {
        BinaryOp::Add => IndexOp::Add,
        BinaryOp::Sub => IndexOp::Sub,
        BinaryOp::Mul => IndexOp::Mul,
        BinaryOp::Div => IndexOp::Div,
        BinaryOp::Rem => IndexOp::Rem,
        BinaryOp::Min => IndexOp::Min,
        BinaryOp::Max => IndexOp::Max,
        _ => return None,
    })
}
