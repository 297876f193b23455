//! Arithmetic on elements, defined once.
//!
//! The functions of the table in `tilewright_vocabulary` are written against the trait [`Arithmetic`], whose operations every
//! machine has and rounds alike. Executed on `f32` and `f64` they are what [`scalar`] offers to the
//! references and to the interpreter; executed on [`Expr`](crate::expr::Expr) by [`expand`] they become
//! operations of the intermediate representation; a backend executes them on values of its own. So a
//! program gives the same bits wherever it runs. They have no branches, no tables, and no `f64` inside
//! an `f32` function, hence they vectorise.
//!
//! # Accuracy
//! The table says by how many units in the last place each function is off at most
//! ([`UnaryOp::error_bound`](crate::expr::UnaryOp::error_bound)), over the whole range of arguments. The tests in this directory compare all
//! of them with the crate `libm`, which shares nothing with this one: in single precision with its results in `f64`, by
//! default at bit patterns at a distance, with `TILEWRIGHT_CASES=4294967296` at all; in double precision with its own, whose
//! error of up to one unit is included in the bound. The functions of Rust's `f32` and `f64` are off by up to one unit, too, so that a
//! kernel's reference and `f32::sin` differ by at most the bound and that unit.
//!
//! Every function keeps NaN, but for `powf` where one operand decides alone, and odd functions keep the sign of zero. `f16` and `bf16`
//! are computed in `f32` and rounded.

mod angle;
mod arithmetic;
mod coefficients;
mod double_word;
mod error_function;
mod exponential;
mod hyperbolic;
mod inverse_trigonometric;
mod logarithm;
mod power;
mod precision;
pub mod scalar;
mod scaling;
mod symbolic;
mod trigonometric;
mod two_over_pi;

#[cfg(test)]
mod accuracy;

pub use arithmetic::Arithmetic;
pub use error_function::*;
pub use exponential::*;
pub use hyperbolic::*;
pub use inverse_trigonometric::*;
pub use logarithm::*;
pub use power::*;
pub use precision::Precision;
pub use scaling::{Scaling, as_scaling};
pub use symbolic::expand;
pub use trigonometric::*;
