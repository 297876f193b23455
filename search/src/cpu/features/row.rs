//! The values of a row, with their names.

use tilewright_core::stmt::LoopKind;
use tilewright_core::target::CpuTarget;

use crate::cpu::features::access::AccessFact;
use crate::cpu::features::nest::BlockFacts;

/// Buffers described in a row; the smallest buffers beyond this number are left out.
const BUFFERS: usize = 5;
/// Values per buffer.
const BUFFER_WIDTH: usize = 16;
/// Values of a row that describe the block itself.
const OWN_WIDTH: usize = 35;

/// The distance, in bytes, of data that nothing has touched before.
const FARTHEST: f64 = 1e12;

/// The logarithm given for a stride that varies.
const VARYING: f32 = 32.0;

/// The number of values in a row.
pub const WIDTH: usize = OWN_WIDTH + BUFFERS * BUFFER_WIDTH;

/// A value that the cost model sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The property of the block, or of a buffer that the block touches.
    pub name: &'static str,
    /// The model's input: `log2(x + 1)` of sizes, which range over many orders of magnitude, and other values unchanged.
    pub value: f32,
    /// Whether it is a size.
    pub is_size: bool,
}

impl Value {
    fn size(name: &'static str, size: f64) -> Self {
        Value { name, value: (size.max(0.0) + 1.0).log2() as f32, is_size: true }
    }

    fn plain(name: &'static str, value: f64) -> Self {
        Value { name, value: value as f32, is_size: false }
    }

    fn flag(name: &'static str, holds: bool) -> Self {
        Value::plain(name, f64::from(u8::from(holds)))
    }
}

/// Appends a block's row.
pub(super) fn push(values: &mut Vec<f32>, block: &BlockFacts<'_>, cpu: &CpuTarget) {
    values.extend(own(block, cpu).map(|value| value.value));
    let mut accesses = largest_first(block).into_iter();
    for _ in 0..BUFFERS {
        match accesses.next() {
            Some(access) => values.extend(of_access(block, access, cpu).map(|value| value.value)),
            None => values.extend([0.0; BUFFER_WIDTH]),
        }
    }
}

/// A block's accesses, the largest first.
pub(super) fn largest_first<'f>(block: &'f BlockFacts<'_>) -> Vec<&'f AccessFact> {
    let mut accesses: Vec<&AccessFact> = block.accesses.iter().collect();
    accesses.sort_by(|a, b| b.touched(0).total_cmp(&a.touched(0)).then(a.buffer.cmp(&b.buffer)));
    accesses
}

/// The values of the block itself.
pub(super) fn own(block: &BlockFacts<'_>, cpu: &CpuTarget) -> [Value; OWN_WIDTH] {
    let points = block.points();
    let count = |name, of_point: f64| Value::size(name, of_point * points);
    let arithmetic = &block.arithmetic;
    let [vectorized, unrolled, parallel] =
        [LoopKind::Vectorized, LoopKind::Unrolled, LoopKind::Parallel].map(|kind| KindFact::of(block, kind));
    let (l1, l2) = (block.level_within(cpu.l1_bytes as f64), block.level_within(cpu.l2_bytes as f64));
    let intensity = |level| block.operations() / block.traffic(level).max(1.0);
    [
        count("simple_operations", arithmetic.simple),
        count("divisions", arithmetic.division),
        count("transcendentals", arithmetic.transcendental),
        count("comparisons", arithmetic.comparison),
        count("integer_operations", arithmetic.integer),
        count("conversions", arithmetic.conversion),
        count("loads", arithmetic.loads),
        count("stores", arithmetic.stores),
        count("conditional_loads", arithmetic.conditional),
        count("uniform_conditional_loads", arithmetic.uniform),
        Value::size("points", points),
        Value::plain("formed_terms", block.formed.share),
        Value::plain("vectorized_loops", vectorized.loops),
        Value::size("vectorized_iterations", vectorized.iterations),
        Value::plain("vectorized_place", vectorized.place),
        Value::plain("unrolled_loops", unrolled.loops),
        Value::size("unrolled_iterations", unrolled.iterations),
        Value::plain("unrolled_place", unrolled.place),
        Value::plain("parallel_loops", parallel.loops),
        Value::size("parallel_iterations", parallel.iterations),
        Value::plain("parallel_place", parallel.place),
        Value::size("reduced_points", block.reduction),
        Value::size("accumulators", block.accumulators(cpu)),
        Value::size("copies", block.copies(cpu)),
        Value::size("innermost_iterations", block.innermost_extent()),
        Value::plain("loops", block.loops.len() as f64),
        Value::flag("is_guarded", block.is_guarded),
        Value::size("loads_per_operation", block.loads_per_operation(cpu)),
        Value::size("points_ahead", block.prefetch_distance()),
        Value::size("l1_working_set", block.working_set[l1]),
        Value::size("l1_traffic", block.traffic(l1)),
        Value::size("l1_intensity", intensity(l1)),
        Value::size("l2_working_set", block.working_set[l2]),
        Value::size("l2_traffic", block.traffic(l2)),
        Value::size("l2_intensity", intensity(l2)),
    ]
}

/// The loops of one kind.
struct KindFact {
    loops: f64,
    /// The product of their extents; 0 if there are none.
    iterations: f64,
    /// The number of loops from the innermost of them inwards, itself included; -1 if there is none.
    place: f64,
}

impl KindFact {
    fn of(block: &BlockFacts<'_>, kind: LoopKind) -> Self {
        let own = || block.loops.iter().enumerate().filter(|(_, node)| node.kind == kind);
        match own().next_back() {
            Some((depth, _)) => KindFact {
                loops: own().count() as f64,
                iterations: own().map(|(_, node)| node.extent).product(),
                place: (block.loops.len() - depth) as f64,
            },
            None => KindFact { loops: 0.0, iterations: 0.0, place: -1.0 },
        }
    }
}

/// The values of a buffer that the block touches.
pub(super) fn of_access(
    block: &BlockFacts<'_>,
    access: &AccessFact,
    cpu: &CpuTarget,
) -> [Value; BUFFER_WIDTH] {
    let stride = access.strides.last().copied().flatten();
    let (l1, l2) = (block.level_within(cpu.l1_bytes as f64), block.level_within(cpu.l2_bytes as f64));
    let reuse = access.innermost_reuse(&block.loops);
    [
        Value::flag("is_read", access.is_read),
        Value::plain("ways_written", f64::from(u8::from(access.is_written) + u8::from(access.is_streamed))),
        Value::flag("is_invariant", stride == Some(0)),
        Value::flag("is_contiguous", stride == Some(1)),
        match stride {
            Some(stride) => Value::size("stride", stride.unsigned_abs() as f64),
            None => Value { name: "stride", value: VARYING, is_size: true },
        },
        Value::size("bytes", block.points() * access.bytes),
        Value::size("unique_bytes", access.touched(0)),
        Value::size("unique_lines", access.lines(0)),
        Value::size("l1_bytes", access.touched(l1)),
        Value::size("l1_fetched", access.fetched(l1, &block.loops)),
        Value::size("l2_bytes", access.touched(l2)),
        Value::size("l2_fetched", access.fetched(l2, &block.loops)),
        Value::size("reuse_count", reuse.map_or(0.0, |(_, count)| count)),
        Value::size("reuse_distance", reuse.map_or(0.0, |(depth, _)| block.working_set[depth + 1])),
        Value::size("element_bytes", access.bytes),
        Value::size("distance", access.distance.min(FARTHEST)),
    ]
}
