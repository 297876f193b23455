//! Loads from tables by bytes.
//!
//! A table of 256 bytes fills four vectors of AVX-512: each of two permutations looks bytes up in half of it (`vpermi2b`), and the highest bit of
//! the byte chooses between both. Elsewhere four bytes are gathered and the wanted one is moved to the front; elements of 32 bits are gathered as they are.

use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;
use tilewright_core::flat::tables::{BYTES, byte_of_look_up};
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;

use crate::machine::Feature;
use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{Class, Inst, Mem, Op, Operand, Reg, Width};
use crate::simd::x86::VectorOp;
use crate::simd::{Refusal, VectorExtension};

/// The bytes of a vector of AVX-512.
const VECTOR: i32 = 64;

impl Builder<'_> {
    /// The elements of a table that the lanes of a byte name, if the index is a byte.
    pub(in crate::simd::build) fn load_from_table(
        &mut self,
        buffer: BufferId,
        index: &Index,
        group: Group,
    ) -> Outcome<Option<Reg>> {
        let Some(byte) = byte_of_look_up(self.program, buffer, std::slice::from_ref(index)) else {
            return Ok(None);
        };
        let extent = self.extent_of(buffer).as_constant().unwrap_or(0);
        let table = self.address(buffer, &Index::constant(0))?;
        let places = self.value(byte, group)?;
        let dtype = self.program.buffer(buffer).dtype;
        let found = match dtype {
            DType::I32 | DType::F32 => {
                let places = self.with_immediate(VectorOp::ShiftLeft32, group.width(Form::Int32), places, 2);
                self.gather_words(table, places, group)
            }
            _ if self.permutes_bytes() => self.permuted(table, places, group)?,
            _ if extent % 4 == 0 => self.gathered_byte(table, places, group)?,
            _ => return Err(Refusal::DataIndex),
        };
        self.normalize(dtype, group, found).map(Some)
    }

    fn permutes_bytes(&self) -> bool {
        self.extension == VectorExtension::Avx512 && self.around.features.contains(Feature::Avx512vbmi)
    }

    /// Bytes of a table in the lowest byte of each lane; the others are unspecified.
    fn permuted(&mut self, table: Mem, places: Reg, group: Group) -> Outcome<Reg> {
        let half = |this: &mut Self, first: Mem| {
            let [low, high] = [0, VECTOR]
                .map(|offset| this.shared_load(VectorOp::Load, Width::Zmm, first.further(offset), 16, None));
            // The places are overwritten by the elements.
            let found =
                this.emit(Class::Vector, Op::Vector(VectorOp::Load), Width::Zmm, [Operand::Reg(places)]);
            let args = [found, low, high].map(Operand::Reg);
            this.push(Inst::new(Op::Accumulate(VectorOp::PermuteBytes), Width::Zmm, Some(found), args));
            found
        };
        let (low, high) = (half(self, table), half(self, table.further(2 * VECTOR)));
        let middle = self.same(BYTES as u64 / 2, 4);
        let is_high = self.compare(BinaryOp::Ge, DType::I32, group, places, middle)?;
        self.blend(is_high, high, low, Form::Int32, group)
    }

    /// Bytes of a table, each with bytes behind it.
    fn gathered_byte(&mut self, table: Mem, places: Reg, group: Group) -> Outcome<Reg> {
        let width = group.width(Form::Int32);
        let words = self.same(BYTES as u64 - 4, 4);
        let words = self.vector(VectorOp::And32, width, [places, words])?;
        let found = self.gather_words(table, words, group);
        let within = self.same(3, 4);
        let within = self.vector(VectorOp::And32, width, [places, within])?;
        let bits = self.with_immediate(VectorOp::ShiftLeft32, width, within, 3);
        self.vector(VectorOp::ShiftRightBy32, width, [found, bits])
    }

    /// Words of 32 bits at distances in bytes that stay inside, also in lanes that are not wanted: all bytes name elements.
    fn gather_words(&mut self, table: Mem, places: Reg, group: Group) -> Reg {
        let table = match table.index {
            None => table,
            Some(_) => self.without_index(table),
        };
        let mem = Operand::Mem(Mem { index: Some((places, 1)), ..table });
        let width = group.width(Form::Int32);
        let lanes = width.bytes() / 4;
        if self.extension == VectorExtension::Avx2 {
            let wanted = Operand::Reg(self.wanted_lanes(lanes, Form::Int32));
            return self.emit(Class::Vector, Op::Gather(4), width, [mem, wanted]);
        }
        self.emit(Class::Vector, Op::Gather(4), width, [mem])
    }
}
