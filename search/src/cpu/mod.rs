//! The search for a CPU: its rules, its postprocessors, the features of its programs with the draft model, and the seeds of a search.

pub mod features;
pub(crate) mod postproc;
pub mod rules;
mod seed;

use crate::space::spec::DeviceFunctions;

/// The functions of a CPU.
pub(crate) const FUNCTIONS: DeviceFunctions = DeviceFunctions {
    extract_features: features::extract,
    align_decision: seed::aligned,
    verify_limits: postproc::verify::verify_limits,
    lacks_annotations: rules::parallelize_vectorize_unroll::lacks_annotations,
};
