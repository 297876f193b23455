//! Integers that may depend on sizes known only at run time.
//!
//! A [`SymInt`] is a polynomial over symbols and over quotients, remainders, minima and maxima of other such integers,
//! in canonical form: terms are sorted, no product occurs twice, no coefficient is zero. Shapes are made of them, and the
//! small integer tensors with which models compute shapes.
//!
//! It is not [`tilewright_core::index::Index`], which keeps products opaque: here `(N·C·H·W) / (C·H)` must become `N·W`.
//!
//! Division rounds towards minus infinity, and the remainder has the sign of the divisor. Symbols are sizes, hence not
//! negative. Arithmetic on coefficients wraps; [`SymInt::evaluate`] is checked.

mod divide;
mod parse;
mod print;

use std::sync::Arc;

pub use parse::ParseError;

/// The name of a size that becomes known at run time. Equal names in one function are equal sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(Arc<str>);

impl Symbol {
    /// A symbol. The name is made an identifier: what cannot be part of one becomes an underscore.
    pub fn new(name: &str) -> Self {
        let part = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let mut text: String = name.chars().map(part).collect();
        if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            text.insert(0, '_');
        }
        Symbol(text.into())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// An integer expression over symbols, always in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymInt {
    /// Sorted by product, none twice, no zero coefficient.
    terms: Vec<Term>,
    constant: i64,
}

/// `coefficient · product`
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Term {
    /// Sorted, not empty; a factor occurs as often as its power says.
    product: Vec<Factor>,
    coefficient: i64,
}

/// A factor of a product.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Factor {
    Symbol(Symbol),
    Operation(Operation, Arc<[SymInt; 2]>),
}

/// An operation whose result is no polynomial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Operation {
    Divide,
    Remainder,
    Minimum,
    Maximum,
}

impl From<i64> for SymInt {
    fn from(constant: i64) -> Self {
        SymInt { terms: Vec::new(), constant }
    }
}

impl From<i32> for SymInt {
    fn from(constant: i32) -> Self {
        SymInt::from(i64::from(constant))
    }
}

impl From<usize> for SymInt {
    fn from(constant: usize) -> Self {
        SymInt::from(constant as i64)
    }
}

impl From<Symbol> for SymInt {
    fn from(symbol: Symbol) -> Self {
        SymInt::from(Factor::Symbol(symbol))
    }
}

impl From<Factor> for SymInt {
    fn from(factor: Factor) -> Self {
        SymInt { terms: vec![Term { product: vec![factor], coefficient: 1 }], constant: 0 }
    }
}

impl SymInt {
    /// A symbol; see [`Symbol::new`].
    pub fn symbol(name: &str) -> Self {
        Symbol::new(name).into()
    }

