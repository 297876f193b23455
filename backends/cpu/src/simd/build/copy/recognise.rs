//! Recognition of statements that copy narrow elements: their source and conditions.

use rustc_hash::FxHashMap;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind};
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::stmt::Store;

use super::{Condition, Copy, LaneRange};
use crate::flat::access::can_report;
use crate::simd::build::Builder;
use crate::simd::build::stmt::registers::single;
use crate::simd::build::value::mask::as_index;

/// The fewest lanes of a copy that is made by permutations.
const FEWEST_LANES: u32 = 4;

impl Builder<'_> {
    /// The copy that a statement is, if it copies narrow elements and does nothing else.
    pub(super) fn as_copy(&mut self, node: &Store) -> Option<Copy> {
        let dtype = self.program.buffer(node.buffer).dtype;
        let Parts { from, index, choices, otherwise } = parts_of(&node.value)?;
        let into_index = single(&node.indices)?;
        let count = into_index.lanes();
        // An index that may fail is computed for active lanes only, which a plain copy cannot do.
        let may_fail = !choices.is_empty() && can_report(&node.value);
        let is_plain = !may_fail
            && dtype.bytes() < 4
            && count >= FEWEST_LANES
            && index.lanes() == count
            && from != node.buffer
            && self.program.buffer(from).dtype == dtype
            && !self.is_in_registers(from)
            && !self.is_in_registers(node.buffer);
        if !is_plain {
            return None;
        }
        let (into_scalar, places) = self.lane_offsets(&into_index)?;
        if places.iter().zip(0..).any(|(place, lane)| *place != places[0] + lane) {
            return None;
        }
        let (scalar, offsets) = self.lane_offsets(&index)?;
        let mut copy = Copy {
            into: node.buffer,
            first: into_scalar.offset(places[0]),
            from,
            scalar,
            lanes: offsets.iter().copied().map(Some).collect(),
            conditions: Vec::new(),
            otherwise: 0,
            size: dtype.bytes(),
        };
        if !choices.is_empty() {
            copy.otherwise = bits_of(dtype, otherwise)?;
            let mut known = self.facts.clone();
            for (condition, wanted) in choices {
                self.add_conditions(condition, wanted, &mut copy)?;
                known = self.knowing(&known, condition, wanted);
            }
            if !self.is_inside_given(&known, copy.from, &index) {
                self.add_bounds(&index, &mut copy)?;
            }
            self.settle(&mut copy);
        }
        Some(copy)
    }

    /// Adds a condition or its opposite; `None` when it is not known lane by lane.
    fn add_conditions(&self, expr: &Expr, wanted: bool, copy: &mut Copy) -> Option<()> {
        let ExprKind::Binary(op, a, b) = expr.kind() else { return None };
        match (op, wanted) {
            (BinaryOp::And, true) | (BinaryOp::Or, false) => {
                self.add_conditions(a, wanted, copy)?;
                return self.add_conditions(b, wanted, copy);
            }
            _ => {}
        }
        let (a, b) = (as_index(a)?, as_index(b)?);
        let at_least = match (op, wanted) {
            (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => (&b - &a).offset(-1),
            (BinaryOp::Le, true) | (BinaryOp::Gt, false) => &b - &a,
            (BinaryOp::Gt, true) | (BinaryOp::Le, false) => (&a - &b).offset(-1),
            (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => &a - &b,
            _ => return None,
        };
        self.add_condition(&at_least, copy)
    }

    fn add_condition(&self, at_least_zero: &Index, copy: &mut Copy) -> Option<()> {
        let (scalar, lanes) = self.lane_offsets(at_least_zero)?;
        let lanes = match lanes.len() {
            1 => vec![lanes[0]; copy.lanes.len()],
            _ => lanes.to_vec(),
        };
        if lanes.len() == copy.lanes.len() {
            copy.conditions.push(Condition { scalar, lanes });
            return Some(());
        }
        None
    }

    /// Adds the condition that an active element lies inside its buffer; `None` when that is not known lane by lane. Lanes with
    /// the same conditions are active together: the outermost ones decide for all.
    fn add_bounds(&self, index: &Index, copy: &mut Copy) -> Option<()> {
        let all = LaneRange { start: 0, end: copy.lanes.len() };
        let are_uniform = copy.conditions.iter().all(|condition| condition.is_uniform(all));
        let own = copy.conditions.len();
        let after = &self.extent_of(copy.from) - index;
        self.add_condition(index, copy)?;
        self.add_condition(&after.offset(-1), copy)?;
        if are_uniform {
            for bound in &mut copy.conditions[own..] {
                let least = *bound.lanes.iter().min()?;
                bound.lanes.fill(least);
            }
        }
        Some(())
    }

    /// Decides conditions that are constant: lanes that are never copied, and conditions that always hold in the other lanes.
    fn settle(&self, copy: &mut Copy) {
        let is_nonnegative = |index: Index| self.facts.prove_nonnegative(&index, &self.ranges);
        for condition in &copy.conditions {
            // Lanes that add the same share a proof.
            let mut fails = FxHashMap::default();
            for (lane, added) in copy.lanes.iter_mut().zip(&condition.lanes) {
                let opposite = || condition.scalar.offset(added + 1).scale(-1);
                if *fails.entry(*added).or_insert_with(|| is_nonnegative(opposite())) {
                    *lane = None;
                }
            }
        }
        let lanes = &copy.lanes;
        copy.conditions.retain(|condition| {
            let wanted = condition.lanes.iter().zip(lanes).filter(|(_, lane)| lane.is_some());
            // A lane that adds less than another one may fail where that one holds.
            let least = wanted.map(|(added, _)| *added).min();
            least.is_some_and(|least| !is_nonnegative(condition.scalar.offset(least)))
        });
    }
}

/// A load, its conditions, and the value where one of them fails.
pub(super) struct Parts<'a> {
    from: BufferId,
    pub(super) index: Index,
    /// Conditions, each with the result that it must have.
    pub(super) choices: Vec<(&'a Expr, bool)>,
    otherwise: Constant,
}

/// The parts of a value that is a load under conditions and nothing else, with one constant where any of them fails.
pub(super) fn parts_of(value: &Expr) -> Option<Parts<'_>> {
    let (mut value, mut choices, mut constant) = (value, Vec::new(), None);
    while let ExprKind::Select(condition, then, otherwise) = value.kind() {
        let (next, own, wanted) = match (then.as_constant(), otherwise.as_constant()) {
            (None, Some(own)) => (then, own, true),
            (Some(own), None) => (otherwise, own, false),
            _ => return None,
        };
        if *constant.get_or_insert(own) != own {
            return None;
        }
        choices.push((condition, wanted));
        value = next;
    }
    let ExprKind::Load(buffer, indices) = value.kind() else { return None };
    let otherwise = constant.unwrap_or(Constant::Int(0));
    Some(Parts { from: *buffer, index: single(indices)?, choices, otherwise })
}

/// The bits of a constant of a narrow type.
fn bits_of(dtype: DType, constant: Constant) -> Option<u64> {
    let value = constant.as_f64();
    Some(match dtype {
        DType::I8 => u64::from(value as i8 as u8),
        DType::U8 => u64::from(value as u8),
        DType::Bool => u64::from(value != 0.0),
        // Every value of these types is one of `f64`.
        DType::F16 => u64::from(half::f16::from_f64(value).to_bits()),
        DType::BF16 => u64::from(half::bf16::from_f64(value).to_bits()),
        _ => return None,
    })
}
