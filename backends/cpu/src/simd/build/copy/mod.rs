//! Copies of elements of one or two bytes.
//!
//! An instruction takes fours (or pairs) of elements along one dimension; they are copied from a tensor that is contiguous along
//! another. A copy computes nothing, so that the bytes need not be widened: the runs of contiguous bytes that the lanes come from
//! are packed into vectors, whole 32-bit groups are moved to the 128-bit parts in which they are wanted, and bytes are put in
//! their order inside those. This covers interleaving, transposition and padding alike; other copies are halved until
//! they have this form, and are otherwise made byte by byte.
//!
//! A condition that is the same in all lanes of a unit decides whether it is copied, or all of it is the constant. Under another one the
//! whole unit is copied like that when the condition holds in all of its lanes, and lane by lane when it does not.

mod plan;
mod recognise;

use rustc_hash::FxHashMap;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::stmt::Store;

use crate::simd::build::memory::bytes::load_of_bytes;
use crate::simd::build::stmt::registers::single;
use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{Class, GeneralOp, Inst, Mem, Op, Operand, Order, Reg, Width};
use crate::simd::x86::VectorOp;
use plan::{Piece, Shuffle, ShufflePlan};
use recognise::{Parts, parts_of};

/// A copy of consecutive elements from wherever they are.
#[derive(Clone)]
struct Copy {
    into: BufferId,
    /// Where the first lane goes.
    first: Index,
    from: BufferId,
    /// The part of the source index that is the same in all lanes.
    scalar: Index,
    /// The offset that each lane adds to it; none where the element is always the constant.
    lanes: Vec<Option<i64>>,
    /// The conditions under which a lane is copied.
    conditions: Vec<Condition>,
    /// The bits of an element that is not copied.
    otherwise: u64,
    /// The bytes of an element.
    size: usize,
}

/// That a sum is not negative.
#[derive(Clone)]
struct Condition {
    scalar: Index,
    /// The offset that each lane adds to it.
    lanes: Vec<i64>,
}

impl Condition {
    /// Whether it is the same in all lanes of a part.
    fn is_uniform(&self, part: LaneRange) -> bool {
        let own = &self.lanes[part.start..part.end];
        own.iter().all(|lane| *lane == own[0])
    }
}

impl Copy {
    /// The offset of the first lane of a part whose lanes are consecutive, fill one register of at most `vector` bytes, and are copied under the same
    /// conditions.
    fn run(&self, part: LaneRange, vector: usize) -> Option<i64> {
        let bytes = (part.end - part.start) * self.size;
        let lanes = &self.lanes[part.start..part.end];
        let first = lanes[0]?;
        let is_run = lanes.iter().zip(first..).all(|(lane, place)| *lane == Some(place));
        let are_equal = self.conditions.iter().all(|condition| condition.is_uniform(part));
        (bytes.is_power_of_two() && (4..=vector).contains(&bytes) && is_run && are_equal).then_some(first)
    }
}

/// Some lanes of a copy.
#[derive(Clone, Copy)]
struct LaneRange {
    start: usize,
    end: usize,
}