    /// The value, when it depends on no symbol.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The symbol, when this is one and nothing else.
    pub fn as_symbol(&self) -> Option<&Symbol> {
        match (&self.terms[..], self.constant) {
            ([Term { product, coefficient: 1 }], 0) => match &product[..] {
                [Factor::Symbol(symbol)] => Some(symbol),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether this is the constant `value`.
    pub fn is(&self, value: i64) -> bool {
        self.as_constant() == Some(value)
    }

    /// Brings terms into canonical form.
    fn from_terms(mut terms: Vec<Term>, constant: i64) -> Self {
        terms.sort();
        let mut merged: Vec<Term> = Vec::with_capacity(terms.len());
        for term in terms {
            match merged.last_mut() {
                Some(last) if last.product == term.product => {
                    last.coefficient = last.coefficient.wrapping_add(term.coefficient);
                }
                _ => merged.push(term),
            }
        }
        merged.retain(|term| term.coefficient != 0);
        SymInt { terms: merged, constant }
    }

    /// The product with a constant.
    pub fn scale(&self, factor: i64) -> SymInt {
        let scaled = |term: &Term| Term {
            product: term.product.clone(),
            coefficient: term.coefficient.wrapping_mul(factor),
        };
        SymInt::from_terms(self.terms.iter().map(scaled).collect(), self.constant.wrapping_mul(factor))
    }

    /// The quotient rounded up.
    pub fn ceil_div(&self, divisor: &SymInt) -> SymInt {
        self.scale(-1).floor_div(divisor).scale(-1)
    }

    /// The smaller of both.
    pub fn minimum(&self, other: &SymInt) -> SymInt {
        self.pick(other, Operation::Minimum)
    }

    /// The larger of both.
    pub fn maximum(&self, other: &SymInt) -> SymInt {
        self.pick(other, Operation::Maximum)
    }

    fn pick(&self, other: &SymInt, operation: Operation) -> SymInt {
        let wants_smaller = operation == Operation::Minimum;
        let difference = self - other;
        if difference.is_not_negative() {
            return if wants_smaller { other.clone() } else { self.clone() };
        }
        if difference.scale(-1).is_not_negative() {
            return if wants_smaller { self.clone() } else { other.clone() };
        }
        let (first, second) = if self <= other { (self, other) } else { (other, self) };
        Factor::Operation(operation, Arc::new([first.clone(), second.clone()])).into()
    }

    /// Whether this cannot be negative, whatever the symbols are. `false` means that it is not known.
    pub fn is_not_negative(&self) -> bool {
        let factor = |factor: &Factor| match factor {
            Factor::Symbol(_) => true,
            Factor::Operation(operation, operands) => {
                let [left, right] = &**operands;
                match operation {
                    Operation::Divide => left.is_not_negative() && right.is_not_negative(),
                    Operation::Remainder => right.is_not_negative(),
                    Operation::Minimum => left.is_not_negative() && right.is_not_negative(),
                    Operation::Maximum => left.is_not_negative() || right.is_not_negative(),
                }
            }
        };
        let term = |term: &Term| term.coefficient > 0 && term.product.iter().all(factor);
        self.constant >= 0 && self.terms.iter().all(term)
    }

    /// Calls `visit` with every symbol, as often as it occurs.
    pub fn for_each_symbol(&self, visit: &mut impl FnMut(&Symbol)) {
        self.visit_symbols(visit);
    }

    fn visit_symbols(&self, visit: &mut dyn FnMut(&Symbol)) {
        for factor in self.terms.iter().flat_map(|term| &term.product) {
            match factor {
                Factor::Symbol(symbol) => visit(symbol),
                Factor::Operation(_, operands) => {
                    operands.iter().for_each(|operand| operand.visit_symbols(visit))
                }
            }
        }
    }

    /// Replaces symbols. `replace` gives `None` for those that stay.
    pub fn substitute(&self, replace: &dyn Fn(&Symbol) -> Option<SymInt>) -> SymInt {
        let mut sum = SymInt::from(self.constant);
        for term in &self.terms {
            let factors = term.product.iter().map(|factor| match factor {
                Factor::Symbol(symbol) => replace(symbol).unwrap_or_else(|| symbol.clone().into()),
                Factor::Operation(operation, operands) => {
                    let [left, right] = &**operands;
                    operation.apply(&left.substitute(replace), &right.substitute(replace))
                }
            });
            sum = &sum + &factors.fold(SymInt::from(term.coefficient), |product, factor| &product * &factor);
        }
        sum
    }

    /// The value for given symbols. `None` when a symbol has no value, a divisor is not positive, or the value does not
    /// fit `i64`.
    pub fn evaluate(&self, value: &dyn Fn(&Symbol) -> Option<i64>) -> Option<i64> {
        self.terms.iter().try_fold(self.constant, |sum, term| {
            let product = term.product.iter().try_fold(term.coefficient, |product, factor| {
                let factor = match factor {
                    Factor::Symbol(symbol) => value(symbol)?,
                    Factor::Operation(operation, operands) => {
                        operation.evaluate(operands[0].evaluate(value)?, operands[1].evaluate(value)?)?
                    }
                };
                product.checked_mul(factor)
            })?;
            sum.checked_add(product)
        })
    }
}

/// An arithmetic in which symbolic integers can be written.
pub(crate) trait Arithmetic {
    /// Its integers.
    type Number: Clone;
    /// Why one cannot be written.
    type Error;

    fn constant(&mut self, constant: i64) -> Self::Number;
    fn symbol(&mut self, symbol: &Symbol) -> Result<Self::Number, Self::Error>;
    fn add(&mut self, left: Self::Number, right: Self::Number) -> Self::Number;
    fn multiply(&mut self, left: Self::Number, right: Self::Number) -> Self::Number;
    fn divide(&mut self, left: Self::Number, right: Self::Number) -> Self::Number;
    fn remainder(&mut self, left: Self::Number, right: Self::Number) -> Self::Number;
    fn minimum(&mut self, left: Self::Number, right: Self::Number) -> Self::Number;
    fn maximum(&mut self, left: Self::Number, right: Self::Number) -> Self::Number;
}

impl SymInt {
    /// This integer in another arithmetic.
    ///
    /// # Errors
    /// When that has no number for a symbol.
    pub(crate) fn translate<A: Arithmetic>(&self, arithmetic: &mut A) -> Result<A::Number, A::Error> {
        let mut sum: Option<A::Number> = None;
        // Terms that are subtracted come last, so that no partial sum of sizes is negative without need.
        let (added, taken): (Vec<&Term>, Vec<&Term>) =
            self.terms.iter().partition(|term| term.coefficient > 0);
        for term in added {
            let product = term.translate(arithmetic)?;
            sum = Some(match sum {
                Some(sum) => arithmetic.add(sum, product),
                None => product,
            });
        }
        if self.constant != 0 || sum.is_none() {
            let constant = arithmetic.constant(self.constant);
            sum = Some(match sum {
                Some(sum) => arithmetic.add(sum, constant),
                None => constant,
            });
        }
        let mut sum = sum.expect("a constant is there when no term is");
        for term in taken {
            let product = term.translate(arithmetic)?;
            sum = arithmetic.add(sum, product);
        }
        Ok(sum)
    }
}

impl Term {
    fn translate<A: Arithmetic>(&self, arithmetic: &mut A) -> Result<A::Number, A::Error> {
        let mut product: Option<A::Number> = None;
        if self.coefficient != 1 {
            product = Some(arithmetic.constant(self.coefficient));
        }
        for factor in &self.product {
            let number = match factor {
                Factor::Symbol(symbol) => arithmetic.symbol(symbol)?,
                Factor::Operation(operation, operands) => {
                    let (left, right) =
                        (operands[0].translate(arithmetic)?, operands[1].translate(arithmetic)?);
                    match operation {
                        Operation::Divide => arithmetic.divide(left, right),
                        Operation::Remainder => arithmetic.remainder(left, right),
                        Operation::Minimum => arithmetic.minimum(left, right),
                        Operation::Maximum => arithmetic.maximum(left, right),
                    }
                }
            };
            product = Some(match product {
                Some(product) => arithmetic.multiply(product, number),
                None => number,
            });
        }
        Ok(product.expect("a term has a factor"))
    }
}

impl Operation {
    fn apply(self, left: &SymInt, right: &SymInt) -> SymInt {
        match self {
            Operation::Divide => left.floor_div(right),
            Operation::Remainder => left.remainder(right),
            Operation::Minimum => left.minimum(right),
            Operation::Maximum => left.maximum(right),
        }
    }

    fn evaluate(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Operation::Divide if right > 0 => Some(left.div_euclid(right)),
            Operation::Remainder if right > 0 => Some(left.rem_euclid(right)),
            Operation::Divide | Operation::Remainder => None,
            Operation::Minimum => Some(left.min(right)),
            Operation::Maximum => Some(left.max(right)),
        }
    }
}

impl std::ops::Add for &SymInt {
    type Output = SymInt;
    fn add(self, other: &SymInt) -> SymInt {
        let terms = self.terms.iter().chain(&other.terms).cloned().collect();
        SymInt::from_terms(terms, self.constant.wrapping_add(other.constant))
    }
}

impl std::ops::Sub for &SymInt {
    type Output = SymInt;
    fn sub(self, other: &SymInt) -> SymInt {
        self + &other.scale(-1)
    }
}

impl std::ops::Mul for &SymInt {
    type Output = SymInt;
    fn mul(self, other: &SymInt) -> SymInt {
        let mut terms = self.scale(other.constant).terms;
        terms.extend(other.scale(self.constant).terms);
        for left in &self.terms {
            for right in &other.terms {
                let mut product: Vec<Factor> = left.product.iter().chain(&right.product).cloned().collect();
                product.sort();
                terms.push(Term { product, coefficient: left.coefficient.wrapping_mul(right.coefficient) });
            }
        }
        SymInt::from_terms(terms, self.constant.wrapping_mul(other.constant))
    }
}

#[cfg(test)]
mod tests;
