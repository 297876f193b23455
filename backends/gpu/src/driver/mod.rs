//! GPUs through NVIDIA's driver, which is found when the program runs: building needs neither a GPU nor CUDA.
//!
//! Work goes through one stream, in the order in which it is submitted, unless a thread says otherwise; work on several streams waits for
//! the other ones where it depends on them, and memory that was given back is used again only behind what still uses it. Measurements use a
//! stream of their own.
//!
//! | module | holds |
//! |---|---|
//! | `library` | finding the driver, and whether it is new enough |
//! | `properties` | a GPU as a target |
//! | `gpu` | an opened GPU: its stream, copies, waits |
//! | `memory` | memory of a GPU, and the work that uses it |
//! | `pinned` | page-locked memory of the host |
//! | `stream` | streams, places in them, and which of them the work of a thread goes to |
//! | `graph` | kernels that are recorded once and launched together |
//! | `module` | PTX that the driver compiles, and launches of its kernels |
//! | `timing` | how long work takes, by the GPU's own clock |
//! | `failure` | errors of the driver as errors of devices |

mod failure;
mod gpu;
mod graph;
mod library;
mod memory;
mod module;
mod pinned;
mod properties;
mod stream;
#[cfg(test)]
mod tests;
mod timing;

pub(crate) use cudarc::driver::CudaStream;
pub use gpu::Gpu;
pub use graph::Graph;
pub use library::{VARIABLE, load};
pub(crate) use memory::{GpuMemory, Use};
pub(crate) use module::{Extents, Kernel, LoadError, Module};
pub use pinned::PinnedBuffer;
pub(crate) use stream::Current;
pub use stream::{Event, Stream};
