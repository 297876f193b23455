//! Building canonical sums.

use smallvec::SmallVec;

use super::interval::quotient_form;
use super::{Base, Digit, Index, NO_MODULUS, Term};

type Terms = SmallVec<[Term; 2]>;

impl Index {
    /// Builds the canonical form of a sum.
    pub fn from_terms(terms: impl IntoIterator<Item = Term>, constant: i64) -> Self {
        let mut terms: Terms = terms.into_iter().collect();
        terms.sort_unstable_by(|a, b| a.digit.cmp(&b.digit));
        terms.dedup_by(|next, last| {
            let same = next.digit == last.digit;
            if same {
                last.coefficient = last.coefficient.wrapping_add(next.coefficient);
            }
            same
        });
        terms.retain(|term| term.coefficient != 0);
        join_digits(Index { terms, constant })
    }

    /// The sum with `factor` times `other`.
    pub fn add_scaled(&self, other: &Index, factor: i64) -> Index {
        let constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
        if factor == 0 || other.terms.is_empty() {
            return Index { terms: self.terms.clone(), constant };
        }
        let scaled = |term: &Term| Term {
            digit: term.digit.clone(),
            coefficient: term.coefficient.wrapping_mul(factor),
        };
        if self.terms.is_empty() {
            let mut terms: Terms = other.terms.iter().map(scaled).collect();
            terms.retain(|term| term.coefficient != 0);
            return Index { terms, constant };
        }
        let mut terms = Terms::with_capacity(self.terms.len() + other.terms.len());
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) => a.digit.cmp(&b.digit),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => break,
            };
            let mut term = match order {
                std::cmp::Ordering::Greater => right.next().map(scaled),
                _ => left.next().cloned(),
            }
            .expect("the side that was peeked at");
            if order == std::cmp::Ordering::Equal
                && let Some(other) = right.next()
            {
                term.coefficient = term.coefficient.wrapping_add(other.coefficient.wrapping_mul(factor));
            }
            if term.coefficient != 0 {
                terms.push(term);
            }
        }
        join_digits(Index { terms, constant })
    }

    /// The sum of all terms but one.
    pub(super) fn without_term(&self, at: usize) -> Index {
        let mut rest = self.clone();
        rest.terms.remove(at);
        rest
    }
}

/// Brings the digits of each base that occurs more than once into mixed-radix form.
fn join_digits(mut index: Index) -> Index {
    let mut start = 0;
    while start + 1 < index.terms.len() {
        let base = &index.terms[start].digit.base;
        let count = index.terms[start..].iter().take_while(|term| term.digit.base == *base).count();
        let group = &index.terms[start..start + count];
        let Some(joined) = (if count > 1 { mixed_radix(group) } else { None }) else {
            start += count;
            continue;
        };
        if let Base::Sum(sum) = base {
            // The sum may have a simpler form under its new divisors, or none at all.
            let sum = sum.clone();
            index.terms.drain(start..start + count);
            return joined.iter().fold(index, |index, term| {
                index.add_scaled(&sum.take_digit(term.digit.divisor, term.digit.modulus), term.coefficient)
            });
        }
        let joined_count = joined.len();
        index.terms.drain(start..start + count);
        index.terms.insert_many(start, joined);
        start += joined_count;
    }
    index
}

/// The digits of one base as those of a mixed-radix number; `None` when they are already, or when a
/// number overflows. Between divisors that do not divide one another there is no modulus.
fn mixed_radix(group: &[Term]) -> Option<Terms> {
    // The quotient form is unique, hence so is the result.
    let mut quotients = quotient_form(group)?;
    let mut digits = Terms::new();
    for at in 0..quotients.len() {
        let (divisor, coefficient) = quotients[at];
        if coefficient == 0 {
            continue;
        }
        let mut modulus = NO_MODULUS;
        if let Some(next) = quotients.get_mut(at + 1).filter(|next| next.0 % divisor == 0) {
            modulus = next.0 / divisor;
            next.1 = next.1.checked_add(coefficient.checked_mul(modulus)?)?;
        }
        digits
            .push(Term { digit: Digit { base: group[0].digit.base.clone(), divisor, modulus }, coefficient });
    }
    (digits[..] != *group).then_some(digits)
}
