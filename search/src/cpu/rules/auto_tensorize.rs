//! Reductions computed by the machine's tensor intrinsics.
//!
//! The target lists its intrinsics; the description of each finds its mappings to a block ([`TensorIntrinsic::mappings`]). The rule
//! transforms the block to match a mapping: it pads extents, splits loops, and changes the layout of operands whose elements are not
//! in the intrinsic's order. For an intrinsic that takes a factor with an offset, it adds the offset and subtracts its contribution
//! from the results ([`offset_products`](Schedule::offset_products)). The outer loops are tiled like those of any other block with
//! data reuse.

use std::sync::Arc;

use tilewright_core::analysis::block::{is_ordered, reads, reduction, single_store};
use tilewright_core::analysis::constant::constant_blocks;
use tilewright_core::annotation::{PANELS, TILING};
use tilewright_core::ids::VarId;
use tilewright_core::index::Index;
use tilewright_core::index::map::IndexMap;
use tilewright_core::intrinsic::{MappedOperand, Mapping, TensorIntrinsic};
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind};
use tilewright_macros::schedule_rule;

use crate::cpu::rules::multi_level_tiling::{Tiles, write_back};
use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{
    block_of, constant_operands, has_trivial_bindings, is_reduction_of_step, loop_of, own_loops,
};

/// Most mappings of one block to tiles, or to vectors, that are offered, of those that can be applied to it.
const MAX_MAPPINGS: usize = 3;

/// A mapping is not offered when it takes more instructions than the best one of its kind that is offered, tiles or vectors, by this factor.
const MAX_WASTE: f64 = 2.0;

/// A mapping is not offered when padding multiplies the points by more than this.
const MAX_PADDING: f64 = 2.0;

/// Lets tensor intrinsics compute a reduction, besides the variants of other rules.
///
/// Offers, as variants: the mappings that take the fewest instructions, of those on tiles and of those on vectors; whether the layout of operands changes as a whole or tile by
/// tile, and where a finished tile of the output is written back.
#[schedule_rule(target = "cpu", after = "reduce_in_lanes", before = "multi_level_tiling")]
pub fn auto_tensorize(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let is_step = !TILING.is_in(&found.annotations) && is_reduction_of_step(schedule.program(), &found);
    if !is_step && !is_open(&found) {
        return schedule.unchanged();
    }
    let mut variants = vec![schedule.fork()];
    variants.extend(tensorized(schedule, block, f64::INFINITY)?);
    Ok(RuleOutcome::Variants(variants))
}

/// Whether a block is a reduction that no other rule has transformed.
pub(super) fn is_open(block: &Block) -> bool {
    !TILING.is_in(&block.annotations)
        && !is_ordered(block)
        && reduction(block).is_some()
        && block.init.is_some()
        && has_trivial_bindings(block)
}

/// The variants in which an intrinsic computes a block in fewer than `limit` instructions, each counted once per vector of 16 elements
/// that it updates: by the mappings to tiles, and those to vectors, with the fewest of them that can be applied.
pub(super) fn tensorized(
    schedule: &mut Schedule,
    block: BlockRv,
    limit: f64,
) -> Result<Vec<Schedule>, ScheduleError> {
    let mut variants = Vec::new();
    let mappings = mapped_intrinsics(schedule, block)?.into_iter();
    // Tiles are full, and moved to and from registers as a whole: instructions on vectors may be faster although there are many times as many.
    let (tiles, vectors) = mappings.partition(|mapped| mapped.intrinsic.computes_tile());
    for kind in [tiles, vectors] {
        variants.extend(variants_of_kind(schedule, block, kind, limit)?);
    }
    Ok(variants)
}

/// The same for mappings of intrinsics of one kind, those with the fewest instructions first.
fn variants_of_kind(
    schedule: &mut Schedule,
    block: BlockRv,
    mappings: Vec<MappedIntrinsic>,
    mut limit: f64,
) -> Result<Vec<Schedule>, ScheduleError> {
    let (mut variants, mut offered) = (Vec::new(), 0);
    for mut mapped in mappings {
        if offered == MAX_MAPPINGS || mapped.instructions >= limit {
            break;
        }
        let own = variants_by(schedule, block, &mut mapped)?;
        if own.is_empty() {
            continue;
        }
        if offered == 0 {
            limit = limit.min(mapped.instructions * MAX_WASTE);
        }
        offered += 1;
        variants.extend(own);
    }
    Ok(variants)
}

