//! Arithmetic on groups of lanes.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F32X4, F64, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{ConstantData, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value};
use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, UnaryOp};

use crate::codegen::value::lanes::{Form, Lanes, Width};
use crate::codegen::{Generator, Outcome};
use crate::runtime::RuntimeFunction;

/// The largest number below one half: added before truncation it rounds to the nearest integer without
/// lifting the float below one half to one.
const BELOW_HALF_F32: f64 = 0.499_999_97_f32 as f64;
const BELOW_HALF_F64: f64 = 0.499_999_999_999_999_94;

/// Facts about the operands of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::codegen) struct OperandFacts {
    /// The left operand is neither NaN nor zero.
    pub(in crate::codegen) left: bool,
    /// The right operand is not NaN.
    pub(in crate::codegen) right: bool,
}

impl Generator<'_> {
    /// A constant in every lane.
    pub(in crate::codegen) fn constant(&mut self, dtype: DType, constant: Constant, width: Width) -> Lanes {
        let form = Form::of(dtype);
        let ty = form.register(width);
        let register = match (form, constant) {
            (Form::Float32 | Form::Float64, _) => self.float_constant(ty, constant.as_f64()),
            (Form::Bool, _) => {
                let mask = constant.as_f64() != 0.0;
                self.int_constant(ty, if ty.is_vector() { -i64::from(mask) } else { i64::from(mask) })
            }
            (_, Constant::Int(value)) => self.int_constant(ty, value),
            (_, Constant::Float(_)) => self.int_constant(ty, constant.as_f64() as i64),
        };
        Lanes { low: register, high: form.is_split(width).then_some(register) }
    }

    /// An integer constant of a scalar type, or in every lane of a vector type.
    pub(in crate::codegen) fn int_constant(&mut self, ty: Type, value: i64) -> Value {
        if ty.is_vector() { self.splat_bits(ty, value as u64) } else { self.iconst(ty, value) }
    }

    /// A float constant of a scalar type, or in every lane of a vector type.
    pub(in crate::codegen) fn float_constant(&mut self, ty: Type, value: f64) -> Value {
        match ty {
            F32 => self.ins().f32const(value as f32),
            F64 => self.ins().f64const(value),
            F32X4 => self.splat_bits(ty, u64::from((value as f32).to_bits())),
            _ => self.splat_bits(ty, value.to_bits()),
        }
    }

    /// A vector constant with the same bits in every lane.
    pub(in crate::codegen) fn splat_bits(&mut self, ty: Type, bits: u64) -> Value {
        let lane_bytes = ty.lane_type().bytes() as usize;
        let bytes = bits.to_le_bytes()[..lane_bytes].repeat(16 / lane_bytes);
        self.vector_constant(ty, &bytes)
    }

    /// A vector constant from its 16 bytes.
    pub(in crate::codegen) fn vector_constant(&mut self, ty: Type, bytes: &[u8]) -> Value {
        let constant = self.builder.func.dfg.constants.insert(ConstantData::from(bytes));
        self.ins().vconst(ty, constant)
    }

    /// Reinterprets the bits of a register.
    pub(in crate::codegen) fn reinterpret(&mut self, ty: Type, value: Value) -> Value {
        if self.type_of(value) == ty {
            return value;
        }
        let flags = MemFlagsData::new().with_endianness(cranelift_codegen::ir::Endianness::Little);
        self.ins().bitcast(ty, flags, value)
    }

    /// The type of a register.
    pub(in crate::codegen) fn type_of(&self, value: Value) -> Type {
        self.builder.func.dfg.value_type(value)
    }

    /// `if condition { a } else { b }`: lane by lane under a mask as wide as the lanes, or by a scalar boolean.
    pub(in crate::codegen) fn pick(&mut self, condition: Value, a: Value, b: Value) -> Value {
        let mask = self.type_of(condition);
        if !mask.is_vector() {
            return self.ins().select(condition, a, b);
        }
        let ty = self.type_of(a);
        let (a, b) = (self.reinterpret(mask, a), self.reinterpret(mask, b));
        let picked = self.ins().bitselect(condition, a, b);
        self.reinterpret(ty, picked)
    }

    /// An operation on one operand.
    pub(in crate::codegen) fn unary(
        &mut self,
        op: UnaryOp,
        dtype: DType,
        width: Width,
        a: Lanes,
    ) -> Outcome<Lanes> {
        let form = Form::of(dtype);
        let result = match form {
            Form::Float32 | Form::Float64 => {
                let ty = form.register(width);
                let mut lanes = Lanes { low: self.float_unary(op, ty, a.low)?, high: None };
                if let Some(high) = a.high {
                    lanes.high = Some(self.float_unary(op, ty, high)?);
                }
                lanes
            }
            Form::Int32 | Form::Int64 => match op {
                UnaryOp::Neg => a.map(|a| self.ins().ineg(a)),
                UnaryOp::Not => a.map(|a| self.ins().bnot(a)),
                UnaryOp::Abs if dtype.is_unsigned() => a,
                UnaryOp::Abs => a.map(|a| self.ins().iabs(a)),
                _ => return Err(self.unsupported(format!("`{}` of {dtype}", op.text()))),
            },
            Form::Bool if op == UnaryOp::Not => return Ok(self.not_bool(a)),
            Form::Bool => return Err(self.unsupported(format!("`{}` of bool", op.text()))),
        };
        Ok(self.normalize(dtype, result))
    }

    fn float_unary(&mut self, op: UnaryOp, ty: Type, a: Value) -> Outcome<Value> {
        Ok(match op {
            UnaryOp::Neg => self.ins().fneg(a),
            UnaryOp::Abs => self.ins().fabs(a),
            UnaryOp::Sqrt => self.ins().sqrt(a),
            UnaryOp::Floor => self.ins().floor(a),
            UnaryOp::Ceil => self.ins().ceil(a),
            UnaryOp::Trunc => self.ins().trunc(a),
            UnaryOp::RoundTiesEven => self.ins().nearest(a),
            UnaryOp::Round => self.round_ties_away(ty, a),
            _ => {
                let what = format!("`{}`, which lowering replaces by basic operations", op.text());
                return Err(self.unsupported(what));
            }
        })
    }

    /// Truncates after adding the largest number below one half with the operand's sign.
    fn round_ties_away(&mut self, ty: Type, a: Value) -> Value {
        let (half, bits, sign) = match ty.lane_type() {
            F32 => (BELOW_HALF_F32, if ty.is_vector() { I32X4 } else { I32 }, i64::from(i32::MIN)),
            _ => (BELOW_HALF_F64, if ty.is_vector() { I64X2 } else { I64 }, i64::MIN),
        };
        let half = self.float_constant(ty, half);
        let (half, raw) = (self.reinterpret(bits, half), self.reinterpret(bits, a));
        let sign = self.int_constant(bits, sign);
        let sign = self.ins().band(raw, sign);
        let addend = self.ins().bor(half, sign);
        let addend = self.reinterpret(ty, addend);
        let sum = self.ins().fadd(a, addend);
        self.ins().trunc(sum)
    }

    /// An operation on two operands that is neither a comparison nor a shift.
    pub(in crate::codegen) fn binary(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        width: Width,
        (a, b): (Lanes, Lanes),
        facts: OperandFacts,
    ) -> Outcome<Lanes> {
        let result = match Form::of(dtype) {
            form @ (Form::Float32 | Form::Float64) => match op {
                BinaryOp::Add => a.zip(b, |a, b| self.ins().fadd(a, b)),
                BinaryOp::Sub => a.zip(b, |a, b| self.ins().fsub(a, b)),
                BinaryOp::Mul => a.zip(b, |a, b| self.ins().fmul(a, b)),
                BinaryOp::Div => a.zip(b, |a, b| self.ins().fdiv(a, b)),
                BinaryOp::Rem => self.lane_by_lane(form, width, a, b, Self::float_remainder),
                BinaryOp::Min | BinaryOp::Max => a.zip(b, |a, b| self.float_min_max(op, a, b, facts)),
                BinaryOp::Minimum => a.zip(b, |a, b| self.ins().fmin(a, b)),
                BinaryOp::Maximum => a.zip(b, |a, b| self.ins().fmax(a, b)),
                _ => return Err(self.unsupported(format!("`{}` of {dtype}", op.text()))),
            },
            form @ (Form::Int32 | Form::Int64) => match op {
                BinaryOp::Add => a.zip(b, |a, b| self.ins().iadd(a, b)),
                BinaryOp::Sub => a.zip(b, |a, b| self.ins().isub(a, b)),
                BinaryOp::Mul => a.zip(b, |a, b| self.ins().imul(a, b)),
                BinaryOp::Div | BinaryOp::Rem if dtype.is_unsigned() => {
                    self.lane_by_lane(form, width, a, b, |this, a, b| this.unsigned_division(op, a, b))
                }
                BinaryOp::Div => self.lane_by_lane(form, width, a, b, Self::int_quotient),
                BinaryOp::Rem => self.lane_by_lane(form, width, a, b, Self::int_remainder),
                BinaryOp::Min | BinaryOp::Max => a.zip(b, |a, b| self.int_min_max(op, dtype, a, b)),
                BinaryOp::And => a.zip(b, |a, b| self.ins().band(a, b)),
                BinaryOp::Or => a.zip(b, |a, b| self.ins().bor(a, b)),
                BinaryOp::Xor => a.zip(b, |a, b| self.ins().bxor(a, b)),
                _ => return Err(self.unsupported(format!("`{}` of {dtype}", op.text()))),
            },
            Form::Bool => match op {
                BinaryOp::And | BinaryOp::Min => a.zip(b, |a, b| self.ins().band(a, b)),
                BinaryOp::Or | BinaryOp::Max => a.zip(b, |a, b| self.ins().bor(a, b)),
                BinaryOp::Xor => a.zip(b, |a, b| self.ins().bxor(a, b)),
                _ => return Err(self.unsupported(format!("`{}` of bool", op.text()))),
            },
        };
        Ok(self.normalize(dtype, result))
    }

    /// `a * b + c`, rounded once.
    pub(in crate::codegen) fn mul_add(
        &mut self,
        dtype: DType,
        (a, b): (Lanes, Lanes),
        c: Lanes,
    ) -> Outcome<Lanes> {
        if !dtype.is_float() {
            return Err(self.unsupported(format!("`mul_add` of {dtype}")));
        }
        let low = self.ins().fma(a.low, b.low, c.low);
        let high = match (a.high, b.high, c.high) {
            (Some(a), Some(b), Some(c)) => Some(self.ins().fma(a, b, c)),
            _ => None,
        };
        let result = Lanes { low, high };
        Ok(self.normalize(dtype, result))
    }

    /// Shifts by one count for all lanes, taken modulo the width of the type.
    pub(in crate::codegen) fn shift(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        a: Lanes,
        count: Value,
    ) -> Outcome<Lanes> {
        if !dtype.is_int() {
            return Err(self.unsupported(format!("`{}` of {dtype}", op.text())));
        }
        let count = self.shift_count(dtype, count);
        let result = a.map(|a| match (op, dtype) {
            (BinaryOp::Shl, _) => self.ins().ishl(a, count),
            (_, dtype) if dtype.is_unsigned() => self.ins().ushr(a, count),
            _ => self.ins().sshr(a, count),
        });
        Ok(self.normalize(dtype, result))
    }

    /// A count modulo the width of a type: a constant where it is one, which shifts then take as such.
    fn shift_count(&mut self, dtype: DType, count: Value) -> Value {
        let ty = self.type_of(count);
        let mask = 8 * dtype.bytes() as i64 - 1;
        let inst = self.builder.func.dfg.value_def(count).inst();
        match inst.map(|inst| self.builder.func.dfg.insts[inst]) {
            Some(InstructionData::UnaryImm { opcode: Opcode::Iconst, imm }) => {
                self.iconst(ty, imm.bits() & mask)
            }
            _ => self.with(count, mask, |this, a, b| this.ins().band(a, b)),
        }
    }

    /// Applies a scalar operation to each lane.
    pub(in crate::codegen) fn lane_by_lane(
        &mut self,
        form: Form,
        width: Width,
        a: Lanes,
        b: Lanes,
        operation: impl Fn(&mut Self, Value, Value) -> Value,
    ) -> Lanes {
        let mut results: SmallVec<[Value; 4]> = SmallVec::new();
        for lane in 0..width.lanes() {
            let left = self.extract(a, form, width, lane);
            let right = self.extract(b, form, width, lane);
            results.push(operation(self, left, right));
        }
        self.assemble(form, width, &results)
    }

    /// The remainder of floats, with the sign of the dividend.
    fn float_remainder(&mut self, a: Value, b: Value) -> Value {
        let ty = self.type_of(a);
        let function = if ty == F32 { RuntimeFunction::RemainderF32 } else { RuntimeFunction::RemainderF64 };
        self.call_runtime(function, &[a, b])[0]
    }

    /// The truncated quotient; 0 by zero, and the wrapped value when it does not fit.
    pub(in crate::codegen) fn int_quotient(&mut self, a: Value, b: Value) -> Value {
        let ty = self.type_of(a);
        let zero = self.ins().icmp_imm_s(IntCC::Equal, b, 0);
        let minus_one = self.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let divisor = self.harmless_divisor(b, zero, minus_one);
        let quotient = self.ins().sdiv(a, divisor);
        let negated = self.ins().ineg(a);
        let quotient = self.ins().select(minus_one, negated, quotient);
        let nothing = self.iconst(ty, 0);
        self.ins().select(zero, nothing, quotient)
    }

    /// The remainder of the truncated quotient; 0 by zero.
    pub(in crate::codegen) fn int_remainder(&mut self, a: Value, b: Value) -> Value {
        let zero = self.ins().icmp_imm_s(IntCC::Equal, b, 0);
        let minus_one = self.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let divisor = self.harmless_divisor(b, zero, minus_one);
        self.ins().srem(a, divisor)
    }

    /// The quotient or the remainder of unsigned integers; 0 by zero.
    fn unsigned_division(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let ty = self.type_of(a);
        let by_zero = self.ins().icmp_imm_u(IntCC::Equal, b, 0);
        let one = self.iconst(ty, 1);
        let divisor = self.ins().select(by_zero, one, b);
        let result = match op {
            BinaryOp::Div => self.ins().udiv(a, divisor),
            _ => self.ins().urem(a, divisor),
        };
        let zero = self.iconst(ty, 0);
        self.ins().select(by_zero, zero, result)
    }

    /// The divisor, or 1 in place of the two that a division can trap on. The remainder by 1 is what both
    /// of those are defined to give.
    fn harmless_divisor(&mut self, b: Value, zero: Value, minus_one: Value) -> Value {
        let ty = self.type_of(b);
        let trapping = self.ins().bor(zero, minus_one);
        let one = self.iconst(ty, 1);
        self.ins().select(trapping, one, b)
    }

    fn int_min_max(&mut self, op: BinaryOp, dtype: DType, a: Value, b: Value) -> Value {
        let order = if op == BinaryOp::Min { IntCC::SignedLessThan } else { IntCC::SignedGreaterThan };
        match (self.type_of(a), op) {
            _ if fills_unsigned(dtype) => {
                let [low, high] = [a, b].map(|value| self.in_signed_order(dtype, value));
                let condition = self.ins().icmp(order, low, high);
                self.pick(condition, a, b)
            }
            (I32X4, BinaryOp::Min) => self.ins().smin(a, b),
            (I32X4, _) => self.ins().smax(a, b),
            _ => {
                let condition = self.ins().icmp(order, a, b);
                self.pick(condition, a, b)
            }
        }
    }

    /// The smaller or larger of two floats, where a NaN operand is ignored, and the second of equal ones.
    ///
    /// `a < b ? a : b` is one instruction and gives `b` when either is NaN, so only a `b` that may be NaN
    /// takes more. The operands may be exchanged when that cannot change which of two zeros comes out.
    fn float_min_max(&mut self, op: BinaryOp, a: Value, b: Value, facts: OperandFacts) -> Value {
        let (a, b) = if facts.left && !facts.right { (b, a) } else { (a, b) };
        let (low, high) = if op == BinaryOp::Min { (a, b) } else { (b, a) };
        let result = self.pick_where_less((low, high), a, b);
        if facts.left || facts.right {
            return result;
        }
        let not_a_number = self.ins().fcmp(FloatCC::Unordered, b, b);
        self.pick(not_a_number, a, result)
    }

    /// `low < high ? a : b` for floats, where `a` and `b` are `low` and `high` in one order or the other.
    pub(in crate::codegen) fn pick_where_less(
        &mut self,
        (low, high): (Value, Value),
        a: Value,
        b: Value,
    ) -> Value {
        let ty = self.type_of(a);
        let condition = self.ins().fcmp(FloatCC::LessThan, low, high);
        // Cranelift turns exactly this form into one instruction.
        if ty.is_vector() {
            let condition = self.reinterpret(ty, condition);
            self.ins().bitselect(condition, a, b)
        } else {
            self.ins().select(condition, a, b)
        }
    }

    /// The integers of a type that the registers hold with their sign bit as a digit, moved so that signed comparisons order them.
    pub(super) fn in_signed_order(&mut self, dtype: DType, value: Value) -> Value {
        if !fills_unsigned(dtype) {
            return value;
        }
        let sign = if dtype.bits() == 64 { i64::MIN } else { i64::from(i32::MIN) };
        self.with(value, sign, |this, a, b| this.ins().bxor(a, b))
    }

    /// Brings the result of an operation back into the values of a type that is narrower than the registers'.
    pub(in crate::codegen) fn normalize(&mut self, dtype: DType, lanes: Lanes) -> Lanes {
        match dtype {
            DType::I8 | DType::I16 => lanes.map(|value| {
                let unused = 32 - dtype.bits() as i64;
                let shift = self.iconst(I32, unused);
                let upper = self.ins().ishl(value, shift);
                let shift = self.iconst(I32, unused);
                self.ins().sshr(upper, shift)
            }),
            DType::U8 | DType::U16 => lanes
                .map(|value| self.with(value, (1 << dtype.bits()) - 1, |this, a, b| this.ins().band(a, b))),
            DType::F16 => lanes.map(|value| self.round_to_f16(value)),
            DType::BF16 => lanes.map(|value| self.round_to_bf16(value)),
            _ => lanes,
        }
    }
}

/// Whether a type's greatest integers have the sign bit of their register set.
pub(super) const fn fills_unsigned(dtype: DType) -> bool {
    dtype.is_unsigned() && dtype.bits() >= 32
}
