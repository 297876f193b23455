//! Conversions between element types.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F32X4, F64, F64X2, I8X16, I32, I32X4, I64};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use smallvec::SmallVec;
use tilewright_core::dtype::DType;

use super::arith::fills_unsigned;
use crate::codegen::value::lanes::{Form, Lanes, Width};
use crate::codegen::{Generator, Outcome};

impl Generator<'_> {
    /// Conversion with the meaning of Rust's `as`, for `f16` and `bf16` through `f32`; to a boolean, whether
    /// the operand is not zero.
    pub(in crate::codegen) fn cast(
        &mut self,
        from: DType,
        to: DType,
        width: Width,
        lanes: Lanes,
    ) -> Outcome<Lanes> {
        if to == DType::Bool {
            return self.is_nonzero(from, width, lanes);
        }
        let (source, target) = (Form::of(from), Form::of(to));
        let (source, lanes) = match source {
            Form::Bool => (Form::Int32, self.bool_to_int(lanes, width)),
            // Every `u32` is an `i64`.
            _ if from == DType::U32 && target != Form::Int32 => {
                (Form::Int64, self.extend_unsigned(lanes.low, width))
            }
            _ => (source, lanes),
        };
        let result = match (source, target) {
            (Form::Int32, Form::Int32) => lanes,
            (Form::Int32, Form::Int64) => return Ok(self.extend(lanes.low, width)),
            (Form::Int64, Form::Int64) | (Form::Float64, Form::Float64) => return Ok(lanes),
            (Form::Int64, Form::Int32) => self.wide_to_narrow_int(width, lanes),
            (Form::Int32, Form::Float32) => {
                lanes.map(|value| self.ins().fcvt_from_sint(Form::Float32.register(width), value))
            }
            (Form::Int32, Form::Float64) => return Ok(self.int_to_float64(width, lanes.low)),
            (Form::Int64, Form::Float32 | Form::Float64) => {
                let convert = if from == DType::U64 { Self::unsigned_to_float } else { Self::int_to_float };
                self.convert_lanes(Form::Int64, target, width, lanes, convert)
            }
            (Form::Float32, Form::Float32) => lanes,
            (Form::Float32, Form::Float64) => return Ok(self.promote(width, lanes.low)),
            (Form::Float64, Form::Float32) => self.demote(width, lanes),
            (Form::Float32 | Form::Float64, _) if fills_unsigned(to) => {
                self.convert_lanes(source, target, width, lanes, Self::float_to_unsigned)
            }
            (Form::Float32, Form::Int32) => {
                let ints = lanes.map(|value| self.ins().fcvt_to_sint_sat(Form::Int32.register(width), value));
                return Ok(self.saturate(to, ints));
            }
            (Form::Float64, Form::Int32) => {
                let ints = self.convert_lanes(Form::Float64, Form::Int32, width, lanes, Self::float_to_int);
                return Ok(self.saturate(to, ints));
            }
            (Form::Float32 | Form::Float64, Form::Int64) => {
                self.convert_lanes(source, Form::Int64, width, lanes, Self::float_to_int)
            }
            (Form::Bool, _) | (_, Form::Bool) => return Err(self.broken("a cast of bool".to_owned())),
        };
        Ok(self.normalize(to, result))
    }

    /// The bits of the operand as another type of the same size.
    pub(in crate::codegen) fn bitcast(
        &mut self,
        from: DType,
        to: DType,
        width: Width,
        lanes: Lanes,
    ) -> Outcome<Lanes> {
        if from.bytes() != to.bytes() {
            return Err(self.unsupported(format!("a bitcast from {from} to {to}")));
        }
        let register = Form::of(to).register(width);
        Ok(match (from, to) {
            (DType::F16, DType::BF16) => lanes.map(|value| {
                let bits = self.encode_f16(value);
                self.decode_bf16(bits)
            }),
            (DType::BF16, DType::F16) => lanes.map(|value| {
                let bits = self.encode_bf16(value);
                self.decode_f16(bits)
            }),
            (DType::F16, _) => {
                let bits = lanes.map(|value| self.encode_f16(value));
                self.normalize(to, bits)
            }
            (DType::BF16, _) => {
                let bits = lanes.map(|value| self.encode_bf16(value));
                self.normalize(to, bits)
            }
            (_, DType::F16 | DType::BF16) => {
                let bits = self.normalize(DType::U16, lanes);
                bits.map(|bits| if to == DType::F16 { self.decode_f16(bits) } else { self.decode_bf16(bits) })
            }
            _ if from.bits() < 32 => return self.cast(from, to, width, lanes),
            _ => lanes.map(|value| self.reinterpret(register, value)),
        })
    }

    /// Applies a scalar conversion to each lane.
    fn convert_lanes(
        &mut self,
        from: Form,
        to: Form,
        width: Width,
        lanes: Lanes,
        convert: impl Fn(&mut Self, Type, Value) -> Value,
    ) -> Lanes {
        let mut results: SmallVec<[Value; 4]> = SmallVec::new();
        for lane in 0..width.lanes() {
            let value = self.extract(lanes, from, width, lane);
            results.push(convert(self, to.scalar(), value));
        }
        self.assemble(to, width, &results)
    }

    fn int_to_float(&mut self, ty: Type, value: Value) -> Value {
        self.ins().fcvt_from_sint(ty, value)
    }

    fn float_to_int(&mut self, ty: Type, value: Value) -> Value {
        self.ins().fcvt_to_sint_sat(ty, value)
    }

    fn unsigned_to_float(&mut self, ty: Type, value: Value) -> Value {
        self.ins().fcvt_from_uint(ty, value)
    }

    fn float_to_unsigned(&mut self, ty: Type, value: Value) -> Value {
        self.ins().fcvt_to_uint_sat(ty, value)
    }

    /// Brings saturated 32-bit integers to the nearest values of a narrower type.
    fn saturate(&mut self, to: DType, lanes: Lanes) -> Lanes {
        let Some((low, high)) = to.int_range().filter(|_| to.bits() < 32) else { return lanes };
        let (low, high) = (low as i64, high as i64);
        lanes.map(|value| {
            let too_low = self.compare_with(IntCC::SignedLessThan, value, low);
            let value = self.with(value, low, |this, value, low| this.pick(too_low, low, value));
            let too_high = self.compare_with(IntCC::SignedGreaterThan, value, high);
            self.with(value, high, |this, value, high| this.pick(too_high, high, value))
        })
    }

    fn wide_to_narrow_int(&mut self, width: Width, lanes: Lanes) -> Lanes {
        match width {
            Width::One => self.ins().ireduce(I32, lanes.low).into(),
            _ => self.narrow(lanes).into(),
        }
    }

    fn int_to_float64(&mut self, width: Width, value: Value) -> Lanes {
        if width == Width::One {
            return self.ins().fcvt_from_sint(F64, value).into();
        }
        let convert = |this: &mut Self, value: Value| {
            let wide = this.ins().swiden_low(value);
            this.ins().fcvt_from_sint(F64X2, wide)
        };
        let low = convert(self, value);
        if width == Width::Pair {
            return low.into();
        }
        let upper = self.upper_half(value);
        Lanes::split(low, convert(self, upper))
    }

    fn promote(&mut self, width: Width, value: Value) -> Lanes {
        match width {
            Width::One => self.ins().fpromote(F64, value).into(),
            Width::Pair => self.ins().fvpromote_low(value).into(),
            Width::Quad => {
                let low = self.ins().fvpromote_low(value);
                let upper = self.upper_half(value);
                Lanes::split(low, self.ins().fvpromote_low(upper))
            }
        }
    }

    fn demote(&mut self, width: Width, lanes: Lanes) -> Lanes {
        if width == Width::One {
            return self.ins().fdemote(F32, lanes.low).into();
        }
        let narrow = lanes.map(|value| self.ins().fvdemote(value));
        let Some(high) = narrow.high else { return narrow };
        let (low, high) = (self.reinterpret(I8X16, narrow.low), self.reinterpret(I8X16, high));
        let joined = self.shuffle(low, high, [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]);
        self.reinterpret(F32X4, joined).into()
    }

    /// Lane `lane` of a group, as a scalar.
    pub(in crate::codegen) fn extract(&mut self, lanes: Lanes, form: Form, width: Width, lane: u32) -> Value {
        if width == Width::One {
            return lanes.low;
        }
        let (register, lane) = match lanes.high {
            Some(high) if lane >= 2 => (high, lane - 2),
            _ => (lanes.low, lane),
        };
        let value = self.ins().extractlane(register, lane as u8);
        match form {
            Form::Bool => self.ins().icmp_imm_s(IntCC::NotEqual, value, 0),
            _ => value,
        }
    }

    /// A group with lane `lane` replaced by a scalar.
    pub(in crate::codegen) fn insert(
        &mut self,
        lanes: Lanes,
        form: Form,
        width: Width,
        lane: u32,
        scalar: Value,
    ) -> Lanes {
        if width == Width::One {
            return scalar.into();
        }
        let scalar = self.lane_of_scalar(form, scalar);
        match lanes.high {
            Some(high) if lane >= 2 => {
                Lanes::split(lanes.low, self.ins().insertlane(high, scalar, (lane - 2) as u8))
            }
            _ => Lanes { low: self.ins().insertlane(lanes.low, scalar, lane as u8), high: lanes.high },
        }
    }

    /// A group from its lanes as scalars.
    pub(in crate::codegen) fn assemble(&mut self, form: Form, width: Width, scalars: &[Value]) -> Lanes {
        if width == Width::One {
            return scalars[0].into();
        }
        let ty = form.register(width);
        let mut registers = scalars.chunks(ty.lane_count() as usize).map(|lanes| {
            let first = self.lane_of_scalar(form, lanes[0]);
            let mut register = self.ins().scalar_to_vector(ty, first);
            for (lane, &scalar) in lanes.iter().enumerate().skip(1) {
                let scalar = self.lane_of_scalar(form, scalar);
                register = self.ins().insertlane(register, scalar, lane as u8);
            }
            register
        });
        let low = registers.next();
        let high = registers.next();
        Lanes { low: low.expect("a group has lanes"), high }
    }

    /// A scalar in every lane.
    pub(in crate::codegen) fn broadcast(&mut self, form: Form, width: Width, scalar: Value) -> Lanes {
        if width == Width::One {
            return scalar.into();
        }
        let lane = self.lane_of_scalar(form, scalar);
        let register = self.ins().splat(form.register(width), lane);
        Lanes { low: register, high: form.is_split(width).then_some(register) }
    }

    /// The lane of a scalar: a mask for a boolean, otherwise the scalar itself.
    fn lane_of_scalar(&mut self, form: Form, scalar: Value) -> Value {
        if form != Form::Bool {
            return scalar;
        }
        let mask = self.ins().uextend(I32, scalar);
        self.ins().ineg(mask)
    }

    /// A vector of the integers `values`, which a group of 64-bit lanes is to hold.
    pub(in crate::codegen) fn int64_lanes(&mut self, width: Width, values: &[i64]) -> Lanes {
        if width == Width::One {
            return self.iconst(I64, values[0]).into();
        }
        let mut registers = values.chunks(2).map(|pair| {
            let bytes: SmallVec<[u8; 16]> = pair.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.vector_constant(Form::Int64.register(width), &bytes)
        });
        let low = registers.next();
        let high = registers.next();
        Lanes { low: low.expect("a group has lanes"), high }
    }

    /// Masks from 32-bit integers that are 0 where false.
    pub(in crate::codegen) fn mask_of_ints(&mut self, value: Value) -> Value {
        match self.type_of(value) {
            I32X4 => self.compare_with(IntCC::SignedGreaterThan, value, 0),
            _ => self.compare_with(IntCC::NotEqual, value, 0),
        }
    }
}
