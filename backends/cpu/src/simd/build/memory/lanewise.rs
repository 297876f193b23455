//! Loads and stores that are not one instruction: of lanes that depend on data or lie anywhere, and, without AVX-512, of
//! lanes that a guard chooses and of narrow elements.

use tilewright_core::dtype::DType;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;

use crate::flat::lanes::at_lane;
use crate::simd::build::scope::LoadKey;
use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{Class, Constant, GeneralOp, Inst, MaskOp, Mem, Op, Operand, Order, Reg, Width};
use crate::simd::x86::VectorOp;
use crate::simd::{Refusal, VectorExtension};

/// Lanes, each with the place of its element.
type Lanes = Vec<(u32, Mem)>;

impl Builder<'_> {
    /// A group whose elements lie anywhere, one after the other.
    pub(in crate::simd::build) fn load_each(
        &mut self,
        buffer: BufferId,
        index: &Index,
        group: Group,
    ) -> Outcome<Reg> {
        let index = self.resolve(index);
        if self.guard.is_some() && !self.is_inside(buffer, &index) {
            return Err(Refusal::Access);
        }
        let mut lanes = Lanes::new();
        for lane in 0..group.lanes {
            let own = at_lane(&index, group.start + lane);
            self.require_inside(buffer, &own)?;
            lanes.push((lane, self.address(buffer, &own)?));
        }
        let dtype = self.program.buffer(buffer).dtype;
        match dtype.bytes() {
            4 | 8 => Ok(self.packed_lanes(dtype.bytes() as u32, group.width(Form::of(dtype)), &lanes)),
            _ if self.extension == VectorExtension::Avx512 => self.packed_narrow(dtype, group, &lanes),
            _ => self.blended_narrow(dtype, group, &lanes),
        }
    }

    /// A vector of elements of 32 or 64 bits from memory.
    fn packed_lanes(&mut self, bytes: u32, width: Width, lanes: &Lanes) -> Reg {
        let (load, insert) = match bytes {
            4 => (VectorOp::LoadOne32, VectorOp::Insert32),
            _ => (VectorOp::LoadOne64, VectorOp::Insert64),
        };
        self.in_quarters(16 / bytes, width, lanes, |this, part, place, mem| match part {
            None => this.emit(Class::Vector, Op::Vector(load), Width::Xmm, [Operand::Mem(mem)]),
            Some(part) => this.insert(insert, Width::Xmm, [Operand::Reg(part), Operand::Mem(mem)], place),
        })
    }

    /// A vector of narrow elements, which are extended to 32 bits.
    fn packed_narrow(&mut self, dtype: DType, group: Group, lanes: &Lanes) -> Outcome<Reg> {
        let op = match dtype {
            DType::I8 => GeneralOp::SignedByte,
            DType::U8 | DType::Bool => GeneralOp::Byte,
            _ => GeneralOp::HalfWord,
        };
        let width = group.width(Form::Int32);
        let value = self.in_quarters(4, width, lanes, |this, part, place, mem| {
            let own = this.general(op, [Operand::Mem(mem)]);
            match part {
                None => this.emit(Class::Vector, Op::BroadcastGeneral(4), Width::Xmm, [Operand::Reg(own)]),
                Some(part) => {
                    let args = [Operand::Reg(part), Operand::Reg(own)];
                    this.insert(VectorOp::Insert32, Width::Xmm, args, place)
                }
            }
        });
        match dtype {
            DType::Bool => self.mask_of_ints(value, group),
            DType::BF16 => Ok(self.with_immediate(VectorOp::ShiftLeft32, width, value, 16)),
            DType::F16 => {
                let halves = self.vector(VectorOp::I16FromI32, width, [value])?;
                self.vector(VectorOp::F32FromF16, width, [halves])
            }
            _ => Ok(value),
        }
    }

    /// Puts lanes into 128-bit parts, and those into a vector.
    fn in_quarters(
        &mut self,
        per_quarter: u32,
        width: Width,
        lanes: &Lanes,
        mut with: impl FnMut(&mut Self, Option<Reg>, u8, Mem) -> Reg,
    ) -> Reg {
        let mut whole = None;
        for (quarter, own) in (0..).zip(lanes.chunks(per_quarter as usize)) {
            let mut part = None;
            for (lane, mem) in own {
                part = Some(with(self, part, (lane % per_quarter) as u8, *mem));
            }
            let Some(part) = part else { continue };
            whole = Some(match whole {
                None => part,
                Some(whole) => {
                    let args = [Operand::Reg(whole), Operand::Reg(part)];
                    self.insert(VectorOp::InsertQuarter, width, args, quarter)
                }
            });
        }
        whole.unwrap_or_else(|| self.same(0, 4))
    }

    /// A vector of narrow elements without the instructions of AVX-512.
    fn blended_narrow(&mut self, dtype: DType, group: Group, lanes: &Lanes) -> Outcome<Reg> {
        let mut value = self.same(0, 4);
        for (lane, mem) in lanes {
            value = self.with_narrow_lane(dtype, group, value, (*lane, *mem))?;
        }
        self.finished(dtype, group, value)
    }

    /// A vector in which one lane is a narrow element; booleans are integers.
    fn with_narrow_lane(
        &mut self,
        dtype: DType,
        group: Group,
        value: Reg,
        (lane, mem): (u32, Mem),
    ) -> Outcome<Reg> {
        let plain = if dtype == DType::Bool { DType::U8 } else { dtype };
        let own = self.load_narrow_scalar(plain, mem, Group::SCALAR)?;
        let form = Form::of(plain);
        let broadcast = self.broadcast_register(own, form, group);
        let lanes = group.width(form).bytes() / 4;
        let mask = self.lane_mask(lane, lanes)?;
        self.blend(mask, broadcast, value, form, group)
    }

    fn finished(&mut self, dtype: DType, group: Group, value: Reg) -> Outcome<Reg> {
        if dtype == DType::Bool { self.mask_of_ints(value, group) } else { Ok(value) }
    }

    /// The contiguous lanes of a vector mask; other lanes are zero and are not read.
    pub(in crate::simd::build) fn load_some(
        &mut self,
        dtype: DType,
        mem: Mem,
        group: Group,
        mask: Reg,
    ) -> Outcome<Reg> {
        let form = Form::of(dtype);
        let width = group.width(form);
        let op = match dtype.bytes() {
            4 => VectorOp::LoadSome32,
            8 => VectorOp::LoadSome64,
            _ => return self.load_some_narrow(dtype, mem, group, mask),
        };
        let mask = match form.is_wide() {
            true => self.vector(VectorOp::I64FromI32, width, [mask])?,
            false => mask,
        };
        Ok(self.emit(Class::Vector, Op::Vector(op), width, [Operand::Reg(mask), Operand::Mem(mem)]))
    }

    /// The lanes of a group that fills no vector, of elements of 32 or 64 bits, without AVX-512; no byte behind them is read.
    pub(in crate::simd::build) fn load_first_lanes(
        &mut self,
        dtype: DType,
        mem: Mem,
        group: Group,
    ) -> Outcome<Reg> {
        let op = match dtype.bytes() {
            4 => VectorOp::LoadSome32,
            8 => VectorOp::LoadSome64,
            _ => return Err(Refusal::Access),
        };
        let key =
            LoadKey { op: Op::Vector(op), width: group.width(Form::of(dtype)), mem, lanes: group.lanes };
        let is_shared = self.guard.is_none();
        if let (true, Some(known)) = (is_shared, self.known_load(key)) {
            return Ok(known);
        }
        let loaded = self.load_row(dtype, mem, group.lanes);
        if is_shared {
            self.remember_load(key, loaded);
        }
        Ok(loaded)
    }

    /// Writes a group that fills no vector, of elements of 32 or 64 bits, without AVX-512: in pieces of 4, 2 and 1 lanes, because
    /// processors of AMD take tens of cycles for a store under a vector mask (`vmaskmovps`, tables of uops.info).
    pub(in crate::simd::build) fn store_first_lanes(
        &mut self,
        buffer: BufferId,
        mem: Mem,
        group: Group,
        value: Reg,
    ) -> Outcome<()> {
        let form = Form::of(self.program.buffer(buffer).dtype);
        let mut start = 0;
        while start < group.lanes {
            let lanes = 1 << (group.lanes - start).ilog2();
            let piece = if start == 0 { value } else { self.lanes_from(value, start, lanes, form, group) };
            let mem = mem.further((start * form.bytes()) as i32);
            self.store_contiguous(buffer, mem, Group { lanes, ..group }, piece)?;
            start += lanes;
        }
        Ok(())
    }

    /// Some lanes of a vector at the beginning of another one: as many as a power of two, which divides the first one's number.
    fn lanes_from(&mut self, value: Reg, start: u32, lanes: u32, form: Form, group: Group) -> Reg {
        let bytes = if lanes == 1 { form.bytes() } else { 8 };
        let dst = self.register(Class::Vector);
        let op = Op::Extract(bytes as u8);
        let mut inst = Inst::new(op, group.width(form), Some(dst), [Operand::Reg(value)]);
        inst.immediate = (start * form.bytes() / bytes) as u8;
        self.push(inst);
        dst
    }

    /// All lanes at once when all are wanted, and each wanted one on its own otherwise.
    fn load_some_narrow(&mut self, dtype: DType, mem: Mem, group: Group, mask: Reg) -> Outcome<Reg> {
        self.require_branches()?;
        let width = group.width(Form::Bool);
        let signs = Op::Mask(MaskOp::SignsToGeneral);
        let bits = self.emit(Class::General, signs, width, [Operand::Reg(mask)]);
        let result = self.register(Class::Vector);
        let guard = self.guard.take();
        let built = self.branches_of_some(dtype, mem, group, bits, result);
        self.guard = guard;
        built?;
        self.finished(dtype, group, result)
    }

    fn branches_of_some(
        &mut self,
        dtype: DType,
        mem: Mem,
        group: Group,
        bits: Reg,
        result: Reg,
    ) -> Outcome<()> {
        let width = group.width(Form::Int32);
        let copy = |value| Inst::new(Op::Vector(VectorOp::Load), width, Some(result), [Operand::Reg(value)]);
        let all = (1 << group.lanes) - 1;
        let are_all = GeneralOp::Compare(Order::Equal);
        let are_all = self.general(are_all, [Operand::Reg(bits), Operand::Imm(all)]);
        let plain = if dtype == DType::Bool { DType::U8 } else { dtype };
        self.open_branch();
        let whole = self.load_narrow(plain, mem, group)?;
        self.push(copy(whole));
        let then = self.close_branch();
        self.open_branch();
        self.push(Inst::new(Op::Constant(Constant::Same(0, 4)), width, Some(result), []));
        for lane in 0..group.lanes {
            let own = self.general(GeneralOp::And, [Operand::Reg(bits), Operand::Imm(1 << lane)]);
            self.open_branch();
            let mem = mem.further((lane as usize * dtype.bytes()) as i32);
            let value = self.with_narrow_lane(dtype, group, result, (lane, mem))?;
            self.push(copy(value));
            let wanted = self.close_branch();
            self.push_branch(own, wanted);
        }
        let otherwise = self.close_branch();
        self.push_branches(are_all, then, otherwise);
        Ok(())
    }

    /// Writes a group of four or eight elements of fewer than 32 bits without the narrowing stores of AVX-512: their bytes are
    /// brought next to one another first.
    pub(in crate::simd::build) fn store_shuffled(
        &mut self,
        dtype: DType,
        mem: Mem,
        group: Group,
        value: Reg,
    ) -> Outcome<()> {
        let (bytes, width) = (dtype.bytes(), group.width(Form::Int32));
        let mut value = value;
        if dtype == DType::F16 {
            value = self.with_immediate(VectorOp::F16FromF32, width, value, 0);
        } else {
            // In each half, those of four elements; then both halves.
            let place =
                |byte: usize| if byte < 4 * bytes { (byte / bytes * 4 + byte % bytes) as u8 } else { 0x80 };
            let order: Vec<u8> = (0..width.bytes() as usize).map(|byte| place(byte % 16)).collect();
            let order = self.bytes_constant(&order);
            value = self.vector(VectorOp::ShuffleBytes, width, [value, order])?;
            if width == Width::Ymm {
                let places: &[u32] = if bytes == 1 { &[0, 4] } else { &[0, 1, 4, 5] };
                let places: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
                let places = self.bytes_constant(&places);
                value = self.vector(VectorOp::Permute32, width, [places, value])?;
            }
        }
        let stored = group.lanes * bytes as u32;
        if !matches!(stored, 4 | 8 | 16) {
            return Err(Refusal::Access);
        }
        self.store_bytes(mem, stored, value);
        Ok(())
    }

    /// Refuses what needs branches where none can be: in a value that is computed ahead of the loops it is used in.
    fn require_branches(&self) -> Outcome<()> {
        if self.hoisted_to.is_some() { Err(Refusal::DataIndex) } else { Ok(()) }
    }

    /// An element in every lane when the guard holds in any of them, and zeros otherwise.
    pub(in crate::simd::build) fn load_broadcast_if(
        &mut self,
        buffer: BufferId,
        index: &Index,
        group: Group,
    ) -> Outcome<Reg> {
        self.require_branches()?;
        let form = Form::of(self.program.buffer(buffer).dtype);
        let (Some(guard), true) = (self.guard, form != Form::Bool) else { return Err(Refusal::Access) };
        let mut wanted = self.bits_of_mask(guard, group)?;
        if !self.is_inside_where_wanted(buffer, index) {
            let extent = self.extent_of(buffer);
            let extent = self.index_register(&extent)?;
            let value = self.index_register(index)?;
            let args = [Operand::Reg(value), Operand::Reg(extent)];
            let inside = self.general(GeneralOp::Compare(Order::Below), args);
            wanted = self.general(GeneralOp::And, [Operand::Reg(wanted), Operand::Reg(inside)]);
        }
        let (width, result) = (group.width(form), self.register(Class::Vector));
        self.push(Inst::new(Op::Constant(Constant::Same(0, 4)), width, Some(result), []));
        self.open_branch();
        self.guard = None;
        let value = self.broadcast_from(buffer, index, group);
        self.guard = Some(guard);
        self.push(Inst::new(Op::Vector(VectorOp::Load), width, Some(result), [Operand::Reg(value?)]));
        let then = self.close_branch();
        self.push_branch(wanted, then);
        Ok(result)
    }

    /// The mask of a group as bits of a general register.
    pub(in crate::simd::build) fn bits_of_mask(&mut self, mask: Reg, group: Group) -> Outcome<Reg> {
        let op = if self.extension == VectorExtension::Avx512 {
            MaskOp::ToGeneral
        } else {
            MaskOp::SignsToGeneral
        };
        let bits = self.emit(Class::General, Op::Mask(op), group.width(Form::Bool), [Operand::Reg(mask)]);
        let all = (1 << group.lanes) - 1;
        Ok(self.general(GeneralOp::And, [Operand::Reg(bits), Operand::Imm(all)]))
    }

    /// The lanes of a contiguous access under a guard that may be accessed, as a vector mask.
    pub(in crate::simd::build) fn access_vector_mask(
        &mut self,
        buffer: BufferId,
        index: &Index,
        first: &Index,
        group: Group,
        guard: Reg,
    ) -> Outcome<Reg> {
        let width = group.width(Form::Bool);
        let lanes = width.bytes() / 4;
        let own = self.mask_of_bits((1 << group.lanes) - 1, lanes);
        let mut mask = self.and_masks(guard, own);
        if !self.is_inside_where_wanted(buffer, index) {
            // Lanes from `-first` on, and before `extent - first`.
            let extent = self.extent_of(buffer);
            let end = self.broadcast_lane_number(&(&extent - first), width)?;
            let begin = self.broadcast_lane_number(&first.scale(-1), width)?;
            let numbers: Vec<u8> = (0..lanes).flat_map(u32::to_le_bytes).collect();
            let numbers = self.bytes_constant(&numbers);
            let before_end = self.vector(VectorOp::Greater32, width, [end, numbers])?;
            let before_begin = self.vector(VectorOp::Greater32, width, [begin, numbers])?;
            let after_begin = self.not_mask(before_begin, group);
            let inside = self.and_masks(before_end, after_begin);
            mask = self.and_masks(mask, inside);
        }
        Ok(mask)
    }

    /// An index, brought into the numbers of lanes and one more, in every lane.
    fn broadcast_lane_number(&mut self, index: &Index, width: Width) -> Outcome<Reg> {
        let value = self.index_register(index)?;
        let value = self.general(GeneralOp::Max, [Operand::Reg(value), Operand::Imm(0)]);
        let value = self.general(GeneralOp::Min, [Operand::Reg(value), Operand::Imm(64)]);
        Ok(self.emit(Class::Vector, Op::BroadcastGeneral(4), width, [Operand::Reg(value)]))
    }
}
