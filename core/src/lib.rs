#![forbid(unsafe_code)]
//! IR.
