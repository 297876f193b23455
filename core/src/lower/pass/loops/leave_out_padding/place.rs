//! Tiles of sums at a place that is known only when the kernel runs, told apart by a branch where the place decides their conditions.

use std::sync::Arc;

use crate::expr::{BinaryOp, Expr};
use crate::ids::VarId;
use crate::index::{Base, Digit, Index, NO_MODULUS, Ranges};
use crate::lower::pass::loops::leave_out_padding::taps::{Holds, LoopsBelow, holds};
use crate::lower::pass::loops::leave_out_padding::{Sums, only_store};
use crate::lower::util::comparison::{mentions_any, written_out_size};
use crate::lower::util::condition::is_negative;
use crate::lower::util::copy::copy;
use crate::simplify::simplify_stmt;
use crate::stmt::{If, Stmt, Store};
use crate::visit::substitute_stmt;

/// The most places that tiles are looked at for.
const MOST_PLACES: i64 = 256;

/// The most places with code of their own: two at the borders, and one more where tiles are smaller than the padding.
const MOST_SPECIAL: usize = 3;

/// One of at most this many places has to meet padding, or its code is not worth its size.
const MOST_PLACES_FOR_ONE: i64 = 32;

/// The part of a condition that depends on the loops around a sum: a digit of a loop's variable.
#[derive(Clone, PartialEq)]
pub(super) struct Place {
    var: VarId,
    digit: Digit,
    first: i64,
    number: i64,
}

impl Sums<'_> {
    /// A sum by the place of its tile, where padding meets tiles at few places.
    pub(super) fn by_place(&mut self, stmt: &Stmt, store: &Store) -> Option<Stmt> {
        let below = LoopsBelow::of(stmt, store);
        let conditions: Vec<Index> = self
            .terms
            .conditions(store)
            .into_iter()
            .filter(|condition| below.differs_in_tile(condition))
            .collect();
        let place = conditions.iter().find_map(|condition| place_of(condition, &self.outer))?;
        let of_place: Vec<Index> = conditions
            .into_iter()
            .filter(|condition| place_of(condition, &self.outer).as_ref() == Some(&place))
            .collect();
        let meets = |number: &i64| {
            of_place.iter().any(|condition| {
                let there = at(condition, &place, *number);
                holds(&there, &below.ranges) != Holds::Always
            })
        };
        let special: Vec<i64> = (place.first..place.first + place.number).filter(meets).collect();
        if special.is_empty()
            || special.len() > MOST_SPECIAL
            || place.number > MOST_PLACES_FOR_ONE * special.len() as i64
        {
            return None;
        }
        let all_are_special = special.len() as i64 == place.number;
        let cost = written_out_size(stmt).checked_mul(special.len())?;
        self.budget = self.budget.checked_sub(cost)?;
        let mut otherwise = match all_are_special {
            true => None,
            false => Some(self.inside_all(stmt, of_place)),
        };
        for number in special.into_iter().rev() {
            let own = self.at_place(stmt, &place, number);
            otherwise = Some(match otherwise {
                None => own,
                Some(rest) => {
                    let condition = is_at(&place, number);
                    Stmt::If(Arc::new(If { condition, then: own, otherwise: Some(rest) }))
                }
            });
        }
        otherwise
    }

    /// A sum at places where some conditions always hold.
    fn inside_all(&mut self, stmt: &Stmt, conditions: Vec<Index>) -> Stmt {
        let before = self.terms.holding.len();
        self.terms.holding.extend(conditions);
        let made = self.terms.without_holding(stmt).unwrap_or_else(|| stmt.clone());
        let inner = only_store(&made).and_then(|store| self.sum(&made, store));
        self.terms.holding.truncate(before);
        inner.unwrap_or(made)
    }

    /// A sum at one place.
    fn at_place(&mut self, stmt: &Stmt, place: &Place, number: i64) -> Stmt {
        let mut made = copy(self.program, stmt);
        let value = value_at(place, number);
        substitute_stmt(&mut made, &|var| (var == place.var).then(|| value.clone()));
        simplify_stmt(&mut made, &self.outer);
        self.terms.places.push((place.clone(), number));
        let inner = only_store(&made).and_then(|store| self.sum(&made, store));
        self.terms.places.pop();
        inner.unwrap_or(made)
    }
}

/// The only digit of a loop around the sum in a condition.
fn place_of(condition: &Index, outer: &Ranges) -> Option<Place> {
    let mut around =
        condition.terms().iter().filter(|term| mentions_any(&Index::digit(term.digit.clone()), outer));
    let (term, None) = (around.next()?, around.next()) else { return None };
    let Base::Var(var) = term.digit.base else { return None };
    let values = Index::digit(term.digit.clone()).interval(outer);
    let number = values.max.checked_sub(values.min)?.checked_add(1)?;
    let digit = term.digit.clone();
    ((2..=MOST_PLACES).contains(&number)).then_some(Place { var, digit, first: values.min, number })
}

/// A condition at a place.
pub(super) fn at(condition: &Index, place: &Place, number: i64) -> Index {
    let is_place = |digit: &Digit| *digit == place.digit;
    let rest = condition.terms().iter().filter(|term| !is_place(&term.digit)).cloned();
    let there: i64 = condition
        .terms()
        .iter()
        .filter(|term| is_place(&term.digit))
        .map(|term| term.coefficient * number)
        .sum();
    Index::from_terms(rest, condition.constant_part() + there)
}

/// Whether a tile is at a place.
fn is_at(place: &Place, number: i64) -> Expr {
    let here = Index::digit(place.digit.clone());
    match () {
        () if number == place.first => is_negative(&here.offset(-number - 1)),
        () if number == place.first + place.number - 1 => is_negative(&here.scale(-1).offset(number - 1)),
        () => Expr::binary(
            BinaryOp::And,
            is_negative(&here.offset(-number - 1)),
            is_negative(&here.scale(-1).offset(number - 1)),
        ),
    }
}

/// The loop's variable at a place: only its other digits are left.
fn value_at(place: &Place, number: i64) -> Index {
    let Digit { divisor, modulus, .. } = place.digit;
    let var = Index::var(place.var);
    let low = var.modulo(divisor).offset(number * divisor);
    match modulus {
        NO_MODULUS => low,
        modulus => &low + &var.floor_div(divisor * modulus).scale(divisor * modulus),
    }
}
