//! The draft model: the time of a kernel, estimated from its structure alone.
//!
//! A multiprocessor executes its blocks of threads in waves. The time of a wave is the longest of what its instructions, its arithmetic
//! units, its shared memory and its first-level cache take, and of the chain of latencies of one block. Beside the multiprocessors, the
//! device memory and the second-level cache bound the time. Constants are those of published microbenchmarks of Ampere and Hopper
//! (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", arXiv 2402.13499), rounded,
//! except where they say that an H100 was measured: `docs/decisions/search/2026-11-26-draft-model-on-h100.md` compares the model with
//! 1,000 measured kernels.

use tilewright_core::program::{Program, Scope};
use tilewright_core::target::GpuTarget;
use tilewright_core::thread_axis::WARP;

use super::access::AccessFact;
use super::block::BlockFacts;
use super::kernel::KernelFacts;

/// Warp instructions that a multiprocessor starts in a cycle: one for each of its schedulers.
const SCHEDULERS: f64 = 4.0;
/// Bytes of a sector.
const SECTOR: f64 = 32.0;
/// Bytes per cycle that a multiprocessor takes from its first-level cache.
const L1_BYTES: f64 = 64.0;
/// The share of the device memory's bandwidth that copies reach: 3.0 of 3.35 TB/s on an H100.
const ATTAINABLE: f64 = 0.9;
/// The bandwidth of the second-level cache, in those of the device memory. Products of 4096 × 4096 matrices reach 6.3 of 3.35 TB/s on an H100.
const L2_OVER_MEMORY: f64 = 1.9;
/// Cycles from a load of device memory to its value, while other loads are under way.
const MEMORY_LATENCY: f64 = 800.0;
/// Cycles from a load of shared memory to its value.
const SHARED_LATENCY: f64 = 30.0;
/// Cycles of a round that ends with a barrier, in which warps wait for the slowest one and fill their pipelines again.
const BARRIER: f64 = 200.0;
/// How much slower a scheduler is that has a single warp, which waits for its own results: the share falls with the number of warps.
const STALLS: f64 = 0.5;
/// Cycles from an arithmetic instruction to the next one that needs its result.
const ARITHMETIC_LATENCY: f64 = 4.0;
/// Instructions of a loop's step, of a digit of an index, and of a guard.
const LOOP_STEP: f64 = 3.0;
const DIVISION: f64 = 4.0;
const GUARD: f64 = 2.0;
/// Instructions of a division of floats and of a transcendental function.
const FLOAT_DIVISION: f64 = 10.0;
const TRANSCENDENTAL: f64 = 20.0;
/// Iterations of a serial loop that the assembler writes out, so that their loads overlap.
const OVERLAPPING: f64 = 4.0;
/// Conversions at a point of a reduction: elements are converted once where they are loaded, and then used several times.
const CONVERSION: f64 = 0.25;
/// Bytes of the widest asynchronous copies of a warp, which take as long as narrow ones.
const WIDEST_COPY: f64 = 16.0 * WARP as f64;
/// Bytes of the smallest asynchronous copy.
const SMALLEST_COPY: i64 = 4;
/// Seconds to launch a kernel behind another one.
const LAUNCH: f64 = 2.5e-6;
/// The share of repeated accesses to a tensor beyond the second-level cache that reach the device memory.
const L2_MISSES: f64 = 0.3;
/// A multiplication and an addition are one instruction.
const FUSED: f64 = 0.5;
/// How much slower a kernel becomes where it uses no byte of the sectors that it accesses: sectors take slots in queues, too.
const SCATTERED: f64 = 0.6;
/// How much slower a kernel becomes for each register beyond those that a thread can have, as spilled ones are loaded again.
const SPILL: f64 = 0.02;

