//! The facts about one block and the loops around it.

use std::sync::Arc;

use smallvec::SmallVec;
use tilewright_core::analysis::zeros::ZeroElements;
use tilewright_core::annotation::{PREFETCH, UNROLL_FACTOR};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::intrinsic::marked_outputs;
use tilewright_core::program::Program;
use tilewright_core::stmt::{Block, For, IterKind, LoopKind, Stmt};
use tilewright_core::target::CpuTarget;

use crate::cpu::features::access::{AccessFact, accesses};
use crate::cpu::features::arithmetic::Arithmetic;
use crate::cpu::features::lanes::{bytes_of_lane, vectors};
use crate::cpu::features::padding::FormedTerms;
use crate::cpu::postproc::verify::sums_in_tiles;

/// One loop around a block.
#[derive(Clone, Debug)]
pub(super) struct LoopFact {
    /// Its variable.
    pub var: VarId,
    /// Its iterations; a guess when symbolic.
    pub extent: f64,
    /// How they are executed.
    pub kind: LoopKind,
    /// Whether the block reduces over it.
    pub is_reduction: bool,
    /// Its unroll factor; 1 if it has none.
    pub unroll_factor: f64,
    /// Its prefetch distance, in iterations; 0 if it does not prefetch.
    pub prefetch_distance: f64,
}

/// Iterations assumed of a loop with a symbolic extent.
const SYMBOLIC_EXTENT: f64 = 256.0;
/// The cost of a piece of a vector of narrow elements that is copied from several places, in loads: it is loaded and inserted. An
/// interleaving copy of 64 bytes from four runs took as long as eight loads and a store.
const LOADS_OF_PIECE: f64 = 2.0;

/// The cost of a vector that is transposed in registers, in loads: the load of its row, and one step per doubling of the number of
/// rows.
const TRANSPOSED: f64 = 4.0;

/// The fewest iterations along the rows of a transposed block: with fewer, a gather reads as few cache lines.
const ROWS_OF_BLOCK: f64 = 4.0;

/// The facts about one block and the loops around it.
#[derive(Clone, Debug)]
pub(super) struct BlockFacts<'a> {
    /// The block.
    pub block: &'a Block,
    /// The loops around it, outermost first.
    pub loops: Vec<LoopFact>,
    /// Operations per point.
    pub arithmetic: Arithmetic,
    /// The terms of its reduction that are formed.
    pub formed: FormedTerms,
    /// Its accesses, one per buffer.
    pub accesses: Vec<AccessFact>,
    /// For each depth, the bytes touched by the loops from there inwards.
    pub working_set: Vec<f64>,
    /// Points reduced into each element.
    pub reduction: f64,
    /// Whether guards exclude some points.
    pub is_guarded: bool,
    /// The bytes of a lane of its statements.
    pub lane_bytes: usize,
    /// Whether some elements that it accesses have fewer than 32 bits.
    pub has_narrow_elements: bool,
    /// The points that a tensor intrinsic computes at once, at each point of the block's domain; otherwise 1.
    pub points_of_intrinsic: f64,
    /// The elements that it updates, likewise.
    pub outputs_of_intrinsic: f64,
    /// The tiles of sums in registers, when it is a product of tiles.
    pub tiles: Option<f64>,
    /// Whether a tensor intrinsic forms products of bytes.
    multiplies_bytes: bool,
}

