//! From the `Blocks` level to the `Loops` level: blocks become statements, and intermediates get their places and sizes.

mod async_copies;
pub(in crate::lower) mod compact_buffers;
pub(in crate::lower) mod expand_intrinsics;
pub(in crate::lower) mod hoist_guards;
pub(in crate::lower) mod keep_outermost_parallel;
pub(in crate::lower) mod limit_unrolling;
pub(in crate::lower) mod lower_blocks;
pub(in crate::lower) mod pipeline_loops;
pub(in crate::lower) mod place_buffers;
