//! Addresses: a base, the variable part of an index, and a constant distance that the instruction adds.

use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::swizzle::Exchange;

use crate::emit::index::Width;
use crate::emit::{AddressKey, Generator, Outcome, Place};
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
        let swizzle = self.program.swizzle(buffer).filter(|_| place.space == Space::Shared);
        if let Some(exchange) = swizzle.and_then(|swizzle| swizzle.exchange(bytes)) {
            return self.exchanged_address(place, index, bytes, exchange);
        }
        let distance = index.constant_part().wrapping_mul(bytes).wrapping_add(i64::from(place.offset));
        let (rest, distance) = match i32::try_from(distance) {
            Ok(distance) => (index.offset(index.constant_part().wrapping_neg()), distance),
            // The whole index becomes a part of the address.
            Err(_) => (index.clone(), place.offset as i32),
        };
        let base = self.base_address(place, &rest, bytes)?;
        Ok(Operand::Address(base, distance))
    }

    /// The address of an element where pieces of rows are exchanged. Whole periods of the pattern in the constant part of the index become the distance of the instruction.
    fn exchanged_address(
        &mut self,
        place: Place,
        index: &Index,
        bytes: i64,
        exchange: Exchange,
    ) -> Outcome<Operand> {
        let constant = index.constant_part();
        let near = constant.rem_euclid(exchange.period() / bytes);
        let distance = (constant - near) * bytes + i64::from(place.offset);
        let distance =
            i32::try_from(distance).map_err(|_| self.broken("a buffer is larger than shared memory"))?;
        let index = index.offset(near - constant).scale(bytes);
        let key = (place.base, index, Some(exchange));
        if let Some(known) = self.scopes.iter().rev().find_map(|scope| scope.addresses.get(&key)) {
            return Ok(Operand::Address(*known, distance));
        }
        let index = &key.1;
        if let Some(byte) = index.as_constant() {
            let place_of = i32::try_from(exchange.place(byte)).unwrap_or(i32::MAX);
            return Ok(Operand::Address(place.base, distance.wrapping_add(place_of)));
        }
        let width = self.width_of(index);
        let mut byte = self.index(index, width)?;
        if width == Width::Double {
            // All of this memory has 32-bit addresses.
            byte = self.builder.convert(Op::Convert, Type::U32, Type::U64, byte);
        }
        let [by, mask] = [i64::from(exchange.distance()), exchange.mask()].map(Operand::Integer);
        let row = self.builder.compute(Op::ShiftRight, Type::U32, &[byte, by]);
        let changed = self.builder.compute(Op::And, Type::B32, &[row, mask]);
        let exchanged = self.builder.compute(Op::Xor, Type::B32, &[byte, changed]);
        let base = Operand::Register(place.base);
        let address = self.builder.compute(Op::Add, Type::S32, &[exchanged, base]);
        let address = self.register_of(address)?;
        self.remember_address(key, address);
        Ok(Operand::Address(address, distance))
    }

    /// Remembers an address in this part of the code, unless memory that may change decides it.
    fn remember_address(&mut self, key: AddressKey, address: Register) {
        let mut is_stable = true;
        tilewright_core::visit::for_each_load_in_index(&key.1, &mut |_, _| is_stable = false);
        if is_stable && let Some(scope) = self.scopes.last_mut() {
            scope.addresses.insert(key, address);
        }
    }

    /// The address of a place, without its offset, and of the element at an index from there.
    fn base_address(&mut self, place: Place, index: &Index, bytes: i64) -> Outcome<Register> {
        if index.is(0) {
            return Ok(place.base);
        }
        let key = (place.base, index.scale(bytes), None);
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
        self.remember_address(key, address);
        Ok(address)
    }
}
