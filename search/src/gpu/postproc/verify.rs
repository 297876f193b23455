//! Checks a candidate against limits of the machine before it is compiled.

use tilewright_core::analysis::block::{reduction_of, stores};
use tilewright_core::program::Program;
use tilewright_core::schedule::ScheduleError;
use tilewright_core::target::{GpuTarget, RunContext};

use crate::gpu::features::kernels;
use crate::space::postproc::Rejection;

/// Most copies that unrolling may make of one block: beyond it compile time explodes and the code leaves the instruction cache.
const MAX_COPIES: f64 = 2048.0;

/// The share of the registers that an estimate may ask for: `ptxas` needs fewer than the estimate, which counts operands that are not
/// needed at once.
const MAX_REGISTERS: f64 = 1.0;

/// The most blocks of threads along the first axis of a grid.
const MAX_GRID: f64 = ((1_u64 << 31) - 1) as f64;

/// Rejects programs whose blocks of threads cannot be launched, whose threads need more registers than there are, or whose atomic updates have no
/// instruction.
///
/// # Errors
/// The reason, in a word.
pub(crate) fn verify_limits(program: &Program, context: &RunContext) -> Result<(), Rejection> {
    let gpu = context.target.gpu().map_err(ScheduleError::WrongTargetKind)?;
    for kernel in kernels(program, gpu) {
        if kernel.threads > gpu.max_threads_per_block {
            return Err(Rejection("too_many_threads"));
        }
        if kernel.grid > MAX_GRID {
            return Err(Rejection("grid_too_large"));
        }
        if kernel.shared_bytes > u64::from(gpu.shared_bytes_per_block_opt_in) {
            return Err(Rejection("too_much_shared_memory"));
        }
        if kernel.registers > MAX_REGISTERS * f64::from(gpu.max_registers_per_thread) {
            return Err(Rejection("register_spill"));
        }
        if kernel.resident == 0 {
            return Err(Rejection("too_many_registers_together"));
        }
        if kernel.blocks.iter().any(|block| block.copies > MAX_COPIES) {
            return Err(Rejection("unroll_too_large"));
        }
    }
    if has_instructions_for_updates(program) { Ok(()) } else { Err(Rejection("no_atomic_update")) }
}

fn has_instructions_for_updates(program: &Program) -> bool {
    stores(&program.body).into_iter().filter(|store| store.is_atomic()).all(|store| {
        reduction_of(store)
            .is_some_and(|found| GpuTarget::updates_atomically(found.reducer, found.value.dtype()))
    })
}
