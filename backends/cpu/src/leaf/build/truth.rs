//! Comparisons and truth values.
//!
//! With AVX-512 the truth values of a group are the bits of a mask, without it lanes of 32 bits that are all zeros or
//! all ones. What lies beyond the lanes of the group is unspecified.

use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind};
use tilewright_core::index::{Base, Index};

use super::arith::pick;
use super::group::{Form, Group};
use super::scope::Key;
use super::{Builder, Outcome};
use crate::leaf::encode::VectorOp;
use crate::leaf::ir::{Class, GeneralOp, Inst, MaskOp, Op, Operand, Reg, Width};
use crate::leaf::{Level, Refusal};

/// A comparison that holds in the first lanes only, or in all but those.
pub(super) struct Bounds {
    /// The number of lanes.
    first: Index,
    /// Whether it holds in the others instead.
    inverted: bool,
}

/// The predicate of a comparison that holds when an operand is NaN.
const UNORDERED: u8 = 3;

impl Builder<'_> {
    fn has_masks(&self) -> bool {
        self.features == Level::Avx512
    }

    fn mask_op(&mut self, op: MaskOp, args: impl IntoIterator<Item = Reg>) -> Reg {
        self.emit(Class::Mask, Op::Mask(op), Width::Xmm, args.into_iter().map(Operand::Reg))
    }

    /// The mask of these lanes.
    fn mask_of_bits(&mut self, bits: u32) -> Reg {
        let mask = self.value_at(0, Key::Mask(bits), |this| {
            let general = this.integer(Operand::Imm(i64::from(bits)));
            Ok::<_, std::convert::Infallible>(this.mask_op(MaskOp::OfGeneral, [general]))
        });
        mask.unwrap_or_else(|never| match never {})
    }

    /// The mask of the first lanes.
    pub(super) fn mask_of_lanes(&mut self, lanes: u32) -> Reg {
        self.mask_of_bits(u32::MAX >> (32 - lanes))
    }

    /// The truth values that hold in one lane of `lanes` alone.
    pub(super) fn lane_mask(&mut self, lane: u32, lanes: u32) -> Outcome<Reg> {
        Ok(self.truth_of_bits(1 << lane, lanes))
    }

    /// The truth values that hold in the lanes whose bits are set.
    pub(super) fn truth_of_bits(&mut self, bits: u32, lanes: u32) -> Reg {
        if self.has_masks() {
            return self.mask_of_bits(bits);
        }
        let lane = |own: u32| -((bits >> own & 1) as i32);
        let bytes: Vec<u8> = (0..lanes).flat_map(|own| lane(own).to_le_bytes()).collect();
        self.bytes_constant(&bytes)
    }

    /// A constant truth value.
    pub(super) fn truth_constant(&mut self, truth: bool, group: Group) -> Outcome<Reg> {
        Ok(match (self.has_masks(), truth) {
            (true, true) => self.mask_of_lanes(group.lanes),
            (true, false) => self.mask_of_bits(0),
            (false, _) => self.same(if truth { u64::from(u32::MAX) } else { 0 }, 4),
        })
    }

    /// A comparison.
    pub(super) fn compare(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        group: Group,
        a: Reg,
        b: Reg,
    ) -> Outcome<Reg> {
        let form = Form::of(dtype);
        match form {
            Form::Truth => self.compare_truth(op, group, a, b),
            Form::Float32 | Form::Float64 => Ok(self.compare_floats(float_predicate(op), form, group, a, b)),
            _ if self.has_masks() => {
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
                let result = if form.is_wide() { self.narrow_truth(result, group)? } else { result };
                Ok(if inverted { self.not_truth(result, group) } else { result })
            }
        }
    }

    fn compare_floats(&mut self, predicate: u8, form: Form, group: Group, a: Reg, b: Reg) -> Reg {
        let op = Op::Vector(pick(form, VectorOp::CompareF32, VectorOp::CompareF64));
        let class = if self.has_masks() { Class::Mask } else { Class::Vector };
        let dst = self.register(class);
        let mut inst = Inst::new(op, group.width(form), Some(dst), [Operand::Reg(a), Operand::Reg(b)]);
        inst.immediate = predicate;
        self.push(inst);
        if !self.has_masks() && form.is_wide() {
            return self.narrow_truth(dst, group).unwrap_or(dst);
        }
        dst
    }

    /// Whether a float is NaN.
    pub(super) fn unordered(&mut self, form: Form, group: Group, value: Reg) -> Reg {
        self.compare_floats(UNORDERED, form, group, value, value)
    }

    /// Truth values of 32 bits from those of 64 bits. All ones are a NaN, whose upper half a conversion keeps.
    fn narrow_truth(&mut self, wide: Reg, group: Group) -> Outcome<Reg> {
        let width = group.width(Form::Int64);
        self.vector(VectorOp::F32FromF64, width, [wide])
    }

    fn compare_truth(&mut self, op: BinaryOp, group: Group, a: Reg, b: Reg) -> Outcome<Reg> {
        let (not_a, not_b) = (self.not_truth(a, group), self.not_truth(b, group));
        match op {
            BinaryOp::Ne => self.binary_truth(BinaryOp::Xor, group, a, b),
            BinaryOp::Eq => self.binary_truth(BinaryOp::Xor, group, a, not_b),
            BinaryOp::Lt => self.binary_truth(BinaryOp::And, group, not_a, b),
            BinaryOp::Le => self.binary_truth(BinaryOp::Or, group, not_a, b),
            BinaryOp::Gt => self.binary_truth(BinaryOp::And, group, a, not_b),
            _ => self.binary_truth(BinaryOp::Or, group, a, not_b),
        }
    }

    /// A logic operation.
    pub(super) fn binary_truth(&mut self, op: BinaryOp, group: Group, a: Reg, b: Reg) -> Outcome<Reg> {
        let (mask_op, vector_op) = match op {
            BinaryOp::And | BinaryOp::Min => (MaskOp::And, VectorOp::And32),
            BinaryOp::Or | BinaryOp::Max => (MaskOp::Or, VectorOp::Or32),
            BinaryOp::Xor => (MaskOp::Xor, VectorOp::Xor32),
            _ => return Err(Refusal::Operation(op.text())),
        };
        if self.has_masks() {
            return Ok(self.mask_op(mask_op, [a, b]));
        }
        self.vector(vector_op, group.width(Form::Truth), [a, b])
    }

    /// Where both hold.
    pub(super) fn both_truths(&mut self, a: Reg, b: Reg) -> Reg {
        if self.has_masks() {
            return self.mask_op(MaskOp::And, [a, b]);
        }
        let width = self.features_width();
        self.emit(Class::Vector, Op::Vector(VectorOp::And32), width, [Operand::Reg(a), Operand::Reg(b)])
    }

    fn features_width(&self) -> Width {
        Width::of_bytes(self.features.bytes())
    }

    /// Logical not.
    pub(super) fn not_truth(&mut self, a: Reg, group: Group) -> Reg {
        if self.has_masks() {
            return self.mask_op(MaskOp::Not, [a]);
        }
        let ones = self.same(u64::from(u32::MAX), 4);
        let args = [Operand::Reg(a), Operand::Reg(ones)];
        self.emit(Class::Vector, Op::Vector(VectorOp::Xor32), group.width(Form::Truth), args)
    }

    /// `if truth { a } else { b }` in each lane.
    pub(super) fn choose(&mut self, truth: Reg, a: Reg, b: Reg, form: Form, group: Group) -> Outcome<Reg> {
        let width = group.width(form);
        if form == Form::Truth {
            let not = self.not_truth(truth, group);
            let a = self.binary_truth(BinaryOp::And, group, truth, a)?;
            let b = self.binary_truth(BinaryOp::And, group, not, b)?;
            return self.binary_truth(BinaryOp::Or, group, a, b);
        }
        if self.has_masks() {
            let op = Op::Vector(pick(form, VectorOp::Blend32, VectorOp::Blend64));
            return Ok(self.masked(
                Class::Vector,
                op,
                width,
                [Operand::Reg(b), Operand::Reg(a)],
                Some(truth),
            ));
        }
        let truth = if form.is_wide() { self.vector(VectorOp::I64FromI32, width, [truth])? } else { truth };
        self.vector(VectorOp::BlendBytes, width, [b, a, truth])
    }

    /// Truth values as the integers 0 and 1.
    pub(super) fn truth_to_ints(&mut self, truth: Reg, group: Group) -> Outcome<Reg> {
        let one = self.same(1, 4);
        let width = group.width(Form::Int32);
        if self.has_masks() {
            let op = Op::Vector(VectorOp::Load);
            return Ok(self.masked(Class::Vector, op, width, [Operand::Reg(one)], Some(truth)));
        }
        self.vector(VectorOp::And32, width, [truth, one])
    }

    /// Truth values that are true where an integer of 32 bits is not zero.
    pub(super) fn truth_of_ints(&mut self, value: Reg, group: Group) -> Outcome<Reg> {
        let zero = self.same(0, 4);
        self.compare(BinaryOp::Ne, DType::I32, group, value, zero)
    }

    /// A scalar truth value in a general register: not zero when it holds.
    pub(super) fn truth_bits(&mut self, truth: Reg) -> Outcome<Reg> {
        let bits = self.emit(Class::General, Op::Mask(MaskOp::ToGeneral), Width::Xmm, [Operand::Reg(truth)]);
        Ok(self.general(GeneralOp::And, [Operand::Reg(bits), Operand::Imm(1)]))
    }

    /// Truth values that are all what a general register says, which holds no bits or all.
    pub(super) fn spread_condition(&mut self, condition: Reg, group: Group) -> Reg {
        if self.has_masks() {
            return self.mask_op(MaskOp::OfGeneral, [condition]);
        }
        let width = group.width(Form::Truth);
        self.emit(Class::Vector, Op::SpreadGeneral(4), width, [Operand::Reg(condition)])
    }

    /// A comparison of indices that depends on the lane in the simplest way.
    pub(super) fn as_bounds(&self, expr: &Expr) -> Option<Bounds> {
        let ExprKind::Binary(op, a, b) = expr.kind() else { return None };
        if !self.has_masks() || !op.is_comparison() {
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

    /// The truth values of such a comparison.
    pub(super) fn lanes_within(&mut self, bounds: Bounds, group: Group) -> Outcome<Reg> {
        let first = bounds.first.offset(-i64::from(group.start));
        let count = self.index_register(&first)?;
        let bits = self.general(GeneralOp::LowBits, [Operand::Reg(count)]);
        let mask = self.mask_op(MaskOp::OfGeneral, [bits]);
        Ok(if bounds.inverted { self.not_truth(mask, group) } else { mask })
    }
}

/// An expression that is nothing but an index.
pub(super) fn as_index(expr: &Expr) -> Option<Index> {
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
