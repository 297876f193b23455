//! Arithmetic on groups of lanes.

use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, UnaryOp};

use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::value::mask::UNORDERED;
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{Class, Inst, Op, Operand, Reg, Width};
use crate::simd::x86::VectorOp;
use crate::simd::{Refusal, VectorExtension};

/// The largest number below one half: added before truncation it rounds to the nearest integer without
/// lifting the float below one half to one.
const BELOW_HALF_F32: f32 = 0.499_999_97;
const BELOW_HALF_F64: f64 = 0.499_999_999_999_999_94;

/// The immediate operands of rounding instructions.
const NEAREST: u8 = 8;
const DOWN: u8 = 9;
const UP: u8 = 10;
const TO_ZERO: u8 = 11;

/// The immediate operand of `vrangeps` for the larger operand with its own sign.
const LARGER: u8 = 5;

impl Builder<'_> {
    /// An operation on one operand.
    pub(in crate::simd::build) fn unary(
        &mut self,
        op: UnaryOp,
        dtype: DType,
        group: Group,
        a: Reg,
    ) -> Outcome<Reg> {
        let form = Form::of(dtype);
        let width = group.width(form);
        let result = match form {
            Form::Float32 | Form::Float64 => self.float_unary(op, form, width, a)?,
            Form::Int32 | Form::Int64 => match op {
                UnaryOp::Neg => {
                    let zero = self.same(0, form.bytes() as u8);
                    self.vector(pick(form, VectorOp::Sub32, VectorOp::Sub64), width, [zero, a])?
                }
                UnaryOp::Not => {
                    let ones = self.ones(form);
                    self.vector(pick(form, VectorOp::Xor32, VectorOp::Xor64), width, [a, ones])?
                }
                UnaryOp::Abs => self.vector(pick(form, VectorOp::Abs32, VectorOp::Abs64), width, [a])?,
                _ => return Err(Refusal::Operation(op.text())),
            },
            Form::Bool if op == UnaryOp::Not => return Ok(self.not_mask(a, group)),
            Form::Bool => return Err(Refusal::Operation(op.text())),
        };
        self.normalize(dtype, group, result)
    }

    fn ones(&mut self, form: Form) -> Reg {
        if form.is_wide() { self.same(u64::MAX, 8) } else { self.same(u64::from(u32::MAX), 4) }
    }

    /// All bits but the sign, or the sign alone.
    fn sign(&mut self, form: Form) -> Reg {
        if form.is_wide() { self.same(1 << 63, 8) } else { self.same(1 << 31, 4) }
    }

    fn magnitude(&mut self, form: Form) -> Reg {
        if form.is_wide() { self.same(u64::MAX >> 1, 8) } else { self.same(u64::from(u32::MAX >> 1), 4) }
    }

    fn float_unary(&mut self, op: UnaryOp, form: Form, width: Width, a: Reg) -> Outcome<Reg> {
        let round = pick(form, VectorOp::RoundF32, VectorOp::RoundF64);
        Ok(match op {
            UnaryOp::Neg => {
                let sign = self.sign(form);
                self.vector(pick(form, VectorOp::Xor32, VectorOp::Xor64), width, [a, sign])?
            }
            UnaryOp::Abs => {
                let magnitude = self.magnitude(form);
                self.vector(pick(form, VectorOp::And32, VectorOp::And64), width, [a, magnitude])?
            }
            UnaryOp::Sqrt => self.vector(pick(form, VectorOp::SqrtF32, VectorOp::SqrtF64), width, [a])?,
            UnaryOp::Floor => self.with_immediate(round, width, a, DOWN),
            UnaryOp::Ceil => self.with_immediate(round, width, a, UP),
            UnaryOp::Trunc => self.with_immediate(round, width, a, TO_ZERO),
            UnaryOp::RoundTiesEven => self.with_immediate(round, width, a, NEAREST),
            UnaryOp::Round => {
                let half = match form {
                    Form::Float64 => self.same(BELOW_HALF_F64.to_bits(), 8),
                    _ => self.same(u64::from(BELOW_HALF_F32.to_bits()), 4),
                };
                let sign = self.sign(form);
                let sign = self.vector(pick(form, VectorOp::And32, VectorOp::And64), width, [a, sign])?;
                let addend = self.vector(pick(form, VectorOp::Or32, VectorOp::Or64), width, [sign, half])?;
                let sum = self.vector(pick(form, VectorOp::AddF32, VectorOp::AddF64), width, [a, addend])?;
                self.with_immediate(round, width, sum, TO_ZERO)
            }
            _ => return Err(Refusal::Operation(op.text())),
        })
    }

    /// A float times two to the power of another.
    pub(in crate::simd::build) fn scale(
        &mut self,
        dtype: DType,
        group: Group,
        value: Reg,
        exponent: Reg,
    ) -> Outcome<Reg> {
        let form = Form::of(dtype);
        let op = pick(form, VectorOp::ScaleF32, VectorOp::ScaleF64);
        self.vector(op, group.width(form), [value, exponent])
    }

    /// An operation on two operands that is neither a comparison, a shift nor an extremum of floats.
    pub(in crate::simd::build) fn binary(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        group: Group,
        a: Reg,
        b: Reg,
    ) -> Outcome<Reg> {
        let form = Form::of(dtype);
        let vector_op = match form {
            Form::Bool => return self.combine_masks(op, group, a, b),
            Form::Float32 | Form::Float64 => match op {
                BinaryOp::Add => pick(form, VectorOp::AddF32, VectorOp::AddF64),
                BinaryOp::Sub => pick(form, VectorOp::SubF32, VectorOp::SubF64),
                BinaryOp::Mul => pick(form, VectorOp::MulF32, VectorOp::MulF64),
                BinaryOp::Div => pick(form, VectorOp::DivF32, VectorOp::DivF64),
                BinaryOp::Minimum => return self.minimum(form, group, a, b),
                BinaryOp::Maximum => return self.maximum(form, group, a, b),
                _ => return Err(Refusal::Operation(op.text())),
            },
            Form::Int32 if matches!(op, BinaryOp::Div | BinaryOp::Rem) => {
                let result = self.divide(op, group, a, b)?;
                return self.normalize(dtype, group, result);
            }
            Form::Int32 | Form::Int64 => match op {
                BinaryOp::Add => pick(form, VectorOp::Add32, VectorOp::Add64),
                BinaryOp::Sub => pick(form, VectorOp::Sub32, VectorOp::Sub64),
                BinaryOp::Mul => pick(form, VectorOp::Mul32, VectorOp::Mul64),
                BinaryOp::Min => pick(form, VectorOp::Min32, VectorOp::Min64),
                BinaryOp::Max => pick(form, VectorOp::Max32, VectorOp::Max64),
                BinaryOp::And => pick(form, VectorOp::And32, VectorOp::And64),
                BinaryOp::Or => pick(form, VectorOp::Or32, VectorOp::Or64),
                BinaryOp::Xor => pick(form, VectorOp::Xor32, VectorOp::Xor64),
                _ => return Err(Refusal::Operation(op.text())),
            },
        };
        let result = self.vector(vector_op, group.width(form), [a, b])?;
        self.normalize(dtype, group, result)
    }

    /// The truncated quotient of integers of 32 bits, or its remainder; 0 by zero.
    ///
    /// Integers of 32 bits are exact in `f64`, and so is the truncated quotient of two of them: where it is no integer, it
    /// lies at least 1 / |b| from the next one, which is more than half a unit in the last place of a number
    /// below 2^31 / |b|. The smallest integer divided by -1 does not fit and is converted to the smallest integer, which is the wrapped result.
    fn divide(&mut self, op: BinaryOp, group: Group, a: Reg, b: Reg) -> Outcome<Reg> {
        let (narrow, wide) = (group.width(Form::Int32), group.width(Form::Float64));
        if group.lanes * Form::Float64.bytes() > self.extension.bytes() {
            return Err(Refusal::Lanes);
        }
        let dividend = self.vector(VectorOp::F64FromI32, wide, [a])?;
        let divisor = self.vector(VectorOp::F64FromI32, wide, [b])?;
        let quotient = self.vector(VectorOp::DivF64, wide, [dividend, divisor])?;
        let quotient = self.vector(VectorOp::I32FromF64, wide, [quotient])?;
        let zero = self.same(0, 4);
        let by_zero = self.compare(BinaryOp::Eq, DType::I32, group, b, zero)?;
        let result = match op {
            BinaryOp::Div => quotient,
            _ => {
                let multiple = self.vector(VectorOp::Mul32, narrow, [quotient, b])?;
                self.vector(VectorOp::Sub32, narrow, [a, multiple])?
            }
        };
        self.blend(by_zero, zero, result, Form::Int32, group)
    }

    /// `a * b + c`, rounded once.
    pub(in crate::simd::build) fn mul_add(
        &mut self,
        dtype: DType,
        group: Group,
        operands: [Reg; 3],
    ) -> Outcome<Reg> {
        let form = Form::of(dtype);
        if !form.is_float() {
            return Err(Refusal::Operation("mul_add"));
        }
        let op = Op::MulAdd(form.bytes() as u8);
        let result = self.emit(Class::Vector, op, group.width(form), operands.map(Operand::Reg));
        self.normalize(dtype, group, result)
    }

    /// A shift by a constant, taken modulo the width of the type.
    pub(in crate::simd::build) fn shift_by_constant(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        group: Group,
        a: Reg,
        count: i64,
    ) -> Outcome<Reg> {
        let form = Form::of(dtype);
        if !dtype.is_int() {
            return Err(Refusal::Operation(op.text()));
        }
        let count = count & (8 * dtype.bytes() as i64 - 1);
        let op = match (op, dtype) {
            (BinaryOp::Shl, _) => pick(form, VectorOp::ShiftLeft32, VectorOp::ShiftLeft64),
            (_, DType::U8) => VectorOp::ShiftRight32,
            _ => pick(form, VectorOp::ShiftSigned32, VectorOp::ShiftSigned64),
        };
        let width = group.width(form);
        if op.code(self.extension, width).is_none() {
            return Err(Refusal::Operation("which needs AVX-512"));
        }
        let result = self.with_immediate(op, width, a, count as u8);
        self.normalize(dtype, group, result)
    }

    /// A shift by a count for each lane, taken modulo the width of the type.
    pub(in crate::simd::build) fn shift(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        group: Group,
        a: Reg,
        count: Reg,
    ) -> Outcome<Reg> {
        let form = Form::of(dtype);
        if !dtype.is_int() {
            return Err(Refusal::Operation(op.text()));
        }
        let width = group.width(form);
        let bits = self.same(8 * dtype.bytes() as u64 - 1, form.bytes() as u8);
        let count = self.vector(pick(form, VectorOp::And32, VectorOp::And64), width, [count, bits])?;
        let op = match (op, dtype) {
            (BinaryOp::Shl, _) => pick(form, VectorOp::ShiftLeftBy32, VectorOp::ShiftLeftBy64),
            (_, DType::U8) => VectorOp::ShiftRightBy32,
            _ => pick(form, VectorOp::ShiftSignedBy32, VectorOp::ShiftSignedBy64),
        };
        let result = self.vector(op, width, [a, count])?;
        self.normalize(dtype, group, result)
    }

    /// The smaller or larger of two floats, where a NaN operand is ignored, and the second of equal ones. `facts`:
    /// whether the first is neither NaN nor zero, and whether the second is not NaN.
    ///
    /// The instruction gives its second operand when either is NaN, so only one that may be NaN takes more.
    /// The operands may be exchanged when that cannot change which of two zeros comes out.
    pub(in crate::simd::build) fn float_min_max(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        group: Group,
        (a, b): (Reg, Reg),
        facts: (bool, bool),
    ) -> Outcome<Reg> {
        let form = Form::of(dtype);
        let (a, b) = if facts.0 && !facts.1 { (b, a) } else { (a, b) };
        let result = self.plain_min_max(op, form, group, a, b)?;
        if facts.0 || facts.1 {
            return Ok(result);
        }
        let not_a_number = self.unordered(form, group, b);
        self.blend(not_a_number, a, result, form, group)
    }

    /// The smaller of two floats: NaN where one is NaN, and −0 is smaller than +0.
    ///
    /// The instruction gives its second operand where the operands are equal or one is NaN. The bits that are set in either order's
    /// result are then those of −0 where one is, and of a NaN where one is; otherwise both results are the same.
    fn minimum(&mut self, form: Form, group: Group, a: Reg, b: Reg) -> Outcome<Reg> {
        let forward = self.plain_min_max(BinaryOp::Min, form, group, a, b)?;
        let backward = self.plain_min_max(BinaryOp::Min, form, group, b, a)?;
        self.vector(pick(form, VectorOp::Or32, VectorOp::Or64), group.width(form), [forward, backward])
    }

    /// The larger of two floats: NaN where one is NaN, and +0 is larger than −0. Without an instruction that orders zeros, it is the
    /// smaller one with all signs changed.
    fn maximum(&mut self, form: Form, group: Group, a: Reg, b: Reg) -> Outcome<Reg> {
        let width = group.width(form);
        if self.extension == VectorExtension::Avx512 {
            let larger = self.register(Class::Vector);
            let op = Op::Vector(pick(form, VectorOp::RangeF32, VectorOp::RangeF64));
            let mut inst = Inst::new(op, width, Some(larger), [Operand::Reg(a), Operand::Reg(b)]);
            inst.immediate = LARGER;
            self.push(inst);
            let nan = self.vector(pick(form, VectorOp::AddF32, VectorOp::AddF64), width, [a, b])?;
            let is_nan = self.compare_floats(UNORDERED, form, group, a, b);
            return self.blend(is_nan, nan, larger, form, group);
        }
        let a = self.float_unary(UnaryOp::Neg, form, width, a)?;
        let b = self.float_unary(UnaryOp::Neg, form, width, b)?;
        let smaller = self.minimum(form, group, a, b)?;
        self.float_unary(UnaryOp::Neg, form, width, smaller)
    }

    /// `a < b ? a : b`, or with `>` for the maximum.
    pub(in crate::simd::build) fn plain_min_max(
        &mut self,
        op: BinaryOp,
        form: Form,
        group: Group,
        a: Reg,
        b: Reg,
    ) -> Outcome<Reg> {
        let op = match op {
            BinaryOp::Min => pick(form, VectorOp::MinF32, VectorOp::MinF64),
            _ => pick(form, VectorOp::MaxF32, VectorOp::MaxF64),
        };
        self.vector(op, group.width(form), [a, b])
    }

    /// Brings the result of an operation back into the values of a type that is narrower than the registers'.
    pub(in crate::simd::build) fn normalize(
        &mut self,
        dtype: DType,
        group: Group,
        value: Reg,
    ) -> Outcome<Reg> {
        let width = group.width(Form::of(dtype));
        match dtype {
            DType::I8 => {
                let upper = self.with_immediate(VectorOp::ShiftLeft32, width, value, 24);
                Ok(self.with_immediate(VectorOp::ShiftSigned32, width, upper, 24))
            }
            DType::U8 => {
                let mask = self.same(0xFF, 4);
                self.vector(VectorOp::And32, width, [value, mask])
            }
            DType::F16 => {
                let half = self.with_immediate(VectorOp::F16FromF32, width, value, 0);
                self.vector(VectorOp::F32FromF16, width, [half])
            }
            DType::BF16 => self.round_to_bf16(group, value),
            _ => Ok(value),
        }
    }

    /// The nearest `bf16` value, ties to even: half a unit, or a little less if the last bit that stays is not set, is
    /// added to the bits, and the others are cut off. A carry into the exponent is right. A NaN stays one.
    fn round_to_bf16(&mut self, group: Group, value: Reg) -> Outcome<Reg> {
        let width = group.width(Form::Float32);
        let odd = self.with_immediate(VectorOp::ShiftRight32, width, value, 16);
        let one = self.same(1, 4);
        let odd = self.vector(VectorOp::And32, width, [odd, one])?;
        let half = self.same(0x7FFF, 4);
        let sum = self.vector(VectorOp::Add32, width, [value, half])?;
        let sum = self.vector(VectorOp::Add32, width, [sum, odd])?;
        let upper = self.same(0xFFFF_0000, 4);
        let rounded = self.vector(VectorOp::And32, width, [sum, upper])?;
        let not_a_number = self.unordered(Form::Float32, group, value);
        let nan = self.same(0x7FC0_0000, 4);
        self.blend(not_a_number, nan, rounded, Form::Float32, group)
    }
}

/// The operation for 32 or that for 64 bits a lane.
pub(in crate::simd::build) fn pick(form: Form, narrow: VectorOp, wide: VectorOp) -> VectorOp {
    if form.is_wide() { wide } else { narrow }
}
