//! Tiling on several levels, for blocks, threads and registers.

use tilewright_core::analysis::block::{is_spatial, loads, reads, writes};
use tilewright_core::analysis::scope::{consumers, writes_parameter};
use tilewright_core::annotation::{TILED_LOOPS, TILING, UNROLL, VECTOR_FETCH};
use tilewright_core::index::Index;
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, IntRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind};
use tilewright_core::visit::find_loop;
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::add_rfactor::partition_loops;
use crate::space::rules::block::{block_of, has_own_loops, is_used_again, needs_multi_level_tiling};

/// The levels of tiles: of blocks, of virtual threads, of threads; reductions between copies into shared memory; and the tiles of
/// one thread.
pub(crate) const STRUCTURE: &str = "SSSRRSRS";

/// The number of spatial and of reduction levels among them.
pub(crate) const LEVELS: (usize, usize) = (5, 3);

/// The spatial level that threads share.
pub(crate) const THREADS_LEVEL: usize = 2;

/// The largest innermost factor of a loop whose tiles divide it.
const MAX_INNERMOST: i64 = 16;

/// The most bytes that one instruction copies.
const MAX_BYTES: i64 = 16;

/// The copies of a statement that unrolling may make, with the probabilities of the choices.
const UNROLL_CHOICES: [(i64, f64); 3] = [(64, 0.2), (256, 0.4), (1024, 0.4)];

/// How tiles are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sizes {
    /// Factors of the loops' extents, as MetaSchedule draws them.
    Perfect { max_innermost: i64 },
    /// Powers of two that depend on the device and not on the loops, whose last tile is guarded, as Hidet's are.
    OfDevice,
}

/// Tiles a block with data reuse into `SSSRRSRS`. A block of threads computes a tile of the result from tiles of the operands that it
/// copies into shared memory, and each thread a small tile of it in registers. The loops over threads stand inside the first level
/// of reductions, beside those of the copies.
///
/// Offers, as variants, tiles that divide the loops and tiles that depend on the device alone. A single element-wise consumer becomes
/// the epilogue of the tile. Postprocessors bind the loops and unroll those of a thread.
#[schedule_rule(target = "gpu", after = "tensor_core_tiling", before = "inline_into_copies")]
pub fn multi_level_thread_tiling(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    MultiLevelThreadTiling { max_innermost: Some(MAX_INNERMOST), of_device: true }.apply(schedule, block)
}

/// The rule with its choices, for a rule that replaces it ([`RuleSet::instead_of`](crate::space::rule::RuleSet::instead_of)): a search in one
/// of the two spaces alone, or in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiLevelThreadTiling {
    /// The largest innermost factor of a loop whose tiles divide it; `None` to offer no such tiles.
    pub max_innermost: Option<i64>,
    /// Whether to offer tiles that depend on the device alone.
    pub of_device: bool,
}

impl MultiLevelThreadTiling {
    /// Applies the rule to a block.
    ///
    /// # Errors
    /// When the block is gone.
    pub fn apply(&self, schedule: &mut Schedule, block: BlockRv) -> RuleResult {
        let found = block_of(schedule, block)?;
        let suits = needs_multi_level_tiling(schedule.program(), &found);
        if TILING.is_in(&found.annotations) || !suits || !has_own_loops(schedule.program(), &found) {
            return schedule.unchanged();
        }
        // Only single threads divide a loop of any size.
        let is_known = found.iters.iter().all(|iter| iter.extent.as_constant().is_some());
        let dividing = self.max_innermost.filter(|_| is_known || !self.of_device);
        let dividing = dividing.map(|max_innermost| Sizes::Perfect { max_innermost });
        let sizes = dividing.into_iter().chain(self.of_device.then_some(Sizes::OfDevice));
        let mut variants = Vec::new();
        for sizes in sizes {
            let mut variant = schedule.fork();
            if tile(&mut variant, block, sizes).is_ok() {
                variants.push(variant);
            }
        }
        if variants.is_empty() { schedule.unchanged() } else { Ok(RuleOutcome::Variants(variants)) }
    }
}

