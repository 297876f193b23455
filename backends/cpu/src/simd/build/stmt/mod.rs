//! Statements.
//!
//! | module | holds |
//! |---|---|
//! | [`nest`] | sequences, loops, stores and branches |
//! | [`condition`] | conditions of branches, in general registers |
//! | [`rows`] | rows of a tile of sums, in the order in which they share loads |
//! | [`registers`] | intermediates in vector registers |
//! | [`interleave`] | interleaved instructions of several groups of lanes |

pub(in crate::simd::build) mod condition;
pub(in crate::simd::build) mod interleave;
pub(in crate::simd::build) mod nest;
pub(in crate::simd::build) mod registers;
mod rows;
