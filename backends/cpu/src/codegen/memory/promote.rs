//! Intermediates in registers.
//!
//! A small intermediate whose every access is at a constant place needs no memory: its elements become
//! variables in static single assignment form. This is what keeps the accumulators of a register
//! tile in registers across the reduction loop.
//!
//! The elements are cut into segments as the vector accesses group them. Scalar accesses may touch single lanes
//! of a segment. When two vector accesses cut differently, the intermediate stays in memory.

use std::rc::Rc;

use cranelift_codegen::ir::InstBuilder;
use cranelift_frontend::Variable;
use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::stmt::Alloc;

use crate::codegen::value::lanes::{Form, Group, Lanes, Width};
use crate::codegen::{Generator, Outcome, Storage};
use crate::flat::access::for_each_access;

/// The most registers that one intermediate may take. Values that do not fit the machine's registers are spilled by the
/// register allocator, which is no worse than memory, but costs it time.
const MOST_REGISTERS: usize = 64;

/// The most elements of an intermediate in registers.
const MOST_ELEMENTS: u64 = 256;

/// How an intermediate is cut into segments, in order of their first elements.
#[derive(Clone, Debug)]
pub(in crate::codegen) struct Layout(Vec<(u32, Width)>);

/// An intermediate in registers.
pub(in crate::codegen) struct Registers {
    dtype: DType,
    segments: Vec<Segment>,
}

struct Segment {
    start: u32,
    width: Width,
    variables: SmallVec<[Variable; 2]>,
}

/// How the intermediate of an allocation can be cut, or `None` when it has to be in memory.
pub(in crate::codegen) fn layout(node: &Alloc, dtype: DType, elements: u64) -> Option<Layout> {
    if elements > MOST_ELEMENTS {
        return None;
    }
    let mut accesses: Option<Vec<(u32, u32)>> = Some(Vec::new());
    for_each_access(&node.body, &mut |access| {
        if access.buffer != node.buffer {
            return;
        }
        let place = constant_place(access.indices).filter(|_| !access.in_parallel);
        let place = place.filter(|(start, lanes)| u64::from(*start) + u64::from(*lanes) <= elements);
        match (&mut accesses, place) {
            (Some(accesses), Some(place)) => accesses.push(place),
            _ => accesses = None,
        }
    });
    let layout = cut(accesses?)?;
    let form = Form::of(dtype);
    let registers: usize = layout.0.iter().map(|(_, width)| 1 + usize::from(form.is_split(*width))).sum();
    (registers <= MOST_REGISTERS).then_some(layout)
}

/// The first element and the number of consecutive lanes of an access, when it is at a constant place.
fn constant_place(indices: &[Index]) -> Option<(u32, u32)> {
    let index = match indices {
        [] => return Some((0, 1)),
        [index] => index,
        _ => return None,
    };
    let lanes = index.lanes();
    let start =
        if lanes == 1 { index.as_constant()? } else { (index - &Index::lane(lanes)).as_constant()? };
    Some((u32::try_from(start).ok()?, lanes))
}

/// Cuts into the groups of all accesses; `None` when groups of different accesses overlap without being equal.
fn cut(accesses: Vec<(u32, u32)>) -> Option<Layout> {
    let mut vectors: Vec<(u32, Width)> = Vec::new();
    let mut scalars: Vec<u32> = Vec::new();
    for (start, lanes) in accesses {
        for group in Group::of(lanes) {
            match group.width {
                Width::One => scalars.push(start + group.start),
                width => vectors.push((start + group.start, width)),
            }
        }
    }
    vectors.sort_by_key(|(start, width)| (*start, width.lanes()));
    vectors.dedup();
    if vectors.windows(2).any(|pair| pair[0].0 + pair[0].1.lanes() > pair[1].0) {
        return None;
    }
    scalars.sort_unstable();
    scalars.dedup();
    let covered = |element: u32| {
        vectors.iter().any(|(start, width)| (*start..start + width.lanes()).contains(&element))
    };
    scalars.retain(|element| !covered(*element));
    vectors.extend(scalars.into_iter().map(|element| (element, Width::One)));
    vectors.sort_by_key(|(start, _)| *start);
    Some(Layout(vectors))
}

impl Registers {
    /// The segment that holds an element.
    fn segment(&self, element: u32) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.start <= element);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        (element < segment.start + segment.width.lanes()).then_some(segment)
    }
}

