//! Products of matrices by the tensor cores.
//!
//! The target lists its intrinsics, which the lanes of a warp execute together on fragments. The description of each finds its mappings to
//! a block ([`TensorIntrinsic::mappings`]): a convolution is a product of rows of pixels with a matrix of taps. The tiles must divide the
//! extents.

use std::sync::Arc;

use tilewright_core::analysis::block::{is_ordered, reads, reduction, single_store, writes};
use tilewright_core::annotation::{TENSORIZE, TILED_LOOPS, TILING};
use tilewright_core::intrinsic::{Mapping, TensorIntrinsic};
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, IntRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind};
use tilewright_macros::schedule_rule;

use super::multi_level_thread_tiling::{bytes_of, draw_fetch, write_back};
use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{block_of, has_own_loops, has_trivial_bindings, loop_of};

/// The levels of tiles: of blocks, reductions between copies into shared memory, of warps, reductions between loads of fragments, and
/// the products of one warp.
pub(crate) const STRUCTURE: &str = "SRSRS";

/// The most mappings of one block that are offered.
const MAX_MAPPINGS: usize = 2;

/// The bytes of a matrix row that a lane loads from.
const ROW_BYTES: i64 = 16;

/// The most products of a warp along rows, along columns, and between two copies.
const MAX_PRODUCTS: [i64; 3] = [4, 8, 4];

/// Lets tensor cores compute a product, besides the variants of other rules.
#[schedule_rule(target = "gpu", after = "add_rfactor", before = "multi_level_thread_tiling")]
pub fn tensor_core_tiling(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let is_open = !TILING.is_in(&found.annotations)
        && !is_ordered(&found)
        && reduction(&found).is_some()
        && found.init.is_some()
        && has_trivial_bindings(&found)
        && has_own_loops(schedule.program(), &found);
    if !is_open {
        return schedule.unchanged();
    }
    let mut variants = vec![schedule.fork()];
    for product in products(schedule, &found) {
        let mut variant = schedule.fork();
        if product.tile(&mut variant, block).is_ok() {
            variants.push(variant);
        }
    }
    if variants.len() == 1 { schedule.unchanged() } else { Ok(RuleOutcome::Variants(variants)) }
}

/// Puts rows of a copy an odd multiple of 16 bytes apart. Eight rows, of which 16 bytes are loaded at once, then lie in different banks.
fn spread_rows(schedule: &mut Schedule, copy: BlockRv, bytes: i64) -> Result<(), ScheduleError> {
    let found = block_of(schedule, copy)?;
    let store = single_store(&found).ok_or(ScheduleError::NotInvertible(found.id))?;
    let rank = store.indices.len() as i64;
    if rank < 2 || ROW_BYTES % bytes != 0 {
        return Ok(());
    }
    schedule.storage_align(copy, 0, rank - 2, 2 * ROW_BYTES / bytes, ROW_BYTES / bytes)
}

/// An intrinsic, and how it computes parts of a block.
struct Product {
    intrinsic: Arc<TensorIntrinsic>,
    /// The iterators of the block for the rows, the columns and the depth.
    iters: [usize; 3],
    /// The extents of one product.
    extents: [i64; 3],
}

/// The first mappings of intrinsics to a block.
fn products(schedule: &Schedule, block: &Block) -> Vec<Product> {
    let (names, known) = (schedule.target().intrinsics(), schedule.target().descriptions());
    let intrinsics =
        names.iter().filter_map(|name| known.get(name)).filter(|own| !own.fragments().is_empty());
    let of_one = |intrinsic: &Arc<TensorIntrinsic>| -> Vec<Product> {
        let mappings = intrinsic.mappings(schedule.program(), block);
        mappings.iter().filter_map(|mapping| Product::new(intrinsic, mapping, block)).collect()
    };
    intrinsics.flat_map(of_one).take(MAX_MAPPINGS).collect()
}

