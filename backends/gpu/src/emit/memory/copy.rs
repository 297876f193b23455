//! Asynchronous copies from global to shared memory.

use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::flat::lanes::at_lane;
use tilewright_core::flat::moved::{MovedElement, moved_element};
use tilewright_core::index::Index;
use tilewright_core::stmt::Store;

use super::access::is_group;
use crate::emit::{Generator, Outcome, Place, Storage};
use crate::ptx::operand::Operand;
use crate::ptx::table::{Op, Space};
use crate::ptx::types::Type;

/// The sizes of one copy, in bytes.
const SIZES: [usize; 3] = [16, 8, 4];

/// One copy: its first lane, and how many elements it moves.
type Group = (u32, usize);

impl Generator<'_> {
    /// Starts the copies that an asynchronous store is. The answer is `false`, and nothing is written, where no instruction copies its
    /// elements: where they do not lie beside each other in four bytes or more, or have different conditions.
    pub(in crate::emit) fn copy_async(&mut self, store: &Store) -> Outcome<bool> {
        let Some(moved) = moved_element(&store.value) else { return Ok(false) };
        let dtype = self.program.buffer(store.buffer).dtype;
        let (to, from) = (self.single_index(&store.indices)?, self.single_index(moved.indices)?);
        let lanes = to.lanes().max(from.lanes());
        let Some(groups) = groups(dtype, &to, &from, lanes) else { return Ok(false) };
        let (Storage::Memory(target), Storage::Memory(source)) =
            (self.storage_of(store.buffer)?, self.storage_of(moved.buffer)?)
        else {
            return Ok(false);
        };
        let are_global = matches!(source.space, Space::Global | Space::Constant);
        if target.space != Space::Shared || !are_global || !self.are_uniform(&moved) {
            return Ok(false);
        }
        self.forget_elements(store.buffer);
        for group in groups {
            self.copy_group(store, (target, &to), &moved, (source, &from), group)?;
        }
        Ok(true)
    }

    /// Whether the conditions of a moved element are the same in all lanes.
    fn are_uniform(&mut self, moved: &MovedElement<'_>) -> bool {
        moved.conditions.iter().all(|condition| {
            let number = self.numbers.of(condition);
            self.numbers.lanes(number) == 1
        })
    }

    fn copy_group(
        &mut self,
        store: &Store,
        (target, to): (Place, &Index),
        moved: &MovedElement<'_>,
        (source, from): (Place, &Index),
        (lane, count): Group,
    ) -> Outcome<()> {
        let bytes = (count * self.program.buffer(store.buffer).dtype.bytes()) as i64;
        let mut holds = None;
        for condition in &moved.conditions {
            let own = self.value(condition, 0)?;
            holds = Some(match holds {
                None => own,
                Some(others) => self.builder.compute(Op::And, Type::Pred, &[others, own]),
            });
        }
        let size = Operand::Integer(bytes);
        let to = self.address(store.buffer, target, &at_lane(to, lane))?;
        let from = self.address(moved.buffer, source, &at_lane(from, lane))?;
        let (op, mut operands) = (Op::CopyAsync(bytes as u8), SmallVec::<[Operand; 4]>::new());
        operands.extend([to, from, size]);
        match holds {
            None => self.builder.push(op, None, operands),
            Some(holds) => {
                // No byte is read where the condition does not hold, and zeros are written.
                let wanted = match holds.integer() {
                    Some(holds) => Operand::Integer(if holds == 0 { 0 } else { bytes }),
                    None => self.builder.compute(Op::Select, Type::B32, &[size, Operand::Integer(0), holds]),
                };
                let wanted = self.in_register(crate::ptx::types::Class::Word, wanted);
                operands.push(wanted);
                self.builder.push(Op::CopyAsyncPart(bytes as u8), None, operands);
            }
        }
        Ok(())
    }
}

/// The copies that move the elements of all lanes; `None` where some are moved by none.
fn groups(dtype: DType, to: &Index, from: &Index, lanes: u32) -> Option<Vec<Group>> {
    let mut groups = Vec::new();
    let mut lane = 0;
    while lane < lanes {
        let fits = |bytes: &usize| {
            let count = bytes / dtype.bytes();
            count > 0
                && lane as usize + count <= lanes as usize
                && [to, from].iter().all(|index| is_group(index, lane, count))
        };
        let bytes = SIZES.into_iter().find(fits)?;
        groups.push((lane, bytes / dtype.bytes()));
        lane += (bytes / dtype.bytes()) as u32;
    }
    Some(groups)
}
