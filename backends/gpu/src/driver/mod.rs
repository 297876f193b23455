//! GPUs through NVIDIA's driver, which is found when the program runs: building needs neither a GPU nor CUDA.
//!
//! All work of a GPU goes through one stream, in the order in which it is submitted, so that memory that was given back is
//! used again only behind what still uses it. Measurements use a stream of their own, which waits for that one.
//!
//! | module | holds |
//! |---|---|
//! | `library` | finding the driver, and whether it is new enough |
//! | `properties` | a GPU as a target |
//! | `gpu` | an opened GPU: its stream, copies, waits |
//! | `memory` | memory of a GPU |
//! | `module` | PTX that the driver compiles, and launches of its kernels |
//! | `timing` | how long work takes, by the GPU's own clock |
//! | `failure` | errors of the driver as errors of devices |

mod failure;
mod gpu;
mod library;
mod memory;
mod module;
mod properties;
#[cfg(test)]
mod tests;
mod timing;

/// Where work is ordered.
pub(crate) use cudarc::driver::CudaStream as Stream;
pub use gpu::Gpu;
pub use library::{VARIABLE, load};
pub(crate) use memory::GpuMemory;
pub(crate) use module::{Extents, Kernel, LoadError, Module};
