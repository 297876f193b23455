//! Parts of indices by which accesses differ although their bounds do not tell.
//!
//! ```text
//! for p in 0..2 { s[t / 16 + p*8, t % 16] = … }   // 128 threads
//! ```
//!
//! Threads 0 and 16 store to the rows 0 and 8, and 1 and 9. The intervals 0..9 and 1..10 of their rows have rows in common. Modulo
//! 8, their rows are 0 and 1. Equal numbers have equal residues, so that threads whose residues differ never meet.

use crate::index::{Index, Ranges, Term, greatest_common_divisor};

/// The moduli that may keep the values of two indices apart: the common divisors of the longest strides of loops, however
/// many of them.
pub(super) fn moduli([a, b]: [(&Index, &Ranges); 2]) -> Vec<i64> {
    let strides_of = |(index, free): (&Index, &Ranges)| -> Vec<i64> {
        let is_free = |term: &&Term| {
            let mut found = false;
            Index::digit(term.digit.clone()).for_each_var(&mut |var| found |= free.contains(var));
            found
        };
        index.terms().iter().filter(is_free).map(|term| term.coefficient.saturating_abs()).collect()
    };
    let mut strides = [strides_of(a), strides_of(b)].concat();
    strides.sort_unstable_by(|a, b| b.cmp(a));
    let mut divisor = 0;
    let mut moduli: Vec<i64> = strides
        .into_iter()
        .map(|stride| {
            divisor = greatest_common_divisor(divisor, stride);
            divisor
        })
        .filter(|modulus| *modulus > 1)
        .collect();
    moduli.dedup();
    moduli
}

/// An index without its multiples of a modulus: its values have the same residues.
pub(super) fn without_multiples(index: &Index, modulus: i64) -> Index {
    let terms = index.terms().iter().filter(|term| term.coefficient % modulus != 0).cloned();
    Index::from_terms(terms, index.constant_part())
}
