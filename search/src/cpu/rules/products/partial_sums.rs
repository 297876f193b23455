//! Sums of scaled sums: products of quantised blocks.
//!
//! A product with a matrix of blocks sums up the integers of each block by dot products of bytes, and then the scaled sums of all blocks. Tiled each
//! for itself, the first stage stores the sums of all blocks, which may be a fifth as many bytes as the matrix, and reads the matrix in
//! several streams.

use std::sync::Arc;

use tilewright_core::analysis::block::{all_loads, reduction};
use tilewright_core::analysis::scope::{consumers, loops_around, producers};
use tilewright_core::annotation::TILING;
use tilewright_core::ids::VarId;
use tilewright_core::intrinsic::{Mapping, TensorIntrinsic};
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind};
use tilewright_macros::schedule_rule;

use crate::cpu::rules::auto_tensorize::is_open;
use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{block_of, has_own_loops, has_trivial_bindings, loop_of};

/// The structure of the tiles of both stages.
const STRUCTURE: &str = "SSRS";

/// Sums up panel by panel: the dot products of the blocks of a few rows with one panel of vectors, then their scaled sums. Intermediate sums
/// stay in the first-level cache, and a matrix whose panels are contiguous is read in the order in which it lies in memory.
#[schedule_rule(target = "cpu", after = "auto_inline", before = "add_rfactor")]
pub fn partial_sums(schedule: &mut Schedule, total: BlockRv) -> RuleResult {
    let Some(stages) = Stages::of(schedule, total)? else { return schedule.unchanged() };
    let mut intrinsics: Vec<Arc<TensorIntrinsic>> = {
        let (names, known) = (schedule.target().intrinsics(), schedule.target().descriptions());
        names.iter().filter_map(|name| known.get(name)).cloned().collect()
    };
    intrinsics.retain(|intrinsic| intrinsic.extents().len() == 2);
    intrinsics.sort_by_key(|intrinsic| std::cmp::Reverse(intrinsic.outputs()));
    for intrinsic in intrinsics {
        for mapping in intrinsic.mappings(schedule.program(), &stages.part) {
            let mut variant = schedule.fork();
            if stages.by_panels(&mut variant, total, &intrinsic, &mapping).is_ok() {
                return Ok(RuleOutcome::Variants(vec![variant]));
            }
        }
    }
    schedule.unchanged()
}

/// A reduction whose terms are scaled sums.
struct Stages {
    /// The block that sums up scaled sums.
    total: Arc<Block>,
    /// The block that makes these sums.
    part: Arc<Block>,
    /// For each dimension of the sums, the iterator of either block that is its index: of `part`, and of `total`.
    dimensions: Vec<[usize; 2]>,
}

impl Stages {
    /// The two stages, when each sum of the first one is used once by the second, which is the only one that reads it.
    fn of(schedule: &Schedule, total: BlockRv) -> Result<Option<Self>, ScheduleError> {
        let total = block_of(schedule, total)?;
        let program = schedule.program();
        let is_total = !TILING.is_in(&total.annotations)
            && reduction(&total).is_some()
            && has_trivial_bindings(&total)
            && has_own_loops(program, &total);
        if !is_total {
            return Ok(None);
        }
        let made: Vec<_> = producers(program, &total).into_iter().filter(|block| is_open(block)).collect();
        let [part] = made[..] else { return Ok(None) };
        let Some(sums) = reduction(part) else { return Ok(None) };
        let loads = all_loads(&total);
        let own: Vec<_> = loads.iter().filter(|load| load.buffer == sums.store.buffer).collect();
        let [load] = own[..] else { return Ok(None) };
        if consumers(program, part).len() != 1 || !has_own_loops(program, part) {
            return Ok(None);
        }
        let place =
            |block: &Block, var: Option<VarId>| block.iters.iter().position(|iter| Some(iter.var) == var);
        let pairs = sums.store.indices.iter().zip(load.indices.iter());
        let dimensions: Option<Vec<[usize; 2]>> = pairs
            .map(|(own, used)| Some([place(part, own.as_var())?, place(&total, used.as_var())?]))
            .collect();
        let Some(dimensions) = dimensions else { return Ok(None) };
        let is_used_once = (0..total.iters.len())
            .all(|iter| dimensions.iter().filter(|[_, used]| *used == iter).count() == 1);
        let part = Arc::clone(part);
        Ok(is_used_once.then_some(Stages { total, part, dimensions }))
    }

