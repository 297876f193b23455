//! Division and remainder by constants.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Base, Digit, Index, NO_MODULUS, Term};

impl Index {
    /// The quotient by a positive constant, rounded down.
    ///
    /// # Panics
    /// When `divisor < 1`.
    pub fn floor_div(&self, divisor: i64) -> Index {
        assert!(divisor >= 1, "division of an index by {divisor}");
        if divisor == 1 {
            return self.clone();
        }
        if self.terms.is_empty() {
            return Index::constant(self.constant.div_euclid(divisor));
        }
        let (multiple, rest) = self.split_multiples(divisor);
        let quotient = multiple.divide_exactly(divisor);
        if rest.terms.is_empty() { quotient } else { &quotient + &divide_rest(&rest, divisor) }
    }

    /// The remainder by a positive constant, between 0 and `modulus - 1`.
    ///
    /// # Panics
    /// When `modulus < 1`.
    pub fn modulo(&self, modulus: i64) -> Index {
        assert!(modulus >= 1, "remainder of an index by {modulus}");
        let kept = self.terms.iter().filter(|term| term.coefficient % modulus != 0).cloned().collect();
        let rest = Index { terms: kept, constant: self.constant.rem_euclid(modulus) };
        if rest.terms.is_empty() {
            return rest;
        }
        let common = rest.common_factor(modulus);
        if common > 1 {
            let low = rest.constant.rem_euclid(common);
            let scaled = rest.offset(-low).divide_exactly(common);
            return scaled.modulo(modulus / common).scale(common).offset(low);
        }
        if let ([Term { digit, coefficient: 1 }], 0) = (&rest.terms[..], rest.constant) {
            return reduce_digit(digit, modulus);
        }
        Index::digit(Digit { base: Base::Sum(Arc::new(rest)), divisor: 1, modulus })
    }

    /// `(self / divisor) % modulus`, where [`NO_MODULUS`] leaves the quotient as it is.
    pub(crate) fn take_digit(&self, divisor: i64, modulus: i64) -> Index {
        let quotient = self.floor_div(divisor);
        if modulus == NO_MODULUS { quotient } else { quotient.modulo(modulus) }
    }

    /// The quotient by a positive constant, rounded up.
    ///
    /// # Panics
    /// When `divisor < 1`.
    pub fn ceil_div(&self, divisor: i64) -> Index {
        self.offset(divisor - 1).floor_div(divisor)
    }

    /// The terms whose coefficient is a multiple of `factor` (with the matching part of the
    /// constant), and the rest, whose constant lies in `0..factor`.
    pub(crate) fn split_multiples(&self, factor: i64) -> (Index, Index) {
        let (multiples, rest): (SmallVec<[Term; 2]>, SmallVec<[Term; 2]>) =
            self.terms.iter().cloned().partition(|term| term.coefficient % factor == 0);
        let low = self.constant.rem_euclid(factor);
        let multiple = Index { terms: multiples, constant: self.constant.wrapping_sub(low) };
        (multiple, Index { terms: rest, constant: low })
    }

    /// Divides every coefficient and the constant, all of which are multiples.
    pub(crate) fn divide_exactly(mut self, divisor: i64) -> Index {
        for term in &mut self.terms {
            debug_assert_eq!(term.coefficient % divisor, 0);
            term.coefficient /= divisor;
        }
        self.constant /= divisor;
        self
    }
}

/// `rest / divisor`, where `rest` has terms, none of them a multiple of `divisor`, and its constant lies in `0..divisor`.
fn divide_rest(rest: &Index, divisor: i64) -> Index {
    let common = rest.common_factor(divisor);
    if common > 1 {
        let scaled = rest.offset(-rest.constant.rem_euclid(common)).divide_exactly(common);
        return scaled.floor_div(divisor / common);
    }
    if let ([Term { digit, coefficient: 1 }], 0) = (&rest.terms[..], rest.constant) {
        return divide_digit(digit, divisor);
    }
    Index::digit(Digit { base: Base::Sum(Arc::new(rest.clone())), divisor, modulus: NO_MODULUS })
}

/// `digit / divisor`
fn divide_digit(digit: &Digit, divisor: i64) -> Index {
    let joined = digit.divisor.checked_mul(divisor);
    match (digit.modulus, joined) {
        (NO_MODULUS, Some(joined)) => digit_of(&digit.base, joined, NO_MODULUS),
        (NO_MODULUS, None) => wrap_digit(digit, divisor, NO_MODULUS),
        (modulus, _) if modulus <= divisor => Index::constant(0),
        (modulus, Some(joined)) if modulus % divisor == 0 => digit_of(&digit.base, joined, modulus / divisor),
        _ => wrap_digit(digit, divisor, NO_MODULUS),
    }
}

/// `digit % modulus`
fn reduce_digit(digit: &Digit, modulus: i64) -> Index {
    if modulus == 1 {
        return Index::constant(0);
    }
    if digit.modulus == NO_MODULUS {
        return Index::digit(Digit { base: digit.base.clone(), divisor: digit.divisor, modulus });
    }
    if digit.modulus <= modulus {
        return Index::digit(digit.clone());
    }
    if digit.modulus % modulus == 0 {
        return digit_of(&digit.base, digit.divisor, modulus);
    }
    wrap_digit(digit, 1, modulus)
}

/// `(base / divisor) % modulus`. A sum may have a simpler form under its new divisor and modulus.
fn digit_of(base: &Base, divisor: i64, modulus: i64) -> Index {
    match base {
        Base::Sum(sum) => sum.take_digit(divisor, modulus),
        _ => Index::digit(Digit { base: base.clone(), divisor, modulus }),
    }
}

fn wrap_digit(digit: &Digit, divisor: i64, modulus: i64) -> Index {
    let base = Base::Sum(Arc::new(Index::digit(digit.clone())));
    Index::digit(Digit { base, divisor, modulus })
}
