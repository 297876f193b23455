//! Vectorizes blocks with transposed loads: transpositions, and other blocks that read an operand along another loop than they
//! write.

use tilewright_core::analysis::block::{loads, single_store};
use tilewright_core::analysis::scope::{loops_around, ranges_of};
use tilewright_core::ids::BlockId;
use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{For, IterKind, LoopKind};
use tilewright_core::target::CpuTarget;
use tilewright_core::visit::find_block;

use crate::cpu::postproc::strides::strides;

/// The two loops of a block with transposed loads, and how they are split into vectors.
struct TransposedLoops {
    /// The loop along which the stores are contiguous.
    writing: usize,
    /// The loop along which the transposed loads are contiguous.
    reading: usize,
    /// The iterations of the writing loop.
    extent: i64,
    /// The elements of one vector.
    lanes: i64,
    /// The vectors per cache line, where the loops divide into blocks of that size; otherwise 1.
    vectors: i64,
}

/// Vectorizes the loop along which a block stores, inside the loop along which it loads: the backend then loads blocks of rows and
/// transposes them in registers. Where a vector is shorter than a cache line, the blocks that complete a line run one after the
/// other: a non-temporal store writes half a line to memory if the other half comes late. Leaves any other block alone.
pub(super) fn vectorize_transposed(
    schedule: &mut Schedule,
    block: BlockRv,
    id: BlockId,
    own: &[For],
) -> Result<(), ScheduleError> {
    let Some(chosen) = choose(schedule.program(), schedule.cpu()?, id, own) else { return Ok(()) };
    let loops = schedule.get_loops(block)?;
    let own = &loops[loops.len() - own.len()..];
    let (reading, writing) = (own[chosen.reading], own[chosen.writing]);
    let first = chosen.reading.min(chosen.writing);
    let mut order: Vec<LoopRv> =
        own[first..].iter().copied().filter(|it| ![reading, writing].contains(it)).collect();
    let lanes = if chosen.vectors > 1 {
        let parts = schedule.split(writing, &[None, Some(chosen.vectors), Some(chosen.lanes)])?;
        let rows = schedule.split(reading, &[None, Some(chosen.lanes)])?;
        order.extend([parts[0], rows[0], parts[1], rows[1], parts[2]]);
        parts[2]
    } else if chosen.extent > chosen.lanes {
        let parts = schedule.split(writing, &[None, Some(chosen.lanes)])?;
        order.extend([parts[0], reading, parts[1]]);
        parts[1]
    } else {
        order.extend([reading, writing]);
        writing
    };
    schedule.reorder(&order)?;
    schedule.vectorize(lanes)
}

fn choose(program: &Program, cpu: &CpuTarget, id: BlockId, own: &[For]) -> Option<TransposedLoops> {
    let block = find_block(&program.body, id)?;
    let bytes = program.buffer(single_store(block)?.buffer).dtype.bytes();
    let ranges = ranges_of(loops_around(&program.body, id)?);
    let reduces = |node: &For| {
        block.iters.iter().any(|iter| iter.kind != IterKind::Spatial && iter.binding.mentions(node.var))
    };
    let is_open = |node: &For| {
        node.kind == LoopKind::Serial
            && node.extent.as_constant().is_some_and(|extent| extent > 1)
            && !reduces(node)
    };
    let along: Vec<_> = own.iter().map(|node| strides(program, block, node.var, &ranges)).collect();
    let innermost =
        |holds: &dyn Fn(usize) -> bool| (0..own.len()).rfind(|at| is_open(&own[*at]) && holds(*at));
    let writing = innermost(&|at| along[at].stores[..] == [Some(1)])?;
    let is_transposed = |load: usize| !matches!(along[writing].loads[load], Some(0 | 1));
    let sizes: Vec<usize> =
        loads(&block.body).iter().map(|access| program.buffer(access.buffer).dtype.bytes()).collect();
    let transposed: Vec<usize> = (0..sizes.len()).filter(|load| is_transposed(*load)).collect();
    if transposed.is_empty() || bytes < 4 || transposed.iter().any(|load| sizes[*load] < 4) {
        return None;
    }
    let reading =
        innermost(&|at| at != writing && transposed.iter().all(|load| along[at].loads[*load] == Some(1)))?;
    let lanes = i64::from(cpu.lanes(bytes));
    let (extent, rows) = (own[writing].extent.as_constant()?, own[reading].extent.as_constant()?);
    let per_line = (i64::from(cpu.cache_line_bytes) / bytes as i64).max(1);
    let divides = extent % per_line == 0 && rows % lanes == 0 && rows > lanes;
    let vectors = if divides { (per_line / lanes).max(1) } else { 1 };
    Some(TransposedLoops { writing, reading, extent, lanes, vectors })
}
