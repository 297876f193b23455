//! Loads and stores of groups of lanes.
//!
//! Every access is proved to stay inside its buffer, or is checked when it is made; one under a guard is made in those
//! lanes only that are wanted and inside.

use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::ids::BufferId;
use tilewright_core::index::{Facts, Index};

use crate::flat::lanes::lane_offset;
use crate::simd::build::scope::LoadKey;
use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{self, Class, Constant, GeneralOp, Inst, MaskOp, Mem, Op, Operand, Reg, Width};
use crate::simd::x86::VectorOp;
use crate::simd::{Refusal, VectorExtension};

/// The offsets that the lanes of an index add to what it is in all lanes.
type Offsets = SmallVec<[i64; 16]>;

impl Builder<'_> {
    /// A group of the elements at an index.
    pub(in crate::simd::build) fn load(
        &mut self,
        buffer: BufferId,
        index: &Index,
        group: Group,
    ) -> Outcome<Reg> {
        if self.is_in_registers(buffer) {
            let first = self.element_of(index, group)?;
            return self.read_registers(buffer, first, group);
        }
        self.require_address(buffer)?;
        if let Some(found) = self.load_transposed(buffer, index, group)? {
            return Ok(found);
        }
        if let Some(found) = self.load_from_table(buffer, index, group)? {
            return Ok(found);
        }
        let Some((scalar, offsets)) = self.group_offsets(index, group) else {
            return self.load_each(buffer, index, group);
        };
        let first = scalar.offset(offsets[0]);
        let is_contiguous = offsets.iter().zip(0..).all(|(offset, lane)| *offset == offsets[0] + lane);
        if is_contiguous {
            let guard = self.access_mask(buffer, index, &first, group)?;
            self.prefetch_ahead(buffer, &first);
            let mem = self.address(buffer, &first)?;
            return self.load_contiguous(buffer, mem, group, guard);
        }
        if self.guard.is_none() && offsets.iter().all(|offset| *offset == offsets[0]) {
            self.require_inside(buffer, index)?;
            return self.broadcast_from(buffer, &first, group);
        }
        if self.guard.is_some() && !self.is_inside(buffer, index) {
            return Err(Refusal::Access);
        }
        self.require_inside(buffer, index)?;
        if self.program.buffer(buffer).dtype.bytes() < 4 {
            return self.load_each(buffer, index, group);
        }
        self.gather(buffer, &scalar, &offsets, group)
    }

    /// One element in every lane.
    pub(in crate::simd::build) fn load_broadcast(
        &mut self,
        buffer: BufferId,
        index: &Index,
        group: Group,
    ) -> Outcome<Reg> {
        if self.is_in_registers(buffer) {
            let first = self.element_of(index, Group::SCALAR)?;
            let scalar = self.read_registers(buffer, first, Group::SCALAR)?;
            let form = Form::of(self.program.buffer(buffer).dtype);
            return Ok(self.broadcast_register(scalar, form, group));
        }
        self.require_address(buffer)?;
        if self.guard.is_none() {
            self.require_inside(buffer, index)?;
            return self.broadcast_from(buffer, index, group);
        }
        let dtype = self.program.buffer(buffer).dtype;
        if self.extension != VectorExtension::Avx512 || dtype.bytes() < 4 {
            return self.load_broadcast_if(buffer, index, group);
        }
        let mask = self.broadcast_mask(buffer, index, group)?;
        let mem = self.address(buffer, index)?;
        let op = if dtype.bytes() == 8 { VectorOp::Broadcast64 } else { VectorOp::Broadcast32 };
        let width = group.width(Form::of(dtype));
        Ok(self.masked(Class::Vector, Op::Vector(op), width, [Operand::Mem(mem)], Some(mask)))
    }

    pub(in crate::simd::build) fn broadcast_from(
        &mut self,
        buffer: BufferId,
        index: &Index,
        group: Group,
    ) -> Outcome<Reg> {
        let dtype = self.program.buffer(buffer).dtype;
        let form = Form::of(dtype);
        self.prefetch_ahead(buffer, index);
        let mem = self.address(buffer, index)?;
        if dtype.bytes() < 4 {
            let scalar = self.load_contiguous(buffer, mem, Group::SCALAR, None)?;
            return match form {
                Form::Bool => Err(Refusal::Access),
                _ => Ok(self.broadcast_register(scalar, form, group)),
            };
        }
        Ok(self.broadcast_at(mem, form, group))
    }

    /// The element of 32 or 64 bits at a place, in every lane. The last lanes of a statement, which may be fewer, use the register of
    /// the full vectors before them.
    pub(in crate::simd::build) fn broadcast_at(&mut self, mem: Mem, form: Form, group: Group) -> Reg {
        let op = if form.is_wide() { VectorOp::Broadcast64 } else { VectorOp::Broadcast32 };
        let (own, lanes) = (group.width(form), 1);
        if self.guard.is_none() {
            for width in [Width::Zmm, Width::Ymm] {
                let key = LoadKey { op: Op::Vector(op), width, mem, lanes };
                if width > own
                    && let Some(wider) = self.known_load(key)
                {
                    return wider;
                }
            }
        }
        self.shared_load(op, own, mem, lanes, None)
    }

    /// A load that is not made again while nothing is stored to the buffer.
    pub(in crate::simd::build) fn shared_load(
        &mut self,
        op: VectorOp,
        width: Width,
        mem: Mem,
        lanes: u32,
        mask: Option<Reg>,
    ) -> Reg {
        let key = LoadKey { op: Op::Vector(op), width, mem, lanes };
        let is_shared = self.guard.is_none();
        if let (true, Some(reg)) = (is_shared, self.known_load(key)) {
            return reg;
        }
        let reg = self.masked(Class::Vector, Op::Vector(op), width, [Operand::Mem(mem)], mask);
        if is_shared {
            self.remember_load(key, reg);
        }
        reg
    }

    pub(in crate::simd::build) fn load_contiguous(
        &mut self,
        buffer: BufferId,
        mem: Mem,
        group: Group,
        guard: Option<Reg>,
    ) -> Outcome<Reg> {
        let dtype = self.program.buffer(buffer).dtype;
        let form = Form::of(dtype);
        let width = group.width(form);
        if let (Some(mask), VectorExtension::Avx2) = (guard, self.extension) {
            return self.load_some(dtype, mem, group, mask);
        }
        let is_one_byte = dtype.bytes() == 1 && group.lanes == 1 && guard.is_none();
        if is_one_byte || dtype.bytes() < 4 && (self.extension == VectorExtension::Avx2 && group.lanes < 4) {
            return self.load_narrow_scalar(dtype, mem, group);
        }
        let is_whole = group.lanes * form.bytes() == width.bytes();
        let op = match dtype {
            DType::F32 | DType::I32 => match group.lanes {
                1 => VectorOp::LoadOne32,
                2 if guard.is_none() => VectorOp::LoadOne64,
                _ => VectorOp::Load,
            },
            DType::F64 | DType::I64 => {
                if group.lanes == 1 {
                    VectorOp::LoadOne64
                } else {
                    VectorOp::Load64
                }
            }
            DType::I8 => VectorOp::I32FromI8,
            DType::U8 | DType::Bool => VectorOp::I32FromU8,
            DType::F16 => VectorOp::F32FromF16,
            DType::BF16 => VectorOp::I32FromU16,
            _ => return Err(Refusal::Operation(dtype.name())),
        };
        let needs_mask = !is_whole && !matches!(op, VectorOp::LoadOne32 | VectorOp::LoadOne64);
        let mask = match (guard, needs_mask) {
            (None, true) if self.extension == VectorExtension::Avx2 => {
                return self.load_first_lanes(dtype, mem, group);
            }
            (None, true) => Some(self.mask_register_of_lanes(group.lanes)),
            (guard, _) => guard,
        };
        let value = self.shared_load(op, width, mem, group.lanes, mask);
        match dtype {
            DType::Bool => self.mask_of_ints(value, group),
            DType::BF16 => Ok(self.with_immediate(VectorOp::ShiftLeft32, width, value, 16)),
            _ => Ok(value),
        }
    }

    /// All lanes of a group of elements of fewer than 32 bits.
    pub(in crate::simd::build) fn load_narrow(
        &mut self,
        dtype: DType,
        mem: Mem,
        group: Group,
    ) -> Outcome<Reg> {
        if group.lanes < 4 {
            return self.load_narrow_scalar(dtype, mem, group);
        }
        let op = match dtype {
            DType::I8 => VectorOp::I32FromI8,
            DType::U8 | DType::Bool => VectorOp::I32FromU8,
            DType::F16 => VectorOp::F32FromF16,
            _ => VectorOp::I32FromU16,
        };
        let width = group.width(Form::of(dtype));
        let value = self.emit(Class::Vector, Op::Vector(op), width, [Operand::Mem(mem)]);
        Ok(match dtype {
            DType::BF16 => self.with_immediate(VectorOp::ShiftLeft32, width, value, 16),
            _ => value,
        })
    }

    /// One element of fewer than 32 bits, through a general register.
    pub(in crate::simd::build) fn load_narrow_scalar(
        &mut self,
        dtype: DType,
        mem: Mem,
        group: Group,
    ) -> Outcome<Reg> {
        if group.lanes != 1 || self.guard.is_some() {
            return Err(Refusal::Access);
        }
        let op = match dtype {
            DType::I8 => GeneralOp::SignedByte,
            DType::U8 | DType::Bool => GeneralOp::Byte,
            _ => GeneralOp::HalfWord,
        };
        let general = self.general(op, [Operand::Mem(mem)]);
        let value = self.emit(Class::Vector, Op::BroadcastGeneral(4), Width::Xmm, [Operand::Reg(general)]);
        match dtype {
            DType::Bool => self.mask_of_ints(value, group),
            DType::BF16 => Ok(self.with_immediate(VectorOp::ShiftLeft32, Width::Xmm, value, 16)),
            DType::F16 => self.vector(VectorOp::F32FromF16, Width::Xmm, [value]),
            _ => Ok(value),
        }
    }

    /// Elements in any places that are known relative to one another.
    fn gather(&mut self, buffer: BufferId, scalar: &Index, offsets: &Offsets, group: Group) -> Outcome<Reg> {
        let dtype = self.program.buffer(buffer).dtype;
        let size = dtype.bytes() as i64;
        let mut bytes = Vec::new();
        for offset in offsets {
            let place = i32::try_from((offset - offsets[0]) * size).map_err(|_| Refusal::Offset)?;
            bytes.extend_from_slice(&place.to_le_bytes());
        }
        let places = self.bytes_constant(&bytes);
        let mem = self.address(buffer, &scalar.offset(offsets[0]))?;
        let mem = match mem.index {
            None => mem,
            Some(_) => self.without_index(mem),
        };
        let mem = Mem { index: Some((places, 1)), ..mem };
        let width = group.width(Form::of(dtype));
        let form = Form::of(dtype);
        let is_whole = group.lanes * form.bytes() == width.bytes();
        if self.extension == VectorExtension::Avx2 {
            // The lanes in which the highest bit is set, a register that the instruction uses up.
            let lanes = if is_whole { width.bytes() / form.bytes() } else { group.lanes };
            let used_up = self.wanted_lanes(lanes, form);
            let args = [Operand::Mem(mem), Operand::Reg(used_up)];
            return Ok(self.emit(Class::Vector, Op::Gather(size as u8), width, args));
        }
        let mask = (!is_whole).then(|| self.mask_register_of_lanes(group.lanes));
        Ok(self.masked(Class::Vector, Op::Gather(size as u8), width, [Operand::Mem(mem)], mask))
    }

    /// All bits in the first lanes, in a register of its own.
    pub(super) fn wanted_lanes(&mut self, lanes: u32, form: Form) -> Reg {
        let set = (lanes * form.bytes()) as usize;
        let bytes: Vec<u8> = (0..64).map(|byte| if byte < set { 0xFF } else { 0 }).collect();
        let shared = self.bytes_constant(&bytes);
        let constant = self.code.of(shared).constant.map_or(Op::Constant(Constant::Same(0, 4)), Op::Constant);
        self.emit(Class::Vector, constant, Width::of_bytes(self.extension.bytes()), [])
    }

    /// The same place with the whole sum in one register.
    pub(super) fn without_index(&mut self, mem: Mem) -> Mem {
        let (ir::Base::Register(base), Some((index, scale))) = (mem.base, mem.index) else {
            return mem;
        };
        let shift = Operand::Imm(i64::from(scale.trailing_zeros()));
        let scaled = self.general(GeneralOp::ShiftLeft, [Operand::Reg(index), shift]);
        let sum = self.general(GeneralOp::Add, [Operand::Reg(base), Operand::Reg(scaled)]);
        Mem { base: ir::Base::Register(sum), index: None, ..mem }
    }

    /// Writes a group of the elements at an index.
    pub(in crate::simd::build) fn store(
        &mut self,
        buffer: BufferId,
        index: &Index,
        group: Group,
        value: Reg,
    ) -> Outcome<()> {
        if self.stored_in_registers(buffer, index, group, value)? {
            return Ok(());
        }
        let Some((scalar, offsets)) = self.group_offsets(index, group) else {
            return Err(Refusal::DataIndex);
        };
        if offsets.iter().zip(0..).any(|(offset, lane)| *offset != offsets[0] + lane) {
            return self.store_apart(buffer, &scalar, &offsets, group, value);
        }
        let first = scalar.offset(offsets[0]);
        let mem = self.address(buffer, &first)?;
        if let Some(op) = self.streaming_store(buffer, &first, group) {
            let width = group.width(Form::of(self.program.buffer(buffer).dtype));
            self.code.streams = true;
            let args = [Operand::Mem(mem), Operand::Reg(value)];
            self.push(Inst::new(Op::Vector(op), width, None, args));
            return Ok(());
        }
        self.store_contiguous(buffer, mem, group, value)
    }

    /// Writes a group of an intermediate in registers; false for a buffer in memory, which may be written at the index then.
    pub(in crate::simd::build) fn stored_in_registers(
        &mut self,
        buffer: BufferId,
        index: &Index,
        group: Group,
        value: Reg,
    ) -> Outcome<bool> {
        if self.is_in_registers(buffer) {
            let first = self.element_of(index, group)?;
            self.write_registers(buffer, first, group, value)?;
            return Ok(true);
        }
        self.require_address(buffer)?;
        self.require_inside(buffer, index)?;
        self.forget_loads(buffer);
        Ok(false)
    }

    /// Writes each lane on its own.
    fn store_apart(
        &mut self,
        buffer: BufferId,
        scalar: &Index,
        offsets: &Offsets,
        group: Group,
        value: Reg,
    ) -> Outcome<()> {
        let dtype = self.program.buffer(buffer).dtype;
        let form = Form::of(dtype);
        if form == Form::Bool {
            return Err(Refusal::Access);
        }
        for (lane, offset) in offsets.iter().enumerate() {
            let dst = self.register(Class::Vector);
            let op = Op::Extract(form.bytes() as u8);
            let mut inst = Inst::new(op, group.width(form), Some(dst), [Operand::Reg(value)]);
            inst.immediate = lane as u8;
            self.push(inst);
            let mem = self.address(buffer, &scalar.offset(*offset))?;
            self.store_contiguous(buffer, mem, Group { lanes: 1, ..group }, dst)?;
        }
        Ok(())
    }

    pub(in crate::simd::build) fn store_contiguous(
        &mut self,
        buffer: BufferId,
        mem: Mem,
        group: Group,
        value: Reg,
    ) -> Outcome<()> {
        let dtype = self.program.buffer(buffer).dtype;
        let form = Form::of(dtype);
        let width = group.width(form);
        let value = if dtype == DType::Bool { self.mask_to_ints(value, group)? } else { value };
        let value = match dtype {
            DType::BF16 => self.with_immediate(VectorOp::ShiftRight32, width, value, 16),
            _ => value,
        };
        let is_whole = group.lanes * form.bytes() == width.bytes();
        let op = match dtype {
            DType::F32 | DType::I32 => match group.lanes {
                1 => VectorOp::StoreOne32,
                2 => VectorOp::StoreOne64,
                _ => VectorOp::Store,
            },
            DType::F64 | DType::I64 => {
                if group.lanes == 1 {
                    VectorOp::StoreOne64
                } else {
                    VectorOp::Store64
                }
            }
            _ if self.extension == VectorExtension::Avx2 => {
                return self.store_narrow(dtype, mem, group, value);
            }
            // A masked store of one byte takes tens of cycles.
            DType::I8 | DType::U8 | DType::Bool if group.lanes == 1 => {
                return self.store_narrow(dtype, mem, group, value);
            }
            DType::I8 | DType::U8 | DType::Bool => VectorOp::I8FromI32,
            DType::F16 => VectorOp::F16FromF32,
            DType::BF16 => VectorOp::I16FromI32,
            _ => return Err(Refusal::Operation(dtype.name())),
        };
        let is_one = matches!(op, VectorOp::StoreOne32 | VectorOp::StoreOne64);
        if !is_whole && !is_one && self.extension == VectorExtension::Avx2 {
            return self.store_first_lanes(buffer, mem, group, value);
        }
        let mask = (!is_whole && !is_one).then(|| self.mask_register_of_lanes(group.lanes));
        let args = [Operand::Mem(mem), Operand::Reg(value)];
        let mut inst = Inst::new(Op::Vector(op), width, None, args);
        inst.mask = mask;
        self.push(inst);
        Ok(())
    }

    /// Elements of fewer than 32 bits, without the narrowing stores of AVX-512.
    fn store_narrow(&mut self, dtype: DType, mem: Mem, group: Group, value: Reg) -> Outcome<()> {
        if group.lanes != 1 {
            return self.store_shuffled(dtype, mem, group, value);
        }
        let value = match dtype {
            DType::F16 => self.with_immediate(VectorOp::F16FromF32, Width::Xmm, value, 0),
            _ => value,
        };
        let bits = self.emit(Class::General, Op::Mask(MaskOp::ToGeneral), Width::Xmm, [Operand::Reg(value)]);
        let op = if dtype.bytes() == 1 { GeneralOp::StoreByte } else { GeneralOp::StoreHalfWord };
        self.push(Inst::new(Op::General(op), Width::Xmm, None, [Operand::Mem(mem), Operand::Reg(bits)]));
        Ok(())
    }

    /// Takes an index apart: what is the same in all lanes, and what each lane adds; `None` when that is not known.
    pub(in crate::simd::build) fn lane_offsets(&self, index: &Index) -> Option<(Index, Offsets)> {
        let index = self.resolve(index);
        let lanes = index.lanes();
        let (vector, scalar): (Vec<_>, Vec<_>) =
            index.terms().iter().cloned().partition(|term| Index::digit(term.digit.clone()).lanes() > 1);
        let vector = Index::from_terms(vector, 0);
        let offsets: Option<Offsets> = (0..lanes).map(|lane| lane_offset(&vector, lane)).collect();
        Some((Index::from_terms(scalar, index.constant_part()), offsets?))
    }

    /// As [`Builder::lane_offsets`], for the lanes of a group; one offset where the index is the same in all lanes.
    pub(in crate::simd::build) fn group_offsets(
        &self,
        index: &Index,
        group: Group,
    ) -> Option<(Index, Offsets)> {
        let (scalar, offsets) = self.lane_offsets(index)?;
        let range = group.start as usize..(group.start + group.lanes) as usize;
        let own = if index.lanes() == 1 { SmallVec::from_elem(0, 1) } else { Offsets::from(&offsets[range]) };
        Some((scalar, own))
    }

    pub(in crate::simd::build) fn require_address(&self, buffer: BufferId) -> Outcome<()> {
        match self.around.in_registers.contains(&buffer) {
            true => Err(Refusal::OuterRegisters),
            false => Ok(()),
        }
    }

    pub(in crate::simd::build) fn extent_of(&self, buffer: BufferId) -> Index {
        self.program.buffer(buffer).shape.first().cloned().unwrap_or_else(|| 1.into())
    }

    /// Whether every lane of an index is proved to lie inside its buffer.
    pub(in crate::simd::build) fn is_inside(&self, buffer: BufferId, index: &Index) -> bool {
        self.is_inside_given(&self.facts, buffer, index)
    }

    /// Whether every lane in which the guard holds is proved to do so.
    pub(in crate::simd::build) fn is_inside_where_wanted(&self, buffer: BufferId, index: &Index) -> bool {
        self.is_inside_given(&self.wanted, buffer, index)
    }

    pub(in crate::simd::build) fn is_inside_given(
        &self,
        facts: &Facts,
        buffer: BufferId,
        index: &Index,
    ) -> bool {
        if self.is_in_registers(buffer) {
            return true;
        }
        // A hoisted value leaves the branches of the leaf.
        let facts = if self.hoisted_to.is_some() { &self.around.facts } else { facts };
        self.program.is_provably_inside(buffer, &self.resolve(index), facts, &self.ranges)
    }

    /// Makes sure that all lanes of an index lie inside its buffer from here on.
    pub(in crate::simd::build) fn require_inside(&mut self, buffer: BufferId, index: &Index) -> Outcome<()> {
        let key = (buffer, self.resolve(index));
        let level = self.level();
        if self.scopes[..=level].iter().any(|scope| scope.inside.contains(&key)) {
            return Ok(());
        }
        if !self.is_inside(buffer, index) {
            let (scalar, offsets) = self.lane_offsets(index).ok_or(Refusal::DataIndex)?;
            let extent = self.extent_of(buffer);
            let extent = self.index_register(&extent)?;
            let (least, greatest) = (offsets.iter().min().copied(), offsets.iter().max().copied());
            let ends = [least, greatest.filter(|_| greatest > least)];
            for offset in ends.into_iter().flatten() {
                let value = self.index_register(&scalar.offset(offset))?;
                let args = [Operand::Reg(value), Operand::Reg(extent)];
                self.push(Inst::new(Op::Check, Width::Xmm, None, args));
            }
        }
        self.scope().inside.insert(key);
        Ok(())
    }

    /// The lanes of a contiguous access that may be made, when there is a guard; otherwise all may.
    fn access_mask(
        &mut self,
        buffer: BufferId,
        index: &Index,
        first: &Index,
        group: Group,
    ) -> Outcome<Option<Reg>> {
        let Some(guard) = self.guard else {
            self.require_inside(buffer, index)?;
            return Ok(None);
        };
        if self.extension != VectorExtension::Avx512 {
            return self.access_vector_mask(buffer, index, first, group, guard).map(Some);
        }
        let lanes = self.mask_register_of_lanes(group.lanes);
        let mut mask = self.and_masks(guard, lanes);
        if !self.is_inside_where_wanted(buffer, index) {
            // Lanes from `-first` on, and before `extent - first`.
            let extent = self.extent_of(buffer);
            let end = self.index_register(&(&extent - first))?;
            let end = self.general(GeneralOp::LowBits, [Operand::Reg(end)]);
            let begin = self.index_register(&first.scale(-1))?;
            let begin = self.general(GeneralOp::LowBits, [Operand::Reg(begin)]);
            let ones = self.general(GeneralOp::Sub, [Operand::Reg(end), Operand::Reg(begin)]);
            let ones = self.general(GeneralOp::And, [Operand::Reg(ones), Operand::Reg(end)]);
            let inside =
                self.emit(Class::Mask, Op::Mask(MaskOp::OfGeneral), Width::Xmm, [Operand::Reg(ones)]);
            mask = self.and_masks(mask, inside);
        }
        Ok(Some(mask))
    }

    /// The lanes in which an element that is the same for all may be loaded under the guard.
    fn broadcast_mask(&mut self, buffer: BufferId, index: &Index, group: Group) -> Outcome<Reg> {
        let lanes = self.mask_register_of_lanes(group.lanes);
        let guard = self.guard.unwrap_or(lanes);
        let mut mask = self.and_masks(guard, lanes);
        if !self.is_inside_where_wanted(buffer, index) {
            let extent = self.extent_of(buffer);
            let extent = self.index_register(&extent)?;
            let value = self.index_register(index)?;
            let order = GeneralOp::Compare(ir::Order::Below);
            let inside = self.general(order, [Operand::Reg(value), Operand::Reg(extent)]);
            let inside =
                self.emit(Class::Mask, Op::Mask(MaskOp::OfGeneral), Width::Xmm, [Operand::Reg(inside)]);
            mask = self.and_masks(mask, inside);
        }
        Ok(mask)
    }
}
