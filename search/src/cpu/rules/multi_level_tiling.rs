//! Tiling on several levels, for caches and registers.

use tilewright_core::analysis::block::{BufferAccess, is_spatial, loads_in, reduction};
use tilewright_core::analysis::scope::{consumers, loops_around, writes_parameter};
use tilewright_core::annotation::{CONSTANT_LAYOUT, TILING};
use tilewright_core::ids::LoopId;
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, IntRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::Block;
use tilewright_core::target::CpuTarget;
use tilewright_macros::schedule_rule;

use crate::cpu::rules::packing::{Operand, pack, packings};
use crate::cpu::seed::{lane_limit, row_limit};
use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::add_rfactor::partition_loops;
use crate::space::rules::block::{
    block_of, constant_operands, is_reduction_of_step, needs_multi_level_tiling, own_loops,
    reduces_across_rows,
};
use crate::space::rules::tiles::{UsefulTiles, sample_tile};

/// The order of the levels: spatial tiles for cores, L2 and L1, registers; reduction tiles between.
const STRUCTURE: &str = "SSRSRS";

/// The largest innermost factor of a reduction loop.
const MAX_INNERMOST: i64 = 256;

/// The shortest useful innermost part of a spatial loop that does not run in vector lanes.
const LEAST_ROWS: i64 = 4;

/// The shortest useful innermost part of a reduction loop.
const LEAST_REDUCTION: i64 = 16;

/// Tiles a block with data reuse into `SSRSRS`: four parts of each spatial loop, two of each reduction. So are reductions whose
/// vectors run along their results, because the innermost tile holds these vectors.
///
/// Offers, as variants: where a finished tile of the output is written back (not cached, below the first, or below
/// the second spatial level), and which operands are copied into dense tiles at the outer
/// reduction level. Constant operands are not copied tile by tile: they are laid out in the order of the loops, once,
/// or left as they are.
#[schedule_rule(target = "cpu", after = "reduce_in_lanes", before = "parallelize_vectorize_unroll")]
pub fn multi_level_tiling(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    MultiLevelTiling::of(schedule.cpu()?).apply(schedule, block)
}

/// The rule with its choices, for a rule that replaces it:
///
/// ```
/// use tilewright_core::schedule::{BlockRv, Schedule};
/// use tilewright_search::rule::RuleResult;
/// use tilewright_search::cpu::rules::multi_level_tiling::MultiLevelTiling;
///
/// /// Tiles as usual, but copies no operand. To be annotated with
/// /// `#[schedule_rule(target = "cpu", replace = "multi_level_tiling")]`.
/// fn tiling_without_copies(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
///     let usual = MultiLevelTiling::of(schedule.cpu()?);
///     MultiLevelTiling { packs: false, ..usual }.apply(schedule, block)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiLevelTiling {
    /// The largest innermost factors.
    pub innermost: Innermost,
    /// Whether a loop without a useful divisor gets tiles that do not divide it, the last one guarded.
    pub covers: bool,
    /// Whether variants copy operands into dense tiles, and lay out constant operands.
    pub packs: bool,
}

/// The largest innermost factors of loops, in iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Innermost {
    /// Of a reduction loop.
    pub reduction: i64,
    /// Of the loop along the output's last dimension, where that can run in vector lanes.
    pub lanes: i64,
    /// Of any other spatial loop.
    pub rows: i64,
}

impl Innermost {
    /// The limits that fit the registers of a machine.
    fn of(cpu: &CpuTarget) -> Self {
        Innermost { reduction: MAX_INNERMOST, lanes: lane_limit(cpu), rows: row_limit(cpu) }
    }
}

impl MultiLevelTiling {
    /// The choices of the rule [`multi_level_tiling()`].
    pub fn of(cpu: &CpuTarget) -> Self {
        MultiLevelTiling { innermost: Innermost::of(cpu), covers: true, packs: true }
    }

