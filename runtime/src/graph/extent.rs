//! Extents of tensors in graphs, and the numbers that stand for them in a function that is recorded.

use std::collections::HashSet;
use std::fmt;
use std::ops::{Add, Div, Mul, Rem, Sub};
use std::sync::{Arc, Mutex, PoisonError};

use tilewright_core::expr::{BinaryOp, Constant, ExprKind};
use tilewright_core::ids::VarId;
use tilewright_core::index::{Base, Index, NO_MODULUS};

/// An extent: a number, the name of a dimension, or arithmetic on these.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// A dimension that a run decides.
    Symbol(Arc<str>),
    /// A number.
    Constant(i64),
    /// An operation on two extents.
    Operation(ExtentOp, Arc<[Extent; 2]>),
}

/// An operation on two extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtentOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
    /// `a % b`
    Rem,
    /// `a.min(b)`
    Min,
    /// `a.max(b)`
    Max,
}

impl ExtentOp {
    /// The value for two numbers that are not negative; `None` on overflow and for a division by zero.
    fn evaluate(self, a: i64, b: i64) -> Option<i64> {
        match self {
            ExtentOp::Add => a.checked_add(b),
            ExtentOp::Sub => a.checked_sub(b),
            ExtentOp::Mul => a.checked_mul(b),
            ExtentOp::Div => a.checked_div_euclid(b),
            ExtentOp::Rem => a.checked_rem_euclid(b),
            ExtentOp::Min => Some(a.min(b)),
            ExtentOp::Max => Some(a.max(b)),
        }
    }

    fn text(self) -> &'static str {
        match self {
            ExtentOp::Add => "+",
            ExtentOp::Sub => "-",
            ExtentOp::Mul => "*",
            ExtentOp::Div => "/",
            ExtentOp::Rem => "%",
            ExtentOp::Min => "min",
            ExtentOp::Max => "max",
        }
    }
}

impl Extent {
    /// An operation on two extents, computed at once where both are numbers.
    pub fn operation(op: ExtentOp, a: Extent, b: Extent) -> Extent {
        if let (Extent::Constant(a), Extent::Constant(b)) = (&a, &b)
            && let Some(value) = op.evaluate(*a, *b)
        {
            return Extent::Constant(value);
        }
        match (op, &a, &b) {
            (ExtentOp::Add, _, Extent::Constant(0)) => a,
            (ExtentOp::Add, Extent::Constant(0), _) => b,
            (ExtentOp::Mul | ExtentOp::Div, _, Extent::Constant(1)) => a,
            (ExtentOp::Mul, Extent::Constant(1), _) => b,
            _ => Extent::Operation(op, Arc::new([a, b])),
        }
    }

    /// The value for given sizes of dimensions; `None` where one is not known, on overflow, and for a division by zero.
    pub fn evaluate(&self, size: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        match self {
            Extent::Symbol(name) => size(name),
            Extent::Constant(value) => Some(*value),
            Extent::Operation(op, operands) => {
                op.evaluate(operands[0].evaluate(size)?, operands[1].evaluate(size)?)
            }
        }
    }

    /// The number, if it is one.
    pub fn as_constant(&self) -> Option<i64> {
        match self {
            Extent::Constant(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of an index of a program, whose dimensions are `value`; the obstacle where it has none.
    pub(super) fn of_index(index: &Index, value: &dyn Fn(VarId) -> Option<Extent>) -> Result<Extent, String> {
        let mut sum = Extent::Constant(index.constant_part());
        for term in index.terms() {
            let digit = &term.digit;
            let mut part = match &digit.base {
                Base::Var(var) => value(*var).ok_or("it depends on a variable that is no dimension")?,
                Base::Sum(inner) => Extent::of_index(inner, value)?,
                Base::Value(expr) => Extent::of_expr(expr.kind(), value)?,
                Base::Lane(_) => return Err("it depends on a lane".to_owned()),
            };
            if digit.divisor != 1 {
                part = Extent::operation(ExtentOp::Div, part, Extent::Constant(digit.divisor));
            }
            if digit.modulus != NO_MODULUS {
                part = Extent::operation(ExtentOp::Rem, part, Extent::Constant(digit.modulus));
            }
            let (op, factor) = if term.coefficient < 0 {
                (ExtentOp::Sub, term.coefficient.wrapping_neg())
            } else {
                (ExtentOp::Add, term.coefficient)
            };
            let part = Extent::operation(ExtentOp::Mul, part, Extent::Constant(factor));
            sum = Extent::operation(op, sum, part);
        }
        Ok(sum)
    }

    fn of_expr(kind: &ExprKind, value: &dyn Fn(VarId) -> Option<Extent>) -> Result<Extent, String> {
        match kind {
            ExprKind::Constant(Constant::Int(constant)) => Ok(Extent::Constant(*constant)),
            ExprKind::Index(index) => Extent::of_index(index, value),
            ExprKind::Binary(op, a, b) => {
                let op = match op {
                    BinaryOp::Add => ExtentOp::Add,
                    BinaryOp::Sub => ExtentOp::Sub,
                    BinaryOp::Mul => ExtentOp::Mul,
                    BinaryOp::Div => ExtentOp::Div,
                    BinaryOp::Rem => ExtentOp::Rem,
                    BinaryOp::Min => ExtentOp::Min,
                    BinaryOp::Max => ExtentOp::Max,
                    other => return Err(format!("`{}` is no operation on extents", other.text())),
                };
                let (a, b) = (Extent::of_expr(a.kind(), value)?, Extent::of_expr(b.kind(), value)?);
                Ok(Extent::operation(op, a, b))
            }
            _ => Err("it is no arithmetic on dimensions".to_owned()),
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extent::Symbol(name) => f.write_str(name),
            Extent::Constant(value) => write!(f, "{value}"),
            Extent::Operation(op @ (ExtentOp::Min | ExtentOp::Max), operands) => {
                write!(f, "{}({}, {})", op.text(), operands[0], operands[1])
            }
            Extent::Operation(op, operands) => write!(f, "({} {} {})", operands[0], op.text(), operands[1]),
        }
    }
}

/// An extent in a function that is recorded: it stands where the function, when it is called, has a `usize`.
///
/// It can be computed with and passed on. It cannot be compared: the same graph serves every size.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Dim(&'static Extent);

impl Dim {
    /// The extent.
    pub fn extent(self) -> &'static Extent {
        self.0
    }

    /// The name of a dimension.
    pub fn symbol(name: &str) -> Self {
        Dim::of(Extent::Symbol(name.into()))
    }

    /// Equal extents are kept once, for as long as the program runs: there are a few for each graph, and a `Dim` can be copied as the
    /// `usize` that it stands for.
    pub(super) fn of(extent: Extent) -> Self {
        static KNOWN: Mutex<Option<HashSet<&'static Extent>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(HashSet::new);
        match known.get(&extent) {
            Some(known) => Dim(known),
            None => {
                let extent: &'static Extent = Box::leak(Box::new(extent));
                known.insert(extent);
                Dim(extent)
            }
        }
    }

    fn operation(op: ExtentOp, a: Dim, b: Dim) -> Dim {
        Dim::of(Extent::operation(op, a.0.clone(), b.0.clone()))
    }

    /// The smaller of both.
    #[must_use]
    pub fn min(self, other: impl Into<Dim>) -> Dim {
        Dim::operation(ExtentOp::Min, self, other.into())
    }

    /// The greater of both.
    #[must_use]
    pub fn max(self, other: impl Into<Dim>) -> Dim {
        Dim::operation(ExtentOp::Max, self, other.into())
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0, f)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0, f)
    }
}