/// The variants in which an intrinsic computes a block by one mapping; none where its operands cannot be laid out so.
fn variants_by(
    schedule: &mut Schedule,
    block: BlockRv,
    mapped: &mut MappedIntrinsic,
) -> Result<Vec<Schedule>, ScheduleError> {
    let mut variants = Vec::new();
    let Ok((prepared, lanes)) = prepared(schedule, block, mapped) else { return Ok(variants) };
    let Ok(moved) = moved_operands(&prepared, block, mapped, &lanes) else { return Ok(variants) };
    let constant = constant_operands(prepared.program(), &*block_of(&prepared, block)?);
    let is_constant = |operand: usize| constant.contains(&mapped.mapping.operands[operand].buffer);
    let inputs = moved.iter().map(|operand| Moved { operand: *operand, is_constant: is_constant(*operand) });
    let inputs: Vec<Moved> = inputs.filter(|moved| moved.operand != mapped.output).collect();
    let moves_output = moved.contains(&mapped.output);
    for is_whole in [true, false] {
        for level in [Some(0), Some(1), None] {
            let mut variant = prepared.clone().fork();
            let tensorization =
                Tensorization { mapped, lanes: &lanes, inputs: &inputs, moves_output, is_whole, level };
            if tensorization.apply(&mut variant, block).is_ok() {
                variants.push(variant);
            }
        }
        if inputs.iter().all(|moved| moved.is_constant) {
            break;
        }
    }
    Ok(variants)
}

/// An intrinsic, and its mapping to a block.
struct MappedIntrinsic {
    intrinsic: Arc<TensorIntrinsic>,
    mapping: Mapping,
    /// For each iterator of the block, the iterations that one instruction computes.
    tiles: Vec<i64>,
    /// The instructions for the whole block, each counted once per vector of 16 elements that it updates, with the instructions that
    /// sum up factors or copy results for it.
    instructions: f64,
    /// The points computed, with padding, per point of the block.
    padding: f64,
    /// The position of the output among the operands.
    output: usize,
    /// The offset of a factor of the block's products, where the intrinsic needs one.
    offset: Option<Offset>,
}

/// A number that is added to a factor of products, and whose contribution is subtracted from their sum.
#[derive(Clone, Copy, PartialEq)]
struct Offset {
    /// The factor: 0 or 1.
    factor: i64,
    number: i64,
}

impl MappedIntrinsic {
    fn new(intrinsic: Arc<TensorIntrinsic>, mapping: Mapping, block: &Block) -> Option<Self> {
        let mut tiles = vec![1; block.iters.len()];
        for (iter, extent) in mapping.iters.iter().zip(intrinsic.extents()) {
            tiles[*iter] *= extent;
        }
        let (mut instructions, mut padding) = ((intrinsic.outputs() as f64 / 16.0).max(1.0), 1.0);
        for (iter, tile) in block.iters.iter().zip(&tiles) {
            let extent = iter.extent.as_constant()?;
            let count = extent.checked_add(tile - 1)? / tile;
            instructions *= count as f64;
            padding *= (count * tile) as f64 / extent as f64;
        }
        let written = single_store(block)?.buffer;
        let output = mapping.operands.iter().position(|operand| operand.buffer == written)?;
        if !has_lanes_in_place(&mapping.operands[output], single_store(block)?.indices.len()) {
            instructions += copied_vectors(block)?;
        }
        Some(MappedIntrinsic { intrinsic, mapping, tiles, instructions, padding, output, offset: None })
    }

    fn is_output(&self, operand: usize) -> bool {
        operand == self.output
    }

    /// The loops of the intrinsic that are parts of an iterator, with their extents, the outermost first.
    fn parts(&self, iter: usize) -> Vec<(usize, i64)> {
        let all = self.mapping.iters.iter().zip(self.intrinsic.extents()).enumerate();
        all.filter(|(_, (own, _))| **own == iter).map(|(number, (_, extent))| (number, extent)).collect()
    }

