//! Passes that rewrite loops: they take special iterations apart from the others, and carry out the kinds of loops.

pub(in crate::lower) mod alternate_directions;
pub(in crate::lower) mod clamp_loops;
pub(in crate::lower) mod leave_out_padding;
pub(in crate::lower) mod partition_loops;
pub(in crate::lower) mod peel_boundaries;
pub(in crate::lower) mod unroll_loops;
pub(in crate::lower) mod unswitch_selections;
pub(in crate::lower) mod vectorize_loops;
