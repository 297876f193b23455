//! Loads and stores of elements.

use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{Expr, ExprKind};
use tilewright_core::flat::lanes::{at_lane, lane_offset};
use tilewright_core::flat::value_number::Number;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::visit::for_each_load_in_index;

use super::pack::{memory_type, word_type};
use crate::emit::builder::class_of_result;
use crate::emit::value::{bits_type, class_of, zero};
use crate::emit::warp::Fragment;
use crate::emit::{Generator, Outcome, Place, Storage};
use crate::ptx::instruction::Guard;
use crate::ptx::operand::{Operand, Register};
use crate::ptx::table::{Op, Space};

/// The most bytes of one access.
pub(super) const MAX_BYTES: usize = 16;

impl Generator<'_> {
    /// The only index of an access, resolved.
    pub(super) fn single_index(&self, indices: &[Index]) -> Outcome<Index> {
        match indices {
            [] => Ok(Index::constant(0)),
            [index] => Ok(self.resolve(index)),
            _ => Err(self.broken("an access has several indices")),
        }
    }

    pub(in crate::emit) fn storage_of(&mut self, buffer: BufferId) -> Outcome<Storage> {
        match self.storage.get(&buffer) {
            Some(storage) => Ok(storage.clone()),
            None => self.tensor(buffer),
        }
    }

    fn element(&self, registers: &[Register], index: &Index, lane: u32) -> Outcome<Register> {
        let number = lane_offset(index, lane).and_then(|number| usize::try_from(number).ok());
        number
            .and_then(|number| registers.get(number).copied())
            .ok_or_else(|| self.broken("an element of a buffer in registers is not known"))
    }

    /// The element that an expression loads in a lane. Elements of other lanes that come along are remembered.
    pub(in crate::emit) fn load(
        &mut self,
        expr: &Expr,
        buffer: BufferId,
        indices: &[Index],
        lane: u32,
    ) -> Outcome<Operand> {
        let (index, dtype) = (self.single_index(indices)?, expr.dtype());
        let place = match self.storage_of(buffer)? {
            Storage::Registers(registers) => return self.element(&registers, &index, lane).map(Into::into),
            Storage::Fragment(fragment) => return self.load_fragment(&fragment, dtype, &index, lane),
            Storage::Memory(place) => place,
        };
        let number = self.numbers.of(expr);
        // Statements that follow each other share what they load, such as the operands of a tile of products.
        let known = self.scopes.last().and_then(|known| known.elements.get(&buffer)?.get(&(number, lane)));
        if let Some(known) = known {
            return Ok(*known);
        }
        let lanes = if self.is_single_lane { 1 } else { index.lanes() };
        let count = group_size(dtype, &index, lane, lanes);
        let first = at_lane(&index, lane);
        if count == 1 {
            if lane == 0
                && index.lanes() == 1
                && let Some(element) = self.load_with_others(buffer, place, &first)?
            {
                return Ok(element);
            }
            let address = self.address(buffer, place, &first)?;
            let loaded = self.builder.compute(Op::Load(place.space, 1), memory_type(dtype), &[address]);
            let element = self.unpack_one(dtype, loaded);
            self.remember_elements(buffer, &index, number, lane, &[element]);
            return Ok(element);
        }
        let elements = self.load_group(buffer, place, &first, count)?;
        if let Some(memo) = self.memos.last_mut() {
            memo.extend((lane..).zip(&elements).map(|(lane, element)| ((number, lane), *element)));
        }
        self.remember_elements(buffer, &index, number, lane, &elements);
        Ok(elements[0])
    }

    /// Loads an expression's elements in lanes where a condition holds; the results are `others` where it does not. Without a branch, the
    /// loads of several statements are under way at once. `None`, and nothing is written, where the expression is something else than
    /// elements in memory at places that no data chooses, or elements share registers and `others` are not zero.
    pub(in crate::emit) fn load_where(
        &mut self,
        guard: Option<Guard>,
        expr: &Expr,
        first: u32,
        others: &[Operand],
    ) -> Outcome<Option<SmallVec<[Operand; 4]>>> {
        let ExprKind::Load(buffer, indices) = expr.kind() else { return Ok(None) };
        let (buffer, dtype) = (*buffer, expr.dtype());
        let index = self.single_index(indices)?;
        let Storage::Memory(place) = self.storage_of(buffer)? else { return Ok(None) };
        // Elements that are parts of words are zero where the words are.
        let is_whole = dtype.bits() >= 32;
        let is_zero = |operand: &Operand| *operand == zero(class_of(dtype));
        if chosen_by_data(&index) || (!is_whole && !others.iter().all(is_zero)) {
            return Ok(None);
        }
        let end = first + others.len() as u32;
        let mut results = SmallVec::new();
        let mut lane = first;
        while lane < end {
            let count = group_size(dtype, &index, lane, end);
            let address = self.address(buffer, place, &at_lane(&index, lane))?;
            let (ty, words) = match count {
                1 => (memory_type(dtype), 1),
                _ => (word_type(dtype), words_in(dtype, count)),
            };
            let op = Op::Load(place.space, words as u8);
            let class = class_of_result(op, ty, None);
            let mut registers: SmallVec<[Operand; 4]> = SmallVec::new();
            for word in 0..words {
                let register = self.builder.register(class);
                let other = others[(lane - first) as usize + word];
                self.builder.assign(register, if is_whole { other } else { zero(class) });
                registers.push(register.into());
            }
            let operands = registers.iter().copied().chain([address]);
            self.builder.push_where(guard, op, ty, operands);
            match count {
                1 => results.push(self.unpack_one(dtype, registers[0])),
                _ => results.extend(registers.into_iter().flat_map(|word| self.unpack_word(dtype, word))),
            }
            lane += count as u32;
        }
        Ok(Some(results))
    }

    /// Remembers the elements in memory that an expression has loaded in lanes from one on, unless data has chosen them: other elements may
    /// be chosen later.
    pub(super) fn remember_elements(
        &mut self,
        buffer: BufferId,
        index: &Index,
        number: Number,
        lane: u32,
        elements: &[Operand],
    ) {
        if chosen_by_data(index) {
            return;
        }
        if let Some(known) = self.scopes.last_mut() {
            let own = known.elements.entry(buffer).or_default();
            own.extend((lane..).zip(elements).map(|(lane, element)| ((number, lane), *element)));
        }
    }

    pub(super) fn load_group(
        &mut self,
        buffer: BufferId,
        place: Place,
        first: &Index,
        count: usize,
    ) -> Outcome<SmallVec<[Operand; 4]>> {
        let dtype = self.program.buffer(buffer).dtype;
        let address = self.address(buffer, place, first)?;
        let ty = word_type(dtype);
        let words = words_in(dtype, count);
        let registers: SmallVec<[Operand; 4]> =
            (0..words).map(|_| self.builder.register(ty.class()).into()).collect();
        let operands = registers.iter().copied().chain([address]);
        self.builder.push(Op::Load(place.space, words as u8), Some(ty), operands);
        Ok(registers.into_iter().flat_map(|word| self.unpack_word(dtype, word)).collect())
    }

    /// Stores the values of the lanes from the first one on.
    pub(in crate::emit) fn store(
        &mut self,
        buffer: BufferId,
        indices: &[Index],
        values: &[Operand],
    ) -> Outcome<()> {
        let index = self.single_index(indices)?;
        let place = match self.storage_of(buffer)? {
            Storage::Registers(registers) => return self.store_registers(&registers, &index, buffer, values),
            Storage::Fragment(fragment) => return self.store_fragment(&fragment, buffer, &index, values),
            Storage::Memory(place) => place,
        };
        self.forget_elements(buffer);
        let dtype = self.program.buffer(buffer).dtype;
        let lanes = values.len() as u32;
        let mut lane = 0;
        while lane < lanes {
            let count = group_size(dtype, &index, lane, lanes);
            let address = self.address(buffer, place, &at_lane(&index, lane))?;
            let group = &values[lane as usize..][..count];
            if count == 1 {
                let value = self.pack_one(dtype, group[0]);
                self.builder.push(Op::Store(space(place), 1), Some(memory_type(dtype)), [address, value]);
            } else {
                let words = words_in(dtype, count);
                let packed: SmallVec<[Operand; 4]> =
                    group.chunks(count / words).map(|elements| self.pack_word(dtype, elements)).collect();
                let operands = std::iter::once(address).chain(packed);
                self.builder.push(Op::Store(space(place), words as u8), Some(word_type(dtype)), operands);
            }
            lane += count as u32;
        }
        Ok(())
    }

    /// The element with a number among those that each lane holds.
    fn load_fragment(
        &mut self,
        fragment: &Fragment,
        dtype: DType,
        index: &Index,
        lane: u32,
    ) -> Outcome<Operand> {
        let number =
            lane_offset(index, lane).ok_or_else(|| self.broken("an element of a fragment is not known"))?;
        let register = Operand::Register(fragment.registers[(number / fragment.per_register) as usize]);
        match fragment.per_register {
            1 => Ok(register),
            per_register => Ok(self.unpack_word(dtype, register)[(number % per_register) as usize]),
        }
    }

    /// Stores elements to whole registers; a single one in place of the one that was there.
    fn store_fragment(
        &mut self,
        fragment: &Fragment,
        buffer: BufferId,
        index: &Index,
        values: &[Operand],
    ) -> Outcome<()> {
        let dtype = self.program.buffer(buffer).dtype;
        let number =
            lane_offset(index, 0).ok_or_else(|| self.broken("an element of a fragment is not known"))?;
        let per_register = fragment.per_register as usize;
        if number % fragment.per_register != 0 || !values.len().is_multiple_of(per_register) {
            return Err(self.broken("a part of a register of a fragment is stored"));
        }
        let first = (number / fragment.per_register) as usize;
        for (register, group) in fragment.registers[first..].iter().zip(values.chunks(per_register)) {
            let word = self.pack_word(dtype, group);
            if word != Operand::Register(*register) {
                self.builder.assign(*register, word);
            }
        }
        Ok(())
    }

    fn store_registers(
        &mut self,
        registers: &[Register],
        index: &Index,
        buffer: BufferId,
        values: &[Operand],
    ) -> Outcome<()> {
        let class = bits_type(class_of(self.program.buffer(buffer).dtype)).class();
        let mut values: SmallVec<[Operand; 8]> = values.iter().copied().collect();
        if values.len() > 1 {
            // A value may be an element that another lane overwrites.
            for value in &mut values {
                if value.register().is_some_and(|register| registers.contains(&register)) {
                    let copy = self.builder.register(class);
                    self.builder.assign(copy, *value);
                    *value = copy.into();
                }
            }
        }
        for (lane, value) in (0..).zip(values) {
            let element = self.element(registers, index, lane)?;
            if value != Operand::Register(element) {
                self.builder.assign(element, value);
            }
        }
        Ok(())
    }
}

