//! Comparisons and masks.
//!
//! The mask of a group says for each lane whether a condition holds. With AVX-512 it is the bits of a mask register, without it
//! lanes of 32 bits that are all zeros or all ones. Bits beyond the lanes of the group are unspecified.

use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind};
use tilewright_core::index::{Base, Index};

use crate::simd::build::scope::Key;
use crate::simd::build::value::arith::pick;
use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{Class, GeneralOp, Inst, MaskOp, Op, Operand, Reg, Width};
use crate::simd::x86::VectorOp;
use crate::simd::{Refusal, VectorExtension};

/// A comparison that holds in the first lanes only, or in all but those.
pub(in crate::simd::build) struct Bounds {
    /// The number of lanes.
    first: Index,
    /// Whether it holds in the others instead.
    inverted: bool,
}

/// The predicate of a comparison that holds when an operand is NaN.
pub(super) const UNORDERED: u8 = 3;

impl Builder<'_> {
    fn has_mask_registers(&self) -> bool {
        self.extension == VectorExtension::Avx512
    }

    fn mask_op(&mut self, op: MaskOp, args: impl IntoIterator<Item = Reg>) -> Reg {
        self.emit(Class::Mask, Op::Mask(op), Width::Xmm, args.into_iter().map(Operand::Reg))
    }

    /// A mask register with these bits.
    fn mask_register_of_bits(&mut self, bits: u32) -> Reg {
        let mask = self.value_at(0, Key::Mask(bits), |this| {
            let general = this.integer(Operand::Imm(i64::from(bits)));
            Ok::<_, std::convert::Infallible>(this.mask_op(MaskOp::OfGeneral, [general]))
        });
        mask.unwrap_or_else(|never| match never {})
    }

    /// A mask register with the first lanes set.
    pub(in crate::simd::build) fn mask_register_of_lanes(&mut self, lanes: u32) -> Reg {
        self.mask_register_of_bits(u32::MAX >> (32 - lanes))
    }

    /// The mask of one lane among `lanes`.
    pub(in crate::simd::build) fn lane_mask(&mut self, lane: u32, lanes: u32) -> Outcome<Reg> {
        Ok(self.mask_of_bits(1 << lane, lanes))
    }

    /// The mask of the lanes whose bits are set.
    pub(in crate::simd::build) fn mask_of_bits(&mut self, bits: u32, lanes: u32) -> Reg {
        if self.has_mask_registers() {
            return self.mask_register_of_bits(bits);
        }
        let lane = |own: u32| -((bits >> own & 1) as i32);
        let bytes: Vec<u8> = (0..lanes).flat_map(|own| lane(own).to_le_bytes()).collect();
        self.bytes_constant(&bytes)
    }

    /// A constant mask.
    pub(in crate::simd::build) fn mask_constant(&mut self, mask: bool, group: Group) -> Outcome<Reg> {
        Ok(match (self.has_mask_registers(), mask) {
            (true, true) => self.mask_register_of_lanes(group.lanes),
            (true, false) => self.mask_register_of_bits(0),
            (false, _) => self.same(if mask { u64::from(u32::MAX) } else { 0 }, 4),
        })
    }

    /// A comparison.
    pub(in crate::simd::build) fn compare(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        group: Group,
        a: Reg,
        b: Reg,
    ) -> Outcome<Reg> {
        let form = Form::of(dtype);
        match form {
            Form::Bool => self.compare_masks(op, group, a, b),
            Form::Float32 | Form::Float64 => Ok(self.compare_floats(float_predicate(op), form, group, a, b)),
            _ if self.has_mask_registers() => {
                let vector_op = Op::Vector(pick(form, VectorOp::Compare32, VectorOp::Compare64));
                let dst = self.register(Class::Mask);
                let args = [Operand::Reg(a), Operand::Reg(b)];
                let mut inst = Inst::new(vector_op, group.width(form), Some(dst), args);
                inst.immediate = int_predicate(op);
                self.push(inst);
                Ok(dst)
            }
            _ => {
                let greater = pick(form, VectorOp::Greater32, VectorOp::Greater64);
                let equal = pick(form, VectorOp::Equal32, VectorOp::Equal64);
                let width = group.width(form);
                let (vector_op, a, b, inverted) = match op {
                    BinaryOp::Eq => (equal, a, b, false),
                    BinaryOp::Ne => (equal, a, b, true),
                    BinaryOp::Gt => (greater, a, b, false),
                    BinaryOp::Lt => (greater, b, a, false),
                    BinaryOp::Le => (greater, a, b, true),
                    _ => (greater, b, a, true),
                };
                let result = self.vector(vector_op, width, [a, b])?;
                let result = if form.is_wide() { self.narrow_mask(result, group)? } else { result };
                Ok(if inverted { self.not_mask(result, group) } else { result })
            }
        }
    }

    pub(super) fn compare_floats(&mut self, predicate: u8, form: Form, group: Group, a: Reg, b: Reg) -> Reg {
        let op = Op::Vector(pick(form, VectorOp::CompareF32, VectorOp::CompareF64));
        let class = if self.has_mask_registers() { Class::Mask } else { Class::Vector };
        let dst = self.register(class);
        let mut inst = Inst::new(op, group.width(form), Some(dst), [Operand::Reg(a), Operand::Reg(b)]);
        inst.immediate = predicate;
        self.push(inst);
        if !self.has_mask_registers() && form.is_wide() {
            return self.narrow_mask(dst, group).unwrap_or(dst);
        }
        dst
    }

    /// Whether a float is NaN.
    pub(in crate::simd::build) fn unordered(&mut self, form: Form, group: Group, value: Reg) -> Reg {
        self.compare_floats(UNORDERED, form, group, value, value)
    }

    /// A mask of 32-bit lanes from one of 64-bit lanes. All ones are a NaN, whose upper half a conversion keeps.
    fn narrow_mask(&mut self, wide: Reg, group: Group) -> Outcome<Reg> {
        let width = group.width(Form::Int64);
        self.vector(VectorOp::F32FromF64, width, [wide])
    }

    fn compare_masks(&mut self, op: BinaryOp, group: Group, a: Reg, b: Reg) -> Outcome<Reg> {
        let (not_a, not_b) = (self.not_mask(a, group), self.not_mask(b, group));
        match op {
            BinaryOp::Ne => self.combine_masks(BinaryOp::Xor, group, a, b),
            BinaryOp::Eq => self.combine_masks(BinaryOp::Xor, group, a, not_b),
            BinaryOp::Lt => self.combine_masks(BinaryOp::And, group, not_a, b),
            BinaryOp::Le => self.combine_masks(BinaryOp::Or, group, not_a, b),
            BinaryOp::Gt => self.combine_masks(BinaryOp::And, group, a, not_b),
            _ => self.combine_masks(BinaryOp::Or, group, a, not_b),
        }
    }

    /// A logic operation.
    pub(in crate::simd::build) fn combine_masks(
        &mut self,
        op: BinaryOp,
        group: Group,
        a: Reg,
        b: Reg,
    ) -> Outcome<Reg> {
        let (mask_op, vector_op) = match op {
            BinaryOp::And | BinaryOp::Min => (MaskOp::And, VectorOp::And32),
            BinaryOp::Or | BinaryOp::Max => (MaskOp::Or, VectorOp::Or32),
            BinaryOp::Xor => (MaskOp::Xor, VectorOp::Xor32),
            _ => return Err(Refusal::Operation(op.text())),
        };
        if self.has_mask_registers() {
            return Ok(self.mask_op(mask_op, [a, b]));
        }
        self.vector(vector_op, group.width(Form::Bool), [a, b])
    }

    /// Where both hold.
    pub(in crate::simd::build) fn and_masks(&mut self, a: Reg, b: Reg) -> Reg {
        if self.has_mask_registers() {
            return self.mask_op(MaskOp::And, [a, b]);
        }
        let width = self.full_width();
        self.emit(Class::Vector, Op::Vector(VectorOp::And32), width, [Operand::Reg(a), Operand::Reg(b)])
    }

    fn full_width(&self) -> Width {
        Width::of_bytes(self.extension.bytes())
    }

    /// Logical not.
    pub(in crate::simd::build) fn not_mask(&mut self, a: Reg, group: Group) -> Reg {
        if self.has_mask_registers() {
            return self.mask_op(MaskOp::Not, [a]);
        }
        let ones = self.same(u64::from(u32::MAX), 4);
        let args = [Operand::Reg(a), Operand::Reg(ones)];
        self.emit(Class::Vector, Op::Vector(VectorOp::Xor32), group.width(Form::Bool), args)
    }

    /// `if mask { a } else { b }` in each lane.
    pub(in crate::simd::build) fn blend(
        &mut self,
        mask: Reg,
        a: Reg,
        b: Reg,
        form: Form,
        group: Group,
    ) -> Outcome<Reg> {
        let width = group.width(form);
        if form == Form::Bool {
            let not = self.not_mask(mask, group);
            let a = self.combine_masks(BinaryOp::And, group, mask, a)?;
            let b = self.combine_masks(BinaryOp::And, group, not, b)?;
            return self.combine_masks(BinaryOp::Or, group, a, b);
        }
        if self.has_mask_registers() {
            let op = Op::Vector(pick(form, VectorOp::Blend32, VectorOp::Blend64));
            return Ok(self.masked(Class::Vector, op, width, [Operand::Reg(b), Operand::Reg(a)], Some(mask)));
        }
        let mask = if form.is_wide() { self.vector(VectorOp::I64FromI32, width, [mask])? } else { mask };
        self.vector(VectorOp::BlendBytes, width, [b, a, mask])
    }

    /// A mask as the integers 0 and 1.
    pub(in crate::simd::build) fn mask_to_ints(&mut self, mask: Reg, group: Group) -> Outcome<Reg> {
        let one = self.same(1, 4);
        let width = group.width(Form::Int32);
        if self.has_mask_registers() {
            let op = Op::Vector(VectorOp::Load);
            return Ok(self.masked(Class::Vector, op, width, [Operand::Reg(one)], Some(mask)));
        }
        self.vector(VectorOp::And32, width, [mask, one])
    }

    /// The mask of the lanes in which an integer of 32 bits is not zero.
    pub(in crate::simd::build) fn mask_of_ints(&mut self, value: Reg, group: Group) -> Outcome<Reg> {
        let zero = self.same(0, 4);
        self.compare(BinaryOp::Ne, DType::I32, group, value, zero)
    }

    /// The first lane of a mask in a general register: not zero when it is set.
    pub(in crate::simd::build) fn mask_bit(&mut self, mask: Reg) -> Outcome<Reg> {
        let bits = self.emit(Class::General, Op::Mask(MaskOp::ToGeneral), Width::Xmm, [Operand::Reg(mask)]);
        Ok(self.general(GeneralOp::And, [Operand::Reg(bits), Operand::Imm(1)]))
    }

    /// A mask of all lanes or none, from a general register that holds all bits or none.
    pub(in crate::simd::build) fn broadcast_condition(&mut self, condition: Reg, group: Group) -> Reg {
        if self.has_mask_registers() {
            return self.mask_op(MaskOp::OfGeneral, [condition]);
        }
        let width = group.width(Form::Bool);
        self.emit(Class::Vector, Op::BroadcastGeneral(4), width, [Operand::Reg(condition)])
    }

    /// A comparison of indices that depends on the lane in the simplest way.
    pub(in crate::simd::build) fn as_bounds(&self, expr: &Expr) -> Option<Bounds> {
        let ExprKind::Binary(op, a, b) = expr.kind() else { return None };
        if !op.is_comparison() {
            return None;
        }
        // a < b in each lane where the difference is negative.
        let difference = self.resolve(&(&as_index(a)? - &as_index(b)?));
        let lanes: Vec<_> =
            difference.terms().iter().filter(|term| Index::digit(term.digit.clone()).lanes() > 1).collect();
        let [lane] = lanes[..] else { return None };
        if !matches!(lane.digit.base, Base::Lane(_)) || !lane.digit.is_whole() {
            return None;
        }
        let rest = difference.terms().iter().filter(|term| *term != lane).cloned();
        let rest = Index::from_terms(rest, difference.constant_part());
        let (first, inverted) = match (lane.coefficient, op) {
            // rest + lane < 0
            (1, BinaryOp::Lt) => (rest.scale(-1), false),
            (1, BinaryOp::Le) => (rest.scale(-1).offset(1), false),
            (1, BinaryOp::Ge) => (rest.scale(-1), true),
            (1, BinaryOp::Gt) => (rest.scale(-1).offset(1), true),
            // rest - lane < 0
            (-1, BinaryOp::Lt) => (rest.offset(1), true),
            (-1, BinaryOp::Le) => (rest, true),
            (-1, BinaryOp::Ge) => (rest.offset(1), false),
            (-1, BinaryOp::Gt) => (rest, false),
            _ => return None,
        };
        Some(Bounds { first, inverted })
    }

    /// The mask of such a comparison.
    pub(in crate::simd::build) fn lanes_within(&mut self, bounds: Bounds, group: Group) -> Outcome<Reg> {
        let first = bounds.first.offset(-i64::from(group.start));
        if let Some(count) = first.as_constant() {
            let all = u64::from(u32::MAX);
            let bits = all >> (32 - count.clamp(0, 32));
            let bits = if bounds.inverted { !bits } else { bits };
            return Ok(self.mask_of_bits((bits & all) as u32, group.lanes));
        }
        let count = self.index_register(&first)?;
        let mask = if self.has_mask_registers() {
            let bits = self.general(GeneralOp::LowBits, [Operand::Reg(count)]);
            self.mask_op(MaskOp::OfGeneral, [bits])
        } else {
            self.lanes_below(count, group)?
        };
        Ok(if bounds.inverted { self.not_mask(mask, group) } else { mask })
    }

    /// The mask of as many lanes as a general register says, without mask registers.
    fn lanes_below(&mut self, count: Reg, group: Group) -> Outcome<Reg> {
        // Lanes have 32 bits, and the count has 64.
        let count = self.general(GeneralOp::Max, [Operand::Reg(count), Operand::Imm(0)]);
        let count = self.general(GeneralOp::Min, [Operand::Reg(count), Operand::Imm(i64::from(group.lanes))]);
        let width = group.width(Form::Bool);
        let count = self.emit(Class::Vector, Op::BroadcastGeneral(4), width, [Operand::Reg(count)]);
        let numbers: Vec<u8> = (0..group.lanes).flat_map(u32::to_le_bytes).collect();
        let numbers = self.bytes_constant(&numbers);
        self.vector(VectorOp::Greater32, width, [count, numbers])
    }
}

/// An expression that is nothing but an index.
pub(in crate::simd::build) fn as_index(expr: &Expr) -> Option<Index> {
    match expr.kind() {
        ExprKind::Index(index) => Some(index.clone()),
        ExprKind::Constant(Constant::Int(value)) if expr.dtype() == DType::I64 => {
            Some(Index::constant(*value))
        }
        _ => None,
    }
}

/// False when an operand is NaN, except for `!=`.
fn float_predicate(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Eq => 0x00,
        BinaryOp::Ne => 0x04,
        BinaryOp::Lt => 0x11,
        BinaryOp::Le => 0x12,
        BinaryOp::Gt => 0x1E,
        _ => 0x1D,
    }
}

fn int_predicate(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Eq => 0,
        BinaryOp::Lt => 1,
        BinaryOp::Le => 2,
        BinaryOp::Ne => 4,
        BinaryOp::Ge => 5,
        _ => 6,
    }
}
