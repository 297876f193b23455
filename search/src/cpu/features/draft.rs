//! The draft model: a share of the machine's peak, estimated from the structure alone.
//!
//! It ranks candidates before anything has been measured, and picks the default schedule. Per block, it adds the time of the
//! arithmetic at the rate that the inner tile allows, of loops, and of the traffic from each cache. The constants are ratios
//! of a common out-of-order core, not measurements of this machine; the learned model corrects them. The constants for loops
//! were fitted to measured candidates on Zen 5; the module `transfers` says where those for caches come from. They order
//! 67 % of the pairs among 2,276 candidates of eleven operators, and 70 % among 825 candidates of a later search.

use tilewright_core::program::Program;
use tilewright_core::stmt::LoopKind;
use tilewright_core::target::CpuTarget;

use crate::cpu::features::nest::BlockFacts;
use crate::cpu::features::transfers::{Caches, overlapped};

/// Vector instructions that start per cycle: two multiply-adds, or two loads.
const ISSUE: f64 = 2.0;
/// Cycles from the start of a multiply-add to its result.
const LATENCY: f64 = 4.0;
/// Cycles to start and end a parallel loop.
pub(crate) const PARALLEL_START: f64 = 3000.0;
/// Cycles lost at each iteration of a loop that is not unrolled.
const LOOP_STEP: f64 = 0.5;
/// Cycles lost when an innermost loop ends: its last branch is sometimes mispredicted.
const LOOP_END: f64 = 4.0;

/// The cost of a uniform condition around a load, in loads: a selection between two addresses; with peeled loops only at the boundary.
const UNIFORM: f64 = 0.5;

/// The same around an operand of an intrinsic, which is copied to a buffer of its own: comparisons, a selection, a load and a store.
const STAGED: f64 = 3.0;

/// Products of tiles that have to be independent of each other to keep the unit busy: one begins every 16 cycles and takes
/// 52 (Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on AMX).
const INDEPENDENT_TILES: f64 = 4.0;
/// The cost of a dot product of four bytes without an instruction for it, in products: two products of pairs of words, and two sums.
const PAIRS: f64 = 2.0;
/// The cost of an operand that becomes words, in loads.
const WORDS: f64 = 2.0;
/// The registers of both operands as words, and of two products.
const REGISTERS_OF_WORDS: f64 = 6.0;

/// Cycles to combine the halves of a vector: a store, a load and an addition that wait for each other.
const HALVING: f64 = 10.0;

