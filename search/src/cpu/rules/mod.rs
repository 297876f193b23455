//! The built-in schedule rules of a CPU: one file each.
//!
//! With the [rules of every device](crate::space::rules) they form MetaSchedule's default set for CPUs, with the addition of operand
//! packing in [`multi_level_tiling`], of sums of scaled sums and of chained products in [`products`], of reductions distributed over vector lanes in
//! [`reduce_in_lanes`] and among threads in [`divide_reduction`], of strips of rows in [`strip_rows`], of iterators for remainders in [`separate_residues`], of private copies for
//! updates of integers in [`privatize_updates`], and of recurrences that share their steps in [`share_steps`].
//! The tensor intrinsics of the machine are used by [`auto_tensorize`], and for inexact products by [`split_products`].

pub mod auto_tensorize;
pub mod divide_reduction;
pub mod multi_level_tiling;
pub(crate) mod packing;
pub mod parallelize_vectorize_unroll;
pub mod prefetch_inputs;
pub mod privatize_updates;
pub mod products;
pub mod random_compute_location;
pub mod reduce_in_lanes;
pub mod separate_residues;
pub mod share_steps;
pub mod split_products;
pub mod stream_results;
pub mod strip_rows;
pub mod tile_transposed;

use tilewright_core::schedule::{Schedule, ScheduleError};

use crate::space::rule::RuleEntry;

/// Every built-in rule of a CPU alone.
pub(crate) fn all() -> Vec<RuleEntry> {
    vec![
        share_steps::share_steps::ENTRY,
        products::partial_sums::partial_sums::ENTRY,
        products::rows_of_products::rows_of_products::ENTRY,
        divide_reduction::divide_reduction::ENTRY,
        reduce_in_lanes::reduce_in_lanes::ENTRY,
        separate_residues::separate_residues::ENTRY,
        split_products::split_products::ENTRY,
        auto_tensorize::auto_tensorize::ENTRY,
        multi_level_tiling::multi_level_tiling::ENTRY,
        privatize_updates::privatize_updates::ENTRY,
        strip_rows::strip_rows::ENTRY,
        tile_transposed::tile_transposed::ENTRY,
        stream_results::stream_results::ENTRY,
        prefetch_inputs::prefetch_inputs::ENTRY,
        parallelize_vectorize_unroll::parallelize_vectorize_unroll::ENTRY,
        random_compute_location::random_compute_location::ENTRY,
    ]
}

/// The bytes of the second-level caches of all cores that a run uses, together.
pub(crate) fn own_cache_bytes(schedule: &Schedule) -> Result<u64, ScheduleError> {
    Ok(u64::from(schedule.threads()) * schedule.cpu()?.l2_bytes)
}
