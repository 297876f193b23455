#![forbid(unsafe_code)]
//! Search.