    /// Applies the rule to a block.
    ///
    /// # Errors
    /// When a loop of the block cannot be split.
    pub fn apply(&self, schedule: &mut Schedule, block: BlockRv) -> RuleResult {
        let found = block_of(schedule, block)?;
        let is_step = is_reduction_of_step(schedule.program(), &found);
        let is_useful =
            is_step || needs_multi_level_tiling(schedule.program(), &found) || reduces_across_rows(&found);
        if TILING.is_in(&found.annotations) || !is_useful {
            return schedule.unchanged();
        }
        let mut layouts =
            if self.packs { layouts(schedule.program(), &found) } else { vec![OperandLayout::default()] };
        if is_step && layouts.iter().any(|layout| layout.is_laid_out) {
            layouts.retain(|layout| layout.is_laid_out);
        }
        // Without tiles, postprocessing puts the sums of a step into lanes along the reduction. Weights that are laid out for tiles need none of it.
        let is_laid_out = layouts.iter().any(|layout| layout.is_laid_out);
        let plain = (is_step && !is_laid_out).then(|| schedule.fork());
        let tiles = Tiles::cut_within(schedule, block, &[], self)?;
        let outer_reduction = tiles.level('R', 0).ok_or(ScheduleError::NotReduction(found.id))?;
        let mut variants: Vec<Schedule> = plain.into_iter().collect();
        for OperandLayout { packed, is_laid_out } in layouts {
            for level in [Some(0), Some(1), None] {
                let mut variant = schedule.fork();
                let refused = pack(&mut variant, block, &packed, outer_reduction).is_err()
                    || (is_laid_out && variant.annotate(block, CONSTANT_LAYOUT, 1).is_err())
                    || level.is_some_and(|level| write_back(&mut variant, block, &tiles, level).is_err());
                if !refused {
                    variants.push(variant);
                }
            }
        }
        Ok(RuleOutcome::Variants(variants))
    }
}

/// How a variant stores the operands of a block.
#[derive(Default)]
struct OperandLayout {
    /// The operands copied into dense tiles.
    packed: Vec<Operand>,
    /// Whether constant operands are laid out in the order of the loops.
    is_laid_out: bool,
}

/// The operand layouts that are worth a variant.
fn layouts(program: &Program, block: &Block) -> Vec<OperandLayout> {
    let constant = constant_operands(program, block);
    let mut sets = vec![Vec::new()];
    for mut packed in packings(program, block) {
        packed.retain(|operand| !constant.contains(&operand.buffer));
        if !sets.contains(&packed) {
            sets.push(packed);
        }
    }
    let plain = if constant.is_empty() {
        None
    } else {
        Some(OperandLayout { packed: Vec::new(), is_laid_out: false })
    };
    let is_laid_out = plain.is_some();
    plain.into_iter().chain(sets.into_iter().map(|packed| OperandLayout { packed, is_laid_out })).collect()
}

/// The loops of each level, outermost level first.
pub(super) struct Tiles {
    levels: Vec<Vec<LoopRv>>,
}

impl Tiles {
    /// Splits the loops of a block into the parts of each level, as [`multi_level_tiling()`] does, and orders them so. The
    /// loops `lanes` stay whole, and innermost.
    pub(super) fn cut(
        schedule: &mut Schedule,
        block: BlockRv,
        lanes: &[LoopRv],
    ) -> Result<Self, ScheduleError> {
        let usual = MultiLevelTiling::of(schedule.cpu()?);
        Self::cut_within(schedule, block, lanes, &usual)
    }

    /// As [`Tiles::cut`], within given limits.
    fn cut_within(
        schedule: &mut Schedule,
        block: BlockRv,
        lanes: &[LoopRv],
        MultiLevelTiling { innermost, covers, .. }: &MultiLevelTiling,
    ) -> Result<Self, ScheduleError> {
        let whole =
            lanes.iter().map(|lane| schedule.values().target_loop(*lane)).collect::<Result<Vec<_>, _>>()?;
        let mut loops = own_loops(schedule, block)?;
        loops.retain(|target| !schedule.values().target_loop(*target).is_ok_and(|id| whole.contains(&id)));
        let (spatial, reduce) = partition_loops(schedule, block, &loops)?;
        let lanes_of_vector = i64::from(schedule.cpu()?.lanes(4));
        let in_lanes = if lanes.is_empty() { output_loop(schedule, block)? } else { None };
        let found = block_of(schedule, block)?;
        let vectors = vectors_beside_each_other(&found);
        let mut levels = vec![Vec::new(); STRUCTURE.len()];
        for target in loops {
            let kind = if spatial.contains(&target) { 'S' } else { 'R' };
            debug_assert!(kind == 'S' || reduce.contains(&target));
            let places: Vec<usize> = STRUCTURE
                .chars()
                .enumerate()
                .filter(|(_, level)| *level == kind)
                .map(|(place, _)| place)
                .collect();
            let id = schedule.values().target_loop(target)?;
            let useful = match kind {
                'R' => {
                    let most = innermost.reduction;
                    UsefulTiles { least: LEAST_REDUCTION, most, most_dividing: most, multiple: 1 }
                }
                _ if in_lanes == Some(id) => UsefulTiles {
                    least: lanes_of_vector,
                    most: innermost.lanes,
                    most_dividing: innermost.lanes,
                    multiple: lanes_of_vector,
                },
                _ => {
                    let most = innermost.rows;
                    UsefulTiles { least: LEAST_ROWS, most, most_dividing: most / vectors, multiple: 1 }
                }
            };
            let factors = match *covers {
                true => sample_tile(schedule, target, places.len(), useful)?,
                false => schedule.sample_perfect_tile(target, places.len(), useful.most)?,
            };
            let factors: Vec<Option<IntRv>> = factors.into_iter().map(Some).collect();
            let parts = schedule.split(target, &factors)?;
            for (place, part) in places.into_iter().zip(parts) {
                levels[place].push(part);
            }
        }
        schedule.reorder(&[&levels.concat(), lanes].concat())?;
        schedule.annotate(block, TILING, STRUCTURE)?;
        Ok(Tiles { levels })
    }