    fn by_panels(
        &self,
        schedule: &mut Schedule,
        total: BlockRv,
        intrinsic: &TensorIntrinsic,
        mapping: &Mapping,
    ) -> Result<(), ScheduleError> {
        let mismatch = || ScheduleError::IntrinsicMismatch(self.part.id);
        let extents: Vec<i64> = intrinsic.extents().collect();
        let (&[lane, byte], &[lanes, bytes]) = (&mapping.iters[..], &extents[..]) else {
            return Err(mismatch());
        };
        let extent = |iter: usize| self.part.iters[iter].extent.as_constant();
        let width = extent(lane).filter(|width| width % lanes == 0).ok_or_else(mismatch)?;
        let groups: Vec<usize> = (0..self.part.iters.len())
            .filter(|&iter| self.part.iters[iter].kind == IterKind::Reduce && iter != byte)
            .collect();
        if extent(byte) != Some(bytes) || groups.is_empty() {
            return Err(mismatch());
        }
        let along = |kind: IterKind| {
            self.dimensions
                .iter()
                .filter(move |[own, used]| self.total.iters[*used].kind == kind && *own != lane)
        };
        let of_panel = |iter: usize| self.lies_in_panel(mapping, lane, iter);
        let (panels, rows): (Vec<[usize; 2]>, Vec<[usize; 2]>) =
            along(IterKind::Spatial).copied().partition(|[own, _]| of_panel(*own));
        let in_lanes = self.dimensions.iter().find(|[own, _]| *own == lane).ok_or_else(mismatch)?[1];
        // The sums of all blocks of the last rows are in registers together.
        let registers = i64::from(schedule.cpu()?.lanes(4)).min(16);
        let most = (registers / (width / lanes)).max(1);
        let mut loops = Vec::new();
        for [_, used] in panels.iter().chain(&rows) {
            loops.extend(loop_of(schedule, total, *used)?);
        }
        let mut tile = None;
        if let (Some([own, _]), Some(target)) = (rows.last(), loops.last().copied()) {
            let height = extent(*own).map_or(1, |rows| divisor(rows, most));
            let [outer, inner] = schedule.split(target, &[None, Some(height)])?[..] else {
                return Err(mismatch());
            };
            *loops.last_mut().ok_or_else(mismatch)? = outer;
            tile = Some(inner);
        }
        let target = *loops.last().ok_or_else(mismatch)?;
        for [_, used] in along(IterKind::Reduce) {
            loops.extend(loop_of(schedule, total, *used)?);
        }
        loops.extend(tile);
        loops.extend(loop_of(schedule, total, in_lanes)?);
        schedule.reorder(&loops)?;
        let part = schedule.get_block(&self.part.name)?;
        schedule.compute_at(part, target)?;
        for block in [total, part] {
            schedule.annotate(block, TILING, STRUCTURE)?;
        }
        let own = |schedule: &mut Schedule, iters: &[usize]| own_loops(schedule, part, total, iters);
        let blocks: Vec<usize> = along(IterKind::Reduce).map(|[own, _]| *own).collect();
        let blocks = own(schedule, &blocks)?;
        let groups = own(schedule, &groups)?;
        let tile = own(schedule, &rows.iter().map(|[own, _]| *own).collect::<Vec<_>>())?;
        let (&[lane], &[byte]) = (&own(schedule, &[lane])?[..], &own(schedule, &[byte])?[..]) else {
            return Err(mismatch());
        };
        let [vectors, lane] = schedule.split(lane, &[None, Some(lanes)])?[..] else { return Err(mismatch()) };
        let first = *groups.first().ok_or_else(mismatch)?;
        schedule.reorder(&[&blocks[..], &groups, &tile, &[vectors, lane, byte]].concat())?;
        schedule.decompose_reduction(part, first)?;
        schedule.tensorize(lane, intrinsic.name())
    }

    /// Whether an iterator of the first stage moves through the operand that has a vector's lanes.
    fn lies_in_panel(&self, mapping: &Mapping, lane: usize, iter: usize) -> bool {
        let vars = [lane, iter].map(|iter| self.part.iters[iter].var);
        let output = reduction(&self.part).map(|found| found.store.buffer);
        all_loads(&self.part).iter().any(|load| {
            Some(load.buffer) != output
                && mapping.operands.iter().any(|operand| operand.buffer == load.buffer)
                && vars.iter().all(|&var| load.indices.iter().any(|index| index.mentions(var)))
        })
    }
}

/// The greatest divisor up to a limit.
fn divisor(number: i64, most: i64) -> i64 {
    (1..=most).rev().find(|divisor| number % divisor == 0).unwrap_or(1)
}

/// The loops around a block, but not around the other one, that some of its iterators are bound to, outermost first.
fn own_loops(
    schedule: &mut Schedule,
    block: BlockRv,
    other: BlockRv,
    iters: &[usize],
) -> Result<Vec<LoopRv>, ScheduleError> {
    let (found, other) = (block_of(schedule, block)?, block_of(schedule, other)?);
    let body = &schedule.program().body;
    let around = loops_around(body, found.id).unwrap_or_default();
    let shared = loops_around(body, other.id).unwrap_or_default();
    let shared = around.iter().zip(&shared).take_while(|(own, other)| own.id == other.id).count();
    let is_own = |place: &usize| {
        let var = around[*place].var;
        iters.iter().any(|&iter| found.iters[iter].binding.mentions(var))
    };
    let places: Vec<usize> = (shared..around.len()).filter(is_own).collect();
    let loops = schedule.get_loops(block)?;
    Ok(places.into_iter().filter_map(|place| loops.get(place).copied()).collect())
}
