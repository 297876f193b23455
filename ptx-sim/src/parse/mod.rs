//! From text to a [`Program`](crate::program::Program).

mod body;
mod cursor;
mod directives;
mod error;
mod expression;
mod lexer;
mod module;
mod operands;
mod scope;

pub(crate) use directives::number;
pub use error::ParseError;
pub(crate) use module::parse;
