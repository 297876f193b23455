//! The exact range of an index, where that is easy.

use crate::ids::VarId;
use crate::index::{Base, Digit, Index, NO_MODULUS};

/// The smallest and largest value that an index takes while its variables run independently through
/// `0..extent(variable)`. `None` when an extent is unknown or zero, or the terms are not independent.
pub(super) fn exact_range(index: &Index, extent: &dyn Fn(VarId) -> Option<i64>) -> Option<(i128, i128)> {
    let constant = i128::from(index.constant_part());
    let (mut low, mut high) = (constant, constant);
    for (position, term) in index.terms().iter().enumerate() {
        let count = match &term.digit.base {
            Base::Var(var) => extent(*var)?,
            Base::Lane(lanes) => i64::from(*lanes),
            Base::Sum(_) | Base::Value(_) => return None,
        };
        let repeated = index.terms()[..position].iter().any(|other| other.digit.base == term.digit.base);
        if repeated || count < 1 {
            return None;
        }
        let reach = i128::from(term.coefficient) * i128::from(largest_digit(&term.digit, count)?);
        low += reach.min(0);
        high += reach.max(0);
    }
    Some((low, high))
}

/// The largest value of a digit whose base runs over `0..count`; every smaller one is taken as well.
fn largest_digit(digit: &Digit, count: i64) -> Option<i64> {
    let quotient = (count - 1).checked_div(digit.divisor)?;
    Some(if digit.modulus == NO_MODULUS { quotient } else { quotient.min(digit.modulus - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_agree_with_enumeration() {
        let (x, y) = (VarId(0), VarId(1));
        let (ix, iy) = (Index::var(x), Index::var(y));
        let indices = [
            ix.offset(3),
            &ix.scale(-2) + &iy.scale(5),
            &ix.floor_div(3).scale(7) + &iy.modulo(4),
            ix.floor_div(2).modulo(3).scale(-1).offset(1),
            Index::constant(-4),
        ];
        for (count_x, count_y) in [(1, 1), (5, 3), (12, 9)] {
            let extent = |var: VarId| Some(if var == x { count_x } else { count_y });
            for index in &indices {
                let values: Vec<i128> = (0..count_x)
                    .flat_map(|vx| (0..count_y).map(move |vy| (vx, vy)))
                    .map(|(vx, vy)| {
                        let at =
                            index.substitute(&|var| Some(Index::constant(if var == x { vx } else { vy })));
                        i128::from(at.as_constant().expect("all variables are replaced"))
                    })
                    .collect();
                let expected = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
                assert_eq!(
                    exact_range(index, &extent),
                    Some(expected),
                    "{index:?} over {count_x} x {count_y}"
                );
            }
        }
    }

    #[test]
    fn dependent_terms_and_unknown_extents_give_no_range() {
        let ix = Index::var(VarId(0));
        let dependent = &ix + &ix.floor_div(2);
        assert_eq!(exact_range(&dependent, &|_| Some(8)), None);
        assert_eq!(exact_range(&ix, &|_| None), None);
        assert_eq!(exact_range(&ix, &|_| Some(0)), None);
    }
}
