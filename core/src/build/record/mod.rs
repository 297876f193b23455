//! The definition as it was recorded: values, and an imperative tree of statements.

pub(super) mod recording;
pub(super) mod value;