/// The parts of a kernel's estimated time, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Of the multiprocessors, all waves together.
    pub multiprocessors: f64,
    /// Of the device memory.
    pub memory: f64,
    /// Of the second-level cache.
    pub cache: f64,
    /// The bytes that the device memory transfers.
    pub memory_bytes: f64,
    /// Waves of blocks; the last one may be partial.
    pub waves: f64,
}

impl Cost {
    /// The time, in seconds. Parts that are about equally long delay each other.
    pub fn seconds(&self) -> f64 {
        let parts = [self.multiprocessors, self.memory, self.cache];
        LAUNCH + norm(&parts)
    }
}

/// The 4-norm: a little more than the greatest.
fn norm(parts: &[f64]) -> f64 {
    parts.iter().map(|part| part.powi(4)).sum::<f64>().powf(0.25)
}

/// The estimated share of what the machine could do at best.
pub(super) fn score(program: &Program, kernels: &[KernelFacts], gpu: &GpuTarget) -> f32 {
    let seconds: f64 = kernels.iter().map(|kernel| cost(program, kernel, gpu).seconds()).sum();
    (ideal(program, kernels, gpu) / seconds.max(1e-9)) as f32
}

/// The seconds of the program's own operations at the peak, or of its tensors at the bandwidth of the memory.
fn ideal(program: &Program, kernels: &[KernelFacts], gpu: &GpuTarget) -> f64 {
    let reductions = kernels.iter().flat_map(|kernel| &kernel.blocks).filter(|block| block.is_reduction);
    let operations: f64 = reductions.map(|block| block.domain * instructions(block).max(0.5)).sum();
    let per_second = f64::from(gpu.multiprocessors)
        * f64::from(gpu.f32_multiply_adds_per_cycle)
        * f64::from(gpu.clock_khz)
        * 1e3;
    let bytes: f64 = program
        .buffer_params()
        .filter_map(|(id, _)| program.buffer(id).constant_bytes())
        .map(|bytes| bytes as f64)
        .sum();
    LAUNCH + (operations / per_second).max(bytes / gpu.memory_bytes_per_second as f64)
}

/// The arithmetic instructions of a point.
fn instructions(block: &BlockFacts) -> f64 {
    let own = &block.arithmetic;
    // Tensor cores round the factors that they take: what says so compares.
    let comparisons = if block.product.is_some() { 0.0 } else { own.comparison };
    let floats = own.simple * FUSED
        + own.division * FLOAT_DIVISION
        + own.transcendental * TRANSCENDENTAL
        + comparisons
        + own.conversion * CONVERSION;
    if block.is_float { floats } else { floats + own.integer * FUSED }
}

/// The estimated time of a kernel.
pub(crate) fn cost(program: &Program, kernel: &KernelFacts, gpu: &GpuTarget) -> Cost {
    let clock = f64::from(gpu.clock_khz) * 1e3;
    let processors = f64::from(gpu.multiprocessors);
    let (of_block, chain) = (block_cycles(kernel, gpu), Chain::of(kernel));
    let cycles_with = |resident: u32| cycles_with(kernel, gpu, resident, of_block, &chain);
    // The assembler may take more registers than expected.
    let mut cycles = cycles_with(kernel.resident);
    if kernel.least_resident != kernel.resident {
        cycles = (cycles + cycles_with(kernel.least_resident)) / 2.0;
    }
    let memory_bytes = memory_bytes(program, kernel, gpu);
    let bandwidth = gpu.memory_bytes_per_second as f64;
    Cost {
        multiprocessors: cycles / clock,
        memory: memory_bytes / (bandwidth * ATTAINABLE),
        cache: traffic(kernel) / (bandwidth * L2_OVER_MEMORY),
        memory_bytes,
        waves: kernel.grid / (processors * f64::from(kernel.resident.max(1))),
    }
}