fn tile(schedule: &mut Schedule, block: BlockRv, sizes: Sizes) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let copied = operands(&found);
    let loops = schedule.get_loops(block)?;
    let (spatial, reduce) = partition_loops(schedule, block, &loops)?;
    let mut levels = Levels::default();
    for (place, target) in spatial.iter().enumerate() {
        let factors = match sizes {
            Sizes::Perfect { max_innermost } => {
                of(schedule.sample_perfect_tile(*target, LEVELS.0, max_innermost)?)
            }
            Sizes::OfDevice => spatial_factors(schedule, *target, place + 1 == spatial.len())?,
        };
        levels.spatial.push(schedule.split(*target, &factors)?);
    }
    for target in &reduce {
        let factors = match sizes {
            Sizes::Perfect { max_innermost } => {
                of(schedule.sample_perfect_tile(*target, LEVELS.1, max_innermost)?)
            }
            Sizes::OfDevice => reduction_factors(schedule, *target)?,
        };
        levels.reduce.push(schedule.split(*target, &factors)?);
    }
    schedule.reorder(&levels.in_order())?;
    schedule.annotate(block, TILING, STRUCTURE)?;
    schedule.annotate(block, TILED_LOOPS, vec![spatial.len() as i64, reduce.len() as i64])?;
    let (choices, weights): (Vec<i64>, Vec<f64>) = UNROLL_CHOICES.into_iter().unzip();
    let unroll = schedule.sample_categorical(&choices, &weights)?;
    schedule.annotate(block, UNROLL, unroll)?;
    write_back(schedule, block, levels.spatial_level(0)?, Scope::Local)?;
    let outer_reduction = levels.reduction_level(0)?;
    for operand in copied.iter().rev() {
        let bytes = bytes_of(schedule, &found, *operand);
        let copy = schedule.read_at(outer_reduction, block, *operand, Scope::Shared)?;
        draw_fetch(schedule, copy, bytes)?;
    }
    Ok(())
}

/// Draws how many elements, of some bytes each, a thread copies at once.
pub(super) fn draw_fetch(schedule: &mut Schedule, copy: BlockRv, bytes: i64) -> Result<(), ScheduleError> {
    let mut widths: Vec<i64> = vec![1];
    widths.extend([2, 4, 8, 16].into_iter().filter(|width| width * bytes <= MAX_BYTES));
    let width = schedule.sample_categorical(&widths, &vec![1.0; widths.len()])?;
    schedule.annotate(copy, VECTOR_FETCH, width)
}

/// The parts of each loop, outermost first.
#[derive(Default)]
struct Levels {
    spatial: Vec<Vec<LoopRv>>,
    reduce: Vec<Vec<LoopRv>>,
}

impl Levels {
    /// The loops in the order in which they are nested: tiles of blocks, reductions between copies, threads, reductions in shared
    /// memory, and the tiles of one thread.
    fn in_order(&self) -> Vec<LoopRv> {
        let level = |loops: &[Vec<LoopRv>], number: usize| -> Vec<LoopRv> {
            loops.iter().map(|parts| parts[number]).collect()
        };
        let (spatial, reduce) = (&self.spatial, &self.reduce);
        [
            level(spatial, 0),
            level(reduce, 0),
            level(spatial, THREADS_LEVEL),
            level(reduce, 1),
            level(spatial, 1),
            level(spatial, 3),
            level(reduce, 2),
            level(spatial, 4),
        ]
        .concat()
    }

    /// The innermost loop of a spatial level.
    fn spatial_level(&self, number: usize) -> Result<LoopRv, ScheduleError> {
        self.spatial.last().map(|parts| parts[number]).ok_or(ScheduleError::BadLoopList)
    }

    /// The innermost loop of a level of reductions.
    fn reduction_level(&self, number: usize) -> Result<LoopRv, ScheduleError> {
        self.reduce.last().map(|parts| parts[number]).ok_or(ScheduleError::BadLoopList)
    }
}

fn of(factors: Vec<IntRv>) -> Vec<Option<IntRv>> {
    factors.into_iter().map(Some).collect()
}

/// One of some powers of two, up to the least one that covers what there is.
fn power(schedule: &mut Schedule, least: i64, most: i64) -> Result<IntRv, ScheduleError> {
    let powers: Vec<i64> =
        (0..12).map(|shift| 1 << shift).filter(|power| (least..=most.max(least)).contains(power)).collect();
    schedule.sample_categorical(&powers, &vec![1.0; powers.len()])
}

