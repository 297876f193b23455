//! Tiles of a product: of blocks of threads, of warps, and of the intrinsic.

use tilewright_core::analysis::block::{loads, reads, single_store, writes};
use tilewright_core::annotation::{TENSORIZE, TILED_LOOPS, TILING};
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, IntRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind};

use super::product::Product;
use crate::gpu::rules::multi_level_thread_tiling::{bytes_of, draw_fetch, write_back};
use crate::space::rules::block::{block_of, loop_of};

/// The levels of tiles: of blocks, reductions between copies into shared memory, of warps, reductions between loads of fragments, and
/// the products of one warp.
const STRUCTURE: &str = "SRSRS";

/// The bytes of a matrix row that a lane loads from.
const ROW_BYTES: i64 = 16;

/// The banks of shared memory, of four bytes each.
const BANKS: i64 = 32;

/// The most products of a warp along rows, along columns, and between two copies.
const MAX_PRODUCTS: [i64; 3] = [4, 8, 4];

/// The tile of a block of threads that depends on the device alone, for operands of any size.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceTile {
    /// Warps along rows and along columns.
    warps: [i64; 2],
    /// Products of a warp along rows and along columns, and steps between two copies.
    products: [i64; 3],
}

/// Tiles for large products, for those of the size of a layer, and for few rows.
pub(super) const DEVICE_TILES: [DeviceTile; 3] = [
    DeviceTile { warps: [2, 4], products: [4, 4, 2] },
    DeviceTile { warps: [2, 2], products: [2, 4, 2] },
    DeviceTile { warps: [1, 4], products: [1, 2, 4] },
];

impl DeviceTile {
    /// The products along rows, along columns and along the depth.
    pub(super) fn all_products(&self) -> [i64; 3] {
        [self.warps[0] * self.products[0], self.warps[1] * self.products[1], self.products[2]]
    }

    /// The factors of the loop over products along one of the three.
    fn factors(&self, number: usize) -> Vec<Option<i64>> {
        let inner = [self.warps.get(number).copied(), Some(self.products[number])];
        std::iter::once(None).chain(inner.into_iter().flatten().map(Some)).collect()
    }
}

/// Tiles a block of which `iters` are the rows, the columns and the depth: by a tile of the device, or by factors that are drawn.
pub(super) fn tile(
    schedule: &mut Schedule,
    block: BlockRv,
    product: &Product,
    iters: [usize; 3],
    of_device: Option<&DeviceTile>,
) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let (spatial, reduce) = other_loops(schedule, block, iters)?;
    let mut parts = Vec::new();
    let mut innermost = Vec::new();
    for (number, levels) in [3, 3, 2].into_iter().enumerate() {
        let target =
            loop_of(schedule, block, iters[number])?.ok_or(ScheduleError::IntrinsicMismatch(found.id))?;
        let products = schedule.split(target, &[None, Some(product.extents[number])])?;
        innermost.push(products[1]);
        parts.push(match of_device {
            Some(tile) => schedule.split(products[0], &tile.factors(number))?,
            None => {
                let factors = schedule.sample_perfect_tile(products[0], levels, MAX_PRODUCTS[number])?;
                let factors: Vec<Option<IntRv>> = factors.into_iter().map(Some).collect();
                schedule.split(products[0], &factors)?
            }
        });
    }
    let [rows, columns, depth] = &parts[..] else { return Err(ScheduleError::BadLoopList) };
    let inside = [depth[0], rows[1], columns[1], depth[1], rows[2], columns[2]];
    let order = [&spatial[..], &[rows[0], columns[0]], &reduce, &inside, &innermost].concat();
    schedule.reorder(&order)?;
    schedule.annotate(block, TILING, STRUCTURE)?;
    schedule.annotate(block, TILED_LOOPS, vec![spatial.len() as i64, reduce.len() as i64])?;
    schedule.annotate(block, TENSORIZE, &**product.intrinsic.name())?;
    check(schedule, block, product, reduce.first().copied().unwrap_or(depth[0]), innermost[0])?;
    write_back(schedule, block, columns[0], Scope::Fragment)?;
    let written = writes(&found);
    let operands: Vec<i64> = (0..)
        .zip(reads(&found))
        .filter(|(_, read)| !written.contains(read))
        .map(|(number, _)| number)
        .collect();
    for operand in operands.into_iter().rev() {
        let bytes = bytes_of(schedule, &found, operand);
        // Where sizes are symbolic, exchanged pieces take registers that there are not: on `sm_90`, the assembler spills some.
        let is_exchanged = of_device.is_none() && (bytes == 2 || is_along(&found, operand, iters[2]));
        let shared = schedule.cache_read(block, operand, Scope::Shared)?;
        let fragment = schedule.cache_read(block, operand, Scope::Fragment)?;
        schedule.compute_at(fragment, depth[1])?;
        schedule.compute_at(shared, depth[0])?;
        spread_rows(schedule, shared, bytes, is_exchanged)?;
        draw_fetch(schedule, shared, bytes)?;
    }
    Ok(())
}

