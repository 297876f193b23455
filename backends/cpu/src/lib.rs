//! The CPU backend: compiled kernels, facts about the machine and the run time of parallel loops.
//!
//! [`CpuDevice`] compiles programs of the `Flat` level through Cranelift. A compiled kernel is an
//! [`Executable`](tilewright_core::device::Executable): it checks its arguments and then runs machine code, whose
//! parallel loops run on the [`pool`].

mod codegen;
mod compile;
mod device;
mod evict;
mod executable;
mod flat;
pub mod intrinsics;
pub mod machine;
mod memory;
pub mod pages;
pub mod peak;
pub mod pool;
mod runtime;
mod simd;

pub use device::CpuDevice;
pub use simd::refusals;
