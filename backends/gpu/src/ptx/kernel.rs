//! Kernels and modules.

use super::instruction::Line;
use super::types::{Class, Type};

/// A module: the kernels of one program.
#[derive(Debug)]
pub(crate) struct Module {
    /// As in `sm_80`.
    pub(crate) architecture: String,
    pub(crate) kernels: Vec<Kernel>,
}

/// A kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) params: Vec<Type>,
    /// The threads of a block, by axis.
    pub(crate) threads: [u32; 3],
    /// Shared memory of a block.
    pub(crate) shared: SharedMemory,
    /// Bytes of memory that each thread has for itself.
    pub(crate) local_bytes: u64,
    pub(crate) lines: Vec<Line>,
    /// How many registers of each class there are.
    pub(crate) registers: [u32; Class::ALL.len()],
}

/// The shared memory of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedMemory {
    /// The number of bytes that the module reserves.
    Static(u32),
    /// The number of bytes is an argument of the launch: more than can be reserved.
    Dynamic(u32),
}

impl SharedMemory {
    /// The number of bytes.
    pub(crate) const fn bytes(self) -> u32 {
        match self {
            SharedMemory::Static(bytes) | SharedMemory::Dynamic(bytes) => bytes,
        }
    }
}
