//! The operators as functions, which generated code calls.

use super::{Bits, Cast, Integer, Number, Real, Wide};

/// `base` to an integer power, in the order of multiplications that [`crate::math::power`] states; the
/// reciprocal of the power for a negative exponent (0 for integers whose power is not ±1).
#[inline]
pub fn powi<T: Number + Cast>(base: T, exponent: i32) -> T {
    let one = T::narrow(Wide::Int(1));
    let power = crate::math::power(&base, exponent.unsigned_abs(), |a, b| a.mul(*b)).unwrap_or(one);
    if exponent < 0 { one.div(power) } else { power }
}

macro_rules! free_functions {
    ($($bound:ident { $($name:ident($($argument:ident),*)),* $(,)? })*) => {$($(
        #[doc = concat!("[`", stringify!($bound), "::", stringify!($name), "`] as a function.")]
        #[inline]
        pub fn $name<T: $bound>($($argument: T),*) -> T {
            $bound::$name($($argument),*)
        }
    )*)*};
}

free_functions! {
    Number {
        add(a, b), sub(a, b), mul(a, b), div(a, b), rem(a, b), neg(a), abs(a), min(a, b), max(a, b),
        mul_add(a, factor, addend),
    }
    Bits { and(a, b), or(a, b), xor(a, b), not(a) }
    Integer { shl(a, count), shr(a, count) }
    Real { minimum(a, b), maximum(a, b), sqrt(a), floor(a), ceil(a), round(a), round_ties_even(a), trunc(a) }
}

macro_rules! unary_functions {
    ({} $($(#[$doc:meta])* $variant:ident $name:ident $bounds:tt $kind:ident($count:literal);)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name<T: Real>(a: T) -> T {
            T::from_wide(crate::math::$name(&a.to_wide()))
        }
    )*};
}

macro_rules! binary_functions {
    ({} $($(#[$doc:meta])* $variant:ident $name:ident $bounds:tt $kind:ident($count:literal);)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name<T: Real>(a: T, b: T) -> T {
            T::from_wide(crate::math::$name(&a.to_wide(), &b.to_wide()))
        }
    )*};
}

tilewright_vocabulary::unary_functions!(unary_functions {});
tilewright_vocabulary::binary_functions!(binary_functions {});
