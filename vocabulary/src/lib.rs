//! The operators and element types of kernels, as tables.
//!
//! The crates that define, parse and execute kernels read these tables, and none of them repeats a fact that stands
//! here. The crate depends on nothing, so that procedural macros can use it, too.
//!
//! # Adding a function
//! A function of floating-point numbers is a row of [`unary_functions`] or [`binary_functions`], and an expansion into
//! basic operations in `tilewright_core::math` that has the row's name. Builder, macro, verifier, printer, parser,
//! interpreter, lowering, cost model and tests take it from the row.

#![forbid(unsafe_code)]

mod binary;
mod dtype;
mod function;
mod standing;
mod traits;
mod unary;

pub use binary::BinaryOp;
pub use dtype::{DType, Kind, UnknownDType};
pub use standing::{Standing, Timed, better_first, rank};
pub use traits::{Cost, ErrorBound, Operands};
pub use unary::UnaryOp;
