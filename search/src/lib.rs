#![forbid(unsafe_code)]
//! Search.
pub mod model;
