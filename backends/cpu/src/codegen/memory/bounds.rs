//! Checks that keep every access inside its buffer, whatever the program.
//!
//! The accesses of lowered programs are proved to stay inside from the extents of the loops around them. One
//! that is not proved, because it relies on a condition around it or because the program is wrong, is
//! checked when it is made. A failed check is reported to the caller and ends the function.

use std::ops::Range;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value};
use smallvec::SmallVec;
use tilewright_core::ids::BufferId;
use tilewright_core::index::{Facts, Index};

use crate::codegen::value::lanes::Group;
use crate::codegen::{Generator, Outcome, Storage, memory_flags};
use crate::flat::lanes::at_lane;
use crate::runtime::frame::{self, Status};

/// Some lanes of an index that lie inside a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::codegen) struct InsideKey {
    buffer: BufferId,
    index: Index,
    lanes: Range<u32>,
}

impl Generator<'_> {
    /// Whether every lane of an index is proved to lie inside its buffer.
    pub(in crate::codegen) fn is_inside(&self, buffer: BufferId, index: &Index) -> bool {
        if matches!(self.storage.get(&buffer), Some(Storage::Registers(_))) {
            return true;
        }
        // Hoisted code runs outside of the branches around the access.
        let facts = if self.hoisted_to.is_some() { &Facts::default() } else { &self.facts };
        self.unit.program.is_provably_inside(buffer, &self.resolve(index), facts, &self.ranges)
    }

    fn extent_of(&self, buffer: BufferId) -> Index {
        self.unit.program.buffer(buffer).shape.first().cloned().unwrap_or_else(|| 1.into())
    }

    /// Makes sure that the lanes of an index lie inside its buffer from here on: all of them, or those of the
    /// group only where a condition on lanes is known to hold in that group only.
    pub(in crate::codegen) fn require_inside(
        &mut self,
        buffer: BufferId,
        index: &Index,
        group: Group,
    ) -> Outcome<()> {
        let lanes = index.lanes();
        let whole = InsideKey { buffer, index: index.clone(), lanes: 0..lanes };
        if self.is_known_inside(&whole) {
            return Ok(());
        }
        if self.is_inside(buffer, index) {
            self.remember_inside(whole);
            return Ok(());
        }
        let part = match self.is_for_one_group && lanes > 1 {
            true => group.start..group.start + group.width.lanes(),
            false => 0..lanes,
        };
        let key = InsideKey { lanes: part.clone(), ..whole };
        if self.is_known_inside(&key) {
            return Ok(());
        }
        let mut values: SmallVec<[Value; 4]> = SmallVec::new();
        match self.lane_offsets(index, lanes) {
            Some((scalar, offsets)) => {
                let offsets = &offsets[part.start as usize..part.end as usize];
                let least = offsets.iter().copied().min().unwrap_or(0);
                let greatest = offsets.iter().copied().max().unwrap_or(0);
                values.push(self.index_value(&scalar.offset(least))?);
                if greatest > least {
                    values.push(self.index_value(&scalar.offset(greatest))?);
                }
            }
            None => {
                for lane in part {
                    let place = at_lane(&self.resolve(index), lane);
                    values.push(self.index_value(&place)?);
                }
            }
        }
        let extent = self.index_value(&self.extent_of(buffer))?;
        for value in values {
            let inside = self.ins().icmp(IntCC::UnsignedLessThan, value, extent);
            self.leave_unless(inside, value, extent);
        }
        self.remember_inside(key);
        Ok(())
    }

    /// Runs `generate`, whose code is reached when a condition holds in the lanes of the current group.
    pub(in crate::codegen) fn for_one_group<R>(&mut self, generate: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.is_for_one_group, true);
        let result = generate(self);
        self.is_for_one_group = outer;
        result
    }

    /// Whether a scalar index lies inside its buffer, as a boolean; `None` when that is proved.
    pub(in crate::codegen) fn inside(&mut self, buffer: BufferId, index: &Index) -> Outcome<Option<Value>> {
        if self.is_inside(buffer, index) {
            return Ok(None);
        }
        let value = self.index_value(index)?;
        let extent = self.index_value(&self.extent_of(buffer))?;
        Ok(Some(self.ins().icmp(IntCC::UnsignedLessThan, value, extent)))
    }

    /// Ends the function with a report unless `inside` holds.
    pub(in crate::codegen) fn leave_unless(&mut self, inside: Value, value: Value, extent: Value) {
        let exit = match self.exit {
            Some(exit) => exit,
            None => {
                let exit = self.builder.create_block();
                self.builder.append_block_param(exit, I64);
                self.builder.append_block_param(exit, I64);
                self.builder.set_cold_block(exit);
                *self.exit.insert(exit)
            }
        };
        let on = self.builder.create_block();
        let arguments = [BlockArg::Value(value), BlockArg::Value(extent)];
        self.builder.ins().brif(inside, on, &[], exit, &arguments);
        self.switch_to(on);
        self.builder.seal_block(on);
    }

    /// Writes the code that a failed check leads to. To be called when the function is complete.
    pub(in crate::codegen) fn write_exit(&mut self) {
        let Some(exit) = self.exit else { return };
        self.builder.ins().return_(&[]);
        self.switch_to(exit);
        self.builder.seal_block(exit);
        let &[value, extent] = self.builder.block_params(exit) else { return };
        self.report(value, extent);
    }

    /// Leaves a note in the call's status unless there is one already.
    pub(in crate::codegen) fn report(&mut self, value: Value, extent: Value) {
        let (won, after) = (self.cold_block(), self.cold_block());
        let frame = self.frame;
        let status = self.ins().load(I64, memory_flags(), frame, frame::STATUS);
        let place = self.ins().iadd_imm_s(status, i64::from(Status::STATE));
        let (unset, set) = (self.iconst(I64, 0), self.iconst(I64, 1));
        let previous = self.ins().atomic_cas(memory_flags(), place, unset, set);
        self.builder.ins().brif(previous, after, &[], won, &[]);
        self.switch_to(won);
        self.builder.seal_block(won);
        self.ins().store(memory_flags(), value, status, Status::VALUE);
        self.ins().store(memory_flags(), extent, status, Status::EXTENT);
        self.builder.ins().jump(after, &[]);
        self.switch_to(after);
        self.builder.seal_block(after);
    }

    fn cold_block(&mut self) -> Block {
        let block = self.builder.create_block();
        self.builder.set_cold_block(block);
        block
    }
}