/// The extent of a loop, where it is known.
fn extent(schedule: &Schedule, target: LoopRv) -> Result<Option<i64>, ScheduleError> {
    let id = schedule.values().target_loop(target)?;
    Ok(find_loop(&schedule.program().body, id).and_then(|node| node.extent.as_constant()))
}

/// Factors of a spatial loop by the device: virtual threads, threads, and two levels of elements of one thread. Elements of a thread that
/// lie beside each other are accessed at once.
fn spatial_factors(
    schedule: &mut Schedule,
    target: LoopRv,
    is_last: bool,
) -> Result<Vec<Option<IntRv>>, ScheduleError> {
    let covering = extent(schedule, target)?.map_or(i64::MAX, |extent| extent.max(1).unsigned_abs() as i64);
    let covering = if covering < 1 << 11 { (covering as u64).next_power_of_two() as i64 } else { covering };
    let virtual_threads = power(schedule, 1, covering.min(2))?;
    let threads = power(schedule, 1, covering.min(32))?;
    let outer = power(schedule, 1, covering.min(if is_last { 2 } else { 8 }))?;
    let inner = power(schedule, 1, covering.min(if is_last { 4 } else { 1 }))?;
    Ok(vec![None, Some(virtual_threads), Some(threads), Some(outer), Some(inner)])
}

/// Factors of a reduction by the device.
fn reduction_factors(schedule: &mut Schedule, target: LoopRv) -> Result<Vec<Option<IntRv>>, ScheduleError> {
    let extent = extent(schedule, target)?.unwrap_or(i64::MAX);
    // Short loops, such as those over the taps of a filter, run as a whole or one by one.
    if extent < 8 {
        let whole = schedule.sample_categorical(&[1, extent.max(1)], &[1.0, 1.0])?;
        let one = schedule.sample_categorical(&[1], &[1.0])?;
        return Ok(vec![None, Some(whole), Some(one)]);
    }
    let outer = power(schedule, 4, extent.min(32))?;
    let inner = power(schedule, 1, 2)?;
    Ok(vec![None, Some(outer), Some(inner)])
}

/// The numbers of the operands that are used again: by several results, or by neighbours whose windows overlap.
pub(crate) fn operands(block: &Block) -> Vec<i64> {
    let accesses = loads(&block.body);
    let mentions = |index: &Index, kind: IterKind| {
        block.iters.iter().any(|iter| iter.kind == kind && !iter.extent.is(1) && index.mentions(iter.var))
    };
    let slides = |index: &Index| mentions(index, IterKind::Spatial) && mentions(index, IterKind::Reduce);
    let is_copied = |buffer| {
        let mut own = accesses.iter().filter(|access| access.buffer == buffer);
        own.all(|access| is_used_again(block, access.indices) || access.indices.iter().any(slides))
    };
    let written = writes(block);
    (0..)
        .zip(reads(block))
        .filter(|(_, buffer)| !written.contains(buffer) && is_copied(*buffer))
        .map(|(number, _)| number)
        .collect()
}

/// The size of an element of an operand.
pub(super) fn bytes_of(schedule: &Schedule, block: &Block, operand: i64) -> i64 {
    let buffer = usize::try_from(operand).ok().and_then(|number| reads(block).get(number).copied());
    buffer.map_or(MAX_BYTES, |buffer| schedule.program().buffer(buffer).dtype.bytes() as i64)
}

/// Sums in registers, which a copy or a single element-wise consumer writes when they are finished.
pub(super) fn write_back(
    schedule: &mut Schedule,
    block: BlockRv,
    target: LoopRv,
    scope: Scope,
) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let epilogue = consumers(schedule.program(), &found);
    let is_fusable = match &epilogue[..] {
        [consumer] => !writes_parameter(schedule.program(), &found) && is_spatial(consumer),
        _ => false,
    };
    if is_fusable {
        let mut attempt = schedule.clone();
        let consumer = attempt.get_consumers(block)?[0];
        let moved = attempt.reverse_compute_at(consumer, target);
        if moved.and_then(|()| attempt.set_scope(block, 0, scope)).is_ok() {
            *schedule = attempt;
            return Ok(());
        }
    }
    schedule.write_at(target, block, scope).map(drop)
}
