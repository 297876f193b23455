//! Index arithmetic in a canonical quasi-affine form.
//!
//! An [`Index`] is a sum of `coefficient · digit` plus a constant, where a [`Digit`] is
//! `(base / divisor) % modulus` of a variable, of a lane, of another sum, or of an opaque value.
//! Every analysis (regions, contiguity, bounds, injectivity) reads this form directly, and two
//! indices that are equal after canonicalisation compare equal.
//!
//! Division and remainder round towards minus infinity, with positive divisors.
//!
//! What needs the variables' ranges (`(8·x + y) / 8 = x` when `y < 8`) is in [`simplify`], [`interval`]
//! and [`bounds`]; what needs a bijection is in [`iter_map`].

pub mod bounds;
pub mod interval;
pub mod iter_map;
mod product;
pub mod simplify;

pub use bounds::Ranges;
pub use interval::Interval;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind};
use crate::ids::VarId;

/// A quasi-affine integer expression, always in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Index {
    /// Sorted by digit, no digit twice, no zero coefficient.
    terms: SmallVec<[Term; 2]>,
    constant: i64,
}

/// `coefficient · digit`
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term {
    /// What is multiplied.
    pub digit: Digit,
    /// By how much; not zero.
    pub coefficient: i64,
}

/// `(base / divisor) % modulus`
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digit {
    /// What is divided.
    pub base: Base,
    /// At least 1.
    pub divisor: i64,
    /// At least 2, or [`NO_MODULUS`] when the quotient is not reduced.
    pub modulus: i64,
}

/// The modulus of a digit that is not reduced.
pub const NO_MODULUS: i64 = 0;

/// What a digit is taken of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Base {
    /// A dimension, a loop variable or a block iterator.
    Var(VarId),
    /// The lane number, from 0 to one less than the number of lanes: makes the index a vector.
    Lane(u32),
    /// A sum that division does not distribute over. Only under a divisor or modulus.
    Sum(Arc<Index>),
    /// An `i64` value that is not affine: a product of dimensions, a loaded index, a minimum.
    Value(Expr),
}

impl Digit {
    /// The base itself.
    pub fn whole(base: Base) -> Self {
        Digit { base, divisor: 1, modulus: NO_MODULUS }
    }

    /// Whether this is the base itself, neither divided nor reduced.
    pub fn is_whole(&self) -> bool {
        self.divisor == 1 && self.modulus == NO_MODULUS
    }
}

impl Default for Index {
    fn default() -> Self {
        Index::constant(0)
    }
}

impl From<i64> for Index {
    fn from(value: i64) -> Self {
        Index::constant(value)
    }
}

impl From<VarId> for Index {
    fn from(var: VarId) -> Self {
        Index::var(var)
    }
}

impl Index {
    /// A constant.
    pub fn constant(constant: i64) -> Self {
        Index { terms: SmallVec::new(), constant }
    }

    /// A variable.
    pub fn var(var: VarId) -> Self {
        Index::digit(Digit::whole(Base::Var(var)))
    }

    /// The lane number of a vector of `lanes` lanes.
    pub fn lane(lanes: u32) -> Self {
        if lanes <= 1 { Index::constant(0) } else { Index::digit(Digit::whole(Base::Lane(lanes))) }
    }

    /// One digit with coefficient 1.
    pub fn digit(digit: Digit) -> Self {
        Index { terms: SmallVec::from_iter([Term { digit, coefficient: 1 }]), constant: 0 }
    }