impl<'a> BlockFacts<'a> {
    /// Collects the facts about a block and the loops around it.
    pub(super) fn new(
        program: &Program,
        block: &'a Block,
        path: &[&Arc<For>],
        scopes: &[(BufferId, usize)],
        zeros: &ZeroElements,
    ) -> Self {
        let loops: Vec<LoopFact> = path
            .iter()
            .map(|node| LoopFact {
                var: node.var,
                extent: node.extent.as_constant().map_or(SYMBOLIC_EXTENT, |extent| extent as f64),
                kind: node.kind,
                is_reduction: block
                    .iters
                    .iter()
                    .any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(node.var)),
                unroll_factor: UNROLL_FACTOR.get(&node.annotations).map_or(1.0, |factor| factor as f64),
                prefetch_distance: PREFETCH.get(&node.annotations).map_or(0.0, |distance| distance as f64),
            })
            .collect();
        let accesses = accesses(program, block, &loops, scopes);
        let has_bytes = accesses.iter().any(|access| access.bytes < 2.0);
        let has_narrow_elements = accesses.iter().any(|access| access.bytes < 4.0);
        let working_set = (0..=loops.len())
            .map(|depth| accesses.iter().map(|access| access.line_bytes(depth)).sum())
            .collect();
        let reduction = loops.iter().filter(|node| node.is_reduction).map(|node| node.extent).product();
        let vectorized = || loops.iter().filter(|node| node.kind == LoopKind::Vectorized);
        let lanes: Vec<VarId> = block
            .iters
            .iter()
            .filter(|iter| vectorized().any(|node| iter.binding.mentions(node.var)))
            .map(|iter| iter.var)
            .collect();
        let arithmetic = Arithmetic::of(block, &lanes);
        let formed = FormedTerms::of(program, block, &loops, zeros);
        let is_guarded = !block.guards.is_empty();
        BlockFacts {
            block,
            loops,
            arithmetic,
            formed,
            accesses,
            working_set,
            reduction,
            is_guarded,
            lane_bytes: bytes_of_lane(program, block),
            has_narrow_elements,
            points_of_intrinsic: points_of_intrinsic(&block.body),
            outputs_of_intrinsic: outputs_of_intrinsic(&block.body),
            tiles: sums_in_tiles(path, block).map(|tiles| tiles as f64),
            multiplies_bytes: matches!(block.body, Stmt::Intrinsic(_)) && has_bytes,
        }
    }

    /// The points that the loops enumerate.
    pub(super) fn points(&self) -> f64 {
        self.loops.iter().map(|node| node.extent).product()
    }

    /// All arithmetic operations, weighted by their cost in float additions. A tensor intrinsic counts as the operations of one
    /// point.
    pub(super) fn operations(&self) -> f64 {
        self.arithmetic.operations() * self.points()
    }

    /// Lanes of the vectorized loop, or 1.
    pub(super) fn lanes(&self) -> f64 {
        self.loops.iter().filter(|node| node.kind == LoopKind::Vectorized).map(|node| node.extent).product()
    }

    /// Vector registers that one vectorized statement takes.
    pub(super) fn registers_per_statement(&self, cpu: &CpuTarget) -> f64 {
        vectors(cpu, self.lanes(), self.lane_bytes, self.has_narrow_elements)
    }

    /// Independent results that the unrolled and vectorized loops keep at once, in registers.
    pub(super) fn accumulators(&self, cpu: &CpuTarget) -> f64 {
        let unrolled: f64 = self
            .loops
            .iter()
            .filter(|node| node.kind == LoopKind::Unrolled && !node.is_reduction)
            .map(|node| node.extent)
            .product();
        unrolled * self.registers_per_statement(cpu)
    }

    /// Whether its dot products of bytes take several instructions: bytes become words, of which pairs are multiplied.
    pub(super) fn multiplies_words(&self, cpu: &CpuTarget) -> bool {
        let has_dot_products = || ["avx512vnni", "avxvnni"].iter().any(|name| cpu.features.contains(*name));
        self.multiplies_bytes && self.tiles.is_none() && !has_dot_products()
    }

    /// Copies of the body in the code, in registers.
    pub(super) fn copies(&self, cpu: &CpuTarget) -> f64 {
        let copies: f64 = self
            .loops
            .iter()
            .map(|node| if node.kind == LoopKind::Unrolled { node.extent } else { node.unroll_factor })
            .product();
        copies * self.registers_per_statement(cpu)
    }

    /// The prefetch distance, in points of the block; 0 if it does not prefetch.
    pub(super) fn prefetch_distance(&self) -> f64 {
        let Some(place) = self.loops.iter().rposition(|node| node.prefetch_distance > 0.0) else {
            return 0.0;
        };
        self.loops[place].prefetch_distance
            * self.loops[place + 1..].iter().map(|node| node.extent).product::<f64>()
    }

    /// Whether the lanes of a load are narrow elements in several runs, which happens in copies only.
    pub(super) fn copies_runs(&self) -> bool {
        self.accesses.iter().any(|access| {
            let mut strides = self.loops.iter().zip(&access.strides);
            let comes_in_runs =
                strides.any(|(node, stride)| node.kind == LoopKind::Vectorized && stride.is_none());
            access.bytes < 4.0 && comes_in_runs
        })
    }

    /// Whether a load is transposed: its lanes are not contiguous, but the loop around the lanes is. The backend transposes blocks of
    /// rows in registers.
    pub(super) fn is_transposed(&self, access: &AccessFact) -> bool {
        let ([.., around, lanes], [.., along, apart]) = (&self.loops[..], &access.strides[..]) else {
            return false;
        };
        let lie_apart = lanes.kind == LoopKind::Vectorized && !matches!(apart, Some(0 | 1));
        let goes_along = *along == Some(1) && around.extent >= ROWS_OF_BLOCK;
        !access.is_written && access.bytes >= 4.0 && lie_apart && goes_along
    }

    /// The extent of the innermost loop.
    pub(super) fn innermost_extent(&self) -> f64 {
        self.loops.last().map_or(1.0, |node| node.extent)
    }

    /// The outermost depth whose working set is no more than `bytes`.
    pub(super) fn level_within(&self, bytes: f64) -> usize {
        self.working_set.iter().position(|touched| *touched <= bytes).unwrap_or(self.loops.len())
    }

    /// Points reduced into each element of the innermost tile before the next tile starts.
    fn reduction_of_tile(&self) -> f64 {
        let is_inner = |node: &&LoopFact| {
            node.is_reduction || matches!(node.kind, LoopKind::Unrolled | LoopKind::Vectorized)
        };
        let inner = self.loops.iter().rev().take_while(is_inner);
        inner.filter(|node| node.is_reduction).map(|node| node.extent).product()
    }

    /// Bytes fetched into a cache that holds the working set of the loops from a depth inwards.
    pub(super) fn traffic(&self, depth: usize) -> f64 {
        self.accesses.iter().map(|access| access.fetched(depth, &self.loops)).sum()
    }

    /// How often the innermost tile adds to each of its sums: the iterations of the unrolled reductions.
    fn updates_of_tile(&self) -> f64 {
        let unrolled = self.loops.iter().filter(|node| node.is_reduction && node.kind == LoopKind::Unrolled);
        unrolled.map(|node| node.extent).product()
    }

    /// Register loads per arithmetic statement in the innermost tile: an operand that an unrolled or
    /// vectorized loop does not move is loaded once for all its copies, as long as registers hold it.
    pub(super) fn loads_per_operation(&self, cpu: &CpuTarget) -> f64 {
        let sums = self.accumulators(cpu).max(1.0);
        let updates = self.updates_of_tile();
        let statements = sums * updates;
        let (mut loads, mut held) = (0.0, f64::INFINITY);
        for access in &self.accesses {
            let own = self.loads_of_tile(access, cpu);
            // A tile of sums keeps its smallest operand in registers and streams the others.
            held = if access.is_written { held } else { held.min(own / updates) };
            let mut reduced = self.loops.iter().zip(&access.strides).filter(|(node, _)| node.is_reduction);
            // A result that does not move with the reduction loops stays in its register.
            let stays =
                access.is_written && self.reduction > 1.0 && reduced.all(|(_, stride)| *stride == Some(0));
            // A store has one port, a load has two.
            let cost = if access.is_written { 3.0 } else { 1.0 };
            loads += own * cost / if stays { self.reduction_of_tile() / updates } else { 1.0 };
        }
        // Registers for the sums, the operand that is kept, and one streamed operand; for words, two of each and two products.
        let others = if self.multiplies_words(cpu) { 2.0 * held + 4.0 } else { held + 1.0 };
        let is_crowded = sums + others > f64::from(cpu.vector_registers);
        if is_crowded && self.reduction > 1.0 && held.is_finite() {
            loads += (sums - held) * updates;
        }
        loads / statements
    }

    /// Loads of one execution of the innermost tile, if each element that it touches is loaded once.
    fn loads_of_tile(&self, access: &AccessFact, cpu: &CpuTarget) -> f64 {
        let moving = || self.loops.iter().zip(&access.strides).filter(|(_, stride)| **stride != Some(0));
        let vectorized: f64 = moving()
            .filter(|(node, _)| node.kind == LoopKind::Vectorized)
            .map(|(node, stride)| self.loads_of_vector(access, node, *stride, cpu))
            .product();
        let unrolled = moving().filter(|(node, _)| node.kind == LoopKind::Unrolled);
        vectorized * distinct_places(unrolled.map(|(node, stride)| (node.extent, *stride)))
    }

    /// The number of loops around a loop.
    fn depth_of(&self, node: &LoopFact) -> usize {
        self.loops.iter().take_while(|other| other.var != node.var).count()
    }

    /// Loads of one execution of a vectorized loop that moves the access.
    fn loads_of_vector(
        &self,
        access: &AccessFact,
        node: &LoopFact,
        stride: Option<i64>,
        cpu: &CpuTarget,
    ) -> f64 {
        let vectors = vectors(cpu, node.extent, self.lane_bytes, self.has_narrow_elements);
        match stride {
            Some(1) => vectors,
            // Copies of narrow elements load runs of bytes, not single elements.
            None if self.copies_runs() => LOADS_OF_PIECE * access.pieces(self.depth_of(node)),
            _ if self.is_transposed(access) => vectors * TRANSPOSED,
            _ => node.extent,
        }
    }
}

