//! The indices and expressions that single lanes of a vector have.

use crate::expr::Expr;
use crate::index::{Base, Digit, Index, NO_MODULUS};
use crate::visit;

/// The value of a sum of terms with lanes for one lane, when nothing but the lane is in it.
pub fn lane_offset(index: &Index, lane: u32) -> Option<i64> {
    let mut sum = index.constant_part();
    for term in index.terms() {
        let base = match &term.digit.base {
            Base::Lane(_) => i64::from(lane),
            Base::Sum(sum) => lane_offset(sum, lane)?,
            Base::Var(_) | Base::Value(_) => return None,
        };
        let quotient = base.div_euclid(term.digit.divisor);
        let digit =
            if term.digit.modulus == NO_MODULUS { quotient } else { quotient.rem_euclid(term.digit.modulus) };
        sum = sum.wrapping_add(digit.wrapping_mul(term.coefficient));
    }
    Some(sum)
}

/// The scalar index that one lane of an index has.
pub fn at_lane(index: &Index, lane: u32) -> Index {
    let mut result = Index::constant(index.constant_part());
    for term in index.terms() {
        let base = match &term.digit.base {
            Base::Lane(_) => Index::constant(i64::from(lane)),
            Base::Sum(sum) => at_lane(sum, lane),
            Base::Value(value) => match at_lane_expr(value, lane) {
                Some(value) => Index::value(value),
                None => Index::digit(Digit::whole(term.digit.base.clone())),
            },
            Base::Var(_) => Index::digit(Digit::whole(term.digit.base.clone())),
        };
        let mut digit = base.floor_div(term.digit.divisor);
        if term.digit.modulus != NO_MODULUS {
            digit = digit.modulo(term.digit.modulus);
        }
        result = result.add_scaled(&digit, term.coefficient);
    }
    result
}

/// The expression that one lane of an expression computes; `None` when it has no lanes.
fn at_lane_expr(expr: &Expr, lane: u32) -> Option<Expr> {
    visit::rewrite_indices(expr, &|index| (index.lanes() > 1).then(|| at_lane(index, lane)))
}