    /// An `i64` value as an index. Affine parts of the value are taken apart; what is not affine stays
    /// opaque. Divisions here are of values that are not negative, as `usize` arithmetic guarantees, so
    /// that rounding down and truncation agree.
    ///
    /// # Panics
    /// When the value is not of type `i64`.
    pub fn value(value: Expr) -> Self {
        assert_eq!(value.dtype(), DType::I64, "an index must be an i64 value");
        match value.kind() {
            ExprKind::Index(index) => index.clone(),
            ExprKind::Constant(Constant::Int(constant)) => Index::constant(*constant),
            ExprKind::Binary(BinaryOp::Add, a, b) => &Index::value(a.clone()) + &Index::value(b.clone()),
            ExprKind::Binary(BinaryOp::Sub, a, b) => &Index::value(a.clone()) - &Index::value(b.clone()),
            ExprKind::Binary(BinaryOp::Mul, a, b) => {
                Index::value(a.clone()).multiply(&Index::value(b.clone()))
            }
            ExprKind::Binary(BinaryOp::Div, a, b) => Index::value(a.clone()).divide(&Index::value(b.clone())),
            ExprKind::Binary(BinaryOp::Rem, a, b) => {
                Index::value(a.clone()).remainder(&Index::value(b.clone()))
            }
            ExprKind::Binary(BinaryOp::Min, a, b) => {
                Index::value(a.clone()).minimum(&Index::value(b.clone()))
            }
            ExprKind::Binary(BinaryOp::Max, a, b) => {
                Index::value(a.clone()).maximum(&Index::value(b.clone()))
            }
            _ => Index::digit(Digit::whole(Base::Value(value))),
        }
    }

    /// The terms, sorted by digit.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The constant part.
    pub fn constant_part(&self) -> i64 {
        self.constant
    }

