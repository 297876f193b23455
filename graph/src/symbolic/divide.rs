//! Quotients and remainders of symbolic integers.

use std::sync::Arc;

use crate::symbolic::{Factor, Operation, SymInt, Term};

impl SymInt {
    /// The quotient rounded towards minus infinity. The divisor is taken to be positive.
    pub fn floor_div(&self, divisor: &SymInt) -> SymInt {
        if let Some(quotient) = self.exact_div(divisor) {
            return quotient;
        }
        match divisor.as_constant() {
            Some(divisor) if divisor > 0 => self.floor_div_constant(divisor),
            _ => Factor::Operation(Operation::Divide, Arc::new([self.clone(), divisor.clone()])).into(),
        }
    }

    /// The remainder, not negative and less than the divisor, which is taken to be positive.
    pub fn remainder(&self, modulus: &SymInt) -> SymInt {
        if self.exact_div(modulus).is_some() {
            return SymInt::from(0);
        }
        match modulus.as_constant() {
            Some(constant) if constant > 0 => {
                let (_, rest) = self.split_multiples(constant);
                match rest.as_constant() {
                    Some(rest) => SymInt::from(rest),
                    None => Factor::Operation(Operation::Remainder, Arc::new([rest, modulus.clone()])).into(),
                }
            }
            _ => Factor::Operation(Operation::Remainder, Arc::new([self.clone(), modulus.clone()])).into(),
        }
    }

    /// The quotient, when every term is a multiple of the divisor, which has to be a single term; or when both are equal.
    pub fn exact_div(&self, divisor: &SymInt) -> Option<SymInt> {
        match (&divisor.terms[..], divisor.constant) {
            ([], 0) => None,
            ([], constant) => {
                let divides = |value: i64| value.checked_rem(constant) == Some(0);
                let exact = divides(self.constant) && self.terms.iter().all(|term| divides(term.coefficient));
                exact.then(|| self.divide_coefficients(constant))
            }
            ([divisor], 0) if self.constant == 0 => {
                let terms =
                    self.terms.iter().map(|term| term.exact_div(divisor)).collect::<Option<Vec<_>>>()?;
                Some(terms.iter().fold(SymInt::from(0), |sum, term| &sum + term))
            }
            _ => (self == divisor).then(|| SymInt::from(1)),
        }
    }

    fn divide_coefficients(&self, constant: i64) -> SymInt {
        let divided = |term: &Term| Term {
            product: term.product.clone(),
            coefficient: term.coefficient.wrapping_div(constant),
        };
        SymInt {
            terms: self.terms.iter().map(divided).collect(),
            constant: self.constant.wrapping_div(constant),
        }
    }

    /// Splits a sum into a multiple of `divisor`, given divided by it, and the rest, whose constant is from 0 to
    /// `divisor - 1`.
    fn split_multiples(&self, divisor: i64) -> (SymInt, SymInt) {
        let (multiples, rest): (Vec<Term>, Vec<Term>) =
            self.terms.iter().cloned().partition(|term| term.coefficient % divisor == 0);
        let constant = self.constant.rem_euclid(divisor);
        let multiples = SymInt { terms: multiples, constant: self.constant.wrapping_sub(constant) };
        (multiples.divide_coefficients(divisor), SymInt { terms: rest, constant })
    }

    fn floor_div_constant(&self, divisor: i64) -> SymInt {
        let (quotient, rest) = self.split_multiples(divisor);
        if rest.terms.is_empty() {
            return quotient;
        }
        // `(a/b + c) / d` is `(a + b·c) / (b·d)`: one division by a constant inside another becomes one.
        if let Some((inner, inner_divisor)) = rest.as_quotient()
            && let Some(product) = inner_divisor.checked_mul(divisor)
        {
            let numerator = &inner + &SymInt::from(rest.constant.wrapping_mul(inner_divisor));
            return &quotient + &numerator.floor_div(&SymInt::from(product));
        }
        let common =
            rest.terms.iter().fold(divisor, |common, term| greatest_common_divisor(common, term.coefficient));
        let reduced = SymInt { terms: rest.terms, constant: rest.constant.div_euclid(common) };
        let reduced = SymInt {
            constant: reduced.constant,
            ..SymInt { constant: 0, ..reduced }.divide_coefficients(common)
        };
        let divided = match divisor / common {
            1 => reduced,
            divisor => {
                Factor::Operation(Operation::Divide, Arc::new([reduced, SymInt::from(divisor)])).into()
            }
        };
        &quotient + &divided
    }

    /// `a` and `b`, when the sum's only term is `a / b` with a constant `b`.
    fn as_quotient(&self) -> Option<(SymInt, i64)> {
        let [Term { product, coefficient: 1 }] = &self.terms[..] else { return None };
        let [Factor::Operation(Operation::Divide, operands)] = &product[..] else { return None };
        Some((operands[0].clone(), operands[1].as_constant().filter(|&divisor| divisor > 0)?))
    }
}

impl Term {
    fn exact_div(&self, divisor: &Term) -> Option<SymInt> {
        if self.coefficient.checked_rem(divisor.coefficient) != Some(0) {
            return None;
        }
        let mut product = self.product.clone();
        for factor in &divisor.product {
            let place = product.iter().position(|other| other == factor)?;
            product.remove(place);
        }
        let coefficient = self.coefficient.wrapping_div(divisor.coefficient);
        Some(if product.is_empty() {
            SymInt::from(coefficient)
        } else {
            SymInt { terms: vec![Term { product, coefficient }], constant: 0 }
        })
    }
}

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b.checked_abs().unwrap_or(1));
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
