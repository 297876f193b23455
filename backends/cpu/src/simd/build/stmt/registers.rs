//! Intermediates in registers.
//!
//! An intermediate whose every access is at a constant range needs no memory: its elements are variables of the leaf.
//! This is what keeps accumulators in registers across the reduction. The elements are cut into segments as the
//! groups of the accesses are; scalar accesses may touch single lanes of a segment, and what only reads may read
//! a half, a quarter and so on, as sums of the lanes of one register do.

use tilewright_core::expr::Expr;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::stmt::{Alloc, Stmt};

use crate::flat::access::for_each_load;
use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{Class, Inst, Item, Op, Operand, Reg, Width};
use crate::simd::x86::VectorOp;
use crate::simd::{Intermediates, Refusal};

/// The most elements of an intermediate in registers.
const MOST_ELEMENTS: i64 = 2048;

/// An intermediate in registers, in order of the segments' first elements.
pub(in crate::simd::build) struct RegisterBuffer {
    form: Form,
    /// Whether the elements are bytes, packed.
    is_packed: bool,
    segments: Vec<Segment>,
}

#[derive(Clone, Copy)]
struct Segment {
    start: u32,
    lanes: u32,
    variable: Reg,
}

/// The elements that an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::simd::build) struct ElementRange {
    /// The first element.
    pub(in crate::simd::build) start: u32,
    /// The number of elements.
    pub(in crate::simd::build) lanes: u32,
    /// Whether it may be a part of a segment.
    pub(in crate::simd::build) is_part: bool,
}

impl ElementRange {
    /// Whether one move brings these elements to the beginning of a register that holds `lanes` elements from `start` on.
    fn is_part_of(self, (start, lanes): (u32, u32)) -> bool {
        let offset = self.start - start;
        self.is_part
            && self.lanes.is_power_of_two()
            && offset.is_multiple_of(self.lanes)
            && offset + self.lanes <= lanes
    }
}

/// The elements that some accesses touch.
pub(in crate::simd::build) type ElementRanges = Vec<ElementRange>;

impl RegisterBuffer {
    /// The bytes of an element.
    fn element_bytes(&self) -> u32 {
        if self.is_packed { 1 } else { self.form.bytes() }
    }

    fn segment(&self, element: u32) -> Option<Segment> {
        let after = self.segments.partition_point(|segment| segment.start <= element);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        (element < segment.start + segment.lanes).then_some(*segment)
    }
}

/// The first element of a group of an access at a constant range.
fn constant_range(index: &Index) -> Option<(u32, u32)> {
    let lanes = index.lanes();
    let start =
        if lanes == 1 { index.as_constant()? } else { (index - &Index::lane(lanes)).as_constant()? };
    Some((u32::try_from(start).ok()?, lanes))
}

/// Cuts into the groups of all accesses; `None` when groups of different accesses overlap and none can be taken from the other.
fn cut(ranges: ElementRanges) -> Option<Vec<(u32, u32)>> {
    let (mut scalars, mut vectors): (ElementRanges, ElementRanges) =
        ranges.into_iter().partition(|range| range.lanes == 1);
    // Of those with the same beginning the longest one first.
    vectors.sort_unstable_by_key(|range| (range.start, std::cmp::Reverse(range.lanes)));
    let mut segments: Vec<(u32, u32)> = Vec::new();
    for range in vectors {
        match segments.last() {
            Some(last) if range.start < last.0 + last.1 => {
                if *last != (range.start, range.lanes) && !range.is_part_of(*last) {
                    return None;
                }
            }
            _ => segments.push((range.start, range.lanes)),
        }
    }
    scalars.sort_unstable();
    scalars.dedup_by_key(|range| range.start);
    scalars.retain(|range| {
        !segments.iter().any(|(start, lanes)| (*start..start + lanes).contains(&range.start))
    });
    segments.extend(scalars.into_iter().map(|range| (range.start, 1)));
    segments.sort_unstable();
    Some(segments)
}

/// Whether a statement changes elements of a buffer depending on what they were.
fn is_updated(stmt: &Stmt, buffer: BufferId) -> bool {
    match stmt {
        Stmt::Store(store) if store.buffer == buffer => {
            let mut is_read = false;
            for_each_load(&store.value, &mut |access| is_read |= access.buffer == buffer);
            is_read
        }
        _ => stmt.children().into_iter().any(|child| is_updated(child, buffer)),
    }
}

