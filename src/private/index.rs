//! `usize` and `isize` in references.
//!
//! Programs compute both as `i64`. A `usize` that would be negative is a mistake in the definition, which a
//! reference reports rather than to panic or to wrap.

use tilewright_core::math::scalar;

use super::Scalar;
use crate::Error;

/// `usize` or `isize`.
pub trait Position: Scalar {
    /// The position with this value; an error when it is negative and the type is `usize`.
    ///
    /// # Errors
    /// [`Error::NegativeIndex`]
    fn from_i64(value: i64, what: impl FnOnce() -> String) -> Result<Self, Error>;

    /// The value.
    fn to_i64(self) -> i64;
}

impl Position for usize {
    fn from_i64(value: i64, what: impl FnOnce() -> String) -> Result<Self, Error> {
        usize::try_from(value).map_err(|_| Error::NegativeIndex(what()))
    }

    fn to_i64(self) -> i64 {
        self as i64
    }
}

impl Position for isize {
    fn from_i64(value: i64, _: impl FnOnce() -> String) -> Result<Self, Error> {
        Ok(value as isize)
    }

    fn to_i64(self) -> i64 {
        self as i64
    }
}

macro_rules! operations {
    ($($name:ident($($argument:ident),*) = $text:literal;)*) => {$(
        #[doc = concat!("`", $text, "`, as programs compute it.")]
        ///
        /// # Errors
        /// [`Error::NegativeIndex`] when the result is negative and the type is `usize`.
        #[inline]
        pub fn $name<P: Position>($($argument: P),*) -> Result<P, Error> {
            let result = scalar::$name($($argument.to_i64()),*);
            P::from_i64(result, || {
                let operands = [$($argument.to_i64().to_string()),*].join(" and ");
                format!("`{}` of {operands} is {result}, which is no usize", $text)
            })
        }
    )*};
}

operations! {
    add(a, b) = "+";
    sub(a, b) = "-";
    mul(a, b) = "*";
    div(a, b) = "/";
    rem(a, b) = "%";
    shl(a, b) = "<<";
    shr(a, b) = ">>";
    neg(a) = "-";
    abs(a) = "abs";
    min(a, b) = "min";
    max(a, b) = "max";
}

/// `value as usize` or `value as isize`.
///
/// # Errors
/// [`Error::NegativeIndex`] when the value is negative and the type is `usize`.
#[inline]
pub fn cast<P: Position, S: Scalar>(value: S) -> Result<P, Error> {
    let value = super::cast::<i64, S>(value);
    P::from_i64(value, || format!("{value} as usize is no index"))
}
