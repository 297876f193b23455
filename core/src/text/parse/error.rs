//! Why a text is no program.

use crate::dtype::DType;

/// Why and where a text is no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {problem}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The problem.
    pub problem: ParseProblem,
}

/// A problem in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseProblem {
    /// Another word or symbol should stand here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// The words or symbols that may stand here.
        expected: String,
        /// The text that stands here.
        found: String,
    },
    /// A name that nothing in scope has.
    #[error("`{0}` is not declared here")]
    Unknown(String),
    /// A name that something in scope already has.
    #[error("`{0}` is already declared here; choose another name")]
    Redeclared(String),
    /// A name that has a meaning of its own.
    #[error("`{0}` is a word of the language; choose another name")]
    Reserved(String),
    /// A value of the wrong type.
    #[error("{what} must be of type {expected}, not {found}")]
    Type {
        /// The value.
        what: &'static str,
        /// The type that it needs.
        expected: DType,
        /// The type that it has.
        found: DType,
    },
    /// A literal that its type cannot hold.
    #[error("`{literal}` is no value of type {dtype}")]
    Literal {
        /// The literal without its suffix.
        literal: String,
        /// The type.
        dtype: DType,
    },
    /// A word behind a number that is no element type.
    #[error("unknown element type `{0}` behind a number")]
    Suffix(String),
    /// A character that occurs nowhere.
    #[error("unexpected character {0:?}")]
    Character(char),
    /// A backslash and what follows it mean nothing.
    #[error("unknown escape in a text; there are `\\\"`, `\\\\`, `\\n` and `\\u{{…}}`")]
    Escape,
    /// The line ends inside a text.
    #[error("a text is not closed before the end of its line")]
    Unterminated,
    /// A source location that is not of the form `file:line:column`.
    #[error("expected a location of the form \"file:line:column\", found {0:?}")]
    Location(String),
    /// A limit that bounds the cost of reading.
    #[error("{what} is beyond the limit of {limit}")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
}
