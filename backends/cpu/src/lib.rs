//! The CPU backend: compiled kernels, facts about the machine and the run time of parallel loops.
//!
//! [`CpuBackend`] compiles programs of the `Flat` level through Cranelift. A compiled kernel is an
//! [`Executable`](tilewright_core::target::Executable): it checks its arguments and then runs machine code, whose
//! parallel loops run on the [`pool`].

mod backend;
mod codegen;
mod compile;
mod executable;
mod flat;
pub mod machine;
pub mod pages;
pub mod peak;
pub mod pool;
mod runtime;
mod simd;

pub use backend::CpuBackend;
pub use simd::refusals;
