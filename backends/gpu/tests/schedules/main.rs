//! Schedules that the search makes for a GPU: what default schedules promise, and products on tensor cores of any size.

#[path = "../simulated/assembler.rs"]
mod assembler;
mod coalescing;
mod points;
#[expect(dead_code, reason = "the tests of single kernels use the rest")]
#[path = "../simulated/support.rs"]
mod support;
mod symbolic;
mod tensor_cores;
mod workloads;