    /// The layout that stores an operand's elements in the intrinsic's order: the tiles in the order of the buffer's
    /// dimensions, and inside each tile the order of the parameter. `None` for an operand whose layout cannot change.
    fn layout(&self, operand: &MappedOperand, dimensions: usize) -> Option<IndexMap> {
        if !operand.is_movable {
            return None;
        }
        let iter_of = |dimension: usize| {
            let own = operand.dimensions.iter().find(|(_, own)| *own == dimension);
            own.map(|(number, _)| self.mapping.iters[*number])
        };
        let of_tiles = (0..dimensions).map(|dimension| {
            let tile = iter_of(dimension).map_or(1, |iter| self.tiles[iter]);
            Index::var(VarId(dimension as u32)).floor_div(tile)
        });
        let inside = operand.dimensions.iter().map(|(number, dimension)| {
            let parts = self.parts(self.mapping.iters[*number]);
            let behind = parts.iter().filter(|(part, _)| part > number).map(|(_, extent)| extent);
            let own = parts.iter().find(|(part, _)| part == number).map_or(1, |(_, extent)| *extent);
            Index::var(VarId(*dimension as u32)).floor_div(behind.product()).modulo(own)
        });
        IndexMap::new(dimensions as u32, of_tiles.chain(inside).collect())
    }
}

/// Whether the intrinsic's innermost loop over an operand runs along the operand's last dimension.
fn has_lanes_in_place(operand: &MappedOperand, dimensions: usize) -> bool {
    let last =
        operand.loops.last().and_then(|own| operand.dimensions.iter().find(|(number, _)| number == own));
    last.is_none_or(|(_, dimension)| dimension + 1 == dimensions)
}

/// The vectors of 16 elements that hold a block's results.
fn copied_vectors(block: &Block) -> Option<f64> {
    let spatial = block.iters.iter().filter(|iter| iter.kind == IterKind::Spatial);
    let extents = spatial.map(|iter| iter.extent.as_constant().map(|extent| extent as f64));
    Some(extents.product::<Option<f64>>()? / 16.0)
}

/// The mappings of a block, those with the fewest instructions first.
fn mapped_intrinsics(schedule: &Schedule, block: BlockRv) -> Result<Vec<MappedIntrinsic>, ScheduleError> {
    let (names, known) = (schedule.target().intrinsics(), schedule.target().descriptions());
    let intrinsics: Vec<_> = names.iter().filter_map(|name| known.get(name)).cloned().collect();
    let mut found = mapped_intrinsics_for(schedule, block, &intrinsics)?;
    for offset in offsets(&intrinsics) {
        let mut moved = schedule.clone();
        let Ok(sums) = moved.offset_products(block, offset.factor, offset.number) else { continue };
        let with_offset: Vec<_> =
            intrinsics.iter().filter(|own| own.offset() == Some(offset.number)).cloned().collect();
        let additions = additions(&moved, sums)?;
        let moved = mapped_intrinsics_for(&moved, block, &with_offset)?.into_iter();
        found.extend(moved.map(|mapped| MappedIntrinsic {
            instructions: mapped.instructions + additions,
            offset: Some(offset),
            ..mapped
        }));
    }
    found.retain(|mapped| mapped.padding <= MAX_PADDING);
    found.sort_by(|a, b| a.instructions.total_cmp(&b.instructions).then(a.padding.total_cmp(&b.padding)));
    Ok(found)
}

/// The mappings of some intrinsics to a block as it is.
fn mapped_intrinsics_for(
    schedule: &Schedule,
    block: BlockRv,
    intrinsics: &[Arc<TensorIntrinsic>],
) -> Result<Vec<MappedIntrinsic>, ScheduleError> {
    let found = block_of(schedule, block)?;
    let of_one = |intrinsic: &Arc<TensorIntrinsic>| {
        let mappings = intrinsic.mappings(schedule.program(), &found).into_iter();
        mappings
            .filter_map(|mapping| MappedIntrinsic::new(Arc::clone(intrinsic), mapping, &found))
            .collect::<Vec<_>>()
    };
    Ok(intrinsics.iter().flat_map(of_one).collect())
}

/// The offsets that some intrinsics need, for either factor.
fn offsets(intrinsics: &[Arc<TensorIntrinsic>]) -> Vec<Offset> {
    let mut offsets = Vec::new();
    for number in intrinsics.iter().filter_map(|own| own.offset()) {
        for offset in [0, 1].map(|factor| Offset { factor, number }) {
            if !offsets.contains(&offset) {
                offsets.push(offset);
            }
        }
    }
    offsets
}

/// The vectors of 16 elements that a call adds up for a block of sums; 0 where the sums are constant, and computed before all calls.
fn additions(schedule: &Schedule, sums: BlockRv) -> Result<f64, ScheduleError> {
    let found = block_of(schedule, sums)?;
    if constant_blocks(schedule.program()).contains(&found.id) {
        return Ok(0.0);
    }
    let extents = found.iters.iter().filter_map(|iter| iter.extent.as_constant());
    Ok(extents.map(|extent| extent as f64).product::<f64>() / 16.0)
}

