//! The access of a block to one buffer.

use smallvec::SmallVec;
use tilewright_core::analysis::region::{AccessKind, bound_accesses};
use tilewright_core::expr::Indices;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Base, Index, Ranges};
use tilewright_core::program::{Program, Scope};
use tilewright_core::stmt::{Block, Stmt};
use tilewright_core::visit::{for_each_load_in_index, for_each_stmt};

use crate::cpu::features::nest::LoopFact;

/// The access of a block to one buffer.
#[derive(Clone, Debug)]
pub(super) struct AccessFact {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes of an element.
    pub bytes: f64,
    /// Whether the body reads it.
    pub is_read: bool,
    /// Whether the body writes it.
    pub is_written: bool,
    /// Whether its stores are non-temporal.
    pub is_streamed: bool,
    /// The stride along each loop, in elements, outermost first; `None` when it varies.
    pub strides: Vec<Option<i64>>,
    /// For each depth, the elements touched by the loops from there inwards.
    pub(super) elements: Vec<f64>,
    /// For each depth, the runs of contiguous elements among them.
    pub(super) runs: Vec<f64>,
    /// For each depth, the bytes from the start of one run to the start of the next; the bytes of the whole buffer where there is one run.
    pub(super) pitches: Vec<f64>,
    /// The bytes touched since another block touched the same data, including this block's; infinite where no block did.
    pub distance: f64,
}

/// A cache line, in bytes.
pub(super) const LINE: f64 = 64.0;

/// A page whose address is translated as a whole, in bytes.
const PAGE: f64 = 4096.0;

/// The bytes of the part of a vector into which narrow elements from another place are inserted.
const PIECE_BYTES: f64 = 16.0;

/// The accesses of a block, one per buffer. `scopes` gives for each intermediate the number of loops around all its
/// uses.
pub(super) fn accesses(
    program: &Program,
    block: &Block,
    loops: &[LoopFact],
    scopes: &[(BufferId, usize)],
) -> Vec<AccessFact> {
    let mut buffers = tilewright_core::analysis::block::reads(block);
    let written = tilewright_core::analysis::block::writes(block);
    for buffer in &written {
        if !buffers.contains(buffer) {
            buffers.push(*buffer);
        }
    }
    let inside = loops_inside(block);
    let mut ranges = inside.clone();
    for node in loops {
        ranges.insert_constant(node.var, node.extent as i64);
    }
    let mut facts = Vec::with_capacity(buffers.len());
    for buffer in buffers {
        let reads = bound_accesses(block, buffer, AccessKind::Read);
        let writes = bound_accesses(block, buffer, AccessKind::Write);
        let (is_read, is_written) = (!reads.is_empty(), !writes.is_empty());
        let all: Vec<Indices> =
            reads.into_iter().chain(writes).map(|indices| resolved(indices, &ranges)).collect();
        let scope = scopes.iter().find(|(other, _)| *other == buffer).map(|(_, depth)| *depth);
        let shape = shape_in_memory(program, buffer, &all, loops, &inside, scope);
        facts.push(describe(program, buffer, &shape, &all, loops, &inside, (is_read, is_written)));
    }
    facts
}

/// The ranges of the loops inside a block that computes a tile at each of its points.
fn loops_inside(block: &Block) -> Ranges {
    let mut inside = Ranges::new();
    for_each_stmt(&block.body, &mut |stmt| {
        if let Stmt::For(node) = stmt {
            inside.insert_loop(node);
        }
    });
    inside
}

/// The indices without the divisions that the loops' ranges resolve.
fn resolved(indices: Indices, ranges: &Ranges) -> Indices {
    let is_divided = |index: &Index| {
        index.terms().iter().any(|term| !matches!(term.digit.base, Base::Var(_)) || !term.digit.is_whole())
    };
    if !indices.iter().any(is_divided) {
        return indices;
    }
    indices.iter().map(|index| index.simplify(ranges)).collect()
}

/// The extents of a buffer. An intermediate shrinks to the part in use during one iteration of the loops around all its uses.
fn shape_in_memory(
    program: &Program,
    buffer: BufferId,
    all: &[Indices],
    loops: &[LoopFact],
    inside: &Ranges,
    scope: Option<usize>,
) -> Vec<f64> {
    let extents = program.buffer(buffer).shape.iter();
    let shape: Vec<f64> = extents.map(|extent| extent.as_constant().unwrap_or(256) as f64).collect();
    let Some(scope) = scope else { return shape };
    let mut ranges = inside.clone();
    for (depth, node) in loops.iter().enumerate() {
        let extent = if depth < scope { 1 } else { node.extent as i64 };
        ranges.insert_constant(node.var, extent);
    }
    spans(all, &shape, &ranges)
}

