//! Numeric intervals and the interval of an index.
//!
//! An interval is an over-approximation: the value never lies outside it. It is exact for a sum of
//! digits that do not share a variable. Symbolic bounds are in [`super::bounds`].

use smallvec::SmallVec;

use super::{Base, Digit, Index, NO_MODULUS, Ranges, Term};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind};

/// The integers from `min` to `max`, both included. `i64::MIN` and `i64::MAX` stand for unbounded,
/// and arithmetic saturates towards them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    /// The least value, or `i64::MIN` when there is no bound.
    pub min: i64,
    /// The greatest value, or `i64::MAX` when there is no bound.
    pub max: i64,
}

impl Interval {
    /// Every integer.
    pub const UNBOUNDED: Interval = Interval { min: i64::MIN, max: i64::MAX };
    /// Every integer that is not negative.
    pub const NONNEGATIVE: Interval = Interval { min: 0, max: i64::MAX };

    /// The integers from `min` to `max`, both included.
    pub const fn new(min: i64, max: i64) -> Self {
        Interval { min, max }
    }

    /// One integer.
    pub const fn constant(value: i64) -> Self {
        Interval { min: value, max: value }
    }

    /// The values of a variable that runs over `0..extent`. An empty range is treated as the range of one value,
    /// 0, so that an interval is never empty.
    pub const fn below(extent: i64) -> Self {
        let max = if extent == i64::MAX { i64::MAX } else { extent.saturating_sub(1) };
        Interval { min: 0, max: if max < 0 { 0 } else { max } }
    }

    /// The value, when there is only one.
    pub fn as_constant(self) -> Option<i64> {
        (self.min == self.max && self.min != i64::MIN && self.min != i64::MAX).then_some(self.min)
    }

    /// Whether there is a bound on both sides.
    pub fn is_bounded(self) -> bool {
        self.min != i64::MIN && self.max != i64::MAX
    }

    /// Whether `value` lies inside.
    pub fn contains(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }

    /// Whether all of `other` lies inside.
    pub fn includes(self, other: Interval) -> bool {
        self.min <= other.min && other.max <= self.max
    }