/// The number of distinct places that loops reach, given their extents and strides: overlapping windows share places.
fn distinct_places(loops: impl Iterator<Item = (f64, Option<i64>)>) -> f64 {
    let mut varying = 1.0;
    let mut known: SmallVec<[(f64, f64); 8]> = SmallVec::new();
    for (extent, stride) in loops {
        match stride {
            Some(stride) => known.push((extent, stride.unsigned_abs() as f64)),
            None => varying *= extent,
        }
    }
    known.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    // Rows of places at equal distances.
    let mut rows: SmallVec<[(f64, f64); 8]> = SmallVec::new();
    for (extent, stride) in known {
        let continued =
            rows.iter_mut().find(|(count, step)| stride % *step == 0.0 && stride <= *step * *count);
        match continued {
            Some((count, step)) => *count += (extent - 1.0) * stride / *step,
            None => rows.push((extent, stride)),
        }
    }
    varying * rows.iter().map(|(count, _)| count).product::<f64>()
}

/// The elements that an intrinsic statement updates; 1 for any other.
fn outputs_of_intrinsic(body: &Stmt) -> f64 {
    let Stmt::Intrinsic(marked) = body else { return 1.0 };
    marked_outputs(marked) as f64
}

/// The points of the loops of an intrinsic statement; 1 for any other.
pub(super) fn points_of_intrinsic(body: &Stmt) -> f64 {
    let Stmt::Intrinsic(marked) = body else { return 1.0 };
    let (mut points, mut current) = (1.0, &marked.body);
    while let Stmt::For(node) = current {
        points *= node.extent.as_constant().map_or(1.0, |extent| extent as f64);
        current = &node.body;
    }
    points
}

#[cfg(test)]
mod tests {
    use super::distinct_places;

    #[test]
    fn windows_that_overlap_share_places() {
        let places = |loops: &[(f64, i64)]| {
            distinct_places(loops.iter().map(|(extent, stride)| (*extent, Some(*stride))))
        };
        let cases: [(&[(f64, i64)], f64); 7] = [
            (&[], 1.0),
            (&[(4.0, 7)], 4.0),
            (&[(4.0, 7), (3.0, 7)], 6.0),
            (&[(4.0, 2), (3.0, 1)], 9.0),
            (&[(4.0, 3), (3.0, -1)], 12.0),
            (&[(4.0, 4), (3.0, 1)], 12.0),
            (&[(4.0, 100), (3.0, 100), (2.0, 1), (3.0, 1)], 24.0),
        ];
        for (loops, expected) in cases {
            assert_eq!(places(loops), expected, "{loops:?}");
        }
        assert_eq!(distinct_places([(4.0, None), (3.0, Some(1)), (2.0, Some(1))].into_iter()), 16.0);
    }
}
