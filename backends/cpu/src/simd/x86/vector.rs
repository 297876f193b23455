//! Instructions on vectors and masks.

use iced_x86::{Code, Register};
use smallvec::SmallVec;

use super::assembler::{Address, Arg};
use super::table::VectorOp;
use super::{Encoder, FIRST};
use crate::simd::allocate::Location;
use crate::simd::ir::{Class, Constant, Inst, MaskOp, Op, Operand, Reg, Width};
use crate::simd::{Refusal, VectorExtension};

/// The mask that a gather overwrites.
const GATHERED: Register = Register::K7;

impl Encoder<'_> {
    /// An instruction.
    pub(super) fn inst(&mut self, inst: &Inst) -> Result<(), Refusal> {
        match inst.op {
            Op::General(op) => self.general(op, inst),
            Op::Check => match inst.args[..] {
                [Operand::Reg(value), Operand::Reg(extent)] => self.check(value, extent),
                _ => Err(Refusal::Encoding),
            },
            Op::Vector(op) => self.vector(op, inst),
            Op::MulAdd(bytes) => self.mul_add(bytes, inst),
            Op::Accumulate(op) => self.accumulate(op, inst),
            Op::Constant(constant) => self.constant(constant, inst),
            Op::Gather(bytes) => self.gather(bytes, inst),
            Op::BroadcastGeneral(bytes) => self.broadcast_general(bytes, inst),
            Op::Extract(bytes) => self.extract(bytes, inst),
            Op::Mask(op) => self.mask(op, inst),
            Op::Tile(op) => self.tile(op, inst),
            Op::Prefetch { near } => self.prefetch(near, inst),
        }
    }

    pub(super) fn number(&self, reg: Reg) -> Result<u32, Refusal> {
        match self.place(reg) {
            Location::Register(number) => Ok(u32::from(number)),
            _ => Err(Refusal::Encoding),
        }
    }

    /// A vector register, or a mask.
    fn vector_register(&self, reg: Reg, width: Width) -> Result<Register, Refusal> {
        let number = self.number(reg)?;
        Ok(match self.code.of(reg).class {
            Class::Mask => Register::K0 + number,
            _ => numbered(number, width),
        })
    }

    fn dst(&self, inst: &Inst, width: Width) -> Result<Register, Refusal> {
        self.vector_register(inst.dst.ok_or(Refusal::Encoding)?, width)
    }

    fn arg(&mut self, operand: Operand, width: Width) -> Result<Arg, Refusal> {
        Ok(match operand {
            Operand::Reg(reg) if self.code.of(reg).class == Class::General => match self.rm(reg) {
                Arg::Reg(own) => Arg::Reg(low_half(own)),
                place => place,
            },
            Operand::Reg(reg) => Arg::Reg(self.vector_register(reg, width)?),
            Operand::Mem(mem) => Arg::Mem(self.address(mem, false)?),
            Operand::Broadcast(mem) => Arg::Mem(self.address(mem, true)?),
            Operand::Imm(_) => return Err(Refusal::Encoding),
        })
    }

    fn vector(&mut self, op: VectorOp, inst: &Inst) -> Result<(), Refusal> {
        let code = op.code(self.extension, inst.width).ok_or(Refusal::Encoding)?;
        let (result, source) = op.operand_widths(inst.width);
        let mut args: SmallVec<[Arg; 4]> = SmallVec::new();
        if inst.dst.is_some() {
            args.push(Arg::Reg(self.dst(inst, result)?));
        }
        for (position, operand) in inst.args.iter().enumerate() {
            let is_last = position + 1 == inst.args.len();
            let width = op.part_width().filter(|_| is_last).unwrap_or(source);
            args.push(self.arg(*operand, width)?);
        }
        if op.takes_immediate() {
            args.push(Arg::Imm8(inst.immediate));
        }
        let mask = match inst.mask {
            Some(mask) => Some(Register::K0 + self.number(mask)?),
            None => None,
        };
        let zeroes = mask.is_some() && inst.dst.is_some() && !op.chooses();
        self.assembler.add(code, &args, |instruction| {
            if let Some(mask) = mask {
                instruction.set_op_mask(mask);
                instruction.set_zeroing_masking(zeroes);
            }
        })
    }

    /// `a · b + c` in the form whose destination is the operand that it overwrites.
    fn mul_add(&mut self, bytes: u8, inst: &Inst) -> Result<(), Refusal> {
        let width = inst.width;
        let dst = Arg::Reg(self.dst(inst, width)?);
        let mut args = [dst; 3];
        for (arg, operand) in args.iter_mut().zip(&inst.args) {
            *arg = self.arg(*operand, width)?;
        }
        let [mut a, mut b, c] = args;
        let is_memory = |arg: Arg| matches!(arg, Arg::Mem(_));
        if a == dst || (is_memory(a) && b != dst) {
            std::mem::swap(&mut a, &mut b);
        }
        // A memory operand among the factors is the second one now, unless that is the destination.
        let forms = match bytes {
            4 => [VectorOp::MulAdd132F32, VectorOp::MulAdd213F32, VectorOp::MulAdd231F32],
            _ => [VectorOp::MulAdd132F64, VectorOp::MulAdd213F64, VectorOp::MulAdd231F64],
        };
        let (op, args) = if c == dst {
            if is_memory(a) { (forms[2], [dst, b, a]) } else { (forms[2], [dst, a, b]) }
        } else if b == dst {
            if is_memory(a) { (forms[0], [dst, c, a]) } else { (forms[1], [dst, a, c]) }
        } else {
            self.move_or_load(bytes, width, dst, c)?;
            (forms[2], [dst, a, b])
        };
        let code = op.code(self.extension, width).ok_or(Refusal::Encoding)?;
        self.add(code, &args)
    }

    /// An instruction that overwrites its first operand.
    fn accumulate(&mut self, op: VectorOp, inst: &Inst) -> Result<(), Refusal> {
        let [Operand::Reg(sum), a, b] = inst.args[..] else { return Err(Refusal::Encoding) };
        if inst.dst != Some(sum) {
            return Err(Refusal::Encoding);
        }
        let code = op.code(self.extension, inst.width).ok_or(Refusal::Encoding)?;
        let args =
            [Arg::Reg(self.dst(inst, inst.width)?), self.arg(a, inst.width)?, self.arg(b, inst.width)?];
        self.add(code, &args)
    }

    fn move_or_load(&mut self, bytes: u8, width: Width, dst: Arg, from: Arg) -> Result<(), Refusal> {
        let op = match from {
            Arg::Mem(Address { is_broadcast: true, .. }) if bytes == 4 => VectorOp::Broadcast32,
            Arg::Mem(Address { is_broadcast: true, .. }) => VectorOp::Broadcast64,
            _ => VectorOp::Load,
        };
        let from = match from {
            Arg::Mem(address) => Arg::Mem(Address { is_broadcast: false, ..address }),
            other => other,
        };
        let code = op.code(self.extension, width).ok_or(Refusal::Encoding)?;
        self.add(code, &[dst, from])
    }

    fn constant(&mut self, constant: Constant, inst: &Inst) -> Result<(), Refusal> {
        let width = inst.width;
        let dst = self.dst(inst, width)?;
        let (op, offset) = match constant {
            Constant::Same(0, _) => {
                // The narrow instruction clears the whole register.
                let own = Arg::Reg(self.dst(inst, Width::Xmm)?);
                let code = VectorOp::Xor32.code(self.extension, Width::Xmm).ok_or(Refusal::Encoding)?;
                return self.add(code, &[own, own, own]);
            }
            Constant::Same(bits, bytes) => {
                let offset = self.assembler.constant(&bits.to_le_bytes()[..bytes as usize]);
                (if bytes == 8 { VectorOp::Broadcast64 } else { VectorOp::Broadcast32 }, offset)
            }
            Constant::Bytes(start) => (VectorOp::Load, start as i32),
        };
        let code = op.code(self.extension, width).ok_or(Refusal::Encoding)?;
        self.add(code, &[Arg::Reg(dst), Arg::Mem(Address::new(Register::RIP, offset))])
    }

    fn gather(&mut self, bytes: u8, inst: &Inst) -> Result<(), Refusal> {
        let (Some(Operand::Mem(mem)), wanted) = (inst.args.first().copied(), inst.args.get(1)) else {
            return Err(Refusal::Encoding);
        };
        let Some((places, _)) = mem.index else { return Err(Refusal::Encoding) };
        let dst = self.dst(inst, inst.width)?;
        let (op, index_width) = match bytes {
            4 => (VectorOp::Gather32, inst.width),
            _ => (VectorOp::Gather64, inst.width.half()),
        };
        match inst.mask {
            _ if wanted.is_some() => {}
            Some(mask) => {
                let mask = Register::K0 + self.number(mask)?;
                self.add(Code::VEX_Kmovw_kr_km16, &[Arg::Reg(GATHERED), Arg::Reg(mask)])?;
            }
            None => self.add(Code::VEX_Kxnorw_kr_kr_kr, &[Arg::Reg(GATHERED); 3])?,
        }
        // Inactive lanes become zero, so that the instruction does not depend on the old value of the register.
        let clear = VectorOp::Xor32.code(self.extension, inst.width).ok_or(Refusal::Encoding)?;
        self.add(clear, &[Arg::Reg(dst); 3])?;
        let index = self.vector_register(places, index_width)?;
        let address = Address { index, scale: 1, ..self.address(mem, false)? };
        let code = op.code(self.extension, inst.width).ok_or(Refusal::Encoding)?;
        if let Some(wanted) = wanted {
            let wanted = self.arg(*wanted, inst.width)?;
            return self.add(code, &[Arg::Reg(dst), Arg::Mem(address), wanted]);
        }
        self.assembler.add(code, &[Arg::Reg(dst), Arg::Mem(address)], |instruction| {
            instruction.set_op_mask(GATHERED);
        })
    }

    fn broadcast_general(&mut self, bytes: u8, inst: &Inst) -> Result<(), Refusal> {
        let [Operand::Reg(value)] = inst.args[..] else { return Err(Refusal::Encoding) };
        let value = self.read(value, FIRST)?;
        let narrow = self.dst(inst, Width::Xmm)?;
        let value = if bytes == 8 { value } else { low_half(value) };
        let code = match (self.extension, bytes) {
            (VectorExtension::Avx512, 8) => Code::EVEX_Vmovq_xmm_rm64,
            (VectorExtension::Avx512, _) => Code::EVEX_Vmovd_xmm_rm32,
            (_, 8) => Code::VEX_Vmovq_xmm_rm64,
            _ => Code::VEX_Vmovd_xmm_rm32,
        };
        self.add(code, &[Arg::Reg(narrow), Arg::Reg(value)])?;
        let dst = self.dst(inst, inst.width)?;
        let op = if bytes == 8 { VectorOp::Broadcast64 } else { VectorOp::Broadcast32 };
        let code = op.code(self.extension, inst.width).ok_or(Refusal::Encoding)?;
        self.add(code, &[Arg::Reg(dst), Arg::Reg(narrow)])
    }

    /// Moves a lane to the first place.
    fn extract(&mut self, bytes: u8, inst: &Inst) -> Result<(), Refusal> {
        let [Operand::Reg(source)] = inst.args[..] else { return Err(Refusal::Encoding) };
        let from = self.vector_register(source, inst.width)?;
        let (lane, dst) = (inst.immediate, self.dst(inst, inst.width)?);
        if self.extension == VectorExtension::Avx512 {
            let op = if bytes == 8 { VectorOp::Align64 } else { VectorOp::Align32 };
            let code = op.code(self.extension, inst.width).ok_or(Refusal::Encoding)?;
            return self.add(code, &[Arg::Reg(dst), Arg::Reg(from), Arg::Reg(from), Arg::Imm8(lane)]);
        }
        let per_half = 16 / bytes;
        let narrow = self.dst(inst, Width::Xmm)?;
        let mut from = self.vector_register(source, Width::Xmm)?;
        if lane >= per_half {
            let whole = self.vector_register(source, Width::Ymm)?;
            let args = [Arg::Reg(narrow), Arg::Reg(whole), Arg::Imm8(1)];
            self.add(Code::VEX_Vextractf128_xmmm128_ymm_imm8, &args)?;
            from = narrow;
        }
        let (is_there, lane) = (from == narrow, lane % per_half);
        if is_there && lane == 0 {
            return Ok(());
        }
        // The other lanes are unspecified.
        let pattern = match (bytes, lane) {
            (8, 0) => 0b0100,
            (8, _) => 0b1110,
            _ => lane,
        };
        let code = Code::VEX_Vpshufd_xmm_xmmm128_imm8;
        self.add(code, &[Arg::Reg(narrow), Arg::Reg(from), Arg::Imm8(pattern)])
    }

    fn mask(&mut self, op: MaskOp, inst: &Inst) -> Result<(), Refusal> {
        let code = match op {
            MaskOp::And => Code::VEX_Kandw_kr_kr_kr,
            MaskOp::Or => Code::VEX_Korw_kr_kr_kr,
            MaskOp::Xor => Code::VEX_Kxorw_kr_kr_kr,
            MaskOp::Not => Code::VEX_Knotw_kr_kr,
            MaskOp::OfGeneral => {
                let Operand::Reg(value) = inst.args[0] else { return Err(Refusal::Encoding) };
                let value = low_half(self.read(value, FIRST)?);
                let dst = self.dst(inst, inst.width)?;
                return self.add(Code::VEX_Kmovw_kr_r32, &[Arg::Reg(dst), Arg::Reg(value)]);
            }
            MaskOp::ToGeneral | MaskOp::WideToGeneral | MaskOp::SignsToGeneral => {
                return self.move_to_general(op, inst);
            }
        };
        let mut args: SmallVec<[Arg; 3]> = SmallVec::from_iter([Arg::Reg(self.dst(inst, inst.width)?)]);
        for operand in &inst.args {
            args.push(self.arg(*operand, inst.width)?);
        }
        self.add(code, &args)
    }

    /// A mask, or bits of a vector, in a general register.
    fn move_to_general(&mut self, op: MaskOp, inst: &Inst) -> Result<(), Refusal> {
        let (Some(dst), Operand::Reg(from)) = (inst.dst, inst.args[0]) else { return Err(Refusal::Encoding) };
        let (into, place) = match self.rm(dst) {
            Arg::Reg(own) => (own, None),
            place => (FIRST, Some(place)),
        };
        let width = if op == MaskOp::SignsToGeneral { inst.width } else { Width::Xmm };
        let from = self.vector_register(from, width)?;
        let code = match (op, self.extension) {
            _ if from.is_k() => Code::VEX_Kmovw_r32_kr,
            (MaskOp::WideToGeneral, VectorExtension::Avx512) => Code::EVEX_Vmovq_rm64_xmm,
            (MaskOp::WideToGeneral, _) => Code::VEX_Vmovq_rm64_xmm,
            (MaskOp::SignsToGeneral, _) if width == Width::Ymm => Code::VEX_Vmovmskps_r32_ymm,
            (MaskOp::SignsToGeneral, _) => Code::VEX_Vmovmskps_r32_xmm,
            (_, VectorExtension::Avx512) => Code::EVEX_Vmovd_rm32_xmm,
            _ => Code::VEX_Vmovd_rm32_xmm,
        };
        let target = if op == MaskOp::WideToGeneral { into } else { low_half(into) };
        self.add(code, &[Arg::Reg(target), Arg::Reg(from)])?;
        match place {
            Some(place) => self.add(Code::Mov_rm64_r64, &[place, Arg::Reg(into)]),
            None => Ok(()),
        }
    }
}

/// The 32-bit part of a general register.
fn low_half(register: Register) -> Register {
    Register::EAX + (register as u32 - Register::RAX as u32)
}

fn numbered(number: u32, width: Width) -> Register {
    let first = match width {
        Width::Xmm => Register::XMM0,
        Width::Ymm => Register::YMM0,
        Width::Zmm => Register::ZMM0,
    };
    first + number
}
