//! Comparisons, booleans and masks.
//!
//! The masks of a group have 32 bits a lane whatever was compared, and are widened where they choose between
//! 64-bit lanes.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{I8, I8X16, I32, I32X4, I64X2};
use cranelift_codegen::ir::{ConstantData, InstBuilder, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;

use crate::codegen::value::lanes::{Form, Lanes, Width};
use crate::codegen::{Generator, Outcome};

impl Generator<'_> {
    /// A comparison, giving booleans.
    pub(in crate::codegen) fn compare(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        width: Width,
        a: Lanes,
        b: Lanes,
    ) -> Outcome<Lanes> {
        let form = Form::of(dtype);
        let masks = match form {
            Form::Float32 | Form::Float64 => {
                let order = float_order(op);
                a.zip(b, |a, b| self.ins().fcmp(order, a, b))
            }
            Form::Int32 | Form::Int64 => {
                let order = int_order(op);
                a.zip(b, |a, b| {
                    let [a, b] = [a, b].map(|value| self.in_signed_order(dtype, value));
                    self.ins().icmp(order, a, b)
                })
            }
            Form::Bool => return Ok(self.compare_bools(op, width, a, b)),
        };
        Ok(if form.is_wide() && width != Width::One { self.narrow(masks).into() } else { masks })
    }

    /// Comparison of booleans, where false is less than true.
    fn compare_bools(&mut self, op: BinaryOp, width: Width, a: Lanes, b: Lanes) -> Lanes {
        let (a, b) = (a.low, b.low);
        let different = self.ins().bxor(a, b);
        let (not_a, not_b) = (self.not_register(width, a), self.not_register(width, b));
        let result = match op {
            BinaryOp::Ne => different,
            BinaryOp::Eq => self.not_register(width, different),
            BinaryOp::Lt => self.ins().band(not_a, b),
            BinaryOp::Le => self.ins().bor(not_a, b),
            BinaryOp::Gt => self.ins().band(a, not_b),
            _ => self.ins().bor(a, not_b),
        };
        result.into()
    }

    /// Logical not.
    pub(in crate::codegen) fn not_bool(&mut self, a: Lanes) -> Lanes {
        let width = if self.type_of(a.low) == I8 { Width::One } else { Width::Quad };
        self.not_register(width, a.low).into()
    }

    fn not_register(&mut self, width: Width, a: Value) -> Value {
        match width {
            Width::One => self.with(a, 1, |this, a, b| this.ins().bxor(a, b)),
            _ => self.ins().bnot(a),
        }
    }

    /// `if condition { a } else { b }` in each lane.
    pub(in crate::codegen) fn choose(
        &mut self,
        form: Form,
        width: Width,
        condition: Value,
        a: Lanes,
        b: Lanes,
    ) -> Lanes {
        if !self.type_of(condition).is_vector() || !form.is_wide() {
            return a.zip(b, |a, b| self.pick(condition, a, b));
        }
        let masks = self.widen_mask(condition, width);
        let low = self.pick(masks.low, a.low, b.low);
        let high = match (masks.high, a.high, b.high) {
            (Some(mask), Some(a), Some(b)) => Some(self.pick(mask, a, b)),
            _ => None,
        };
        Lanes { low, high }
    }

    /// Masks of 64 bits a lane from a mask of 32 bits a lane.
    fn widen_mask(&mut self, mask: Value, width: Width) -> Lanes {
        let low = self.ins().swiden_low(mask);
        let high = (width == Width::Quad).then(|| self.ins().swiden_high(mask));
        Lanes { low, high }
    }

    /// The lower halves of 64-bit lanes, of numbers or of masks.
    pub(in crate::codegen) fn narrow(&mut self, lanes: Lanes) -> Value {
        let low = self.reinterpret(I8X16, lanes.low);
        let high = match lanes.high {
            Some(high) => self.reinterpret(I8X16, high),
            None => low,
        };
        let narrowed = self.shuffle(low, high, [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27]);
        self.reinterpret(I32X4, narrowed)
    }

    /// Gathers bytes of two vectors of 16 bytes.
    pub(in crate::codegen) fn shuffle(&mut self, a: Value, b: Value, bytes: [u8; 16]) -> Value {
        let mask = self.builder.func.dfg.immediates.push(ConstantData::from(&bytes[..]));
        self.ins().shuffle(a, b, mask)
    }

    /// One bit per lane of a mask, lane 0 lowest.
    pub(in crate::codegen) fn mask_bits(&mut self, mask: Value, width: Width) -> Value {
        let bits = self.ins().vhigh_bits(I32, mask);
        match width {
            Width::Pair => self.with(bits, 0b11, |this, a, b| this.ins().band(a, b)),
            _ => bits,
        }
    }

    /// Whether a condition holds in every lane, as a scalar boolean.
    pub(in crate::codegen) fn holds_everywhere(&mut self, condition: Value, width: Width) -> Value {
        if width == Width::One {
            return condition;
        }
        let bits = self.mask_bits(condition, width);
        self.ins().icmp_imm_u(IntCC::Equal, bits, (1 << width.lanes()) - 1)
    }

    /// Whether a condition holds in some lane, as a scalar boolean.
    pub(in crate::codegen) fn holds_somewhere(&mut self, condition: Value, width: Width) -> Value {
        if width == Width::One {
            return condition;
        }
        let bits = self.mask_bits(condition, width);
        self.ins().icmp_imm_u(IntCC::NotEqual, bits, 0)
    }

    /// Booleans that are true where a number is not zero.
    pub(in crate::codegen) fn is_nonzero(
        &mut self,
        dtype: DType,
        width: Width,
        lanes: Lanes,
    ) -> Outcome<Lanes> {
        let zero = self.zero(Form::of(dtype), width);
        self.compare(BinaryOp::Ne, dtype, width, lanes, zero)
    }

    /// Booleans as the integers 0 and 1.
    pub(in crate::codegen) fn bool_to_int(&mut self, mask: Lanes, width: Width) -> Lanes {
        match width {
            Width::One => mask.map(|value| self.ins().uextend(I32, value)),
            _ => mask.map(|mask| self.with(mask, 1, |this, a, b| this.ins().band(a, b))),
        }
    }

    /// 32-bit integers without sign, extended to 64 bits.
    pub(super) fn extend_unsigned(&mut self, value: Value, width: Width) -> Lanes {
        match width {
            Width::One => self.ins().uextend(cranelift_codegen::ir::types::I64, value).into(),
            Width::Pair => self.ins().uwiden_low(value).into(),
            Width::Quad => {
                let low = self.ins().uwiden_low(value);
                Lanes::split(low, self.ins().uwiden_high(value))
            }
        }
    }

    /// 32-bit integers extended to 64 bits.
    pub(in crate::codegen) fn extend(&mut self, value: Value, width: Width) -> Lanes {
        match width {
            Width::One => self.ins().sextend(cranelift_codegen::ir::types::I64, value).into(),
            Width::Pair => self.ins().swiden_low(value).into(),
            Width::Quad => {
                let low = self.ins().swiden_low(value);
                Lanes::split(low, self.ins().swiden_high(value))
            }
        }
    }

    /// The upper half of a register moved to the lower.
    pub(in crate::codegen) fn upper_half(&mut self, value: Value) -> Value {
        let ty = self.type_of(value);
        let lanes = self.reinterpret(I64X2, value);
        let bytes = self.reinterpret(I8X16, lanes);
        let moved = self.shuffle(bytes, bytes, [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15]);
        self.reinterpret(ty, moved)
    }
}

fn float_order(op: BinaryOp) -> FloatCC {
    match op {
        BinaryOp::Eq => FloatCC::Equal,
        BinaryOp::Ne => FloatCC::NotEqual,
        BinaryOp::Lt => FloatCC::LessThan,
        BinaryOp::Le => FloatCC::LessThanOrEqual,
        BinaryOp::Gt => FloatCC::GreaterThan,
        _ => FloatCC::GreaterThanOrEqual,
    }
}

/// Every integer is held in a signed register, or [moved](Translator::in_signed_order) into one.
fn int_order(op: BinaryOp) -> IntCC {
    match op {
        BinaryOp::Eq => IntCC::Equal,
        BinaryOp::Ne => IntCC::NotEqual,
        BinaryOp::Lt => IntCC::SignedLessThan,
        BinaryOp::Le => IntCC::SignedLessThanOrEqual,
        BinaryOp::Gt => IntCC::SignedGreaterThan,
        _ => IntCC::SignedGreaterThanOrEqual,
    }
}
