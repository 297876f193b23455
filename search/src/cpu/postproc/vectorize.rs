//! Vectorizes the innermost contiguous loop of each block; where there is none, an innermost reduction, or the contiguous stores of
//! a copy of narrow elements.

use tilewright_core::analysis::block::{is_ordered_by, is_update, single_store};
use tilewright_core::analysis::scope::{blocks, loops_around, ranges_of};
use tilewright_core::annotation::VECTORIZE;
use tilewright_core::expr::ExprKind;
use tilewright_core::ids::BlockId;
use tilewright_core::program::Program;
use tilewright_core::schedule::prim::Vectorize;
use tilewright_core::schedule::{LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{For, IterKind, LoopKind, Stmt};
use tilewright_core::target::CpuTarget;
use tilewright_core::visit::find_block;

use crate::cpu::postproc::strides::{Strides, are_contiguous, strides};
use crate::cpu::postproc::transposed::vectorize_transposed;
use crate::cpu::postproc::{block_names, find, nest_annotation};

/// Vectorizes each block along a contiguous loop of its own, moved innermost, fused with the loops around it that
/// continue it in memory, and split to the number of elements of the nest's annotation.
pub(super) fn vectorize_blocks(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    for name in block_names(schedule) {
        let (block, id) = find(schedule, &name)?;
        let Some(limit) = limit_of(schedule.program(), id).filter(|limit| *limit > 1) else { continue };
        let own = own_loops(schedule.program(), id);
        let Some(run) = choose_any(schedule.program(), schedule.cpu()?, id, &own, limit) else {
            vectorize_transposed(schedule, block, id, &own)?;
            continue;
        };
        let limit = run.limit.unwrap_or(limit);
        let loops = schedule.get_loops(block)?;
        let own_start = loops.len() - own.len();
        let mut target = loops[own_start + run.position];
        if run.position + 1 < own.len() {
            let mut order: Vec<LoopRv> = loops[own_start + run.position + 1..].to_vec();
            order.push(target);
            schedule.reorder(&order)?;
        } else if run.fused > 1 {
            let first = own_start + run.position + 1 - run.fused;
            target = schedule.fuse(&loops[first..=own_start + run.position])?;
        }
        vectorize_loop(schedule, target, run.extent, limit)?;
    }
    Ok(())
}

fn limit_of(program: &Program, id: BlockId) -> Option<i64> {
    let path = loops_around(&program.body, id)?;
    let outermost = path.first()?;
    nest_annotation(&blocks(&outermost.body), VECTORIZE)
}

/// The loops that hold this block alone, perfectly nested, outermost first.
fn own_loops(program: &Program, id: BlockId) -> Vec<For> {
    let path = loops_around(&program.body, id).unwrap_or_default();
    let shared = path.iter().rposition(|node| !matches!(&node.body, Stmt::For(_) | Stmt::Block(_)));
    let own = &path[shared.map_or(0, |shared| shared + 1)..];
    own.iter().map(|node| For { body: Stmt::nothing(), ..For::clone(node) }).collect()
}

/// A contiguous run of loops to vectorize.
struct ContiguousRun {
    /// The position of the innermost loop of the run, among the block's own loops.
    position: usize,
    /// The number of loops in the run, ending with that one.
    fused: usize,
    /// The number of iterations of the run.
    extent: i64,
    /// The most lanes, when that is not the nest's annotation.
    limit: Option<i64>,
}

fn choose_any(
    program: &Program,
    cpu: &CpuTarget,
    id: BlockId,
    own: &[For],
    limit: i64,
) -> Option<ContiguousRun> {
    let contiguous = choose(program, id, own, limit);
    let is_short = |bytes: i64| {
        contiguous.as_ref().is_none_or(|run| run.extent * bytes < i64::from(cpu.vector_bits) / 8)
    };
    match copied_bytes(program, id) {
        Some(bytes) if is_short(bytes) => {
            choose_copy(program, id, own, i64::from(cpu.vector_bits) / 8 / bytes)
        }
        _ => None,
    }
    .or(contiguous)
    .or_else(|| choose_update(program, id, own, cpu))
}

/// The innermost spatial loop along which every access is contiguous.
fn choose(program: &Program, id: BlockId, own: &[For], limit: i64) -> Option<ContiguousRun> {
    let block = find_block(&program.body, id)?;
    let is_open = |node: &For| {
        node.kind == LoopKind::Serial
            && node.extent.as_constant().is_some_and(|extent| extent > 1)
            && !block
                .iters
                .iter()
                .any(|iter| iter.kind != IterKind::Spatial && iter.binding.mentions(node.var))
    };
    let ranges = ranges_of(loops_around(&program.body, id)?);
    let is_contiguous = |node: &For| are_contiguous(program, block, node.var, &ranges);
    let position = own.iter().rposition(|node| is_open(node) && is_contiguous(node))?;
    let mut extent = own[position].extent.as_constant()?;
    let mut fused = 1;
    if position + 1 == own.len() {
        while extent % limit != 0 && fused <= position && block.guards.is_empty() {
            let outer = &own[position - fused];
            let of = |node: &For| strides(program, block, node.var, &ranges);
            let is_continued = is_open(outer) && continues(&of(outer), &of(&own[position]), extent);
            let Some(outer_extent) = outer.extent.as_constant().filter(|_| is_continued) else { break };
            extent *= outer_extent;
            fused += 1;
        }
    }
    Some(ContiguousRun { position, fused, extent, limit: None })
}

/// The innermost loop, when the block only reduces contiguous values into one element along it. It takes as many lanes as registers
/// can combine: the final reduction to one element takes as long for a few lanes.
fn choose_update(program: &Program, id: BlockId, own: &[For], cpu: &CpuTarget) -> Option<ContiguousRun> {
    let block = find_block(&program.body, id)?;
    let node = own.last().filter(|node| node.kind == LoopKind::Serial && !is_ordered_by(block, node.var))?;
    let extent = node.extent.as_constant().filter(|extent| *extent > 1)?;
    let ranges = ranges_of(loops_around(&program.body, id)?);
    let strides = strides(program, block, node.var, &ranges);
    let is_one_element = strides.stores.iter().all(|stride| *stride == Some(0));
    let lies_along = strides.loads.iter().all(|stride| matches!(stride, Some(0 | 1)));
    let position = own.len() - 1;
    let bytes = program.buffer(single_store(block)?.buffer).dtype.bytes();
    let most = i64::from(cpu.lanes(bytes)) * i64::from(cpu.vector_registers / 2);
    (is_update(block) && is_one_element && lies_along).then_some(ContiguousRun {
        position,
        fused: 1,
        extent,
        limit: Some(most.min(Vectorize::MAX_LANES)),
    })
}

/// The bytes of an element, when a block only copies elements of less than four bytes, or pads such a copy with constants.
fn copied_bytes(program: &Program, id: BlockId) -> Option<i64> {
    let block = find_block(&program.body, id)?;
    let store = single_store(block)?;
    let mut value = &store.value;
    while let ExprKind::Select(_, then, otherwise) = value.kind() {
        value = match (then.as_constant(), otherwise.as_constant()) {
            (None, Some(_)) => then,
            (Some(_), None) => otherwise,
            _ => return None,
        };
    }
    let is_copy = matches!(value.kind(), ExprKind::Load(buffer, _) if *buffer != store.buffer);
    let bytes = program.buffer(store.buffer).dtype.bytes() as i64;
    (is_copy && block.init.is_none() && bytes < 4).then_some(bytes)
}

/// The innermost loops of a copy that write contiguous elements, from any source: the backend permutes runs of bytes in vectors. The
/// run has one vector, or four where a transposition gathers short runs.
fn choose_copy(program: &Program, id: BlockId, own: &[For], lanes: i64) -> Option<ContiguousRun> {
    let block = find_block(&program.body, id)?;
    let ranges = ranges_of(loops_around(&program.body, id)?);
    let of = |node: &For| strides(program, block, node.var, &ranges);
    let is_open = |node: &For| {
        node.kind == LoopKind::Serial
            && node.extent.as_constant().is_some_and(|extent| extent > 1)
            && !is_ordered_by(block, node.var)
    };
    let innermost = own.last().filter(|node| is_open(node))?;
    let inner = of(innermost);
    if inner.stores[..] != [Some(1)] {
        return None;
    }
    let is_transposition = inner.loads.iter().all(|stride| *stride == Some(1));
    let limit = if is_transposition { (4 * lanes).min(Vectorize::MAX_LANES) } else { lanes };
    let mut extent = innermost.extent.as_constant()?;
    let mut fused = 1;
    while extent < limit && fused < own.len() && block.guards.is_empty() {
        let outer = &own[own.len() - 1 - fused];
        let Some(more) = outer.extent.as_constant().filter(|_| is_open(outer)) else { break };
        if of(outer).stores[..] != [Some(extent)] {
            break;
        }
        extent *= more;
        fused += 1;
    }
    (extent >= 4).then_some(ContiguousRun { position: own.len() - 1, fused, extent, limit: Some(limit) })
}

/// Whether one step of the outer loop moves every access as far as `extent` steps of the inner one do.
fn continues(outer: &Strides, inner: &Strides, extent: i64) -> bool {
    let pairs = outer.stores.iter().chain(&outer.loads).zip(inner.stores.iter().chain(&inner.loads));
    pairs.into_iter().all(|(outer, inner)| match (outer, inner) {
        (Some(outer), Some(inner)) => *outer == inner * extent,
        _ => false,
    })
}

/// Vectorizes a loop, after splitting off lanes when it is longer than the limit.
fn vectorize_loop(
    schedule: &mut Schedule,
    target: LoopRv,
    extent: i64,
    limit: i64,
) -> Result<(), ScheduleError> {
    if extent <= limit {
        return schedule.vectorize(target);
    }
    let smallest = i64::from(schedule.cpu()?.lanes(4)).min(limit);
    let divisor = (smallest..=limit).rev().find(|lanes| extent % lanes == 0 && lanes % smallest == 0);
    let parts = schedule.split(target, &[None, Some(divisor.unwrap_or(limit))])?;
    schedule.vectorize(parts[1])
}