/// The schedule with the block padded, its factors offset and its loops split; and the loops of the intrinsic. Padding replaces the
/// buffers of operands, so that the mapping of `mapped` is updated.
fn prepared(
    schedule: &mut Schedule,
    block: BlockRv,
    mapped: &mut MappedIntrinsic,
) -> Result<(Schedule, Vec<LoopRv>), ScheduleError> {
    let mut schedule = schedule.fork();
    let found = block_of(&schedule, block)?;
    let is_whole = |(iter, tile): (&tilewright_core::stmt::Iter, &i64)| {
        iter.extent.as_constant().is_some_and(|extent| extent % tile == 0)
    };
    let is_padded = !found.iters.iter().zip(&mapped.tiles).all(is_whole);
    if is_padded {
        schedule.pad_einsum(block, &mapped.tiles)?;
    }
    if let Some(Offset { factor, number }) = mapped.offset {
        schedule.offset_products(block, factor, number)?;
    }
    if is_padded {
        let padded = mapped.intrinsic.mappings(schedule.program(), &*block_of(&schedule, block)?);
        let same = padded.into_iter().find(|mapping| mapping.iters == mapped.mapping.iters);
        mapped.mapping = same.ok_or(ScheduleError::IntrinsicMismatch(found.id))?;
    }
    let mut lanes = vec![None; mapped.mapping.iters.len()];
    for (iter, tile) in mapped.tiles.iter().enumerate().filter(|(_, tile)| **tile > 1) {
        let target =
            loop_of(&mut schedule, block, iter)?.ok_or(ScheduleError::IntrinsicMismatch(found.id))?;
        let parts = mapped.parts(iter);
        debug_assert_eq!(parts.iter().map(|(_, extent)| extent).product::<i64>(), *tile);
        let factors: Vec<Option<i64>> =
            std::iter::once(None).chain(parts.iter().map(|(_, extent)| Some(*extent))).collect();
        let made = schedule.split(target, &factors)?;
        for ((number, _), part) in parts.iter().zip(&made[1..]) {
            lanes[*number] = Some(*part);
        }
    }
    let lanes = lanes.into_iter().collect::<Option<_>>();
    Ok((schedule, lanes.ok_or(ScheduleError::IntrinsicMismatch(found.id))?))
}

/// The fewest operands whose layout must change for the intrinsic to match.
fn moved_operands(
    schedule: &Schedule,
    block: BlockRv,
    mapped: &MappedIntrinsic,
    lanes: &[LoopRv],
) -> Result<Vec<usize>, ScheduleError> {
    let operands = mapped.mapping.operands.len();
    let mut sets: Vec<u32> = (0..1 << operands).collect();
    sets.sort_by_key(|set| set.count_ones());
    let mut outcome = Err(ScheduleError::UnknownIntrinsic);
    let can_move = |operand: usize| mapped.mapping.operands[operand].is_movable;
    for set in sets {
        let chosen: Vec<usize> = (0..operands).filter(|operand| set & (1 << operand) != 0).collect();
        if !chosen.iter().all(|operand| can_move(*operand)) {
            continue;
        }
        outcome = fits_with(schedule.clone(), block, mapped, lanes, &chosen);
        if outcome.is_ok() {
            return Ok(chosen);
        }
    }
    outcome.map(|()| Vec::new())
}

/// Checks that the intrinsic matches when the layout of some operands changes.
fn fits_with(
    mut schedule: Schedule,
    block: BlockRv,
    mapped: &MappedIntrinsic,
    lanes: &[LoopRv],
    moved: &[usize],
) -> Result<(), ScheduleError> {
    let mut order = own_loops(&mut schedule, block)?;
    let whole =
        lanes.iter().map(|lane| schedule.values().target_loop(*lane)).collect::<Result<Vec<_>, _>>()?;
    order.retain(|target| !schedule.values().target_loop(*target).is_ok_and(|id| whole.contains(&id)));
    schedule.reorder(&[&order, lanes].concat())?;
    for operand in moved {
        if mapped.is_output(*operand) {
            schedule.cache_write(block, Scope::Global)?;
            lay_out_output(&mut schedule, block, mapped)?;
        } else {
            lay_out_input(&mut schedule, block, mapped, *operand, Scope::Global)?;
        }
    }
    schedule.tensorize(lanes[0], mapped.intrinsic.name())
}