    /// The value, when there are no terms.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The variable, when this is one and nothing else.
    pub fn as_var(&self) -> Option<VarId> {
        match (&self.terms[..], self.constant) {
            ([Term { digit, coefficient: 1 }], 0) if digit.is_whole() => match digit.base {
                Base::Var(var) => Some(var),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether this is the constant `value`.
    pub fn is(&self, value: i64) -> bool {
        self.as_constant() == Some(value)
    }

    /// Builds the canonical form of a sum.
    pub fn from_terms(terms: impl IntoIterator<Item = Term>, constant: i64) -> Self {
        let mut terms: SmallVec<[Term; 2]> = terms.into_iter().collect();
        terms.sort_by(|a, b| a.digit.cmp(&b.digit));
        let mut merged: SmallVec<[Term; 2]> = SmallVec::new();
        for term in terms {
            match merged.last_mut() {
                Some(last) if last.digit == term.digit => {
                    last.coefficient = last.coefficient.wrapping_add(term.coefficient);
                }
                _ => merged.push(term),
            }
        }
        merged.retain(|term| term.coefficient != 0);
        match find_adjacent_digits(&merged) {
            Some((low, high)) => join_adjacent_digits(merged, constant, low, high),
            None => Index { terms: merged, constant },
        }
    }

    /// The sum with `factor` times `other`.
    pub fn add_scaled(&self, other: &Index, factor: i64) -> Index {
        if factor == 0 || (other.terms.is_empty() && other.constant == 0) {
            return self.clone();
        }
        let constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
        if other.terms.is_empty() {
            return Index { terms: self.terms.clone(), constant };
        }
        let scaled = other.terms.iter().map(|term| Term {
            digit: term.digit.clone(),
            coefficient: term.coefficient.wrapping_mul(factor),
        });
        Index::from_terms(self.terms.iter().cloned().chain(scaled), constant)
    }

    /// The product with a constant.
    pub fn scale(&self, factor: i64) -> Index {
        Index::constant(0).add_scaled(self, factor)
    }

    /// The sum with a constant.
    pub fn offset(&self, by: i64) -> Index {
        Index { terms: self.terms.clone(), constant: self.constant.wrapping_add(by) }
    }

    /// The product. Products of two non-constant parts become opaque values in a canonical order.
    pub fn multiply(&self, other: &Index) -> Index {
        if let Some(factor) = self.as_constant() {
            return other.scale(factor);
        }
        if let Some(factor) = other.as_constant() {
            return self.scale(factor);
        }
        let mut product = self.scale(other.constant).add_scaled(other, self.constant);
        product.constant = self.constant.wrapping_mul(other.constant);
        for left in &self.terms {
            for right in &other.terms {
                let coefficient = left.coefficient.wrapping_mul(right.coefficient);
                product =
                    product.add_scaled(&product::multiply_digits(&left.digit, &right.digit), coefficient);
            }
        }
        product
    }

    /// The quotient by a positive constant, rounded down.
    ///
    /// # Panics
    /// When `divisor < 1`.
    pub fn floor_div(&self, divisor: i64) -> Index {
        assert!(divisor >= 1, "division of an index by {divisor}");
        if divisor == 1 {
            return self.clone();
        }
        let (multiple, rest) = self.split_multiples(divisor);
        let quotient = multiple.divide_exactly(divisor);
        &quotient + &divide_rest(&rest, divisor)
    }

    /// The remainder by a positive constant, between 0 and `modulus - 1`.
    ///
    /// # Panics
    /// When `modulus < 1`.
    pub fn modulo(&self, modulus: i64) -> Index {
        assert!(modulus >= 1, "remainder of an index by {modulus}");
        let terms = self.terms.iter().map(|term| Term {
            digit: term.digit.clone(),
            coefficient: centered_remainder(term.coefficient, modulus),
        });
        let reduced = Index::from_terms(terms, self.constant.rem_euclid(modulus));
        if reduced.terms.is_empty() {
            return Index::constant(reduced.constant.rem_euclid(modulus));
        }
        let common = reduced.common_factor(modulus);
        if common > 1 {
            let low = reduced.constant.rem_euclid(common);
            let scaled = reduced.offset(-low).divide_exactly(common);
            return scaled.modulo(modulus / common).scale(common).offset(low);
        }
        if let ([Term { digit, coefficient: 1 }], 0) = (&reduced.terms[..], reduced.constant) {
            return reduce_digit(digit, modulus);
        }
        Index::digit(Digit { base: Base::Sum(Arc::new(reduced)), divisor: 1, modulus })
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

    /// The quotient of two values that are not negative. Opaque unless the divisor is a positive constant.
    pub fn divide(&self, divisor: &Index) -> Index {
        match divisor.as_constant() {
            Some(divisor) if divisor >= 1 => self.floor_div(divisor),
            _ => self.opaque(BinaryOp::Div, divisor),
        }
    }

    /// The remainder of two values that are not negative. Opaque unless the modulus is a positive constant.
    pub fn remainder(&self, modulus: &Index) -> Index {
        match modulus.as_constant() {
            Some(modulus) if modulus >= 1 => self.modulo(modulus),
            _ => self.opaque(BinaryOp::Rem, modulus),
        }
    }

    fn opaque(&self, op: BinaryOp, other: &Index) -> Index {
        let value = Expr::binary(op, Expr::index(self.clone()), Expr::index(other.clone()));
        Index::digit(Digit::whole(Base::Value(value)))
    }

    /// The smaller of both.
    pub fn minimum(&self, other: &Index) -> Index {
        self.pick(other, BinaryOp::Min)
    }

    /// The larger of both.
    pub fn maximum(&self, other: &Index) -> Index {
        self.pick(other, BinaryOp::Max)
    }

    fn pick(&self, other: &Index, op: BinaryOp) -> Index {
        let difference = self - other;
        match difference.as_constant() {
            Some(difference) if (difference <= 0) == (op == BinaryOp::Min) => self.clone(),
            Some(_) => other.clone(),
            None => {
                let (a, b) = if self <= other { (self, other) } else { (other, self) };
                let value = Expr::binary(op, Expr::index(a.clone()), Expr::index(b.clone()));
                Index::digit(Digit::whole(Base::Value(value)))
            }
        }
    }

    /// The terms whose coefficient is a multiple of `factor` (with the matching part of the
    /// constant), and the rest, whose constant lies in `0..factor`.
    pub(crate) fn split_multiples(&self, factor: i64) -> (Index, Index) {
        let (multiples, rest): (SmallVec<[Term; 2]>, SmallVec<[Term; 2]>) =
            self.terms.iter().cloned().partition(|term| term.coefficient % factor == 0);
        let low = self.constant.rem_euclid(factor);
        (Index { terms: multiples, constant: self.constant - low }, Index { terms: rest, constant: low })
    }

    /// Divides every coefficient and the constant, all of which are multiples.
    pub(crate) fn divide_exactly(&self, divisor: i64) -> Index {
        let terms = self.terms.iter().map(|term| {
            debug_assert_eq!(term.coefficient % divisor, 0);
            Term { digit: term.digit.clone(), coefficient: term.coefficient / divisor }
        });
        Index { terms: terms.collect(), constant: self.constant / divisor }
    }

    /// The greatest common divisor of `with` and every coefficient (not of the constant).
    pub(crate) fn common_factor(&self, with: i64) -> i64 {
        self.terms.iter().fold(with, |common, term| greatest_common_divisor(common, term.coefficient))
    }

    /// Calls `visit` with every variable, also those inside sums and values.
    pub fn for_each_var(&self, visit: &mut impl FnMut(VarId)) {
        for term in &self.terms {
            match &term.digit.base {
                Base::Var(var) => visit(*var),
                Base::Lane(_) => {}
                Base::Sum(sum) => sum.for_each_var(visit),
                Base::Value(value) => crate::visit::for_each_var(value, &mut |var| visit(var)),
            }
        }
    }

    /// Whether the variable occurs anywhere.
    pub fn mentions(&self, var: VarId) -> bool {
        let mut found = false;
        self.for_each_var(&mut |other| found |= other == var);
        found
    }

    /// The coefficient of a variable that occurs only whole (neither divided nor reduced nor inside
    /// another base): 0 when it does not occur, `None` when it occurs in another way.
    pub fn linear_coefficient(&self, var: VarId) -> Option<i64> {
        let mut coefficient = 0;
        for term in &self.terms {
            if term.digit.base == Base::Var(var) && term.digit.is_whole() {
                coefficient = term.coefficient;
            } else if Index::digit(term.digit.clone()).mentions(var) {
                return None;
            }
        }
        Some(coefficient)
    }

    /// The number of lanes: 1 unless a lane occurs.
    pub fn lanes(&self) -> u32 {
        self.terms.iter().map(|term| term.digit.base.lanes()).max().unwrap_or(1)
    }

    /// Replaces variables. `replace` gives `None` for those that stay.
    pub fn substitute(&self, replace: &dyn Fn(VarId) -> Option<Index>) -> Index {
        self.map_bases(&|base| match base {
            Base::Var(var) => replace(*var),
            Base::Lane(_) => None,
            Base::Sum(sum) => Some(sum.substitute(replace)),
            Base::Value(value) => Some(Index::value(crate::visit::substitute_expr(value, replace))),
        })
    }

    /// Rebuilds the sum with some bases replaced; `map` gives `None` for those that stay.
    pub(crate) fn map_bases(&self, map: &dyn Fn(&Base) -> Option<Index>) -> Index {
        let mut result = Index::constant(self.constant);
        let mut kept: SmallVec<[Term; 2]> = SmallVec::new();
        for term in &self.terms {
            match map(&term.digit.base) {
                None => kept.push(term.clone()),
                Some(base) => {
                    let digit = base.take_digit(term.digit.divisor, term.digit.modulus);
                    result = result.add_scaled(&digit, term.coefficient);
                }
            }
        }
        if kept.is_empty() {
            result
        } else {
            Index::from_terms(kept.into_iter().chain(result.terms), result.constant)
        }
    }
}

impl Base {
    /// The base itself as an index.
    pub fn to_index(&self) -> Index {
        match self {
            Base::Sum(sum) => Index::clone(sum),
            other => Index::digit(Digit::whole(other.clone())),
        }
    }

    fn lanes(&self) -> u32 {
        match self {
            Base::Var(_) => 1,
            Base::Lane(lanes) => *lanes,
            Base::Sum(sum) => sum.lanes(),
            Base::Value(value) => crate::visit::lanes(value),
        }
    }
}

impl std::ops::Add for &Index {
    type Output = Index;
    fn add(self, other: &Index) -> Index {
        self.add_scaled(other, 1)
    }
}

impl std::ops::Sub for &Index {
    type Output = Index;
    fn sub(self, other: &Index) -> Index {
        self.add_scaled(other, -1)
    }
}

/// The greatest common divisor of the absolute values.
pub(crate) fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i64
}

/// The remainder closest to the coefficient's own sign: small negative coefficients stay negative,
/// so that `(x - y) % m` keeps its readable form.
fn centered_remainder(coefficient: i64, modulus: i64) -> i64 {
    coefficient % modulus
}

/// `rest / divisor` where no coefficient of `rest` is a multiple of `divisor` and its constant lies in `0..divisor`.
fn divide_rest(rest: &Index, divisor: i64) -> Index {
    if rest.terms.is_empty() {
        return Index::constant(rest.constant.div_euclid(divisor));
    }
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
    if digit.modulus == NO_MODULUS {
        return match digit.divisor.checked_mul(divisor) {
            Some(divisor) => Index::digit(Digit { base: digit.base.clone(), divisor, modulus: NO_MODULUS }),
            None => wrap_digit(digit, divisor, NO_MODULUS),
        };
    }
    if digit.modulus <= divisor {
        return Index::constant(0);
    }
    if digit.modulus % divisor == 0 {
        let (modulus, divisor) = (digit.modulus / divisor, digit.divisor * divisor);
        return Index::digit(Digit { base: digit.base.clone(), divisor, modulus });
    }
    wrap_digit(digit, divisor, NO_MODULUS)
}

/// `digit % modulus`
fn reduce_digit(digit: &Digit, modulus: i64) -> Index {
    if modulus == 1 {
        return Index::constant(0);
    }
    if digit.modulus == NO_MODULUS || digit.modulus % modulus == 0 {
        return Index::digit(Digit { base: digit.base.clone(), divisor: digit.divisor, modulus });
    }
    if digit.modulus <= modulus {
        return Index::digit(digit.clone());
    }
    wrap_digit(digit, 1, modulus)
}

fn wrap_digit(digit: &Digit, divisor: i64, modulus: i64) -> Index {
    let base = Base::Sum(Arc::new(Index::digit(digit.clone())));
    Index::digit(Digit { base, divisor, modulus })
}

/// Two terms `c·(b / d % m)` and `c·m·(b / (d·m) [% n])` of one base, which together are `c·(b / d [% m·n])`.
fn find_adjacent_digits(terms: &[Term]) -> Option<(usize, usize)> {
    for (low, a) in terms.iter().enumerate() {
        if a.digit.modulus == NO_MODULUS {
            continue;
        }
        let high = terms.iter().position(|b| {
            b.digit.base == a.digit.base
                && a.digit.divisor.checked_mul(a.digit.modulus) == Some(b.digit.divisor)
                && a.coefficient.checked_mul(a.digit.modulus) == Some(b.coefficient)
        });
        if let Some(high) = high {
            return Some((low, high));
        }
    }
    None
}

fn join_adjacent_digits(mut terms: SmallVec<[Term; 2]>, constant: i64, low: usize, high: usize) -> Index {
    let upper = terms[high].digit.modulus;
    let mut joined = terms[low].clone();
    joined.digit.modulus = if upper == NO_MODULUS { NO_MODULUS } else { joined.digit.modulus * upper };
    terms.remove(low.max(high));
    terms.remove(low.min(high));
    match &joined.digit {
        // A sum that is no longer divided or reduced belongs into the outer sum.
        Digit { base: Base::Sum(sum), divisor: 1, modulus: NO_MODULUS } => {
            Index::from_terms(terms, constant).add_scaled(sum, joined.coefficient)
        }
        _ => {
            terms.push(joined);
            Index::from_terms(terms, constant)
        }
    }
}
