//! The GPU backend: PTX from programs of the `Flat` level.
//!
//! [`emit`] writes PTX as text, for NVIDIA's assembler or driver to compile; it needs neither of them. A [`GpuCode`] holds the text
//! and says how its kernels are launched.

#![forbid(unsafe_code)]

mod emit;
mod launch;
mod ptx;

pub use emit::emit;
pub use launch::{FAILURE_RECORD_BYTES, GpuCode, Launch, LaunchArgument, TENSOR_ALIGNMENT, Workspace};
