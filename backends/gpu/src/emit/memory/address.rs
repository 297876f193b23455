//! Addresses: a base, the variable part of an index, and a constant distance that the instruction adds.

use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;

use crate::emit::index::Width;
use crate::emit::{Generator, Outcome, Place};
use crate::ptx::operand::{Operand, Register};
use crate::ptx::table::{Op, Space};
use crate::ptx::types::Type;

impl Generator<'_> {
    /// The address of the element at a [resolved](Generator::resolve) index without lanes.
    pub(in crate::emit) fn address(
        &mut self,
        buffer: BufferId,
        place: Place,
        index: &Index,
    ) -> Outcome<Operand> {
        let bytes = self.program.buffer(buffer).dtype.bytes() as i64;
        let distance = index.constant_part().wrapping_mul(bytes).wrapping_add(i64::from(place.offset));
        let (rest, distance) = match i32::try_from(distance) {
            Ok(distance) => (index.offset(index.constant_part().wrapping_neg()), distance),
            // The whole index becomes a part of the address.
            Err(_) => (index.clone(), place.offset as i32),
        };
        let base = self.base_address(place, &rest, bytes)?;
        Ok(Operand::Address(base, distance))
    }

    /// The address of a place, without its offset, and of the element at an index from there.
    fn base_address(&mut self, place: Place, index: &Index, bytes: i64) -> Outcome<Register> {
        if index.is(0) {
            return Ok(place.base);
        }
        let key = (place.base, index.scale(bytes));
        if let Some(known) = self.scopes.iter().rev().find_map(|scope| scope.addresses.get(&key)) {
            return Ok(*known);
        }
        let (base, factor) = (Operand::Register(place.base), Operand::Integer(bytes));
        let width = self.width_of(index);
        let address = match (place.space, width) {
            (Space::Shared, _) => {
                let mut index = self.index(index, width)?;
                if width == Width::Double {
                    // All of this memory has 32-bit addresses.
                    index = self.builder.convert(Op::Convert, Type::U32, Type::U64, index);
                }
                self.builder.compute(Op::Mad, Type::S32, &[index, factor, base])
            }
            (_, Width::Word) => {
                let index = self.index(index, width)?;
                self.builder.compute(Op::MadWide, Type::S32, &[index, factor, base])
            }
            (_, Width::Double) => {
                let index = self.index(index, width)?;
                self.builder.compute(Op::Mad, Type::S64, &[index, factor, base])
            }
        };
        let address = self.register_of(address)?;
        let mut is_stable = true;
        tilewright_core::visit::for_each_load_in_index(index, &mut |_, _| is_stable = false);
        if is_stable && let Some(scope) = self.scopes.last_mut() {
            scope.addresses.insert(key, address);
        }
        Ok(address)
    }
}
