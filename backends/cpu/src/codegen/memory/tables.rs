//! Loads from tables by bytes, lane by lane.

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::flat::tables::byte_of_look_up;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;

use crate::codegen::memory::address::Address;
use crate::codegen::value::lanes::{Form, Group, Lanes, Width};
use crate::codegen::{Generator, Outcome};

impl Generator<'_> {
    /// The elements of a table that the lanes of a byte name, if the index is a byte.
    pub(in crate::codegen) fn load_from_table(
        &mut self,
        buffer: BufferId,
        dtype: DType,
        index: &Index,
        group: Group,
    ) -> Outcome<Option<Lanes>> {
        let Some(byte) = byte_of_look_up(&self.unit.program, buffer, std::slice::from_ref(index)) else {
            return Ok(None);
        };
        let places = self.value(byte, group)?;
        let table = self.address(buffer, &Index::constant(0))?;
        let size = self.iconst(I64, dtype.bytes().trailing_zeros().into());
        let mut elements: SmallVec<[Value; 4]> = SmallVec::new();
        for lane in 0..group.width.lanes() {
            let place = self.extract(places, Form::Int32, group.width, lane);
            let place = self.ins().uextend(I64, place);
            let distance = self.ins().ishl(place, size);
            let base = self.ins().iadd(table.base, distance);
            elements.push(self.load_group(dtype, Address { base, ..table }, Width::One).low);
        }
        Ok(Some(self.assemble(Form::of(dtype), group.width, &elements)))
    }
}
