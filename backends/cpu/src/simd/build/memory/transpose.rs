//! Transposition of vectors in registers.
//!
//! Rows are interleaved two by two inside the 128-bit parts of vectors until each part holds one column of as many rows as fit
//! in it; then whole parts change places. Columns that no instruction reads are removed later with all that they are made
//! of, so that a block with few columns costs less.

use tilewright_core::dtype::DType;

use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{Class, Inst, Mem, Op, Operand, Reg, Width};
use crate::simd::x86::VectorOp;
use crate::simd::{Refusal, VectorExtension};

/// The bytes of a part.
const PART: u32 = 16;

impl Builder<'_> {
    /// Some consecutive elements of 32 or 64 bits, and zeros behind them.
    pub(in crate::simd::build) fn load_row(&mut self, dtype: DType, mem: Mem, elements: u32) -> Reg {
        let bytes = dtype.bytes() as u32;
        let width = Width::of_bytes(elements * bytes);
        let is_whole = elements * bytes == width.bytes();
        let load = if bytes == 8 { VectorOp::Load64 } else { VectorOp::Load };
        let args = [Operand::Mem(mem)];
        if is_whole || self.extension == VectorExtension::Avx512 {
            let mask = (!is_whole).then(|| self.mask_register_of_lanes(elements));
            return self.masked(Class::Vector, Op::Vector(load), width, args, mask);
        }
        let set = (elements * bytes) as usize;
        let wanted: Vec<u8> =
            (0..width.bytes() as usize).map(|byte| if byte < set { 0xFF } else { 0 }).collect();
        let wanted = self.bytes_constant(&wanted);
        let load = if bytes == 8 { VectorOp::LoadSome64 } else { VectorOp::LoadSome32 };
        self.emit(Class::Vector, Op::Vector(load), width, [Operand::Reg(wanted), Operand::Mem(mem)])
    }

    /// The columns of some rows of elements of `bytes` bytes: as many columns as fill a vector, and at most as many rows. The
    /// elements of a column behind the last row are unspecified.
    pub(in crate::simd::build) fn transposed(&mut self, bytes: u32, rows: &[Reg]) -> Outcome<Vec<Reg>> {
        let (vector, in_part) = (self.extension.bytes(), (PART / bytes) as usize);
        let count = (vector / bytes) as usize;
        let Some(last) = rows.last().filter(|_| rows.len() <= count) else { return Err(Refusal::Lanes) };
        let mut vectors: Vec<Reg> = rows.to_vec();
        // In the place of a row that is not there stands one that is.
        vectors.resize(count, *last);
        for block in vectors.chunks_mut(in_part).take(rows.len().div_ceil(in_part)) {
            self.transpose_in_parts(bytes, block)?;
        }
        self.transpose_parts(in_part, vectors)
    }

    /// Of `n` rows, `n` elements of each in a part, column `i` of all in each part of vector `i`.
    fn transpose_in_parts(&mut self, bytes: u32, block: &mut [Reg]) -> Outcome<()> {
        let width = Width::of_bytes(self.extension.bytes());
        let wide = [VectorOp::UnpackLow64, VectorOp::UnpackHigh64];
        let narrow = [VectorOp::UnpackLow32, VectorOp::UnpackHigh32];
        match (bytes, &mut *block) {
            (8, [a, b]) => {
                let pair = [*a, *b];
                (*a, *b) = (self.vector(wide[0], width, pair)?, self.vector(wide[1], width, pair)?);
            }
            (4, [a, b, c, d]) => {
                let (first, second) = ([*a, *b], [*c, *d]);
                for (half, [low, high]) in [[a, b], [c, d]].into_iter().enumerate() {
                    // Two columns of two rows in each part.
                    let left = self.vector(narrow[half], width, first)?;
                    let right = self.vector(narrow[half], width, second)?;
                    *low = self.vector(wide[0], width, [left, right])?;
                    *high = self.vector(wide[1], width, [left, right])?;
                }
            }
            _ => return Err(Refusal::Lanes),
        }
        Ok(())
    }

    /// Lets part `p` of vector `b·n + i` become part `b` of vector `p·n + i`.
    fn transpose_parts(&mut self, in_part: usize, vectors: Vec<Reg>) -> Outcome<Vec<Reg>> {
        let mut columns = vectors.clone();
        for number in 0..in_part {
            let of = |block: usize| vectors[block * in_part + number];
            match self.extension {
                VectorExtension::Avx2 => {
                    for (part, choice) in [0x20, 0x31].into_iter().enumerate() {
                        columns[part * in_part + number] = self.shuffled_parts([of(0), of(1)], choice)?;
                    }
                }
                VectorExtension::Avx512 => {
                    // The parts with even numbers of two vectors, or those with odd ones.
                    for (parity, choice) in [0x88, 0xDD].into_iter().enumerate() {
                        let left = self.shuffled_parts([of(0), of(1)], choice)?;
                        let right = self.shuffled_parts([of(2), of(3)], choice)?;
                        for (half, choice) in [0x88, 0xDD].into_iter().enumerate() {
                            let part = 2 * half + parity;
                            columns[part * in_part + number] = self.shuffled_parts([left, right], choice)?;
                        }
                    }
                }
            }
        }
        Ok(columns)
    }

    /// Parts of two vectors, selected in the encoding of the extension's instruction.
    fn shuffled_parts(&mut self, vectors: [Reg; 2], choice: u8) -> Outcome<Reg> {
        let width = Width::of_bytes(self.extension.bytes());
        let dst = self.register(Class::Vector);
        let args = vectors.map(Operand::Reg);
        let mut inst = Inst::new(Op::Vector(VectorOp::ShuffleParts), width, Some(dst), args);
        inst.immediate = choice;
        self.push(inst);
        Ok(dst)
    }
}