    /// The smallest interval around both.
    pub fn hull(self, other: Interval) -> Interval {
        Interval { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// The intersection of both, which must not be empty.
    pub fn intersect(self, other: Interval) -> Interval {
        Interval { min: self.min.max(other.min), max: self.max.min(other.max) }
    }

    /// The product with a constant.
    pub fn scale(self, factor: i64) -> Interval {
        match factor {
            0 => Interval::constant(0),
            1 => self,
            2.. => Interval { min: multiply(self.min, factor), max: multiply(self.max, factor) },
            _ => Interval { min: multiply(self.max, factor), max: multiply(self.min, factor) },
        }
    }

    /// The quotient by a positive constant, rounded down.
    pub fn floor_div(self, divisor: i64) -> Interval {
        if divisor == 1 {
            return self;
        }
        let divide = |bound: i64| match bound {
            i64::MIN | i64::MAX => bound,
            _ => bound.div_euclid(divisor),
        };
        Interval { min: divide(self.min), max: divide(self.max) }
    }

    /// The remainder by a positive constant, between 0 and `modulus - 1`.
    pub fn modulo(self, modulus: i64) -> Interval {
        match self.period(modulus) {
            Some(period) => {
                let start = period * modulus;
                Interval { min: self.min - start, max: self.max - start }
            }
            None => Interval { min: 0, max: modulus - 1 },
        }
    }

    /// The `k` for which all values lie in `k·length .. (k+1)·length`, if there is one.
    pub fn period(self, length: i64) -> Option<i64> {
        if !self.is_bounded() {
            return None;
        }
        let period = self.min.div_euclid(length);
        (self.max.div_euclid(length) == period).then_some(period)
    }

    /// The smaller of two values.
    pub fn minimum(self, other: Interval) -> Interval {
        Interval { min: self.min.min(other.min), max: self.max.min(other.max) }
    }

    /// The larger of two values.
    pub fn maximum(self, other: Interval) -> Interval {
        Interval { min: self.min.max(other.min), max: self.max.max(other.max) }
    }
}

impl std::ops::Add for Interval {
    type Output = Interval;
    fn add(self, other: Interval) -> Interval {
        let min = match (self.min, other.min) {
            (i64::MIN, _) | (_, i64::MIN) => i64::MIN,
            (a, b) => a.saturating_add(b),
        };
        let max = match (self.max, other.max) {
            (i64::MAX, _) | (_, i64::MAX) => i64::MAX,
            (a, b) => a.saturating_add(b),
        };
        Interval { min, max }
    }
}

impl std::ops::Neg for Interval {
    type Output = Interval;
    fn neg(self) -> Interval {
        self.scale(-1)
    }
}

impl std::ops::Sub for Interval {
    type Output = Interval;
    fn sub(self, other: Interval) -> Interval {
        self + -other
    }
}

impl std::ops::Mul for Interval {
    type Output = Interval;
    fn mul(self, other: Interval) -> Interval {
        let corners = [
            multiply(self.min, other.min),
            multiply(self.min, other.max),
            multiply(self.max, other.min),
            multiply(self.max, other.max),
        ];
        corners.into_iter().map(Interval::constant).reduce(Interval::hull).expect("four corners")
    }
}

/// The product of two bounds, where the extreme values are infinite and zero times infinity is zero.
fn multiply(a: i64, b: i64) -> i64 {
    let infinite = |bound: i64| bound == i64::MIN || bound == i64::MAX;
    if a == 0 || b == 0 {
        0
    } else if infinite(a) || infinite(b) {
        if (a < 0) == (b < 0) { i64::MAX } else { i64::MIN }
    } else {
        a.saturating_mul(b)
    }
}

impl Index {
    /// The values that the index takes while its variables run over their ranges. Exact when no two
    /// terms share a variable. Index arithmetic is taken not to overflow.
    pub fn interval(&self, ranges: &Ranges) -> Interval {
        let mut sum = Interval::constant(self.constant);
        let mut terms = &self.terms[..];
        while let Some(first) = terms.first() {
            let base = &first.digit.base;
            let count = terms.iter().take_while(|term| term.digit.base == *base).count();
            let (group, rest) = terms.split_at(count);
            sum = sum + group_interval(group, base.interval(ranges));
            terms = rest;
        }
        sum
    }
}

/// The interval of terms that share one base.
fn group_interval(group: &[Term], base: Interval) -> Interval {
    let digits = group.iter().fold(Interval::constant(0), |sum, term| {
        sum + term.digit.interval_over(base).scale(term.coefficient)
    });
    if group.len() == 1 {
        return digits;
    }
    // `x % 4 + 5·(x / 4)` is `x + x / 4`: the second form is tight at the end of the range, where the
    // digits are not independent; the first is tight when the coefficients' signs differ.
    let Some(quotients) = quotient_form(group) else { return digits };
    let monotone = quotients.iter().fold(Interval::constant(0), |sum, &(divisor, coefficient)| {
        sum + base.floor_div(divisor).scale(coefficient)
    });
    digits.intersect(monotone)
}

/// The terms of one base as a sum of `coefficient · (base / divisor)` without moduli, sorted by
/// divisor: `b / d % m = b / d - m·(b / (d·m))`. `None` when a divisor or coefficient overflows.
pub(super) fn quotient_form(group: &[Term]) -> Option<SmallVec<[(i64, i64); 4]>> {
    let mut quotients: SmallVec<[(i64, i64); 4]> = SmallVec::new();
    let mut add = |divisor: i64, coefficient: i64| -> Option<()> {
        match quotients.binary_search_by_key(&divisor, |entry| entry.0) {
            Ok(at) => quotients[at].1 = quotients[at].1.checked_add(coefficient)?,
            Err(at) => quotients.insert(at, (divisor, coefficient)),
        }
        Some(())
    };
    for Term { digit, coefficient } in group {
        add(digit.divisor, *coefficient)?;
        if digit.modulus != NO_MODULUS {
            let upper = coefficient.checked_mul(digit.modulus)?.checked_neg()?;
            add(digit.divisor.checked_mul(digit.modulus)?, upper)?;
        }
    }
    quotients.retain(|entry| entry.1 != 0);
    Some(quotients)
}

impl Digit {
    /// The digit's values when its base has those of `base`.
    pub(super) fn interval_over(&self, base: Interval) -> Interval {
        let quotient = base.floor_div(self.divisor);
        if self.modulus == NO_MODULUS { quotient } else { quotient.modulo(self.modulus) }
    }

    /// The digit's values.
    pub fn interval(&self, ranges: &Ranges) -> Interval {
        self.interval_over(self.base.interval(ranges))
    }
}

impl Base {
    /// The base's values.
    pub fn interval(&self, ranges: &Ranges) -> Interval {
        match self {
            Base::Var(var) => ranges.interval(*var),
            Base::Lane(lanes) => Interval::below(i64::from(*lanes)),
            Base::Sum(sum) => sum.interval(ranges),
            Base::Value(value) => value_interval(value, ranges),
        }
    }
}

/// The values of an integer expression. Loads and scalars take every value of their type, and an
/// arithmetic operation on fewer than 64 bits takes every value of its type because it wraps.
pub fn value_interval(value: &Expr, ranges: &Ranges) -> Interval {
    let own = dtype_interval(value.dtype());
    let of = |operand: &Expr| value_interval(operand, ranges);
    match value.kind() {
        ExprKind::Constant(Constant::Int(constant)) => Interval::constant(*constant),
        ExprKind::Index(index) => index.interval(ranges),
        ExprKind::Bounded(_, extent) => Interval::below(extent.interval(ranges).max),
        ExprKind::Select(_, a, b) => of(a).hull(of(b)),
        // Values of `u64` are not all `i64`s, and are ordered in another way than these.
        _ if value.dtype() == DType::U64 => own,
        ExprKind::Cast(operand) if !operand.dtype().is_float() => {
            let interval = of(operand);
            if own.includes(interval) { interval } else { own }
        }
        ExprKind::Binary(BinaryOp::Min, a, b) if !value.dtype().is_float() => of(a).minimum(of(b)),
        ExprKind::Binary(BinaryOp::Max, a, b) if !value.dtype().is_float() => of(a).maximum(of(b)),
        ExprKind::Binary(op, a, b) if value.dtype() == DType::I64 => {
            binary_interval(*op, of(a), of(b)).unwrap_or(own)
        }
        _ => own,
    }
}

fn binary_interval(op: BinaryOp, a: Interval, b: Interval) -> Option<Interval> {
    match op {
        BinaryOp::Add => Some(a + b),
        BinaryOp::Sub => Some(a - b),
        BinaryOp::Mul => Some(a * b),
        // A quotient by zero is zero, and so is a remainder by zero.
        BinaryOp::Div if a.min >= 0 && b.min >= 0 => {
            let min = if b.min >= 1 && b.max != i64::MAX { a.min / b.max } else { 0 };
            let max = if a.max == i64::MAX { i64::MAX } else { a.max / b.min.max(1) };
            Some(Interval { min, max })
        }
        BinaryOp::Rem if a.min >= 0 && b.min >= 0 => {
            Some(Interval { min: 0, max: a.max.min(Interval::below(b.max).max) })
        }
        BinaryOp::And if a.min >= 0 || b.min >= 0 => {
            let limit = |side: Interval| if side.min >= 0 { side.max } else { i64::MAX };
            Some(Interval { min: 0, max: limit(a).min(limit(b)) })
        }
        _ => None,
    }
}

fn dtype_interval(dtype: DType) -> Interval {
    match dtype.int_range().map(|(least, greatest)| (i64::try_from(least), i64::try_from(greatest))) {
        Some((Ok(least), Ok(greatest))) if dtype != DType::I64 => Interval::new(least, greatest),
        _ => Interval::UNBOUNDED,
    }
}
