//! Memory: addresses, global allocations, shared memory of a block.

mod global;
pub(crate) mod shared;

pub(crate) use global::Fault;
pub use global::{Memory, MemoryError};

/// Generic addresses of shared memory begin here.
pub(crate) const SHARED: u64 = 1 << 60;
/// Generic addresses of local memory begin here.
pub(crate) const LOCAL: u64 = 2 << 60;
/// Generic addresses of the kernel's parameters begin here.
pub(crate) const PARAMS: u64 = 3 << 60;
/// Addresses of functions begin here.
pub(crate) const FUNCTIONS: u64 = 4 << 60;
/// The bits that tell those from each other; zero in global memory.
pub(crate) const WINDOW: u64 = 0xf << 60;
