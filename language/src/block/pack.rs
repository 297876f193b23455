//! From rows of blocks, as files hold them, to panels, as kernels read them.
//!
//! A panel has the rows of [`LANES`] outputs, one in each lane. Its planes hold the same field of all of them next to each other: the bytes of
//! the integers, the scales. Each bit of a block is kept once, so that a panel is as large as its blocks; only integers of 6 bits take a
//! byte each.

use half::f16;
use tilewright::Tensor;

use crate::block::BlockType;
use crate::block::decode::{half_at, q4_k_factors, q6_k_integers};
use crate::error::Error;

/// How many rows a panel has: two vectors of AVX-512, four of AVX2.
pub(crate) const LANES: usize = 32;

/// The blocks of a matrix, in panels.
pub(super) struct Blocks<'b> {
    /// All rows, one after the other.
    bytes: &'b [u8],
    kind: BlockType,
    rows: usize,
    /// Blocks in a row.
    pub(super) blocks: usize,
}

impl<'b> Blocks<'b> {
    pub(super) fn new(bytes: &'b [u8], kind: BlockType, rows: usize, columns: usize) -> Self {
        Blocks { bytes, kind, rows, blocks: columns / kind.length() }
    }

    pub(super) fn panels(&self) -> usize {
        self.rows.div_ceil(LANES)
    }

    /// A plane: the `count` fields of each block that `fields` writes, by panel, block and field, with the lanes innermost. Lanes beyond the last
    /// row hold zeros.
    pub(super) fn plane<T: Copy + Default>(&self, count: usize, fields: impl Fn(&[u8], &mut [T])) -> Vec<T> {
        self.grouped(count, 1, fields)
    }

    /// A plane whose fields stand in groups: those of a group are neighbours, and so are the groups of all lanes.
    pub(super) fn grouped<T: Copy + Default>(
        &self,
        count: usize,
        group: usize,
        fields: impl Fn(&[u8], &mut [T]),
    ) -> Vec<T> {
        let mut plane = vec![T::default(); self.panels() * self.blocks * count * LANES];
        let mut own = vec![T::default(); count];
        for row in 0..self.rows {
            let (panel, lane) = (row / LANES, row % LANES);
            for block in 0..self.blocks {
                let start = (row * self.blocks + block) * self.kind.bytes();
                fields(&self.bytes[start..start + self.kind.bytes()], &mut own);
                let first = (panel * self.blocks + block) * count * LANES + lane * group;
                for (number, fields) in own.chunks_exact(group).enumerate() {
                    plane[first + number * LANES * group..][..group].copy_from_slice(fields);
                }
            }
        }
        plane
    }

    /// The half floats at places of each block, as a plane of `[panels, blocks, lanes]`.
    pub(super) fn halves(&self, place: usize) -> Result<Tensor<f16, 3>, Error> {
        let plane = self.plane(1, |block, own| own[0] = half_at(block, place));
        tensor(plane, [self.panels(), self.blocks, LANES])
    }

    /// Bytes of each block, as a plane of `[panels, blocks, count, lanes]`.
    pub(super) fn bytes(&self, place: usize, count: usize) -> Result<Tensor<u8, 4>, Error> {
        let plane =
            self.plane(count, |block, own: &mut [u8]| own.copy_from_slice(&block[place..place + count]));
        tensor(plane, [self.panels(), self.blocks, count, LANES])
    }

    /// Signed bytes of each block, as a plane of `[panels, blocks, count, lanes]`.
    pub(super) fn signed(&self, place: usize, count: usize) -> Result<Tensor<i8, 4>, Error> {
        let plane = self.plane(count, |block, own: &mut [i8]| {
            own.iter_mut().zip(&block[place..]).for_each(|(own, &byte)| *own = byte as i8);
        });
        tensor(plane, [self.panels(), self.blocks, count, LANES])
    }

    /// The integers of blocks of 6 bits.
    pub(super) fn six_bits(&self) -> Result<Tensor<i8, 4>, Error> {
        let plane = self.plane(256, |block, own| own.copy_from_slice(&q6_k_integers(block)));
        tensor(plane, [self.panels(), self.blocks, 256, LANES])
    }

    /// The scales (`0`) or minima (`1`) of the parts of blocks of 4 bits, as a plane of `[panels, blocks, 8, lanes]`.
    pub(in crate::block) fn factors(&self, which: usize) -> Result<Tensor<u8, 4>, Error> {
        let plane = self.plane(8, |block, own: &mut [u8]| {
            for (part, own) in own.iter_mut().enumerate() {
                let (scale, minimum) = q4_k_factors(&block[4..16], part);
                *own = if which == 0 { scale } else { minimum };
            }
        });
        tensor(plane, [self.panels(), self.blocks, 8, LANES])
    }

    /// Single floats.
    pub(super) fn floats(&self) -> Result<Tensor<f32, 3>, Error> {
        let plane = self.plane(1, |block, own| {
            own[0] = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
        });
        tensor(plane, [self.panels(), self.blocks, LANES])
    }
}

pub(super) fn tensor<T: tilewright::Element, const RANK: usize>(
    elements: Vec<T>,
    shape: [usize; RANK],
) -> Result<Tensor<T, RANK>, Error> {
    Tensor::from_vec(elements, shape).map_err(|error| Error::Memory(error.to_string()))
}