/// The estimated share of the machine's peak without tensor intrinsics: more than 1 where intrinsics exceed that peak.
pub(super) fn score(program: &Program, blocks: &[BlockFacts<'_>], cpu: &CpuTarget, threads: u32) -> f32 {
    let threads = f64::from(threads);
    let caches = Caches::of(cpu, blocks, threads);
    let cycles: f64 = blocks.iter().map(|block| block_cycles(block, &caches, cpu, threads)).sum::<f64>()
        + start_cost(blocks);
    let useful: f64 = blocks.iter().map(|block| ideal_cycles(program, block, cpu, threads)).sum();
    (useful / cycles.max(1.0)).max(0.0) as f32
}

/// The cycles of the block's own domain, once, at the peak rate of all threads.
fn ideal_cycles(program: &Program, facts: &BlockFacts<'_>, cpu: &CpuTarget, threads: f64) -> f64 {
    let domain: f64 = facts
        .block
        .iters
        .iter()
        .map(|iter| iter.extent.as_constant().map_or(256.0, |extent| extent as f64))
        .product();
    let domain = domain * facts.points_of_intrinsic;
    let is_output = tilewright_core::analysis::scope::writes_parameter(program, facts.block);
    let per_point = facts.operations() / facts.points().max(1.0) / 2.0;
    let per_point = if is_output { per_point.max(0.5) } else { per_point };
    per_point * domain / (ISSUE * f64::from(cpu.lanes(facts.lane_bytes))) / threads
}

fn block_cycles(block: &BlockFacts<'_>, caches: &Caches, cpu: &CpuTarget, threads: f64) -> f64 {
    let lanes = f64::from(cpu.lanes(block.lane_bytes));
    let used_lanes = block.lanes() / block.registers_per_statement(cpu);
    let multiplies_words = block.multiplies_words(cpu);
    let statements = block.points() * block.formed.share / used_lanes;
    let per_statement = match (block.points_of_intrinsic > 1.0, block.tiles) {
        (_, Some(_)) => block.outputs_of_intrinsic * ISSUE / lanes,
        (true, None) if multiplies_words => PAIRS,
        (true, None) => 1.0,
        (false, None) => block.operations() / block.points().max(1.0) / 2.0,
    };

    let independent = if block.reduction > 1.0 { block.accumulators(cpu) } else { LATENCY * ISSUE };
    let overlap = match block.tiles {
        Some(tiles) => (tiles / INDEPENDENT_TILES).min(1.0),
        // Only an addition of integers waits for the last one, for a cycle.
        None if multiplies_words => 1.0,
        None => (independent / (LATENCY * ISSUE)).clamp(1.0 / (LATENCY * ISSUE), 1.0),
    };
    let arithmetic = statements * per_statement.max(0.25) / ISSUE / overlap;
    let conditions = if block.copies_runs() { 1.0 } else { used_lanes };
    let uniform = if block.formed.are_unconditional { 0.0 } else { block.arithmetic.uniform };
    let selection = if block.points_of_intrinsic > 1.0 { STAGED } else { UNIFORM };
    let scattered = block.arithmetic.conditional * 4.0 * conditions + uniform * selection;
    let (load, others) = match block.tiles {
        // A tile is loaded and stored row by row.
        Some(_) => (block.outputs_of_intrinsic / lanes, 2.0),
        None if multiplies_words => (WORDS, REGISTERS_OF_WORDS),
        None => (1.0, 2.0),
    };
    let loads = statements * (load * block.loads_per_operation(cpu) + scattered) / ISSUE;
    let spill = block.accumulators(cpu) > f64::from(cpu.vector_registers) - others;
    let registers = overlapped(arithmetic, loads) * if spill { 2.0 } else { 1.0 };
    caches.with_transfers(registers + loop_cycles(block, lanes), block) / speedup(block, threads)
}

/// Cycles for the control of loops that are not unrolled, and for combining the lanes of vectorized reductions.
fn loop_cycles(block: &BlockFacts<'_>, lanes: f64) -> f64 {
    let (mut iterations, mut steps, mut entries, mut halvings) = (1.0, 0.0, 0.0, 0.0);
    for node in &block.loops {
        match node.kind {
            LoopKind::Serial | LoopKind::Parallel | LoopKind::Bound(_) => {
                entries = iterations;
                iterations *= node.extent / node.unroll_factor;
                // A prefetch takes a load slot; measurements decide whether it pays.
                steps += iterations * if node.prefetch_distance > 0.0 { 1.5 } else { 1.0 };
            }
            LoopKind::Vectorized if node.is_reduction => {
                halvings += iterations * node.extent.min(lanes).log2()
            }
            LoopKind::Unrolled | LoopKind::Vectorized => {}
        }
    }
    steps * LOOP_STEP + entries * LOOP_END + halvings * HALVING
}

/// The speed of all threads relative to one thread: a parallel iteration runs on one thread.
fn speedup(block: &BlockFacts<'_>, threads: f64) -> f64 {
    let parallel: f64 =
        block.loops.iter().filter(|node| node.kind == LoopKind::Parallel).map(|node| node.extent).product();
    parallel / (parallel / threads).ceil().max(1.0)
}

/// Cycles to start and end the parallel loops, which may hold several blocks each.
fn start_cost(blocks: &[BlockFacts<'_>]) -> f64 {
    let mut started = Vec::new();
    let mut starts = 0.0;
    for block in blocks {
        let Some(place) = block.loops.iter().position(|node| node.kind == LoopKind::Parallel) else {
            continue;
        };
        let (around, from) = block.loops.split_at(place);
        if !started.contains(&from[0].var) {
            started.push(from[0].var);
            starts += around.iter().map(|node| node.extent).product::<f64>();
        }
    }
    starts * PARALLEL_START
}