impl Builder<'_> {
    /// The variables of an allocation's intermediate, or `None` when it has to be in memory.
    pub(in crate::simd::build) fn register_buffer_of(&mut self, node: &Alloc) -> Option<RegisterBuffer> {
        let buffer = self.program.buffer(node.buffer);
        let elements = buffer.constant_len().filter(|elements| *elements <= MOST_ELEMENTS)?;
        let form = Form::of(buffer.dtype);
        let is_allowed = match self.limits.intermediates {
            Intermediates::All => true,
            Intermediates::Sums => is_updated(&node.body, node.buffer),
            Intermediates::None => false,
        };
        if form == Form::Bool || !is_allowed {
            return None;
        }
        let mut ranges = Vec::new();
        if !self.ranges(&node.body, node.buffer, &mut ranges) {
            return None;
        }
        if ranges.iter().any(|range| i64::from(range.start) + i64::from(range.lanes) > elements) {
            return None;
        }
        let is_packed = self.holds_packed_bytes(node.buffer);
        let accessed = ranges.clone();
        let ranges = cut(ranges)?;
        let is_whole = |range: &ElementRange| ranges.contains(&(range.start, range.lanes));
        if is_packed && !accessed.iter().all(is_whole) {
            return None;
        }
        if ranges.len() > self.extension.registers() as usize {
            return None;
        }
        let segments = ranges.into_iter().map(|(start, lanes)| {
            let variable = self.register(Class::Vector);
            Segment { start, lanes, variable }
        });
        Some(RegisterBuffer { form, is_packed, segments: segments.collect() })
    }

    /// Collects the groups of all accesses to a buffer; false when some access is not at a constant range.
    fn ranges(&mut self, stmt: &Stmt, buffer: BufferId, found: &mut ElementRanges) -> bool {
        let mut constant = true;
        match stmt {
            Stmt::Store(store) => {
                let groups = self.groups_of_store(store);
                let mut visit = |indices: &[Index], is_part: bool| match single(indices)
                    .and_then(|index| constant_range(&index))
                {
                    Some((start, 1)) => found.push(ElementRange { start, lanes: 1, is_part }),
                    Some((start, _)) => found.extend(groups.iter().map(|group| {
                        let start = start + group.start;
                        ElementRange { start, lanes: group.lanes, is_part }
                    })),
                    None => constant = false,
                };
                let mut elsewhere = |expr: &Expr| {
                    for_each_load(expr, &mut |access| {
                        if access.buffer == buffer {
                            visit(access.indices, true);
                        }
                    });
                };
                elsewhere(&store.value);
                for index in &store.indices {
                    elsewhere(&Expr::index(index.clone()));
                }
                if store.buffer == buffer {
                    visit(&store.indices, false);
                }
            }
            Stmt::If(node) => for_each_load(&node.condition, &mut |access| {
                constant &= access.buffer != buffer;
            }),
            Stmt::For(node) => for_each_load(&Expr::index(node.extent.clone()), &mut |access| {
                constant &= access.buffer != buffer;
            }),
            Stmt::Intrinsic(_) => return self.intrinsic_ranges(stmt, buffer, found),
            _ => {}
        }
        constant && stmt.children().into_iter().all(|child| self.ranges(child, buffer, found))
    }

    /// Reads a group of an intermediate in registers, whose first element is `first`. The result may be the variable
    /// itself, with more lanes behind those of the group.
    pub(in crate::simd::build) fn read_registers(
        &mut self,
        buffer: BufferId,
        first: u32,
        group: Group,
    ) -> Outcome<Reg> {
        let tile = self.register_buffers.get(&buffer).ok_or(Refusal::Access)?;
        let (form, segment) = (tile.form, tile.segment(first).ok_or(Refusal::Access)?);
        let offset = first - segment.start;
        if offset + group.lanes > segment.lanes {
            return Err(Refusal::Access);
        }
        if offset == 0 {
            return Ok(segment.variable);
        }
        let width = Width::of_bytes(segment.lanes * form.bytes());
        let dst = self.register(Class::Vector);
        let bytes = if group.lanes == 1 { form.bytes() } else { 8 };
        let mut inst =
            Inst::new(Op::Extract(bytes as u8), width, Some(dst), [Operand::Reg(segment.variable)]);
        inst.immediate = (offset * form.bytes() / bytes) as u8;
        self.push(inst);
        Ok(dst)
    }

    /// Writes a group of an intermediate in registers.
    pub(in crate::simd::build) fn write_registers(
        &mut self,
        buffer: BufferId,
        first: u32,
        group: Group,
        value: Reg,
    ) -> Outcome<()> {
        let tile = self.register_buffers.get(&buffer).ok_or(Refusal::Access)?;
        let (form, segment) = (tile.form, tile.segment(first).ok_or(Refusal::Access)?);
        let is_packed = tile.is_packed;
        if segment.start == first && segment.lanes == group.lanes {
            let width = Width::of_bytes(group.lanes * tile.element_bytes());
            self.assign(segment.variable, value, width);
            return Ok(());
        }
        if group.lanes != 1 || is_packed {
            return Err(Refusal::Access);
        }
        let whole = Group { lanes: segment.lanes, ..group };
        let lane = self.lane_mask(first - segment.start, segment.lanes)?;
        let broadcast = self.broadcast_register(value, form, whole);
        let blended = self.blend(lane, broadcast, segment.variable, form, whole)?;
        self.assign(segment.variable, blended, whole.width(form));
        Ok(())
    }

    /// Gives a variable a value: in the instruction that computes it, where that is the last one.
    fn assign(&mut self, variable: Reg, value: Reg, width: Width) {
        if let Some(constant) = self.code.of(value).constant {
            self.push(Inst::new(Op::Constant(constant), width, Some(variable), []));
            return;
        }
        let is_variable = self.is_variable(value);
        let scope = self.scope();
        scope.loads.retain(|(_, reg)| *reg != value);
        if let Some(Item::Inst(inst)) = scope.items.last_mut()
            && inst.dst == Some(value)
            && !is_variable
        {
            inst.dst = Some(variable);
            self.memos.iter_mut().for_each(|memo| memo.retain(|_, reg| *reg != value));
            return;
        }
        let load = Op::Vector(VectorOp::Load);
        self.push(Inst::new(load, width, Some(variable), [Operand::Reg(value)]));
    }

    /// Whether a register is a variable of an intermediate.
    pub(in crate::simd::build) fn is_variable(&self, reg: Reg) -> bool {
        self.register_buffers.values().any(|tile| tile.segments.iter().any(|own| own.variable == reg))
    }

    /// Whether an intermediate is in registers.
    pub(in crate::simd::build) fn is_in_registers(&self, buffer: BufferId) -> bool {
        self.register_buffers.contains_key(&buffer)
    }

    /// The variable that holds `lanes` lanes of an intermediate in registers, from an index on.
    pub(in crate::simd::build) fn register_variable(
        &self,
        buffer: BufferId,
        first: &Index,
        lanes: u32,
    ) -> Outcome<Reg> {
        let tile = self.register_buffers.get(&buffer).ok_or(Refusal::Access)?;
        let (start, _) = constant_range(&self.resolve(first)).ok_or(Refusal::Access)?;
        let segment = tile.segment(start).ok_or(Refusal::Access)?;
        if segment.start != start || segment.lanes != lanes {
            return Err(Refusal::Access);
        }
        Ok(segment.variable)
    }

    /// The first element of a group of an access to an intermediate in registers.
    pub(in crate::simd::build) fn element_of(&self, index: &Index, group: Group) -> Outcome<u32> {
        let (start, lanes) = constant_range(&self.resolve(index)).ok_or(Refusal::Access)?;
        Ok(if lanes == 1 { start } else { start + group.start })
    }
}

