//! Values of expressions, one group of lanes at a time.
//!
//! | module | holds |
//! |---|---|
//! | [`group`] | how the lanes of a statement are divided into groups |
//! | [`expr`] | expressions |
//! | [`arith`], [`convert`] | operations |
//! | [`mask`] | comparisons, and masks of lanes |
//! | [`rare`] | selections with a side that a branch leaves out |

pub(in crate::simd::build) mod arith;
pub(in crate::simd::build) mod convert;
pub(in crate::simd::build) mod expr;
pub(in crate::simd::build) mod group;
pub(in crate::simd::build) mod mask;
mod rare;