/// Lets the block read a copy of an operand in the intrinsic's layout.
fn lay_out_input(
    schedule: &mut Schedule,
    block: BlockRv,
    mapped: &MappedIntrinsic,
    operand: usize,
    scope: Scope,
) -> Result<BlockRv, ScheduleError> {
    let found = block_of(schedule, block)?;
    let mismatch = ScheduleError::IntrinsicMismatch(found.id);
    let own = &mapped.mapping.operands[operand];
    let number = reads(&found).iter().position(|buffer| *buffer == own.buffer).ok_or(mismatch)?;
    let layout = mapped.layout(own, schedule.program().buffer(own.buffer).shape.len()).ok_or(mismatch)?;
    let copy = schedule.cache_read(block, number as i64, scope)?;
    schedule.transform_layout(copy, "write", 0, layout.clone())?;
    schedule.transform_block_layout(copy, layout)?;
    Ok(copy)
}

/// Changes the layout of the intermediate that the block writes to the intrinsic's.
fn lay_out_output(
    schedule: &mut Schedule,
    block: BlockRv,
    mapped: &MappedIntrinsic,
) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let mismatch = ScheduleError::IntrinsicMismatch(found.id);
    let written = single_store(&found).ok_or(mismatch)?.buffer;
    let dimensions = schedule.program().buffer(written).shape.len();
    let layout = mapped.layout(&mapped.mapping.operands[mapped.output], dimensions).ok_or(mismatch)?;
    schedule.transform_layout(block, "write", 0, layout)
}

/// An input whose layout changes.
struct Moved {
    operand: usize,
    /// Whether it is constant, so that the layout changes once, before all calls.
    is_constant: bool,
}

/// One way to transform a block for its mapping.
struct Tensorization<'a> {
    mapped: &'a MappedIntrinsic,
    lanes: &'a [LoopRv],
    inputs: &'a [Moved],
    /// Whether the layout of the output changes, too.
    moves_output: bool,
    /// Whether inputs are copied to the new layout as a whole, or tile by tile. Constant inputs are always copied as a whole.
    is_whole: bool,
    /// The spatial level at which a finished tile of the output is written back.
    level: Option<usize>,
}

impl Tensorization<'_> {
    fn apply(&self, schedule: &mut Schedule, block: BlockRv) -> Result<(), ScheduleError> {
        let refusal = ScheduleError::NotReduction(block_of(schedule, block)?.id);
        let by_tile = self.lay_out_inputs(schedule, block)?;
        let tiles = Tiles::cut(schedule, block, self.lanes)?;
        // Without an outer reduction loop, one instruction computes a whole sum.
        let within = tiles.innermost().zip(self.lanes.first().copied()).map(|(last, lane)| (lane, last));
        let (first, last) = tiles.outer_reduction().or(within).ok_or(refusal)?;
        by_tile.iter().try_for_each(|copy| schedule.compute_at(*copy, last))?;
        if let Some(level) = self.level {
            write_back(schedule, block, &tiles, level)?;
        }
        if self.moves_output {
            lay_out_output(schedule, block, self.mapped)?;
        }
        // The initial value cannot be set inside the intrinsic's statement; a separate vectorized block sets it.
        schedule.decompose_reduction(block, first)?;
        schedule.tensorize(self.lanes[0], self.mapped.intrinsic.name())
    }

    /// Copies the inputs to the intrinsic's layout, and returns the copies that are made tile by tile. A decision stores a copy in panels
    /// or in the order of the operand's dimensions; copies of constants are stored in panels, which take no time during a call.
    fn lay_out_inputs(&self, schedule: &mut Schedule, block: BlockRv) -> Result<Vec<BlockRv>, ScheduleError> {
        let mut by_tile = Vec::new();
        for Moved { operand, is_constant } in self.inputs {
            let is_whole = self.is_whole || *is_constant;
            let scope = if is_whole { Scope::Global } else { Scope::Local };
            let copy = lay_out_input(schedule, block, self.mapped, *operand, scope)?;
            if *is_constant {
                schedule.annotate(copy, PANELS, 1)?;
            } else {
                let panels = schedule.sample_categorical(&[0, 1], &[0.25, 0.75])?;
                schedule.annotate(copy, PANELS, panels)?;
            }
            if !is_whole {
                by_tile.push(copy);
            }
        }
        Ok(by_tile)
    }
}