fn describe(
    program: &Program,
    buffer: BufferId,
    shape: &[f64],
    all: &[Indices],
    loops: &[LoopFact],
    inside: &Ranges,
    (is_read, is_written): (bool, bool),
) -> AccessFact {
    let given: Option<Vec<i64>> =
        program.strides(buffer).and_then(|strides| strides.iter().map(Index::as_constant).collect());
    let strides = loops.iter().map(|node| match &given {
        Some(given) => stride_of_parameter(all.first(), given, node),
        None => stride(all.first(), shape, node),
    });
    let strides = strides.collect();
    let size_of = |spans: &[f64]| match &given {
        Some(given) => BoxSize::of_parameter(spans, shape, given),
        None => BoxSize::of(spans, shape),
    };
    let mut ranges = inside.clone();
    for node in loops {
        ranges.insert_constant(node.var, 1);
    }
    let mut elements = vec![1.0; loops.len() + 1];
    let mut runs = vec![1.0; loops.len() + 1];
    let mut pitches = vec![0.0; loops.len() + 1];
    let bytes = program.buffer(buffer).dtype.bytes() as f64;
    let mut boxes = Boxes::of(all, shape, &ranges);
    let mut size = boxes.size(bytes, &size_of);
    for depth in (0..=loops.len()).rev() {
        if let Some(node) = loops.get(depth)
            && node.extent > 1.0
        {
            ranges.insert_constant(node.var, node.extent as i64);
            let moves = boxes.extend(shape, node.var, &ranges);
            let inner = size;
            size = boxes.size(bytes, &size_of);
            if boxes.is_scattered {
                // Where data decide, the box has room for more than the iterations touch.
                let touched = inner.repeated(if moves { node.extent } else { 1.0 });
                size = if touched.lines(bytes) < size.lines(bytes) { touched } else { size };
            }
        }
        (elements[depth], runs[depth]) = (size.elements, size.runs);
        pitches[depth] = size.pitch * bytes;
    }
    let distance = f64::INFINITY;
    let is_streamed = program.buffer(buffer).scope == Scope::Streamed;
    AccessFact { buffer, bytes, is_read, is_written, is_streamed, strides, elements, runs, pitches, distance }
}

/// Most places of one buffer that are looked at one by one, such as those of the two directions of a recurrence.
const MOST_PLACES: usize = 4;

