//! A CPU as a target.

use std::collections::BTreeSet;

use crate::intrinsic::IntrinsicSet;
use crate::stmt::Symbol;

/// A multi-core processor.
///
/// How many of its cores a kernel uses is an option of each run: [`RunOptions`](super::RunOptions).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CpuTarget {
    /// The cores that the process may use.
    pub cores: u32,
    /// The width of a vector register that code generation uses, in bits.
    pub vector_bits: u32,
    /// The number of vector registers.
    pub vector_registers: u32,
    /// The first-level data cache of a core, in bytes.
    pub l1_bytes: u64,
    /// The second-level cache of a core, in bytes.
    pub l2_bytes: u64,
    /// The third-level cache that the cores share, in bytes; 0 when there is none or it is unknown.
    pub l3_bytes: u64,
    /// A cache line, in bytes.
    pub cache_line_bytes: u32,
    /// Instruction-set features by name, such as `avx2` and `fma`.
    pub features: BTreeSet<String>,
    /// The names of the [tensor intrinsics](crate::intrinsic) that code generation emits.
    pub intrinsics: Vec<Symbol>,
    /// The descriptions of tensor intrinsics that schedules may name, on this machine or any other of its kind.
    pub descriptions: IntrinsicSet,
}

impl CpuTarget {
    /// A plain processor of unknown make: four cores, 128-bit vectors, small caches.
    pub fn generic() -> Self {
        CpuTarget {
            cores: 4,
            vector_bits: 128,
            vector_registers: 16,
            l1_bytes: 32 << 10,
            l2_bytes: 512 << 10,
            l3_bytes: 8 << 20,
            cache_line_bytes: 64,
            features: BTreeSet::new(),
            intrinsics: Vec::new(),
            descriptions: IntrinsicSet::default(),
        }
    }

    /// The number of elements of `bytes` bytes that a vector register holds; at least 1.
    pub fn lanes(&self, bytes: usize) -> u32 {
        (self.vector_bits / 8 / bytes.max(1) as u32).max(1)
    }
}
