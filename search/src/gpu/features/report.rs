//! The static report of a program's kernels.

use std::fmt;

use tilewright_core::program::Program;
use tilewright_core::target::GpuTarget;

use super::cost::{Cost, cost};
use super::kernel::{KernelFacts, kernels};

/// What is known of a kernel before it runs. Times and registers are estimates.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelReport {
    /// Blocks of threads.
    pub grid: f64,
    /// Threads of a block.
    pub threads: u32,
    /// Memory that the threads of a block share, in bytes.
    pub shared_bytes: u64,
    /// The 32-bit registers of a thread.
    pub registers: f64,
    /// Blocks of threads that a multiprocessor holds at once.
    pub resident_blocks: u32,
    /// Warps that it then holds, over the most that it can hold ("occupancy").
    pub occupancy: f64,
    /// The sectors of device memory that the data of accesses need, over those that are accessed: 1 where warps access whole sectors.
    pub coalescing: f64,
    /// The passes over the banks of shared memory, over those that the data need: 1 without conflicts.
    pub bank_conflicts: f64,
    /// Arithmetic operations of all threads.
    pub operations: f64,
    /// The parts of the estimated time.
    pub cost: Cost,
}

impl KernelReport {
    fn of(program: &Program, kernel: &KernelFacts, gpu: &GpuTarget) -> Self {
        let operations = kernel.blocks.iter().map(|block| {
            let own = &block.arithmetic;
            (own.simple + own.division + own.transcendental + own.comparison) * block.points * block.threads
        });
        KernelReport {
            grid: kernel.grid,
            threads: kernel.threads,
            shared_bytes: kernel.shared_bytes,
            registers: kernel.registers,
            resident_blocks: kernel.resident,
            occupancy: f64::from(kernel.resident) * kernel.warps()
                / f64::from(gpu.max_warps_per_multiprocessor()),
            coalescing: kernel.coalescing(),
            bank_conflicts: kernel.bank_conflicts(),
            operations: operations.sum::<f64>() * kernel.grid,
            cost: cost(program, kernel, gpu),
        }
    }

    /// Operations for each byte that the device memory transfers.
    pub fn intensity(&self) -> f64 {
        self.operations / self.cost.memory_bytes.max(1.0)
    }
}

impl fmt::Display for KernelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { grid, threads, shared_bytes, registers, resident_blocks, .. } = self;
        writeln!(
            f,
            "{grid} blocks of {threads} threads, {shared_bytes} bytes shared, about {registers} registers: \
             {resident_blocks} blocks resident, occupancy {:.0} %, {:.2} waves",
            100.0 * self.occupancy,
            self.cost.waves
        )?;
        writeln!(
            f,
            "coalescing {:.0} %, bank conflicts {:.2}, {:.2} MB from memory, {:.1} operations a byte",
            100.0 * self.coalescing,
            self.bank_conflicts,
            self.cost.memory_bytes / 1e6,
            self.intensity()
        )?;
        write!(
            f,
            "about {:.1} µs: multiprocessors {:.1}, memory {:.1}, second-level cache {:.1}",
            self.cost.seconds() * 1e6,
            self.cost.multiprocessors * 1e6,
            self.cost.memory * 1e6,
            self.cost.cache * 1e6
        )
    }
}

/// The reports of a scheduled program's kernels, in the order in which they run.
pub fn report(program: &Program, gpu: &GpuTarget) -> Vec<KernelReport> {
    kernels(program, gpu).iter().map(|kernel| KernelReport::of(program, kernel, gpu)).collect()
}