/// The boxes around the accesses of a block to one buffer.
struct Boxes<'a> {
    /// Around all of them; then, where there are a few different ones, around each.
    all: SmallVec<[(&'a [Indices], Vec<f64>); 1]>,
    /// Whether data decide where an access lies.
    is_scattered: bool,
}

impl<'a> Boxes<'a> {
    fn of(all: &'a [Indices], shape: &[f64], ranges: &Ranges) -> Self {
        let is_new = |number: &usize| !all[..*number].contains(&all[*number]);
        let different: SmallVec<[usize; MOST_PLACES]> =
            (0..all.len()).filter(is_new).take(MOST_PLACES + 1).collect();
        let single = if (2..=MOST_PLACES).contains(&different.len()) { &different[..] } else { &[] };
        let groups = std::iter::once(all).chain(single.iter().map(|number| &all[*number..=*number]));
        let mut is_scattered = false;
        let boxes = groups.map(|group| {
            let mut spans = spans(group, shape, ranges);
            is_scattered |= fix_places_of_data(&mut spans, group);
            (group, spans)
        });
        let all = boxes.collect();
        Boxes { all, is_scattered }
    }

    /// Takes in the iterations of another loop. The answer is whether it moves an access.
    fn extend(&mut self, shape: &[f64], var: VarId, ranges: &Ranges) -> bool {
        let mut moves = false;
        for (group, spans) in &mut self.all {
            for (dimension, span) in spans.iter_mut().enumerate() {
                // A loop that does not move the access in this dimension leaves its extent unchanged.
                if group.iter().any(|indices| indices[dimension].mentions(var)) {
                    *span = span_of(group, dimension, shape[dimension], ranges);
                    moves = true;
                }
            }
        }
        moves
    }

    /// The size of the box around all accesses, or of those around each of them, if these have fewer lines together: accesses far from
    /// each other leave room between them.
    fn size(&self, bytes: f64, size_of: &dyn Fn(&[f64]) -> BoxSize) -> BoxSize {
        let (whole, single) = self.all.split_first().expect("there is a box around all accesses");
        let whole = size_of(&whole.1);
        let apart = single.iter().map(|(_, spans)| size_of(spans)).reduce(BoxSize::with);
        apart.filter(|apart| apart.lines(bytes) < whole.lines(bytes)).unwrap_or(whole)
    }
}

/// Sets the extents of a box around accesses to one place where data decide it: an iteration reads one at a time, wherever it is. Says whether
/// there is such a dimension.
fn fix_places_of_data(spans: &mut [f64], all: &[Indices]) -> bool {
    let mut is_scattered = false;
    for (dimension, span) in spans.iter_mut().enumerate() {
        if all.iter().any(|indices| depends_on_data(&indices[dimension])) {
            (*span, is_scattered) = (1.0, true);
        }
    }
    is_scattered
}

/// Whether the elements of a tensor decide an index.
fn depends_on_data(index: &Index) -> bool {
    let mut depends = false;
    for_each_load_in_index(index, &mut |_, _| depends = true);
    depends
}

/// A box around accesses.
#[derive(Clone, Copy)]
struct BoxSize {
    elements: f64,
    /// The contiguous runs that it consists of.
    runs: f64,
    /// The elements from the start of one run to that of the next.
    pitch: f64,
}

/// The extents of a box around accesses.
fn spans(all: &[Indices], shape: &[f64], ranges: &Ranges) -> Vec<f64> {
    let dimensions = shape.iter().enumerate();
    dimensions.map(|(dimension, extent)| span_of(all, dimension, *extent, ranges)).collect()
}

/// The extent of a box around accesses in one dimension.
fn span_of(all: &[Indices], dimension: usize, extent: f64, ranges: &Ranges) -> f64 {
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for indices in all {
        let interval = indices[dimension].interval(ranges);
        low = low.min(interval.min);
        high = high.max(interval.max);
    }
    let span = high.saturating_sub(low).saturating_add(1) as f64;
    span.clamp(1.0, extent.max(1.0))
}

impl BoxSize {
    /// The size of `times` such boxes together, anywhere in the tensor.
    fn repeated(self, times: f64) -> Self {
        BoxSize { elements: self.elements * times, runs: self.runs * times, ..self }
    }

    /// The size of two boxes together.
    fn with(self, other: Self) -> Self {
        let (elements, runs) = (self.elements + other.elements, self.runs + other.runs);
        BoxSize { elements, runs, pitch: self.pitch.max(other.pitch) }
    }

    /// The cache lines that the box covers, given the bytes of an element.
    fn lines(self, bytes: f64) -> f64 {
        lines_of_runs(self.elements * bytes, self.runs)
    }

    fn of(spans: &[f64], shape: &[f64]) -> Self {
        let mut distance = 1.0;
        let dimensions = spans.iter().zip(shape).rev().map(|(span, extent)| {
            let dimension = Dimension { span: *span, extent: *extent, distance };
            distance *= extent;
            dimension
        });
        BoxSize::of_dimensions(dimensions)
    }

    /// As [`BoxSize::of`], of a parameter with strides.
    fn of_parameter(spans: &[f64], shape: &[f64], strides: &[i64]) -> Self {
        let mut dimensions: SmallVec<[Dimension; 6]> = (0..spans.len())
            .filter(|&d| strides[d] > 0)
            .map(|d| Dimension { span: spans[d], extent: shape[d], distance: strides[d] as f64 })
            .collect();
        dimensions.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        BoxSize::of_dimensions(dimensions)
    }

    /// The size of a box, given its dimensions from the innermost one outwards.
    fn of_dimensions(dimensions: impl IntoIterator<Item = Dimension>) -> Self {
        let (mut elements, mut run, mut pitch, mut memory) = (1.0, 1.0, None, 1.0f64);
        // Where the next element of a run lies; `None` once the run has ended.
        let mut next = Some(1.0);
        for Dimension { span, extent, distance } in dimensions {
            elements *= span;
            memory = memory.max(extent * distance);
            if next == Some(distance) {
                run *= span;
            } else if pitch.is_none() && span > 1.0 {
                pitch = Some(distance);
            }
            next = next.filter(|next| *next == distance && span == extent).map(|next| next * extent);
        }
        BoxSize { elements, runs: elements / run, pitch: pitch.unwrap_or(memory) }
    }
}

/// A dimension of a tensor with a box in it.
#[derive(Clone, Copy)]
struct Dimension {
    /// The extent of the box.
    span: f64,
    /// The extent of the tensor.
    extent: f64,
    /// The elements from one place to the next.
    distance: f64,
}

/// The stride along a loop of the first access to a parameter with strides.
fn stride_of_parameter(indices: Option<&Indices>, strides: &[i64], node: &LoopFact) -> Option<i64> {
    let place = indices?
        .iter()
        .zip(strides)
        .fold(Index::constant(0), |place, (index, stride)| place.add_scaled(index, *stride));
    place.linear_coefficient(node.var)
}

/// The stride of the first access along a loop, in elements.
fn stride(indices: Option<&Indices>, shape: &[f64], node: &LoopFact) -> Option<i64> {
    let indices = indices?;
    by_dimension(indices, shape, node).or_else(|| {
        // A fused loop may run through several dimensions at once.
        let place = indices
            .iter()
            .zip(shape)
            .fold(Index::constant(0), |place, (index, extent)| &place.scale(extent.max(1.0) as i64) + index);
        place.linear_coefficient(node.var)
    })
}

/// The cache lines of `runs` contiguous runs of `bytes` bytes in all.
fn lines_of_runs(bytes: f64, runs: f64) -> f64 {
    runs * (bytes / runs / LINE).max(1.0)
}

/// The stride of an access whose indices are each linear in the loop variable.
fn by_dimension(indices: &Indices, shape: &[f64], node: &LoopFact) -> Option<i64> {
    let mut total = 0i64;
    let mut scale = 1.0;
    for (index, extent) in indices.iter().zip(shape).rev() {
        let coefficient = index.linear_coefficient(node.var)?;
        total = total.checked_add(coefficient.checked_mul(scale as i64)?)?;
        scale *= extent.max(1.0);
    }
    Some(total)
}

impl AccessFact {
    /// Bytes of distinct elements touched by the loops from a depth inwards.
    pub(super) fn touched(&self, depth: usize) -> f64 {
        self.elements[depth] * self.bytes
    }

    /// The pieces of at most [`PIECE_BYTES`] in which the runs that the loops from a depth inwards touch are loaded.
    pub(super) fn pieces(&self, depth: usize) -> f64 {
        let run_bytes = self.touched(depth) / self.runs[depth];
        self.runs[depth] * (run_bytes / PIECE_BYTES).ceil()
    }

    /// Cache lines touched by the loops from a depth inwards.
    pub(super) fn lines(&self, depth: usize) -> f64 {
        lines_of_runs(self.touched(depth), self.runs[depth])
    }

    /// Pages touched by the loops from a depth inwards: short runs may share one.
    pub(super) fn pages(&self, depth: usize) -> f64 {
        let (runs, run) = (self.runs[depth], self.touched(depth) / self.runs[depth]);
        let together = runs * self.pitches[depth].max(run) / PAGE;
        (runs * (run / PAGE).max(1.0)).min(together.max(1.0))
    }

    /// The bytes of those lines.
    pub(super) fn line_bytes(&self, depth: usize) -> f64 {
        self.lines(depth) * LINE
    }

    /// Bytes fetched into a cache that holds the working set of the loops from a depth inwards: its lines, once for each
    /// iteration of the loops around, except of the adjacent loops that do not move the access. A stored line is fetched
    /// and written back; a non-temporal store is only written.
    pub(super) fn fetched(&self, depth: usize, loops: &[LoopFact]) -> f64 {
        let mut repeats = 1.0;
        let mut is_adjacent = true;
        for (node, stride) in loops[..depth].iter().zip(&self.strides).rev() {
            is_adjacent &= *stride == Some(0);
            if !is_adjacent {
                repeats *= node.extent;
            }
        }
        let ways = if self.is_written && !self.is_streamed { 2.0 } else { 1.0 };
        self.line_bytes(depth) * repeats * ways
    }

    /// The innermost loop that does not move the access, and its extent.
    pub(super) fn innermost_reuse(&self, loops: &[LoopFact]) -> Option<(usize, f64)> {
        let depth = self.strides.iter().rposition(|stride| *stride == Some(0))?;
        Some((depth, loops[depth].extent))
    }
}