/// Whether the elements of an operand along its last dimension are those along an iterator.
fn is_along(block: &Block, operand: i64, iter: usize) -> bool {
    let buffer = usize::try_from(operand).ok().and_then(|number| reads(block).get(number).copied());
    let accesses = loads(&block.body);
    let own = accesses.iter().find(|access| Some(access.buffer) == buffer);
    own.and_then(|access| access.indices.last()).is_some_and(|last| last.mentions(block.iters[iter].var))
}

/// Lays out the rows of a copy so that what lanes load at once lies in different banks: 16 bytes of eight rows of matrices, whose pieces are
/// exchanged or which are moved apart, or single elements of four rows.
fn spread_rows(
    schedule: &mut Schedule,
    copy: BlockRv,
    bytes: i64,
    is_exchanged: bool,
) -> Result<(), ScheduleError> {
    let found = block_of(schedule, copy)?;
    let store = single_store(&found).ok_or(ScheduleError::NotInvertible(found.id))?;
    let rank = store.indices.len() as i64;
    if rank < 2 || ROW_BYTES % bytes != 0 {
        return Ok(());
    }
    let (multiple, offset) = match bytes {
        _ if is_exchanged => return schedule.storage_swizzle(copy, 0),
        // Eight neighbours in each of four rows fill all banks.
        4 => (BANKS, BANKS / 4),
        _ => (2 * ROW_BYTES / bytes, ROW_BYTES / bytes),
    };
    schedule.storage_align(copy, 0, rank - 2, multiple, offset)
}

/// The loops of the block besides those that the product cuts: spatial ones and those of the reduction.
fn other_loops(
    schedule: &mut Schedule,
    block: BlockRv,
    iters: [usize; 3],
) -> Result<(Vec<LoopRv>, Vec<LoopRv>), ScheduleError> {
    let found = block_of(schedule, block)?;
    let (mut spatial, mut reduce) = (Vec::new(), Vec::new());
    for (number, iter) in found.iters.iter().enumerate() {
        if iters.contains(&number) || iter.binding.as_var().is_none() {
            continue;
        }
        let target = loop_of(schedule, block, number)?.ok_or(ScheduleError::IntrinsicMismatch(found.id))?;
        if iter.kind == IterKind::Reduce { reduce.push(target) } else { spatial.push(target) }
    }
    Ok((spatial, reduce))
}

/// Checks that the innermost tile is what the intrinsic computes.
fn check(
    schedule: &Schedule,
    block: BlockRv,
    product: &Product,
    outer_reduction: LoopRv,
    innermost: LoopRv,
) -> Result<(), ScheduleError> {
    let mut attempt = schedule.clone();
    attempt.decompose_reduction(block, outer_reduction)?;
    attempt.tensorize(innermost, product.intrinsic.name())
}
