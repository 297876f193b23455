//! The facts about one kernel.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::analysis::constant::constant_blocks;
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::program::{Program, Scope};
use tilewright_core::stmt::{For, LoopKind, Stmt};
use tilewright_core::target::GpuTarget;
use tilewright_core::thread_axis::WARP;

use super::block::{BlockFacts, Located};
use super::place::{Place, SYMBOLIC_EXTENT, place};

/// The alignment of buffers in shared memory, in bytes.
const ALIGNMENT: u64 = 16;
/// Registers that a thread needs besides those of its buffers: numbers of threads, counters of loops, an address for each of some
/// tensors. `ptxas` gives an element-wise addition of two tensors 12, a product with a tile of 4 × 4 sums 16 and some operands 40.
const USUAL_REGISTERS: f64 = 16.0;

/// How many times as many registers as expected the assembler may take: a tenth of 340 kernels took more (`ptxas` 13.0).
const ASSEMBLED: f64 = 1.25;

/// The facts about one kernel.
#[derive(Clone, Debug)]
pub(crate) struct KernelFacts {
    /// Blocks of threads.
    pub(crate) grid: f64,
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Memory that the threads of a block share, in bytes.
    pub(crate) shared_bytes: u64,
    /// An estimate of the 32-bit registers of a thread; more than there are where some are spilled.
    pub(crate) registers: f64,
    /// Bytes of a thread's buffers.
    pub(crate) local_bytes: f64,
    /// Blocks of threads that a multiprocessor holds at once; 0 where one cannot be launched.
    pub(crate) resident: u32,
    /// The same, if the assembler takes more registers than expected.
    pub(crate) least_resident: u32,
    pub(crate) blocks: Vec<BlockFacts>,
}

/// The kernels of a program, one for each nest that a call executes.
pub(crate) fn kernels(program: &Program, gpu: &GpuTarget) -> Vec<KernelFacts> {
    let ahead = constant_blocks(program);
    let nests = match &program.body {
        Stmt::Seq(stmts) => stmts.iter().collect::<Vec<_>>(),
        single => vec![single],
    };
    nests
        .into_iter()
        .filter_map(|nest| {
            let located: Vec<Located<'_>> = blocks(nest)
                .into_iter()
                .filter(|block| !ahead.contains(&block.id))
                .map(|block| {
                    let path = loops_around(nest, block.id).unwrap_or_default();
                    Located::new(program, block, path)
                })
                .collect();
            (!located.is_empty()).then(|| KernelFacts::new(program, &located, gpu))
        })
        .collect()
}

impl KernelFacts {
    fn new(program: &Program, located: &[Located<'_>], gpu: &GpuTarget) -> Self {
        let mut places: FxHashMap<BufferId, Place> = FxHashMap::default();
        for access in located.iter().flat_map(|block| &block.accesses) {
            places.entry(access.buffer).or_insert_with(|| place(program, access.buffer, located));
        }
        let (mut shared_bytes, mut local_bytes) = (0_u64, 0.0);
        for (buffer, place) in &places {
            let declared = program.buffer(*buffer);
            let elements = place.elements;
            let bytes = (elements.max(0) as u64).saturating_mul(declared.dtype.bytes() as u64);
            match declared.scope {
                Scope::Shared => {
                    // A pipeline has a version for each iteration under way.
                    let stores = |block: &&Located<'_>| {
                        block.accesses.iter().any(|access| access.is_store && access.buffer == *buffer)
                    };
                    let versions = located.iter().filter(stores).map(Located::stages).max().unwrap_or(1);
                    let bytes = bytes.saturating_mul(versions as u64);
                    shared_bytes = shared_bytes.saturating_add(bytes.next_multiple_of(ALIGNMENT))
                }
                Scope::Local if place.is_in_memory => {}
                Scope::Local => local_bytes += bytes.max(4 * elements.max(0) as u64) as f64,
                // The lanes of a warp hold a fragment together.
                Scope::Fragment => local_bytes += bytes as f64 / WARP as f64,
                Scope::Global | Scope::Streamed => {}
            }
        }
        let exchanges = exchange_loops(located);
        let blocks: Vec<BlockFacts> =
            located.iter().map(|block| block.facts(program, &places, &exchanges)).collect();
        let operands = |block: &BlockFacts| -> f64 {
            let loads = block.accesses.iter().filter(|access| !access.is_store && !access.scope.is_private());
            loads.map(|access| access.registers.min(64.0)).sum()
        };
        let most = blocks.iter().map(operands).fold(0.0, f64::max);
        let tensors = places.keys().filter(|buffer| program.access(**buffer).is_some()).count() as f64;
        let registers = USUAL_REGISTERS + 2.0 * tensors + local_bytes / 4.0 + most;
        let threads = axes_extents(located, false).product::<f64>().min(f64::from(u32::MAX)) as u32;
        let fitting = registers.min(f64::from(gpu.max_registers_per_thread)) as u32;
        let blocks_with = |registers: u32| {
            u32::try_from(shared_bytes).map_or(0, |shared| gpu.resident_blocks(threads, registers, shared))
        };
        let resident = blocks_with(fitting);
        let most = f64::from(gpu.max_registers_per_thread);
        let least_resident = blocks_with((registers * ASSEMBLED).min(most) as u32);
        KernelFacts {
            grid: axes_extents(located, true).product(),
            threads,
            shared_bytes,
            registers,
            local_bytes,
            resident,
            least_resident,
            blocks,
        }
    }

