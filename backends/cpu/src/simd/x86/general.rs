//! Instructions on general registers.

use iced_x86::{Code, Register};

use super::assembler::{Address, Arg, Jump};
use super::{Encoder, FIRST, SECOND, THIRD};
use crate::simd::Refusal;
use crate::simd::allocate::Location;
use crate::simd::ir::{GeneralOp, Inst, Operand, Order, Reg};

impl Encoder<'_> {
    /// An operation on general registers.
    pub(super) fn general(&mut self, op: GeneralOp, inst: &Inst) -> Result<(), Refusal> {
        let Some(dst) = inst.dst else { return self.narrow_store(op, inst) };
        if matches!(self.place(dst), Location::Word(_) | Location::Nowhere) {
            // It stays where it is.
            return Ok(());
        }
        let into = match self.rm(dst) {
            Arg::Reg(own) => own,
            _ => THIRD,
        };
        match op {
            GeneralOp::Copy => match inst.args[0] {
                Operand::Imm(value) => self.load_integer(into, value)?,
                other => {
                    let own = self.operand(other, into)?;
                    self.copy(into, own)?;
                }
            },
            GeneralOp::Byte => self.narrow_load(Code::Movzx_r64_rm8, into, inst.args[0])?,
            GeneralOp::SignedByte => self.narrow_load(Code::Movsx_r64_rm8, into, inst.args[0])?,
            GeneralOp::HalfWord => self.narrow_load(Code::Movzx_r64_rm16, into, inst.args[0])?,
            GeneralOp::Divide => self.divide(into, inst)?,
            GeneralOp::LowBits => self.low_bits(into, inst.args[0])?,
            GeneralOp::Min | GeneralOp::Max => {
                let b = self.operand(inst.args[1], SECOND)?;
                let a = self.operand(inst.args[0], FIRST)?;
                self.copy(FIRST, a)?;
                self.add(Code::Cmp_r64_rm64, &[Arg::Reg(FIRST), Arg::Reg(b)])?;
                let code = if op == GeneralOp::Min { Code::Cmovg_r64_rm64 } else { Code::Cmovl_r64_rm64 };
                self.add(code, &[Arg::Reg(FIRST), Arg::Reg(b)])?;
                self.copy(into, FIRST)?;
            }
            GeneralOp::Select => self.blend(into, inst)?,
            GeneralOp::Address => self.narrow_load(Code::Lea_r64_m, into, inst.args[0])?,
            GeneralOp::Compare(order) => {
                let a = self.operand(inst.args[0], FIRST)?;
                match inst.args[1] {
                    Operand::Imm(value) if let Ok(value) = i32::try_from(value) => {
                        self.add(Code::Cmp_rm64_imm32, &[Arg::Reg(a), Arg::Imm32(value)])?;
                    }
                    other => {
                        let b = self.operand(other, SECOND)?;
                        self.add(Code::Cmp_r64_rm64, &[Arg::Reg(a), Arg::Reg(b)])?;
                    }
                }
                self.add(set_code(order), &[Arg::Reg(Register::AL)])?;
                self.add(Code::Movzx_r64_rm8, &[Arg::Reg(FIRST), Arg::Reg(Register::AL)])?;
                self.add(Code::Neg_rm64, &[Arg::Reg(FIRST)])?;
                self.copy(into, FIRST)?;
            }
            GeneralOp::ShiftLeft | GeneralOp::ShiftRight => {
                let a = self.operand(inst.args[0], FIRST)?;
                self.copy(into, a)?;
                let code = if op == GeneralOp::ShiftLeft { Code::Shl_rm64_imm8 } else { Code::Sar_rm64_imm8 };
                let Operand::Imm(count) = inst.args[1] else { return Err(Refusal::Encoding) };
                self.add(code, &[Arg::Reg(into), Arg::Imm8(count as u8)])?;
            }
            GeneralOp::Add | GeneralOp::Sub | GeneralOp::Mul | GeneralOp::And | GeneralOp::Or => {
                self.arithmetic(op, into, inst)?;
            }
            GeneralOp::StoreByte | GeneralOp::StoreHalfWord => return Err(Refusal::Encoding),
        }
        match self.rm(dst) {
            Arg::Reg(_) => Ok(()),
            place => self.add(Code::Mov_rm64_r64, &[place, Arg::Reg(into)]),
        }
    }

    fn blend(&mut self, into: Register, inst: &Inst) -> Result<(), Refusal> {
        let otherwise = self.operand(inst.args[2], SECOND)?;
        self.copy(SECOND, otherwise)?;
        let condition = self.operand(inst.args[0], FIRST)?;
        self.add(Code::Test_rm64_r64, &[Arg::Reg(condition), Arg::Reg(condition)])?;
        let own = self.operand(inst.args[1], FIRST)?;
        self.add(Code::Cmovne_r64_rm64, &[Arg::Reg(SECOND), Arg::Reg(own)])?;
        self.copy(into, SECOND)
    }

    pub(super) fn copy(&mut self, into: Register, from: Register) -> Result<(), Refusal> {
        if into == from {
            return Ok(());
        }
        self.add(Code::Mov_rm64_r64, &[Arg::Reg(into), Arg::Reg(from)])
    }

    fn arithmetic(&mut self, op: GeneralOp, into: Register, inst: &Inst) -> Result<(), Refusal> {
        let a = self.operand(inst.args[0], FIRST)?;
        if let Operand::Imm(value) = inst.args[1]
            && let Ok(value) = i32::try_from(value)
        {
            return self.with_integer(op, into, a, value);
        }
        let b = self.operand(inst.args[1], SECOND)?;
        let code = match op {
            GeneralOp::Add if into != a && into != b => {
                let sum = Address { index: b, ..Address::new(a, 0) };
                return self.add(Code::Lea_r64_m, &[Arg::Reg(into), Arg::Mem(sum)]);
            }
            GeneralOp::Add => Code::Add_r64_rm64,
            GeneralOp::Sub => Code::Sub_r64_rm64,
            GeneralOp::Mul => Code::Imul_r64_rm64,
            GeneralOp::And => Code::And_r64_rm64,
            _ => Code::Or_r64_rm64,
        };
        if into == b && op != GeneralOp::Sub {
            return self.add(code, &[Arg::Reg(into), Arg::Reg(a)]);
        }
        if into == b {
            self.copy(FIRST, a)?;
            self.add(code, &[Arg::Reg(FIRST), Arg::Reg(b)])?;
            return self.copy(into, FIRST);
        }
        self.copy(into, a)?;
        self.add(code, &[Arg::Reg(into), Arg::Reg(b)])
    }

    fn with_integer(
        &mut self,
        op: GeneralOp,
        into: Register,
        a: Register,
        value: i32,
    ) -> Result<(), Refusal> {
        let code = match op {
            GeneralOp::Mul => {
                return self
                    .add(Code::Imul_r64_rm64_imm32, &[Arg::Reg(into), Arg::Reg(a), Arg::Imm32(value)]);
            }
            GeneralOp::Add if into != a => {
                return self.add(Code::Lea_r64_m, &[Arg::Reg(into), Arg::Mem(Address::new(a, value))]);
            }
            GeneralOp::Add => Code::Add_rm64_imm32,
            GeneralOp::Sub => Code::Sub_rm64_imm32,
            GeneralOp::And => Code::And_rm64_imm32,
            _ => Code::Or_rm64_imm32,
        };
        self.copy(into, a)?;
        self.add(code, &[Arg::Reg(into), Arg::Imm32(value)])
    }

    /// The quotient by a constant, rounded down.
    ///
    /// A quotient of n ≥ 0 is the upper part of n · m with m = ⌈2^(63+l) / d⌉, l = ⌈log₂ d⌉ (Granlund and
    /// Montgomery, "Division by invariant integers using multiplication", 1994, theorem 4.2 with N = 63). A negative n
    /// goes through its complement: ⌊n / d⌋ = −1 − ⌊(−1 − n) / d⌋.
    fn divide(&mut self, into: Register, inst: &Inst) -> Result<(), Refusal> {
        let Operand::Imm(divisor) = inst.args[1] else { return Err(Refusal::Encoding) };
        let bits = 64 - (divisor - 1).leading_zeros();
        let factor = (1u128 << (63 + bits)).div_ceil(divisor as u128) as u64;
        let a = self.operand(inst.args[0], FIRST)?;
        self.copy(FIRST, a)?;
        self.copy(into, FIRST)?;
        self.add(Code::Sar_rm64_imm8, &[Arg::Reg(into), Arg::Imm8(63)])?;
        self.add(Code::Xor_r64_rm64, &[Arg::Reg(FIRST), Arg::Reg(into)])?;
        self.load_integer(SECOND, factor as i64)?;
        self.add(Code::Mul_rm64, &[Arg::Reg(SECOND)])?;
        if bits > 1 {
            self.add(Code::Shr_rm64_imm8, &[Arg::Reg(SECOND), Arg::Imm8(bits as u8 - 1)])?;
        }
        self.add(Code::Xor_r64_rm64, &[Arg::Reg(into), Arg::Reg(SECOND)])
    }

    fn low_bits(&mut self, into: Register, count: Operand) -> Result<(), Refusal> {
        let count = self.operand(count, FIRST)?;
        self.copy(FIRST, count)?;
        self.load_integer(SECOND, 0)?;
        self.add(Code::Test_rm64_r64, &[Arg::Reg(FIRST), Arg::Reg(FIRST)])?;
        self.add(Code::Cmovl_r64_rm64, &[Arg::Reg(FIRST), Arg::Reg(SECOND)])?;
        self.load_integer(SECOND, 32)?;
        self.add(Code::Cmp_r64_rm64, &[Arg::Reg(FIRST), Arg::Reg(SECOND)])?;
        self.add(Code::Cmovg_r64_rm64, &[Arg::Reg(FIRST), Arg::Reg(SECOND)])?;
        self.load_integer(SECOND, -1)?;
        let args = [Arg::Reg(into), Arg::Reg(SECOND), Arg::Reg(FIRST)];
        self.add(Code::VEX_Bzhi_r64_rm64_r64, &args)
    }

    fn narrow_load(&mut self, code: Code, into: Register, from: Operand) -> Result<(), Refusal> {
        let Operand::Mem(mem) = from else { return Err(Refusal::Encoding) };
        let address = self.address(mem, false)?;
        self.add(code, &[Arg::Reg(into), Arg::Mem(address)])
    }

    /// Prefetches a line of memory.
    pub(super) fn prefetch(&mut self, near: bool, inst: &Inst) -> Result<(), Refusal> {
        let Operand::Mem(mem) = inst.args[0] else { return Err(Refusal::Encoding) };
        let address = self.address(mem, false)?;
        let code = if near { Code::Prefetcht0_m8 } else { Code::Prefetcht1_m8 };
        self.add(code, &[Arg::Mem(address)])
    }

    fn narrow_store(&mut self, op: GeneralOp, inst: &Inst) -> Result<(), Refusal> {
        let [Operand::Mem(mem), Operand::Reg(value)] = inst.args[..] else { return Err(Refusal::Encoding) };
        let address = self.address(mem, false)?;
        let value = self.read(value, THIRD)?;
        self.copy(THIRD, value)?;
        match op {
            GeneralOp::StoreByte => {
                self.add(Code::Mov_rm8_r8, &[Arg::Mem(address), Arg::Reg(Register::R11L)])
            }
            _ => self.add(Code::Mov_rm16_r16, &[Arg::Mem(address), Arg::Reg(Register::R11W)]),
        }
    }

    /// Leaves the leaf unless the value is, unsigned, below the extent.
    pub(super) fn check(&mut self, value: Reg, extent: Reg) -> Result<(), Refusal> {
        let own = self.read(value, FIRST)?;
        let limit = self.read(extent, SECOND)?;
        self.add(Code::Cmp_r64_rm64, &[Arg::Reg(own), Arg::Reg(limit)])?;
        let label = self.assembler.label();
        self.assembler.jump(Jump::AboveOrEqual, label);
        self.failures.push((label, value, extent));
        Ok(())
    }
}

fn set_code(order: Order) -> Code {
    match order {
        Order::Equal => Code::Sete_rm8,
        Order::NotEqual => Code::Setne_rm8,
        Order::Less => Code::Setl_rm8,
        Order::LessOrEqual => Code::Setle_rm8,
        Order::Greater => Code::Setg_rm8,
        Order::GreaterOrEqual => Code::Setge_rm8,
        Order::Below => Code::Setb_rm8,
    }
}
