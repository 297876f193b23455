//! The instruction set: types, the notation of the table, the table, and the checks that follow from it.

#[cfg(test)]
mod certify;
pub(crate) mod check;
pub(crate) mod pattern;
pub(crate) mod table;
pub(crate) mod types;