    /// The warps of a block of threads.
    pub(crate) fn warps(&self) -> f64 {
        f64::from(self.threads.div_ceil(WARP as u32))
    }

    /// The sectors of device memory that the data of all accesses need, over those that are accessed.
    pub(crate) fn coalescing(&self) -> f64 {
        let (mut used, mut touched) = (0.0, 0.0);
        for (block, access) in self.accesses(Scope::Global) {
            let requests = access.requests * block.threads;
            used += requests * access.units * access.efficiency;
            touched += requests * access.units;
        }
        if touched > 0.0 { used / touched } else { 1.0 }
    }

    /// The passes over the banks of shared memory, over those that the data need.
    pub(crate) fn bank_conflicts(&self) -> f64 {
        let (mut passes, mut needed) = (0.0, 0.0);
        for (block, access) in self.accesses(Scope::Shared) {
            let requests = access.requests * block.threads;
            passes += requests * access.units;
            needed += requests * access.units * access.efficiency;
        }
        if needed > 0.0 { passes / needed } else { 1.0 }
    }

    /// The accesses to one kind of memory, each with its block.
    pub(crate) fn accesses(
        &self,
        scope: Scope,
    ) -> impl Iterator<Item = (&BlockFacts, &super::access::AccessFact)> {
        let is_meant = move |of: Scope| of == scope || (scope == Scope::Global && of == Scope::Streamed);
        let all =
            self.blocks.iter().flat_map(|block| block.accesses.iter().map(move |access| (block, access)));
        all.filter(move |(_, access)| is_meant(access.scope))
    }
}

/// The loops in whose iterations threads write memory that they share, so that they wait for each other.
fn exchange_loops(located: &[Located<'_>]) -> FxHashSet<VarId> {
    let exchanges = |block: &&Located<'_>| {
        block.accesses.iter().any(|access| access.is_store && access.scope == Scope::Shared)
    };
    let writers = located.iter().filter(exchanges);
    writers.flat_map(|block| block.path.iter().map(|node| node.var)).collect()
}

/// The extents of the axes of the grid, or of a block of threads.
fn axes_extents(located: &[Located<'_>], of_blocks: bool) -> impl Iterator<Item = f64> {
    let mut found: Vec<(tilewright_core::thread_axis::ThreadAxis, i64)> = Vec::new();
    let loops: Vec<&Arc<For>> = located.iter().flat_map(|block| block.path.iter().copied()).collect();
    for node in loops {
        if let LoopKind::Bound(axis) = node.kind
            && (if of_blocks { axis.is_of_blocks() } else { axis.is_of_block() })
            && !found.iter().any(|(other, _)| *other == axis)
        {
            found.push((axis, node.extent.as_constant().unwrap_or(SYMBOLIC_EXTENT).max(1)));
        }
    }
    found.into_iter().map(|(_, extent)| extent as f64)
}