impl Product {
    fn new(intrinsic: &Arc<TensorIntrinsic>, mapping: &Mapping, block: &Block) -> Option<Self> {
        let iters: [usize; 3] = mapping.iters.clone().try_into().ok()?;
        let extents: [i64; 3] = intrinsic.extents().collect::<Vec<_>>().try_into().ok()?;
        let are_distinct = iters[0] != iters[1] && iters[1] != iters[2] && iters[0] != iters[2];
        let divides = |(iter, tile): (&usize, i64)| {
            block.iters[*iter].extent.as_constant().is_some_and(|extent| extent > 0 && extent % tile == 0)
        };
        let suits = are_distinct && iters.iter().zip(extents).all(divides);
        suits.then(|| Product { intrinsic: Arc::clone(intrinsic), iters, extents })
    }

    fn tile(&self, schedule: &mut Schedule, block: BlockRv) -> Result<(), ScheduleError> {
        let found = block_of(schedule, block)?;
        let (spatial, reduce) = self.other_loops(schedule, block)?;
        let mut parts = Vec::new();
        let mut innermost = Vec::new();
        for (number, levels) in [3, 3, 2].into_iter().enumerate() {
            let target = loop_of(schedule, block, self.iters[number])?
                .ok_or(ScheduleError::IntrinsicMismatch(found.id))?;
            let products = schedule.split(target, &[None, Some(self.extents[number])])?;
            innermost.push(products[1]);
            let factors = schedule.sample_perfect_tile(products[0], levels, MAX_PRODUCTS[number])?;
            let factors: Vec<Option<IntRv>> = factors.into_iter().map(Some).collect();
            parts.push(schedule.split(products[0], &factors)?);
        }
        let [rows, columns, depth] = &parts[..] else { return Err(ScheduleError::BadLoopList) };
        let inside = [depth[0], rows[1], columns[1], depth[1], rows[2], columns[2]];
        let order = [&spatial[..], &[rows[0], columns[0]], &reduce, &inside, &innermost].concat();
        schedule.reorder(&order)?;
        schedule.annotate(block, TILING, STRUCTURE)?;
        schedule.annotate(block, TILED_LOOPS, vec![spatial.len() as i64, reduce.len() as i64])?;
        schedule.annotate(block, TENSORIZE, &**self.intrinsic.name())?;
        self.check(schedule, block, reduce.first().copied().unwrap_or(depth[0]), innermost[0])?;
        write_back(schedule, block, columns[0], Scope::Fragment)?;
        let written = writes(&found);
        let operands: Vec<i64> = (0..)
            .zip(reads(&found))
            .filter(|(_, read)| !written.contains(read))
            .map(|(number, _)| number)
            .collect();
        for operand in operands.into_iter().rev() {
            let bytes = bytes_of(schedule, &found, operand);
            let shared = schedule.cache_read(block, operand, Scope::Shared)?;
            let fragment = schedule.cache_read(block, operand, Scope::Fragment)?;
            schedule.compute_at(fragment, depth[1])?;
            schedule.compute_at(shared, depth[0])?;
            spread_rows(schedule, shared, bytes)?;
            draw_fetch(schedule, shared, bytes)?;
        }
        Ok(())
    }

    /// The loops of the block besides those that the product cuts: spatial ones and those of the reduction.
    fn other_loops(
        &self,
        schedule: &mut Schedule,
        block: BlockRv,
    ) -> Result<(Vec<LoopRv>, Vec<LoopRv>), ScheduleError> {
        let found = block_of(schedule, block)?;
        let (mut spatial, mut reduce) = (Vec::new(), Vec::new());
        for (number, iter) in found.iters.iter().enumerate() {
            if self.iters.contains(&number) || iter.binding.as_var().is_none() {
                continue;
            }
            let target =
                loop_of(schedule, block, number)?.ok_or(ScheduleError::IntrinsicMismatch(found.id))?;
            if iter.kind == IterKind::Reduce { reduce.push(target) } else { spatial.push(target) }
        }
        Ok((spatial, reduce))
    }

    /// Checks that the innermost tile is what the intrinsic computes.
    fn check(
        &self,
        schedule: &Schedule,
        block: BlockRv,
        outer_reduction: LoopRv,
        innermost: LoopRv,
    ) -> Result<(), ScheduleError> {
        let mut attempt = schedule.clone();
        attempt.decompose_reduction(block, outer_reduction)?;
        attempt.tensorize(innermost, self.intrinsic.name())
    }
}
