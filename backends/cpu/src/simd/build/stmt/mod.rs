//! Statements.
//!
//! | module | holds |
//! |---|---|
//! | [`nest`] | sequences, loops, stores and branches |
//! | [`condition`] | conditions of branches, in general registers |
//! | [`registers`] | intermediates in vector registers |
//! | [`interleave`] | interleaved instructions of several groups of lanes |

pub(in crate::simd::build) mod condition;
pub(in crate::simd::build) mod interleave;
pub(in crate::simd::build) mod nest;
pub(in crate::simd::build) mod registers;
