//! Loads, stores and prefetches.
//!
//! | module | holds |
//! |---|---|
//! | [`linear`], [`address`] | indices as sums of products, and addresses |
//! | [`access`], [`lanewise`] | loads and stores of groups of lanes |
//! | [`selected`] | loads from one of two addresses |
//! | [`bytes`] | moves of the first bytes of a register |
//! | [`transpose`], [`transposed_loads`] | loads along rows, transposed in registers |
//! | [`tables`] | loads from tables by bytes |
//! | [`streaming`] | stores around the caches |
//! | [`prefetch`], [`prefetch_beside`] | prefetches |

pub(in crate::simd::build) mod access;
pub(in crate::simd::build) mod address;
pub(in crate::simd::build) mod bytes;
pub(in crate::simd::build) mod lanewise;
pub(in crate::simd::build) mod linear;
pub(in crate::simd::build) mod prefetch;
pub(in crate::simd::build) mod prefetch_beside;
pub(in crate::simd::build) mod selected;
pub(in crate::simd::build) mod streaming;
pub(in crate::simd::build) mod tables;
pub(in crate::simd::build) mod transpose;
pub(in crate::simd::build) mod transposed_loads;
