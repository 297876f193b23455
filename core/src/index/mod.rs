//! Index arithmetic in a canonical quasi-affine form.
//!
//! An [`Index`] is a sum of `coefficient · digit` plus a constant, where a [`Digit`] is
//! `(base / divisor) % modulus` of a variable, of a lane, of another sum, or of an opaque value.
//! Every analysis (regions, contiguity, bounds, injectivity) reads this form directly.
//!
//! The canonical form, which every constructor keeps and which a test rebuilds from its parts:
//! - Terms are sorted by digit; no digit occurs twice; no coefficient is zero (`sum`).
//! - Several digits of one base whose divisors divide one another are the digits of one mixed-radix
//!   number: `x + x / 4` is `x % 4 + 5·(x / 4)`, `x - x % 4` is `4·(x / 4)`, `x % 4 + 4·(x / 4)` is `x`.
//! - Division distributes over the multiples of the divisor, common factors are cancelled, and the
//!   constant under a division or remainder is reduced (`divide`). The other coefficients are *not*
//!   reduced by a modulus: `(5·x + y) % 4` keeps the form that shows the fused `5·x + y`.
//!
//! Equal forms are equal functions. Equal functions mostly, not always, have equal forms.
//!
//! Division and remainder round towards minus infinity, with positive divisors.
//!
//! Simplifications that need the variables' ranges (`(8·x + y) / 8 = x` when `y < 8`) are in [`simplify`], [`interval`],
//! [`bounds`] and [`comparison`]; analyses that need a bijection are in [`iter_map`] and [`map`].

pub mod bounds;
pub mod comparison;
mod divide;
mod evaluate;
pub mod facts;
pub mod interval;
pub mod iter_map;
pub mod map;
mod product;
pub mod ranges;
pub mod simplify;
mod sum;

pub use facts::Facts;
pub use interval::{Interval, value_interval};
pub use ranges::Ranges;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind};
use crate::ids::VarId;

/// A quasi-affine integer expression, always in canonical form.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Index {
    /// Sorted by digit, no digit twice, no zero coefficient.
    terms: SmallVec<[Term; 2]>,
    constant: i64,
}

/// `coefficient · digit`
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term {
    /// The digit that the coefficient multiplies.
    pub digit: Digit,
    /// The coefficient; not zero.
    pub coefficient: i64,
}

/// `(base / divisor) % modulus`
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digit {
    /// The dividend.
    pub base: Base,
    /// At least 1.
    pub divisor: i64,
    /// At least 2, or [`NO_MODULUS`] when the quotient is not reduced.
    pub modulus: i64,
}

/// The modulus of a digit that is not reduced.
pub const NO_MODULUS: i64 = 0;

/// The source of a digit.
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

impl Clone for Index {
    /// Most indices are numbers: they are copied without going through an empty list of terms.
    #[inline]
    fn clone(&self) -> Self {
        let terms = if self.terms.is_empty() { SmallVec::new() } else { self.terms.clone() };
        Index { terms, constant: self.constant }
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

    /// An `i64` value as an index. Affine parts of the value are decomposed; other parts stay
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

    /// The index as a value of type `i64`: a constant or the opaque value itself where it is just
    /// that, so that [`Index::value`] and this method are inverses.
    pub fn to_value(&self) -> Expr {
        match (&self.terms[..], self.constant) {
            ([], constant) => Expr::int(DType::I64, constant),
            ([Term { digit, coefficient: 1 }], 0) if digit.is_whole() => match &digit.base {
                Base::Value(value) => value.clone(),
                _ => Expr::index(self.clone()),
            },
            _ => Expr::index(self.clone()),
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
        let value = Expr::binary(op, self.to_value(), other.to_value());
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
                let value = Expr::binary(op, a.to_value(), b.to_value());
                Index::digit(Digit::whole(Base::Value(value)))
            }
        }
    }

    /// The greatest common divisor of `with` and every coefficient (not of the constant).
    pub(crate) fn common_factor(&self, with: i64) -> i64 {
        self.terms.iter().fold(with, |common, term| greatest_common_divisor(common, term.coefficient))
    }

    /// Calls `visit` with every variable, also those inside sums and values.
    pub fn for_each_var(&self, visit: &mut impl FnMut(VarId)) {
        for term in &self.terms {
            term.digit.base.for_each_var(visit);
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
            match &term.digit.base {
                Base::Var(other) if *other != var => {}
                Base::Var(_) if term.digit.is_whole() => coefficient = term.coefficient,
                base => {
                    let mut mentioned = false;
                    base.for_each_var(&mut |other| mentioned |= other == var);
                    if mentioned {
                        return None;
                    }
                }
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
                Some(mut base) => {
                    if !term.digit.is_whole() {
                        base = base.take_digit(term.digit.divisor, term.digit.modulus);
                    }
                    result = match term.coefficient {
                        // An iterator is replaced by its binding: nothing is to be merged.
                        1 if result.terms.is_empty() => {
                            base.constant = base.constant.wrapping_add(result.constant);
                            base
                        }
                        coefficient => result.add_scaled(&base, coefficient),
                    };
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

    /// Calls `visit` with every variable, also those inside sums and values.
    pub fn for_each_var(&self, visit: &mut impl FnMut(VarId)) {
        match self {
            Base::Var(var) => visit(*var),
            Base::Lane(_) => {}
            Base::Sum(sum) => sum.for_each_var(visit),
            Base::Value(value) => crate::visit::for_each_var(value, &mut |var| visit(var)),
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
    // The divisor 2⁶³, of `i64::MIN` and nothing else, is no `i64`; half of it is a common divisor too.
    i64::try_from(a).unwrap_or(1 << 62)
}
