//! Assignments that are accumulations, in whatever form they are written.

pub(super) mod accumulation;
pub(super) mod arg_reduction;