/// Cycles of the multiprocessors where each holds a number of blocks at once. A block takes `of_block` cycles if nothing waits.
fn cycles_with(kernel: &KernelFacts, gpu: &GpuTarget, resident: u32, of_block: f64, chain: &Chain) -> f64 {
    let processors = f64::from(gpu.multiprocessors);
    let fits = resident > 0;
    let resident = f64::from(resident.max(1));
    let per_processor = (kernel.grid / processors).ceil().max(1.0);
    let at_once = resident.min(per_processor);
    // Too few warps leave the schedulers idle between dependent instructions.
    let ready = kernel.warps() * at_once * parallelism(kernel) / (SCHEDULERS * ARITHMETIC_LATENCY);
    // A scheduler has whole warps: with five warps, one of the four has two.
    let of_each = kernel.warps() * at_once / SCHEDULERS;
    let of_block =
        of_block / ready.clamp(0.05, 1.0) * (of_each.ceil() / of_each) * (1.0 + STALLS / of_each.ceil());
    let waves = (per_processor / at_once).floor();
    let rest = per_processor - waves * at_once;
    // One block computes when its own chain is done, while others are still at work.
    let alone = of_block.max(chain.copies) + chain.waits;
    let wave = |blocks: f64| if blocks > 0.0 { (blocks * of_block).max(alone) } else { 0.0 };
    let mut cycles = waves * wave(at_once) + wave(rest);
    let missing = kernel.registers - f64::from(gpu.max_registers_per_thread);
    cycles *= (1.0 + SPILL * missing.max(0.0)) * (1.0 + SCATTERED * (1.0 - kernel.coalescing()));
    if fits { cycles } else { 100.0 * cycles }
}

/// Cycles of a multiprocessor for one block of threads, if nothing waits.
fn block_cycles(kernel: &KernelFacts, gpu: &GpuTarget) -> f64 {
    let (mut issued, mut arithmetic, mut tensor, mut shared, mut cached) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for block in &kernel.blocks {
        let warps = (block.threads / WARP as f64).ceil().max(1.0);
        let requests: f64 = block
            .accesses
            .iter()
            .filter(|access| !access.scope.is_private())
            .map(|access| access.requests)
            .sum();
        let multiply_adds = block.points * WARP as f64;
        let operations = match block.product {
            Some(product) => multiply_adds / product.multiply_adds.max(1.0),
            None => instructions(block) * block.points * if block.element_bytes > 4 { 2.0 } else { 1.0 },
        };
        let guards = if block.is_guarded { GUARD * block.points } else { 0.0 };
        let control = block.iterations * LOOP_STEP + block.divisions * DIVISION * requests + guards;
        issued += warps * (operations + requests + control);
        match block.product {
            Some(product) => tensor += warps * multiply_adds / product.rate,
            None => arithmetic += warps * operations,
        }
        for access in &block.accesses {
            match access.scope {
                Scope::Shared => shared += warps * access.requests * access.units,
                Scope::Global | Scope::Streamed => {
                    let bytes = access.units * SECTOR;
                    let bytes = if rounds_ahead(block).is_some() { bytes.max(WIDEST_COPY) } else { bytes };
                    cached += warps * access.requests * bytes;
                }
                Scope::Local if access.is_in_memory => {
                    let bytes = (WARP * block.element_bytes) as f64;
                    cached += warps * access.requests * bytes;
                }
                Scope::Local | Scope::Fragment => {}
            }
        }
    }
    let per_cycle = f64::from(gpu.f32_multiply_adds_per_cycle.max(1)) / WARP as f64;
    let tensor_per_cycle = f64::from(gpu.tensor_multiply_adds_per_cycle.max(1));
    norm(&[issued / SCHEDULERS, arithmetic / per_cycle, tensor / tensor_per_cycle, shared, cached / L1_BYTES])
}

/// The longest chain of one block of threads, in cycles.
struct Chain {
    /// Rounds of asynchronous copies, which are under way while the block computes.
    copies: f64,
    /// Rounds of loads that the block waits for, and barriers.
    waits: f64,
}

