//! Loads and stores of groups of lanes.

use cranelift_codegen::ir::types::{F64, F64X2, I8, I8X16, I16X8, I32, I32X4, I64X2};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;

use crate::codegen::emit::LoadKey;
use crate::codegen::memory::address::Address;
use crate::codegen::value::lanes::{Form, Group, Lanes, Width};
use crate::codegen::{Generator, Outcome, memory_flags};
use crate::flat::form::no_storage_type;
use crate::flat::lanes::at_lane;

impl Generator<'_> {
    /// A group of the elements at an index. Where a [guard](crate::codegen::value::select::Guard) leaves lanes out, nothing is
    /// read for them outside the buffer.
    pub(in crate::codegen) fn load(
        &mut self,
        buffer: BufferId,
        dtype: DType,
        index: &Index,
        group: Group,
    ) -> Outcome<Lanes> {
        if let Some(registers) = self.registers_of(buffer) {
            let first = self.register_place(index, group)?;
            return self.read_registers(&registers, first, group.width);
        }
        if let Some(elements) = self.load_from_table(buffer, dtype, index, group)? {
            return Ok(elements);
        }
        let guarded = self.guard.is_some() && !self.is_inside(buffer, index);
        if !guarded {
            self.require_inside(buffer, index, group)?;
        }
        let lanes = index.lanes();
        if lanes == 1 {
            return self.load_scalar(buffer, dtype, index, guarded);
        }
        let offsets = self.lane_offsets(index, lanes);
        let range = group.start as usize..(group.start + group.width.lanes()) as usize;
        if let Some((scalar, offsets)) = offsets.as_ref().filter(|_| !guarded) {
            let offsets = &offsets[range.clone()];
            let first = scalar.offset(offsets[0]);
            if offsets.iter().zip(0..).all(|(offset, lane)| *offset == offsets[0] + lane) {
                return self.load_contiguous(buffer, dtype, &first, group.width);
            }
            if offsets.iter().all(|offset| *offset == offsets[0]) {
                return self.load_broadcast(buffer, dtype, &first, group.width);
            }
        }
        let mut scalars: SmallVec<[Value; 4]> = SmallVec::new();
        for lane in 0..group.width.lanes() {
            let place = match &offsets {
                Some((scalar, offsets)) => scalar.offset(offsets[(group.start + lane) as usize]),
                None => at_lane(&self.resolve(index), group.start + lane),
            };
            let address = self.for_lane(lane, |this| {
                let address = this.address(buffer, &place)?;
                if guarded { this.guarded(buffer, &place, address) } else { Ok(address) }
            })?;
            scalars.push(self.load_group(dtype, address, Width::One).low);
        }
        Ok(self.assemble(Form::of(dtype), group.width, &scalars))
    }

    fn load_scalar(
        &mut self,
        buffer: BufferId,
        dtype: DType,
        index: &Index,
        guarded: bool,
    ) -> Outcome<Lanes> {
        if !guarded {
            return self.load_contiguous(buffer, dtype, index, Width::One);
        }
        let address = self.address(buffer, index)?;
        let address = self.guarded(buffer, index, address)?;
        Ok(self.load_group(dtype, address, Width::One))
    }

    /// Whether loads of a buffer can be broadcast over all lanes as they are made.
    pub(in crate::codegen) fn broadcasts(&self, buffer: BufferId, dtype: DType) -> bool {
        let is_plain = dtype.bits() >= 32;
        is_plain && self.guard.is_none() && self.registers_of(buffer).is_none()
    }

    /// One element in every lane, loaded and broadcast by a single instruction. It is not kept for other uses.
    pub(in crate::codegen) fn load_broadcast_anew(
        &mut self,
        buffer: BufferId,
        dtype: DType,
        index: &Index,
        width: Width,
    ) -> Outcome<Lanes> {
        self.require_inside(buffer, index, Group::SCALAR)?;
        let address = self.address(buffer, index)?;
        let scalar = self.load_group(dtype, address, Width::One);
        Ok(self.broadcast(Form::of(dtype), width, scalar.low))
    }

    /// One element in every lane.
    pub(in crate::codegen) fn load_broadcast(
        &mut self,
        buffer: BufferId,
        dtype: DType,
        index: &Index,
        width: Width,
    ) -> Outcome<Lanes> {
        if !self.broadcasts(buffer, dtype) {
            let scalar = self.load(buffer, dtype, index, Group::SCALAR)?;
            return Ok(self.broadcast(Form::of(dtype), width, scalar.low));
        }
        let Address { base, offset } = self.address(buffer, index)?;
        let key = LoadKey { buffer, base, offset, width, is_broadcast: true };
        if let Some(lanes) = self.known_load(key) {
            return Ok(lanes);
        }
        let lanes = self.load_broadcast_anew(buffer, dtype, index, width)?;
        self.remember_load(key, lanes);
        Ok(lanes)
    }

    fn load_contiguous(
        &mut self,
        buffer: BufferId,
        dtype: DType,
        index: &Index,
        width: Width,
    ) -> Outcome<Lanes> {
        let Address { base, offset } = self.address(buffer, index)?;
        let key = LoadKey { buffer, base, offset, width, is_broadcast: false };
        if let Some(lanes) = self.known_load(key) {
            return Ok(lanes);
        }
        let lanes = self.load_group(dtype, Address { base, offset }, width);
        self.remember_load(key, lanes);
        Ok(lanes)
    }

    /// Writes a group of the elements at an index, all lanes of it.
    pub(in crate::codegen) fn store(
        &mut self,
        buffer: BufferId,
        dtype: DType,
        index: &Index,
        group: Group,
        lanes: Lanes,
    ) -> Outcome<()> {
        if let Some(registers) = self.registers_of(buffer) {
            let first = self.register_place(index, group)?;
            return self.write_registers(&registers, first, group.width, lanes);
        }
        self.require_inside(buffer, index, group)?;
        self.forget_loads(buffer);
        let count = index.lanes();
        if count == 1 {
            let address = self.address(buffer, index)?;
            self.store_group(dtype, address, Width::One, lanes);
            return Ok(());
        }
        if let Some((scalar, offsets)) = self.lane_offsets(index, count) {
            let offsets = &offsets[group.start as usize..(group.start + group.width.lanes()) as usize];
            if offsets.iter().zip(0..).all(|(offset, lane)| *offset == offsets[0] + lane) {
                let address = self.address(buffer, &scalar.offset(offsets[0]))?;
                self.store_group(dtype, address, group.width, lanes);
                return Ok(());
            }
        }
        for lane in 0..group.width.lanes() {
            self.store_lane(buffer, dtype, index, group, lane, lanes)?;
        }
        Ok(())
    }

    /// Writes one lane of a group to memory. The caller has made sure that the lane's index lies inside.
    pub(in crate::codegen) fn store_lane(
        &mut self,
        buffer: BufferId,
        dtype: DType,
        index: &Index,
        group: Group,
        lane: u32,
        lanes: Lanes,
    ) -> Outcome<()> {
        let place = at_lane(&self.resolve(index), group.start + lane);
        let address = self.address(buffer, &place)?;
        let scalar = self.extract(lanes, Form::of(dtype), group.width, lane);
        self.store_group(dtype, address, Width::One, scalar.into());
        Ok(())
    }

    fn plain_load(&mut self, ty: Type, address: Address, further: i32) -> Value {
        let offset = address.offset + further;
        if !ty.is_vector() || self.unit.machine.folds_unaligned_loads {
            return self.ins().load(ty, memory_flags(), address.base, offset);
        }
        // Cranelift folds a load into a comparison of floats also where the instruction faults on addresses
        // that are not aligned. A load behind a reinterpretation is not folded.
        let other = if ty == I64X2 { I32X4 } else { I64X2 };
        let loaded = self.ins().load(other, memory_flags(), address.base, offset);
        self.reinterpret(ty, loaded)
    }

    fn plain_store(&mut self, value: Value, address: Address, further: i32) {
        self.ins().store(memory_flags(), value, address.base, address.offset + further);
    }

    /// Reads consecutive elements into the registers' form.
    pub(in crate::codegen) fn load_group(&mut self, dtype: DType, address: Address, width: Width) -> Lanes {
        let form = Form::of(dtype);
        match dtype {
            DType::I64 | DType::U64 | DType::F64 => {
                let ty = form.register(width);
                let low = self.plain_load(ty, address, 0);
                Lanes { low, high: form.is_split(width).then(|| self.plain_load(ty, address, 16)) }
            }
            DType::I32 | DType::U32 | DType::F32 => self.load_words(form, address, width).into(),
            DType::U16 => self.load_halves(address, width).into(),
            DType::I16 => {
                let halves = self.load_halves(address, width).into();
                self.normalize(dtype, halves)
            }
            DType::I8 | DType::U8 | DType::Bool => self.load_bytes(dtype, address, width).into(),
            DType::F16 | DType::BF16 => {
                let bits = self.load_halves(address, width);
                let value = if dtype == DType::F16 { self.decode_f16(bits) } else { self.decode_bf16(bits) };
                value.into()
            }
            DType::Float8E4M3FN | DType::Float8E5M2 | DType::Int4 | DType::UInt4 => no_storage_type(),
        }
    }

    fn load_words(&mut self, form: Form, address: Address, width: Width) -> Value {
        let ty = form.register(width);
        match width {
            Width::Pair => {
                let both = self.plain_load(F64, address, 0);
                let vector = self.ins().scalar_to_vector(F64X2, both);
                self.reinterpret(ty, vector)
            }
            _ => self.plain_load(ty, address, 0),
        }
    }

    fn load_bytes(&mut self, dtype: DType, address: Address, width: Width) -> Value {
        let (base, offset) = (address.base, address.offset);
        let flags = memory_flags();
        if width == Width::One {
            let value = match dtype {
                DType::I8 => return self.ins().sload8(I32, flags, base, offset),
                DType::U8 => return self.ins().uload8(I32, flags, base, offset),
                _ => self.plain_load(I8, address, 0),
            };
            // Every byte but 0 counts as true, so that no byte in memory can break a mask.
            return self.mask_of_ints(value);
        }
        let raw = match width {
            Width::Pair => self.ins().uload16(I32, flags, base, offset),
            _ => self.plain_load(I32, address, 0),
        };
        let vector = self.ins().scalar_to_vector(I32X4, raw);
        let bytes = self.reinterpret(I8X16, vector);
        if dtype == DType::I8 {
            let halves = self.ins().swiden_low(bytes);
            return self.ins().swiden_low(halves);
        }
        let halves = self.ins().uwiden_low(bytes);
        let words = self.ins().uwiden_low(halves);
        if dtype == DType::Bool { self.mask_of_ints(words) } else { words }
    }

    /// 16-bit elements, extended with zeros.
    fn load_halves(&mut self, address: Address, width: Width) -> Value {
        let (base, offset) = (address.base, address.offset);
        match width {
            Width::One => self.ins().uload16(I32, memory_flags(), base, offset),
            Width::Pair => {
                let both = self.plain_load(I32, address, 0);
                let vector = self.ins().scalar_to_vector(I32X4, both);
                let halves = self.reinterpret(I16X8, vector);
                self.ins().uwiden_low(halves)
            }
            Width::Quad => self.ins().uload16x4(memory_flags(), base, offset),
        }
    }

    /// Writes consecutive elements from the registers' form.
    fn store_group(&mut self, dtype: DType, address: Address, width: Width, lanes: Lanes) {
        match dtype {
            DType::I64 | DType::U64 | DType::F64 => {
                self.plain_store(lanes.low, address, 0);
                if let Some(high) = lanes.high {
                    self.plain_store(high, address, 16);
                }
            }
            DType::I16 | DType::U16 => self.store_halves(lanes.low, address, width),
            DType::I32 | DType::U32 | DType::F32 => match width {
                Width::Pair => self.store_low(F64X2, lanes.low, address),
                _ => self.plain_store(lanes.low, address, 0),
            },
            DType::I8 | DType::U8 => self.store_bytes(lanes.low, address, width),
            DType::Bool => {
                let numbers = self.bool_to_int(lanes, width);
                self.store_bytes(numbers.low, address, width);
            }
            DType::F16 => {
                let bits = self.encode_f16(lanes.low);
                self.store_halves(bits, address, width);
            }
            DType::BF16 => {
                let bits = self.encode_bf16(lanes.low);
                self.store_halves(bits, address, width);
            }
            DType::Float8E4M3FN | DType::Float8E5M2 | DType::Int4 | DType::UInt4 => no_storage_type(),
        }
    }

    /// Writes the first lane of a register, seen as a vector of type `ty`.
    fn store_low(&mut self, ty: Type, value: Value, address: Address) {
        let vector = self.reinterpret(ty, value);
        let first = self.ins().extractlane(vector, 0);
        self.plain_store(first, address, 0);
    }

    fn store_bytes(&mut self, value: Value, address: Address, width: Width) {
        if width == Width::One {
            self.ins().istore8(memory_flags(), value, address.base, address.offset);
            return;
        }
        let bytes = self.reinterpret(I8X16, value);
        let packed = self.shuffle(bytes, bytes, [0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12]);
        match width {
            Width::Pair => {
                let packed = self.reinterpret(I16X8, packed);
                let first = self.ins().extractlane(packed, 0);
                self.plain_store(first, address, 0);
            }
            _ => self.store_low(I32X4, packed, address),
        }
    }

    fn store_halves(&mut self, value: Value, address: Address, width: Width) {
        if width == Width::One {
            self.ins().istore16(memory_flags(), value, address.base, address.offset);
            return;
        }
        let bytes = self.reinterpret(I8X16, value);
        let packed = self.shuffle(bytes, bytes, [0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13]);
        let ty = if width == Width::Pair { I32X4 } else { I64X2 };
        self.store_low(ty, packed, address);
    }

    /// A run-time scalar argument.
    pub(in crate::codegen) fn scalar_argument(&mut self, offset: i32, dtype: DType) -> Outcome<Lanes> {
        Ok(self.frame_word(offset, Form::of(dtype).scalar())?.into())
    }
}