impl Builder<'_> {
    /// Builds a statement that copies narrow elements; false when it does anything else.
    pub(super) fn copy_stmt(&mut self, node: &Store) -> Outcome<bool> {
        let Some(copy) = self.as_copy(node) else { return Ok(false) };
        self.require_address(copy.from)?;
        self.require_address(copy.into)?;
        if let Some(Parts { index, choices, .. }) = parts_of(&node.value)
            && choices.is_empty()
        {
            self.require_inside(copy.from, &index)?;
        }
        if let Some(index) = single(&node.indices) {
            self.require_inside(copy.into, &index)?;
        }
        self.forget_loads(copy.into);
        self.copy_part(&copy, LaneRange { start: 0, end: copy.lanes.len() })?;
        Ok(true)
    }

    fn copy_part(&mut self, copy: &Copy, part: LaneRange) -> Outcome<()> {
        if part.start == part.end {
            return Ok(());
        }
        if !copy.conditions.is_empty()
            && let Some(first) = copy.run(part, self.extension.bytes() as usize)
        {
            return self.copy_selected(copy, part, first);
        }
        if copy.conditions.iter().any(|condition| condition.is_uniform(part)) {
            return self.copy_if_uniform(copy, part);
        }
        let bytes =
            copy.lanes[part.start..part.end].iter().map(|lane| lane.map(|lane| lane * copy.size as i64));
        let plan = ShufflePlan::of(bytes, copy.size, self.extension.bytes() as usize);
        let is_fixed =
            copy.conditions.is_empty() || copy.lanes[part.start..part.end].iter().all(Option::is_none);
        match plan {
            Some(plan) if is_fixed => self.copy_planned(copy, part, &plan),
            Some(plan) => {
                let all = self.holds_in_all(copy, part)?;
                self.open_branch();
                self.copy_planned(copy, part, &plan)?;
                let then = self.close_branch();
                self.open_branch();
                // A part that crosses the border of a condition is short.
                if (part.end - part.start) * copy.size <= self.extension.bytes() as usize {
                    self.copy_lanes(copy, part)?;
                } else {
                    self.copy_rest(copy, part)?;
                }
                let otherwise = self.close_branch();
                self.push_branches(all, then, otherwise);
                Ok(())
            }
            None => self.copy_rest(copy, part),
        }
    }

    /// Copies a part under the conditions that are the same in all its lanes, with a branch: where one fails, all of it is the constant.
    fn copy_if_uniform(&mut self, copy: &Copy, part: LaneRange) -> Outcome<()> {
        let (uniform, others): (Vec<_>, Vec<_>) =
            copy.conditions.iter().cloned().partition(|condition| condition.is_uniform(part));
        let holds = self.holds_in_all(&Copy { conditions: uniform, ..copy.clone() }, part)?;
        self.open_branch();
        self.copy_part(&Copy { conditions: others, ..copy.clone() }, part)?;
        let then = self.close_branch();
        self.open_branch();
        let lanes = vec![None; copy.lanes.len()];
        self.copy_part(&Copy { conditions: Vec::new(), lanes, ..copy.clone() }, part)?;
        let otherwise = self.close_branch();
        self.push_branches(holds, then, otherwise);
        Ok(())
    }

    /// Copies consecutive bytes from one of two addresses, which the conditions select: there is no branch.
    fn copy_selected(&mut self, copy: &Copy, part: LaneRange, first: i64) -> Outcome<()> {
        let all = self.holds_in_all(copy, part)?;
        let place = self.address(copy.from, &copy.scalar.offset(first))?;
        let from = self.selected_address(all, place, (copy.otherwise, copy.size as u8))?;
        let to = self.address(copy.into, &copy.first.offset(part.start as i64))?;
        let bytes = ((part.end - part.start) * copy.size) as u32;
        let load = Op::Vector(load_of_bytes(bytes));
        let value = self.emit(Class::Vector, load, Width::of_bytes(bytes), [Operand::Mem(from)]);
        self.store_bytes(to, bytes, value);
        Ok(())
    }

    /// Copies a part in smaller parts, or lane by lane.
    fn copy_rest(&mut self, copy: &Copy, part: LaneRange) -> Outcome<()> {
        let lanes = part.end - part.start;
        let bytes = lanes * copy.size;
        if bytes <= 4 {
            return self.copy_lanes(copy, part);
        }
        // The remainder of a power of two comes last.
        let half = lanes.next_power_of_two() / 2;
        self.copy_part(copy, LaneRange { end: part.start + half, ..part })?;
        self.copy_part(copy, LaneRange { start: part.start + half, ..part })
    }

    /// Whether every condition holds in every lane that may be copied.
    fn holds_in_all(&mut self, copy: &Copy, part: LaneRange) -> Outcome<Reg> {
        let mut all = None;
        for condition in &copy.conditions {
            let lanes = part.start..part.end;
            let wanted = lanes.filter(|lane| copy.lanes[*lane].is_some()).map(|lane| condition.lanes[lane]);
            let Some(least) = wanted.min() else { continue };
            let holds = self.is_at_least_zero(&condition.scalar.offset(least))?;
            all = Some(self.both_hold(all, holds));
        }
        Ok(all.unwrap_or_else(|| self.integer(Operand::Imm(-1))))
    }

    fn is_at_least_zero(&mut self, index: &Index) -> Outcome<Reg> {
        let value = self.index_register(index)?;
        let args = [Operand::Reg(value), Operand::Imm(0)];
        Ok(self.general(GeneralOp::Compare(Order::GreaterOrEqual), args))
    }

    fn both_hold(&mut self, a: Option<Reg>, b: Reg) -> Reg {
        match a {
            Some(a) => self.general(GeneralOp::And, [Operand::Reg(a), Operand::Reg(b)]),
            None => b,
        }
    }

    /// Copies each lane on its own, if its conditions hold.
    fn copy_lanes(&mut self, copy: &Copy, part: LaneRange) -> Outcome<()> {
        let (load, store) = match copy.size {
            1 => (GeneralOp::Byte, GeneralOp::StoreByte),
            _ => (GeneralOp::HalfWord, GeneralOp::StoreHalfWord),
        };
        let mut known: FxHashMap<(usize, i64), Reg> = FxHashMap::default();
        let mut absent = None;
        for lane in part.start..part.end {
            let to = self.address(copy.into, &copy.first.offset(lane as i64))?;
            let write = |value| {
                let args = [Operand::Mem(to), Operand::Reg(value)];
                Inst::new(Op::General(store), Width::Xmm, None, args)
            };
            let may_be_absent = copy.lanes[lane].is_none() || !copy.conditions.is_empty();
            if may_be_absent {
                let value = *absent.get_or_insert_with(|| self.integer(Operand::Imm(copy.otherwise as i64)));
                self.push(write(value));
            }
            let Some(offset) = copy.lanes[lane] else { continue };
            let mut all = None;
            for (number, condition) in copy.conditions.iter().enumerate() {
                let added = condition.lanes[lane];
                let holds = match known.get(&(number, added)) {
                    Some(holds) => *holds,
                    None => self.is_at_least_zero(&condition.scalar.offset(added))?,
                };
                known.insert((number, added), holds);
                all = Some(self.both_hold(all, holds));
            }
            let from = self.address(copy.from, &copy.scalar.offset(offset))?;
            self.open_branch();
            let value = self.general(load, [Operand::Mem(from)]);
            self.push(write(value));
            let copied = self.close_branch();
            match all {
                Some(all) => self.push_branch(all, copied),
                None => self.scope().items.extend(copied),
            }
        }
        Ok(())
    }

    fn copy_planned(&mut self, copy: &Copy, part: LaneRange, plan: &ShufflePlan) -> Outcome<()> {
        let mut vectors = Vec::new();
        for number in 0..plan.vectors {
            let pieces: Vec<&Piece> = plan.pieces.iter().filter(|piece| piece.vector == number).collect();
            vectors.push(self.packed(copy, &pieces)?);
        }
        for shuffle in &plan.shuffles {
            let value = self.shuffled(copy, shuffle, &vectors)?;
            let lane = part.start + shuffle.start / copy.size;
            let mem = self.address(copy.into, &copy.first.offset(lane as i64))?;
            self.store_bytes(mem, shuffle.bytes as u32, value);
        }
        Ok(())
    }

    /// A vector of pieces of memory, one after the other.
    fn packed(&mut self, copy: &Copy, pieces: &[&Piece]) -> Outcome<Reg> {
        let end = pieces.iter().map(|piece| piece.slot + piece.bytes).max().unwrap_or(0);
        let width = Width::of_bytes(end as u32);
        let mut whole = None;
        let mut narrow: Option<(usize, Reg)> = None;
        for piece in pieces {
            let quarter = piece.slot / 16;
            if let Some((before, part)) = narrow.filter(|(before, _)| *before != quarter) {
                whole = Some(self.inserted(whole, width, before, 16, Operand::Reg(part)));
                narrow = None;
            }
            let mem = Operand::Mem(self.address_of_byte(copy, piece.from)?);
            if piece.bytes >= 16 {
                whole = Some(self.inserted(whole, width, quarter, piece.bytes, mem));
                continue;
            }
            let (load, insert) = match piece.bytes {
                4 => (VectorOp::LoadOne32, VectorOp::Insert32),
                _ => (VectorOp::LoadOne64, VectorOp::Insert64),
            };
            let part = match narrow {
                None => self.emit(Class::Vector, Op::Vector(load), Width::Xmm, [mem]),
                Some((_, part)) => {
                    let place = (piece.slot % 16 / piece.bytes) as u8;
                    self.insert(insert, Width::Xmm, [Operand::Reg(part), mem], place)
                }
            };
            narrow = Some((quarter, part));
        }
        if let Some((quarter, part)) = narrow {
            whole = Some(self.inserted(whole, width, quarter, 16, Operand::Reg(part)));
        }
        Ok(whole.unwrap_or_else(|| self.same(0, 4)))
    }

    fn address_of_byte(&mut self, copy: &Copy, byte: i64) -> Outcome<Mem> {
        let size = copy.size as i64;
        let mem = self.address(copy.from, &copy.scalar.offset(byte.div_euclid(size)))?;
        Ok(mem.further(byte.rem_euclid(size) as i32))
    }

    /// The vector with `bytes` bytes of `part` inserted from the given quarter on. If the vector is new, its bytes
    /// behind the inserted ones are not specified.
    fn inserted(
        &mut self,
        into: Option<Reg>,
        width: Width,
        quarter: usize,
        bytes: usize,
        part: Operand,
    ) -> Reg {
        match (into, part) {
            (None, Operand::Reg(part)) => part,
            (None, part) => {
                let own = Width::of_bytes(bytes as u32);
                self.emit(Class::Vector, Op::Vector(VectorOp::Load), own, [part])
            }
            (Some(into), part) if bytes == 32 => {
                self.insert(VectorOp::InsertHalf, width, [Operand::Reg(into), part], quarter as u8 / 2)
            }
            (Some(into), part) => {
                self.insert(VectorOp::InsertQuarter, width, [Operand::Reg(into), part], quarter as u8)
            }
        }
    }

    pub(super) fn insert(&mut self, op: VectorOp, width: Width, args: [Operand; 2], place: u8) -> Reg {
        let dst = self.register(Class::Vector);
        let mut inst = Inst::new(Op::Vector(op), width, Some(dst), args);
        inst.immediate = place;
        self.push(inst);
        dst
    }

    /// The bytes of some lanes in their order.
    fn shuffled(&mut self, copy: &Copy, shuffle: &Shuffle, vectors: &[Reg]) -> Outcome<Reg> {
        let width = Width::of_bytes(shuffle.width as u32);
        let mut value = None;
        for choice in &shuffle.choices {
            let own = match &choice.places {
                None => vectors[choice.vector],
                Some(places) => {
                    let places: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
                    let places = self.bytes_constant(&places);
                    self.vector(VectorOp::Permute32, width, [places, vectors[choice.vector]])?
                }
            };
            value = Some(match value {
                None => own,
                Some(before) => {
                    let lanes = width.bytes() / 4;
                    let group = Group { start: 0, lanes, is_scalar: false };
                    let mask = self.mask_of_bits(choice.wanted, lanes);
                    self.blend(mask, own, before, Form::Int32, group)?
                }
            });
        }
        let Some(mut value) = value else { return Ok(self.repeated(copy)) };
        if let Some(order) = &shuffle.order {
            let order = self.bytes_constant(order);
            value = self.vector(VectorOp::ShuffleBytes, width, [value, order])?;
        }
        if copy.otherwise != 0 && shuffle.absent.iter().any(|is_absent| *is_absent) {
            let element = copy.otherwise.to_le_bytes();
            let byte = |(number, is_absent): (usize, &bool)| {
                if *is_absent { element[number % copy.size] } else { 0 }
            };
            let bytes: Vec<u8> = shuffle.absent.iter().enumerate().map(byte).collect();
            let constant = self.bytes_constant(&bytes);
            value = self.vector(VectorOp::Or32, width, [value, constant])?;
        }
        Ok(value)
    }

    /// The value of an element that is not copied, in every lane.
    fn repeated(&mut self, copy: &Copy) -> Reg {
        let element = &copy.otherwise.to_le_bytes()[..copy.size];
        let mut bits = [0; 8];
        bits.iter_mut().zip(element.iter().cycle()).for_each(|(bits, byte)| *bits = *byte);
        self.same(u64::from_le_bytes(bits) & u64::from(u32::MAX), 4)
    }
}
