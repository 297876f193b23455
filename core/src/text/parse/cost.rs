//! Limits on the size of the program that a text describes.
//!
//! A short text can describe an index whose canonical form is huge, or a tree that is deep enough to
//! overflow the stack of a recursive function. Every operation of the parser therefore computes the size and depth of its result
//! first.

use crate::expr::Expr;
use crate::index::{Base, Index, NO_MODULUS};
use crate::text::parse::error::ParseProblem;

/// The longest text, in bytes.
pub(super) const MAX_TEXT: usize = 1 << 20;
/// The greatest nesting depth of statements, parentheses and calls.
pub(super) const MAX_NESTING: u32 = 100;
/// The depth of an expression.
const MAX_DEPTH: u32 = 500;
/// The number of nodes of an expression, shared ones counted as often as they are reached.
const MAX_SIZE: u64 = 1 << 16;
/// The number of terms of an index.
const MAX_TERMS: usize = 64;
/// The number of lanes of a vector.
pub(super) const MAX_LANES: u64 = 1024;
/// The size of a constant, a coefficient, or a digit's divisor times its modulus, so that arithmetic on
/// indices cannot overflow.
pub(super) const MAX_MAGNITUDE: u64 = 1 << 60;

/// Upper bounds of the depth and the number of nodes of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    depth: u32,
    size: u64,
}

impl Cost {
    /// The cost of a node without operands.
    pub(super) const LEAF: Cost = Cost { depth: 1, size: 1 };

    /// The cost of a node around operands.
    pub(super) fn around(operands: &[Cost]) -> Result<Cost, ParseProblem> {
        let depth = operands.iter().map(|cost| cost.depth).max().unwrap_or(0) + 1;
        Cost { depth, size: 1 + operands.iter().map(|cost| cost.size).sum::<u64>() }.checked()
    }

    /// The cost of a product that distributes over sums: every part of one meets every part of the other, and the
    /// factors form a chain.
    fn product(left: &IndexTree, right: &IndexTree) -> Result<Cost, ParseProblem> {
        let size = parts(&left.index)
            .saturating_mul(right.cost.size)
            .saturating_add(parts(&right.index).saturating_mul(left.cost.size));
        Cost { depth: left.cost.depth + right.cost.depth + 1, size: size.saturating_add(1) }.checked()
    }

    fn checked(self) -> Result<Cost, ParseProblem> {
        if self.depth > MAX_DEPTH {
            return Err(ParseProblem::Limit { what: "the depth of an expression", limit: MAX_DEPTH.into() });
        }
        if self.size > MAX_SIZE {
            return Err(ParseProblem::Limit { what: "the size of an expression", limit: MAX_SIZE });
        }
        Ok(self)
    }
}

/// An expression and its cost.
#[derive(Clone, Debug)]
pub(super) struct ExprTree {
    pub(super) expr: Expr,
    pub(super) cost: Cost,
}

/// An index and its cost.
#[derive(Clone, Debug)]
pub(super) struct IndexTree {
    pub(super) index: Index,
    pub(super) cost: Cost,
}

/// An operation on two indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Min,
    Max,
}

/// The work that the rest of a text may still cause: the sizes of all results, with a share for each byte of text.
pub(super) struct Budget {
    left: u64,
    total: u64,
}

impl Budget {
    pub(super) fn new(text: &str) -> Self {
        let total = (1 << 20) + 16 * text.len() as u64;
        Budget { left: total, total }
    }

    /// Applies an operation whose result is in bounds.
    pub(super) fn apply(
        &mut self,
        op: IndexOp,
        left: &IndexTree,
        right: &IndexTree,
    ) -> Result<IndexTree, ParseProblem> {
        let (a, b) = (&left.index, &right.index);
        let cost = match op {
            IndexOp::Mul => {
                check_product(a, b)?;
                Cost::product(left, right)?
            }
            _ => Cost::around(&[left.cost, right.cost])?,
        };
        self.left = self
            .left
            .checked_sub(cost.size)
            .ok_or(ParseProblem::Limit { what: "the work to read this text", limit: self.total })?;
        let index = match op {
            IndexOp::Add => a + b,
            IndexOp::Sub => a - b,
            IndexOp::Mul => a.multiply(b),
            IndexOp::Div => a.divide(b),
            IndexOp::Rem => a.remainder(b),
            IndexOp::Min => a.minimum(b),
            IndexOp::Max => a.maximum(b),
        };
        check_index(&index)?;
        // Terms that canonicalisation removes cost nothing in later operations.
        let cost = if index.terms().is_empty() { Cost::LEAF } else { cost };
        Ok(IndexTree { index, cost })
    }
}

/// The number of terms, the constant being one unless it is zero.
fn parts(index: &Index) -> u64 {
    index.terms().len() as u64 + u64::from(index.constant_part() != 0)
}

fn check_product(a: &Index, b: &Index) -> Result<(), ParseProblem> {
    let pairs = u128::from(parts(a)) * u128::from(parts(b));
    let size = u128::from(magnitude(a)) * u128::from(magnitude(b)) * pairs;
    if size > MAX_MAGNITUDE.into() {
        return Err(ParseProblem::Limit { what: "a number in an index", limit: MAX_MAGNITUDE });
    }
    if a.terms().len() * b.terms().len() > MAX_TERMS {
        return Err(ParseProblem::Limit { what: "the number of terms of an index", limit: MAX_TERMS as u64 });
    }
    Ok(())
}

/// The size of the largest coefficient, or of the constant.
fn magnitude(index: &Index) -> u64 {
    let coefficients = index.terms().iter().map(|term| term.coefficient.unsigned_abs());
    coefficients.fold(index.constant_part().unsigned_abs(), u64::max)
}

fn check_index(index: &Index) -> Result<(), ParseProblem> {
    if index.terms().len() > MAX_TERMS {
        return Err(ParseProblem::Limit { what: "the number of terms of an index", limit: MAX_TERMS as u64 });
    }
    let digit_fits = |divisor: i64, modulus: i64| {
        let modulus = if modulus == NO_MODULUS { 1 } else { modulus.unsigned_abs() };
        u128::from(divisor.unsigned_abs()) * u128::from(modulus) <= MAX_MAGNITUDE.into()
    };
    let fits = magnitude(index) <= MAX_MAGNITUDE
        && index.terms().iter().all(|term| digit_fits(term.digit.divisor, term.digit.modulus));
    if !fits {
        return Err(ParseProblem::Limit { what: "a number in an index", limit: MAX_MAGNITUDE });
    }
    // A digit of a digit: the sum inside was in bounds before, but may have been rebuilt.
    index.terms().iter().try_for_each(|term| match &term.digit.base {
        Base::Sum(sum) => check_index(sum),
        _ => Ok(()),
    })
}
