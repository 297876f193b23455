//! The search for a GPU: its rules, its mutators, its postprocessors, the static costs of its kernels with the draft model, and the schedules of
//! kernels that have not been tuned.

mod by_element;
mod by_parts;
mod by_update;
mod default_schedule;
pub mod features;
mod in_block;
pub(crate) mod mutate;
mod over_blocks;
pub(crate) mod postproc;
mod rows;
pub mod rules;
mod seed;
mod tiles;
mod transposed;

use crate::space::spec::DeviceFunctions;

pub(crate) use by_parts::schedule_by_blocks;
pub(crate) use default_schedule::{is_executable, schedule_by_ways};

/// The functions of a GPU.
pub(crate) const FUNCTIONS: DeviceFunctions = DeviceFunctions {
    extract_features: features::extract,
    align_decision: seed::aligned,
    verify_limits: postproc::verify::verify_limits,
    // Blocks are bound to threads by postprocessors where rules have left them; no nest needs annotations.
    lacks_annotations: |_, _| Ok(false),
};
