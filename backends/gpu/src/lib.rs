//! The GPU backend: PTX from programs of the `Flat` level, and GPUs that run it.
//!
//! [`emit`] writes PTX as text, for NVIDIA's assembler or driver to compile; it needs neither of them. A [`GpuCode`] holds the text
//! and says how its kernels are launched; [`manifest`] says so as JSON. A [`Gpu`] is one that the driver has opened; it is a
//! [`Device`](tilewright_core::device::Device).

#![deny(unsafe_code)]

mod device;
#[allow(unsafe_code, reason = "the driver's functions are foreign ones")]
mod driver;
mod emit;
pub mod intrinsics;
mod launch;
mod manifest;
mod ptx;

pub use driver::{Event, Gpu, Graph, PinnedBuffer, Stream, VARIABLE as DRIVER_VARIABLE, load as load_driver};
pub use emit::{emit, emit_with_comments};
pub use launch::{FAILURE_RECORD_BYTES, GpuCode, Launch, LaunchArgument, TENSOR_ALIGNMENT, Workspace};
pub use manifest::manifest;