impl Generator<'_> {
    /// Makes the variables of an intermediate. They begin as zero, which nothing reads in a program that
    /// stores before it loads.
    pub(in crate::codegen) fn make_registers(&mut self, dtype: DType, layout: &Layout) -> Storage {
        let form = Form::of(dtype);
        let mut segments = Vec::new();
        for &(start, width) in &layout.0 {
            let zero = self.zero(form, width);
            let variables = zero
                .registers()
                .map(|register| {
                    let variable = self.builder.declare_var(form.register(width));
                    self.builder.def_var(variable, register);
                    variable
                })
                .collect();
            segments.push(Segment { start, width, variables });
        }
        Storage::Registers(Rc::new(Registers { dtype, segments }))
    }

    /// Reads a group of an intermediate in registers; the index is that of the group's first lane.
    pub(in crate::codegen) fn read_registers(
        &mut self,
        registers: &Registers,
        first: u32,
        width: Width,
    ) -> Outcome<Lanes> {
        let Some(segment) = registers.segment(first) else {
            return Err(self.broken(format!("element {first} of an intermediate in registers")));
        };
        let whole: SmallVec<[_; 2]> =
            segment.variables.iter().map(|variable| self.builder.use_var(*variable)).collect();
        let whole = Lanes::from_registers(&whole);
        if segment.width == width {
            return Ok(whole);
        }
        Ok(self.extract(whole, Form::of(registers.dtype), segment.width, first - segment.start).into())
    }

    /// Writes a group of an intermediate in registers.
    pub(in crate::codegen) fn write_registers(
        &mut self,
        registers: &Registers,
        first: u32,
        width: Width,
        lanes: Lanes,
    ) -> Outcome<()> {
        let Some(segment) = registers.segment(first) else {
            return Err(self.broken(format!("element {first} of an intermediate in registers")));
        };
        let mut lanes = lanes;
        if segment.width != width {
            let form = Form::of(registers.dtype);
            let old: SmallVec<[_; 2]> =
                segment.variables.iter().map(|variable| self.builder.use_var(*variable)).collect();
            let lane = first - segment.start;
            lanes = self.insert(Lanes::from_registers(&old), form, segment.width, lane, lanes.low);
        }
        for (variable, register) in segment.variables.iter().zip(lanes.registers()) {
            self.builder.def_var(*variable, register);
        }
        Ok(())
    }

    /// The registers of an intermediate, when it is in registers.
    pub(in crate::codegen) fn registers_of(&self, buffer: BufferId) -> Option<Rc<Registers>> {
        match self.storage.get(&buffer) {
            Some(Storage::Registers(registers)) => Some(Rc::clone(registers)),
            _ => None,
        }
    }

    /// The constant place that a group accesses in registers.
    pub(in crate::codegen) fn register_place(&mut self, index: &Index, group: Group) -> Outcome<u32> {
        let lanes = index.lanes();
        let start = match lanes {
            1 => index.as_constant(),
            _ => (index - &Index::lane(lanes)).as_constant().map(|start| start + i64::from(group.start)),
        };
        match start.and_then(|start| u32::try_from(start).ok()) {
            Some(start) => Ok(start),
            None => Err(self.broken("a computed place in an intermediate in registers".to_owned())),
        }
    }

    /// A group of zeros.
    pub(in crate::codegen) fn zero(&mut self, form: Form, width: Width) -> Lanes {
        let register = match form.register(width) {
            ty if ty.is_vector() => self.splat_bits(ty, 0),
            cranelift_codegen::ir::types::F32 => self.ins().f32const(0.0),
            cranelift_codegen::ir::types::F64 => self.ins().f64const(0.0),
            ty => self.iconst(ty, 0),
        };
        Lanes { low: register, high: form.is_split(width).then_some(register) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_of(accesses: &[(u32, u32)]) -> Option<Vec<(u32, u32)>> {
        let layout = cut(accesses.to_vec())?;
        Some(layout.0.into_iter().map(|(start, width)| (start, width.lanes())).collect())
    }

    #[test]
    fn equal_cuts_are_shared_and_scalars_may_touch_lanes() {
        assert_eq!(cut_of(&[(0, 8), (8, 8), (0, 8)]), Some(vec![(0, 4), (4, 4), (8, 4), (12, 4)]));
        assert_eq!(cut_of(&[(0, 7), (5, 1), (6, 1)]), Some(vec![(0, 4), (4, 2), (6, 1)]));
        assert_eq!(cut_of(&[(3, 1), (9, 1)]), Some(vec![(3, 1), (9, 1)]));
        assert_eq!(cut_of(&[]), Some(vec![]));
    }

    #[test]
    fn overlapping_cuts_are_refused() {
        assert_eq!(cut_of(&[(0, 4), (2, 4)]), None);
        assert_eq!(cut_of(&[(0, 4), (0, 2)]), None);
        assert_eq!(cut_of(&[(0, 4), (2, 2)]), None);
    }
}