impl Chain {
    /// The loads of one round overlap, also those of different copies.
    fn of(kernel: &KernelFacts) -> Self {
        let (mut copies, mut memory, mut others) = (0.0_f64, 0.0_f64, 0.0);
        // While a warp waits for shared memory, the others of its scheduler compute.
        let hidden = (kernel.warps() / SCHEDULERS).max(1.0);
        for block in &kernel.blocks {
            let in_round = in_round(block);
            let steps = block.rounds * (in_round / OVERLAPPING).max(1.0);
            let loads = |scope: fn(Scope) -> bool| {
                block.accesses.iter().any(|access| !access.is_store && scope(access.scope))
            };
            if loads(|scope| matches!(scope, Scope::Global | Scope::Streamed)) {
                match rounds_ahead(block) {
                    Some(ahead) => copies = copies.max(MEMORY_LATENCY * steps / ahead),
                    None => memory = memory.max(MEMORY_LATENCY * steps),
                }
            }
            if loads(|scope| scope == Scope::Shared) {
                others += SHARED_LATENCY * steps / hidden;
            }
            others += if block.threads > 1.0 { BARRIER * block.rounds } else { 0.0 };
        }
        Chain { copies, waits: memory + others }
    }
}

/// The loads between two barriers that follow each other: copies of a body overlap, and so do all lanes of a warp that load a tile together.
fn in_round(block: &BlockFacts) -> f64 {
    let is_by_warp = block.accesses.iter().any(|access| access.scope == Scope::Fragment);
    if !is_by_warp {
        return block.points / block.copies.max(1.0) / block.rounds.max(1.0);
    }
    let loads = block.accesses.iter().filter(|access| !access.is_store && !access.scope.is_private());
    loads.map(|access| access.requests / block.rounds.max(1.0)).fold(0.0, f64::max)
}

/// By how many rounds of a pipeline the loads of a block from device memory are ahead of their use: asynchronous copies, which move four
/// bytes or more. `None` for loads that the next statement waits for.
fn rounds_ahead(block: &BlockFacts) -> Option<f64> {
    let mut stored = block.accesses.iter().filter(|access| access.is_store);
    let is_async = stored
        .all(|access| access.scope == Scope::Shared && access.width * block.element_bytes >= SMALLEST_COPY);
    (is_async && block.stages > 1.0).then_some(block.stages - 1.0)
}

/// Independent instructions of a thread: those of different sums.
fn parallelism(kernel: &KernelFacts) -> f64 {
    let most = kernel.blocks.iter().filter(|block| block.is_reduction).map(|block| block.independent);
    most.fold(1.0, f64::max).clamp(1.0, 4.0)
}

/// Bytes of the sectors that all warps access in device memory.
fn traffic(kernel: &KernelFacts) -> f64 {
    let bytes = |(block, access): (&BlockFacts, &AccessFact)| {
        (block.threads / WARP as f64).ceil() * access.requests * access.units * SECTOR
    };
    kernel.grid * kernel.accesses(Scope::Global).map(bytes).sum::<f64>()
}

/// Bytes that the device memory transfers: each tensor once, and those again that the second-level cache cannot keep.
fn memory_bytes(program: &Program, kernel: &KernelFacts, gpu: &GpuTarget) -> f64 {
    let mut buffers: Vec<_> = kernel.accesses(Scope::Global).map(|(_, access)| access.buffer).collect();
    buffers.sort_unstable();
    buffers.dedup();
    let sizes = buffers.iter().filter_map(|buffer| program.buffer(*buffer).constant_bytes());
    let traffic = traffic(kernel);
    let unique = sizes.map(|bytes| bytes as f64).sum::<f64>();
    let kept = (gpu.l2_bytes as f64 / unique.max(1.0)).min(1.0);
    // A part of a tensor may be all that is accessed.
    unique.min(traffic) + (traffic - unique).max(0.0) * (1.0 - kept) * L2_MISSES
}
