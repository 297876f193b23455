//! Checks a candidate against limits of the machine before it is compiled.

use std::sync::Arc;

use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::annotation::UNROLL_FACTOR;
use tilewright_core::intrinsic::computes_tile;
use tilewright_core::program::Program;
use tilewright_core::schedule::ScheduleError;
use tilewright_core::stmt::{Block, For, IterKind, LoopKind, Stmt};
use tilewright_core::target::{CpuTarget, RunContext};

use crate::space::postproc::Rejection;

/// Most copies, in vector registers, that unrolling may make of one block: beyond it compile time explodes
/// and the code leaves the instruction cache.
const MAX_COPIES: i64 = 512;

/// Most accumulator tiles: all but two of the eight tile registers of AMX.
const MAX_TILES: i64 = 6;

/// The number of accumulator tiles that the innermost reduction around a block updates; `None` for a block that computes
/// no tiles.
pub(crate) fn sums_in_tiles(path: &[&Arc<For>], block: &Block) -> Option<i64> {
    let Stmt::Intrinsic(marked) = &block.body else { return None };
    if !computes_tile(marked) {
        return None;
    }
    let reduces = |node: &For| {
        let mut own = block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
        own.any(|iter| iter.binding.mentions(node.var))
    };
    let extent = |node: &&Arc<For>| node.extent.as_constant().unwrap_or(1).max(1);
    let innermost = path.iter().rposition(|node| reduces(node) && extent(node) > 1);
    Some(innermost.map_or(1, |innermost| path[innermost + 1..].iter().map(extent).product()))
}

/// Whether a block computes tiles that no instruction computes any more: an operand with a condition, such as one that pads, was inlined
/// into it. Lowering copies such operands to buffers where an instruction takes vectors, and computes a tile's products one by one.
fn has_lost_tiles(program: &Program, cpu: &CpuTarget, block: &Block) -> bool {
    let Stmt::Intrinsic(marked) = &block.body else { return false };
    computes_tile(marked)
        && cpu
            .descriptions
            .get(&marked.name)
            .is_some_and(|known| known.matches(program, &block.body).is_none())
}

/// Rejects programs that would take too long to compile, whose accumulators do not fit into registers, or whose tiles no instruction computes.
///
/// # Errors
/// The reason, in a word.
pub(crate) fn verify_limits(program: &Program, context: &RunContext) -> Result<(), Rejection> {
    let cpu = context.target.cpu().map_err(ScheduleError::WrongTargetKind)?;
    for block in blocks(&program.body) {
        let path = loops_around(&program.body, block.id).unwrap_or_default();
        let mut copies = 1i64;
        let mut accumulators = 1i64;
        let mut is_inside_reduction = false;
        for node in path.iter().rev() {
            let extent = node.extent.as_constant().unwrap_or(1).max(1);
            let reduces = block
                .iters
                .iter()
                .any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(node.var));
            is_inside_reduction |= reduces;
            let bytes = tilewright_core::analysis::block::writes(block)
                .first()
                .map_or(4, |buffer| program.buffer(*buffer).dtype.bytes());
            match node.kind {
                LoopKind::Unrolled => {
                    copies = copies.saturating_mul(extent);
                    // Reductions add to the same elements in each copy.
                    accumulators = accumulators.saturating_mul(if reduces { 1 } else { extent });
                }
                LoopKind::Vectorized => {
                    let lanes = i64::from(cpu.lanes(bytes));
                    // Lanes of a reduction are combined in halves from the beginning.
                    let extent = if reduces { (extent + 1) / 2 } else { extent };
                    let registers = (extent + lanes - 1) / lanes;
                    copies = copies.saturating_mul(registers);
                    accumulators = accumulators.saturating_mul(registers);
                }
                LoopKind::Serial => {
                    if let Some(factor) = UNROLL_FACTOR.get(&node.annotations) {
                        copies = copies.saturating_mul(factor);
                    }
                }
                LoopKind::Parallel | LoopKind::Bound(_) => {}
            }
        }
        if has_lost_tiles(program, cpu, block) {
            return Err(Rejection("operand_of_tiles"));
        }
        if copies > MAX_COPIES {
            return Err(Rejection("unroll_too_large"));
        }
        if sums_in_tiles(&path, block).is_some_and(|tiles| tiles > MAX_TILES) {
            return Err(Rejection("register_spill"));
        }
        // An operand and a broadcast take at least one register each.
        if is_inside_reduction && accumulators > i64::from(cpu.vector_registers) - 2 {
            return Err(Rejection("register_spill"));
        }
    }
    Ok(())
}