impl From<usize> for Dim {
    fn from(value: usize) -> Self {
        Dim::of(Extent::Constant(i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

macro_rules! operations {
    ($($trait:ident $method:ident)*) => {$(
        impl $trait for Dim {
            type Output = Dim;

            fn $method(self, other: Dim) -> Dim {
                Dim::operation(ExtentOp::$trait, self, other)
            }
        }

        impl $trait<usize> for Dim {
            type Output = Dim;

            fn $method(self, other: usize) -> Dim {
                Dim::operation(ExtentOp::$trait, self, other.into())
            }
        }

        impl $trait<Dim> for usize {
            type Output = Dim;

            fn $method(self, other: Dim) -> Dim {
                Dim::operation(ExtentOp::$trait, self.into(), other)
            }
        }
    )*};
}

operations!(Add add Sub sub Mul mul Div div Rem rem);

/// A number that is an extent: `usize` in a call, [`Dim`] while a graph is recorded.
pub trait GraphDim: Copy + fmt::Display {
    /// Whether this is certainly another extent.
    fn differs(self, other: Self) -> bool;

    /// The extents as data.
    fn to_extent(self) -> Extent;
}

impl GraphDim for usize {
    fn differs(self, other: usize) -> bool {
        self != other
    }

    fn to_extent(self) -> Extent {
        Extent::Constant(i64::try_from(self).unwrap_or(i64::MAX))
    }
}

impl GraphDim for Dim {
    fn differs(self, other: Dim) -> bool {
        matches!((self.0, other.0), (Extent::Constant(a), Extent::Constant(b)) if a != b)
    }

    fn to_extent(self) -> Extent {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_followed_and_computed_where_it_can_be() {
        let (rows, tokens) = (Dim::symbol("R"), Dim::symbol("S"));
        assert_eq!((rows * tokens / 4 + 1).to_string(), "(((R * S) / 4) + 1)");
        assert_eq!(3 * Dim::from(4) - 2, Dim::from(10));
        assert_eq!((rows * 1 + 0, 1 * rows, rows / 1), (rows, rows, rows));
        assert_eq!(rows.min(tokens).to_string(), "min(R, S)");
        assert_eq!((Dim::from(7) / 0).to_string(), "(7 / 0)", "there is no such number");
    }

    #[test]
    fn numbers_differ_and_names_may_be_equal() {
        assert!(Dim::from(2).differs(Dim::from(3)));
        assert!(!Dim::from(2).differs(Dim::symbol("N")));
        assert!(!Dim::symbol("M").differs(Dim::symbol("N")));
        assert!(2usize.differs(3));
    }

    #[test]
    fn indices_of_programs_are_followed() {
        let (n, m) = (Index::var(VarId(0)), Index::var(VarId(1)));
        let value = |var: VarId| Some(Extent::Symbol(if var.0 == 0 { "N" } else { "M" }.into()));
        let index = &n.scale(-2).offset(3) + &m.divide(&Index::constant(4));
        let text = Extent::of_index(&index, &value).unwrap().to_string();
        assert!(["((3 - (N * 2)) + (M / 4))", "((3 + (M / 4)) - (N * 2))"].contains(&&*text), "{text}");
        assert_eq!(Extent::of_index(&n.multiply(&m), &value).unwrap().to_string(), "(N * M)");
        assert!(Extent::of_index(&n, &|_| None).is_err());
    }
}
