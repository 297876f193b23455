//! Blocks of quantised numbers: the types, what they mean, and products with them.
//!
//! A row of a matrix is a sequence of blocks, each of which holds integers of a few bits and the numbers that scale them. The layouts are
//! those of GGUF files (`ggml-common.h` of the ggml project).

mod decode;
mod integer;
mod kernels;
mod matrix;
mod numbers;
mod pack;
mod products;
#[cfg(test)]
mod tests;

pub use decode::dequantise;
#[cfg(test)]
pub(crate) use integer::kernels::quantise_rows;
pub(crate) use integer::kernels::quantised;
pub(crate) use integer::product as product_of_integers;
pub(crate) use matrix::is_many;
pub use matrix::{Matrix, Products};
pub(crate) use products::{first_columns, join, product};

/// The element type of a stored tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockType {
    /// Single floats.
    F32,
    /// Half floats.
    F16,
    /// 32 integers of 4 bits less 8, times a scale.
    Q4_0,
    /// 32 integers of 4 bits times a scale, plus a minimum.
    Q4_1,
    /// 32 signed bytes times a scale.
    Q8_0,
    /// 256 integers of 4 bits; each 32 have a scale and a minimum of 6 bits.
    Q4K,
    /// 256 integers of 6 bits less 32; each 16 have a scale of 8 bits.
    Q6K,
}

impl BlockType {
    /// All types that are read.
    pub const ALL: [BlockType; 7] = [
        BlockType::F32,
        BlockType::F16,
        BlockType::Q4_0,
        BlockType::Q4_1,
        BlockType::Q8_0,
        BlockType::Q4K,
        BlockType::Q6K,
    ];

    /// Number in files, name, elements and bytes of a block.
    const fn row(self) -> (u32, &'static str, usize, usize) {
        match self {
            BlockType::F32 => (0, "F32", 1, 4),
            BlockType::F16 => (1, "F16", 1, 2),
            BlockType::Q4_0 => (2, "Q4_0", 32, 18),
            BlockType::Q4_1 => (3, "Q4_1", 32, 20),
            BlockType::Q8_0 => (8, "Q8_0", 32, 34),
            BlockType::Q4K => (12, "Q4_K", 256, 144),
            BlockType::Q6K => (14, "Q6_K", 256, 210),
        }
    }

    /// The type of a number in GGUF files.
    pub fn of_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.row().0 == id)
    }

    /// Its number in GGUF files.
    pub fn id(self) -> u32 {
        self.row().0
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// How many elements a block has.
    pub fn length(self) -> usize {
        self.row().2
    }

    /// How many bytes a block has.
    pub fn bytes(self) -> usize {
        self.row().3
    }
}