/// Whether elements of memory decide an index.
pub(super) fn chosen_by_data(index: &Index) -> bool {
    let mut is_by_data = false;
    for_each_load_in_index(index, &mut |_, _| is_by_data = true);
    is_by_data
}

/// The space through which a place is written.
fn space(place: Place) -> Space {
    if place.is_streamed { Space::Streamed } else { place.space }
}

const fn words_in(dtype: DType, count: usize) -> usize {
    let bits = if dtype.bits() < 32 { 32 } else { dtype.bits() };
    count * dtype.bits() / bits
}

/// How many lanes from one on are accessed at once: those of elements beside each other that begin at a multiple of their size.
fn group_size(dtype: DType, index: &Index, lane: u32, lanes: u32) -> usize {
    let bytes = dtype.bytes();
    let most = MAX_BYTES / bytes;
    let least = 2.max(4 / bytes);
    let mut count = most;
    while count >= least {
        if lane as usize + count <= lanes as usize && is_group(index, lane, count) {
            return count;
        }
        count /= 2;
    }
    1
}

/// Whether the elements of some lanes from one on lie beside each other and begin at a multiple of their number.
pub(super) fn is_group(index: &Index, lane: u32, count: usize) -> bool {
    let (first, multiple) = (at_lane(index, lane), count as i64);
    let is_beside = |next: u32| (&at_lane(index, lane + next) - &first).is(i64::from(next));
    first.constant_part() % multiple == 0
        && first.terms().iter().all(|term| term.coefficient % multiple == 0)
        && (1..count as u32).all(is_beside)
}
