//! Products of indices that are not both constant, and their division by one another.
//!
//! A product of two variables is opaque to the quasi-affine form: it is kept as a value whose factors
//! are sorted, so that equal products compare equal and a factor can be divided out again.

use smallvec::SmallVec;

use super::{Base, Digit, Index, Term};
use crate::expr::{BinaryOp, Expr, ExprKind};

/// The factors of a product.
pub(super) type Factors = SmallVec<[Expr; 4]>;

impl Index {
    /// The exact quotient by a divisor of one term, when every term holds all of its factors:
    /// `(4·M·i + 2·M) / (2·M) = 2·i + 1`. `None` when the division is not exact term by term. Says
    /// nothing about a divisor that may be zero.
    pub(crate) fn divide_by_factor(&self, divisor: &Index) -> Option<Index> {
        let [term] = divisor.terms() else { return None };
        if divisor.constant_part() != 0 || self.constant_part() != 0 {
            return None;
        }
        let factors = factors_of(&term.digit);
        let mut quotient = Index::constant(0);
        for part in self.terms() {
            quotient = &quotient + &divide_term(part, &factors, term.coefficient)?;
        }
        Some(quotient)
    }

    /// Whether sums of a few products with another such index do not overflow.
    pub(super) fn has_small_numbers(&self) -> bool {
        let is_small = |number: i64| number.unsigned_abs() < 1 << 30;
        is_small(self.constant_part()) && self.terms().iter().all(|term| is_small(term.coefficient))
    }

    /// `(quotient, rest)` with `self = quotient · divisor + rest`: the division of polynomials whose variables are the digits, by the term
    /// of the divisor that has the most factors. `None` when numbers could overflow, and when the divisor is a constant below 1.
    pub(crate) fn divide_with_rest(&self, divisor: &Index) -> Option<(Index, Index)> {
        if let Some(constant) = divisor.as_constant() {
            let (multiple, rest) = (constant >= 1).then(|| self.split_multiples(constant))?;
            return Some((multiple.divide_exactly(constant), rest));
        }
        let leading = divisor.terms().iter().map(|term| (factors_of(&term.digit), term.coefficient));
        let (factors, coefficient) =
            leading.max_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))?;
        let (mut quotient, mut rest) = (Index::constant(0), self.clone());
        for _ in 0..MAX_DIVISIONS {
            if !divisor.has_small_numbers() || !rest.has_small_numbers() {
                return None;
            }
            let Some(part) = rest.terms().iter().find_map(|term| divide_term(term, &factors, coefficient))
            else {
                return Some((quotient, rest));
            };
            quotient = &quotient + &part;
            rest = &rest - &part.multiply(divisor);
        }
        None
    }
}

/// How many terms a quotient may have.
const MAX_DIVISIONS: usize = 32;

/// The exact quotient of a term by `coefficient` times a product of factors.
fn divide_term(term: &Term, factors: &[Expr], coefficient: i64) -> Option<Index> {
    if term.coefficient.checked_rem(coefficient) != Some(0) {
        return None;
    }
    let mut left = factors_of(&term.digit);
    for factor in factors {
        let at = left.iter().position(|candidate| candidate == factor)?;
        left.remove(at);
    }
    Some(product(left).scale(term.coefficient / coefficient))
}

/// The product of two digits as an opaque value with sorted factors.
pub(super) fn multiply_digits(left: &Digit, right: &Digit) -> Index {
    let mut factors = Factors::new();
    collect_factors(left, &mut factors);
    collect_factors(right, &mut factors);
    factors.sort();
    product(factors)
}

/// The product of sorted factors; of a single one, the factor itself.
pub(super) fn product(factors: impl IntoIterator<Item = Expr>) -> Index {
    match factors.into_iter().reduce(|a, b| Expr::binary(BinaryOp::Mul, a, b)) {
        None => Index::constant(1),
        Some(value) => match value.kind() {
            ExprKind::Index(index) => index.clone(),
            _ => Index::digit(Digit::whole(Base::Value(value))),
        },
    }
}

/// The factors of a digit: itself, unless it is an opaque product.
pub(super) fn factors_of(digit: &Digit) -> Factors {
    let mut factors = Factors::new();
    collect_factors(digit, &mut factors);
    factors
}

fn collect_factors(digit: &Digit, factors: &mut Factors) {
    match &digit.base {
        Base::Value(value) if digit.is_whole() => push_factors(value, factors),
        _ => factors.push(Expr::index(Index::digit(digit.clone()))),
    }
}

fn push_factors(value: &Expr, factors: &mut Factors) {
    match value.kind() {
        ExprKind::Binary(BinaryOp::Mul, a, b) => {
            push_factors(a, factors);
            push_factors(b, factors);
        }
        _ => factors.push(value.clone()),
    }
}