/// The only index of an access.
pub(in crate::simd::build) fn single(indices: &[Index]) -> Option<Index> {
    match indices {
        [] => Some(Index::constant(0)),
        [index] => Some(index.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(all: &[(u32, u32, bool)]) -> ElementRanges {
        all.iter()
            .map(|(start, lanes, is_part)| ElementRange { start: *start, lanes: *lanes, is_part: *is_part })
            .collect()
    }

    #[test]
    fn equal_cuts_are_shared_and_scalars_may_touch_lanes() {
        let all = [(0, 16, false), (16, 16, true), (0, 16, true)];
        assert_eq!(cut(ranges(&all)), Some(vec![(0, 16), (16, 16)]));
        let all = [(0, 16, false), (3, 1, false), (17, 1, true), (17, 1, false)];
        assert_eq!(cut(ranges(&all)), Some(vec![(0, 16), (17, 1)]));
        assert_eq!(cut(ranges(&[(0, 16, true), (8, 16, true)])), None);
        assert_eq!(cut(ranges(&[])), Some(vec![]));
    }

    #[test]
    fn what_reads_may_read_a_part() {
        let all = [(4, 4, true), (0, 8, false), (0, 4, true), (6, 2, true)];
        assert_eq!(cut(ranges(&all)), Some(vec![(0, 8)]));
        assert_eq!(cut(ranges(&[(0, 8, false), (4, 4, false)])), None, "a part that is written");
        assert_eq!(cut(ranges(&[(0, 8, false), (2, 4, true)])), None, "lanes of two halves");
        assert_eq!(cut(ranges(&[(0, 7, false), (4, 4, true)])), None, "more than there is");
    }
}
