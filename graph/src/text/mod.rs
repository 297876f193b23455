//! The text form of functions.
//!
//! ```text
//! function "scale"(%0 "x": f32[N, 2]) {
//!   %1: f32[2] = constant f32[2] {2, 3}
//!   %2 "y": f32[N, 2] = mul(%0, %1) from "node"
//!   return %2
//! }
//! ```
//!
//! Values have numbers and may have names, which only people read. A binding says the types of its values, an operation with
//! its inputs (`_` for one that is left out) and attributes, and where it comes from. Printing is complete: what is printed
//! reads back as the same function, but for elements of integer tensors that only deduction knows.

mod cursor;
mod parse;
mod print;

pub use cursor::ParseError;

#[cfg(test)]
mod tests;