    /// The innermost loop of the `number`-th spatial level.
    pub(super) fn spatial(&self, number: usize) -> Option<LoopRv> {
        self.level('S', number)
    }

    /// The innermost loop of all levels.
    pub(super) fn innermost(&self) -> Option<LoopRv> {
        self.levels.iter().rev().find_map(|loops| loops.last().copied())
    }

    /// The outermost and the innermost loop of the outer reduction level.
    pub(super) fn outer_reduction(&self) -> Option<(LoopRv, LoopRv)> {
        let place = STRUCTURE.find('R')?;
        self.levels[place].first().copied().zip(self.level('R', 0))
    }

    fn level(&self, kind: char, number: usize) -> Option<LoopRv> {
        let levels = STRUCTURE.chars().zip(&self.levels).filter(|(level, _)| *level == kind);
        levels.map(|(_, loops)| loops).nth(number)?.last().copied()
    }
}

/// The loop along the last dimension of the output: the vectorizable loop.
fn output_loop(schedule: &Schedule, block: BlockRv) -> Result<Option<LoopId>, ScheduleError> {
    let found = block_of(schedule, block)?;
    let last = reduction(&found).and_then(|reduction| reduction.store.indices.last()?.as_var());
    let binding =
        found.iters.iter().find(|iter| Some(iter.var) == last).and_then(|iter| iter.binding.as_var());
    let path = loops_around(&schedule.program().body, found.id).unwrap_or_default();
    Ok(path.into_iter().find(|node| Some(node.var) == binding).map(|node| node.id))
}

/// The number of vectors beside each other that a tile of rows leaves registers for: two where they share an operand, such as a product
/// of matrices, of which half as many rows then fill the registers. Channels of a depthwise convolution share none.
fn vectors_beside_each_other(block: &Block) -> i64 {
    let Some(reduction) = reduction(block) else { return 1 };
    let Some(last) = reduction.store.indices.last().and_then(|index| index.as_var()) else { return 2 };
    let mut loads = Vec::new();
    loads_in(reduction.value, &mut loads);
    let is_shared = |load: &BufferAccess<'_>| !load.indices.iter().any(|index| index.mentions(last));
    if loads.iter().any(is_shared) { 2 } else { 1 }
}

/// Accumulates the output in a local tile and writes it back when it is finished. A single element-wise consumer becomes the
/// epilogue of the tile, and replaces the copy.
pub(super) fn write_back(
    schedule: &mut Schedule,
    block: BlockRv,
    tiles: &Tiles,
    level: usize,
) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let refusal = ScheduleError::NotReduction(found.id);
    let target = tiles.spatial(level).ok_or(refusal)?;
    let epilogue = consumers(schedule.program(), &found);
    let is_fusable = match &epilogue[..] {
        [consumer] => !writes_parameter(schedule.program(), &found) && is_spatial(consumer),
        _ => false,
    };
    let writer = if is_fusable {
        schedule.get_consumers(block)?[0]
    } else {
        schedule.cache_write(block, Scope::Local)?
    };
    schedule.reverse_compute_at(writer, target)
}
