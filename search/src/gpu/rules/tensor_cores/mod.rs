//! Products of matrices by the tensor cores.
//!
//! The target lists its intrinsics, which the lanes of a warp execute together on fragments. `product` says which iterators of a block
//! are the rows, the columns and the depth of one; `prepare` gives the block exactly these, with extents that tiles divide; `tile` then
//! divides it among threads.

mod prepare;
mod product;
mod tile;

use tilewright_core::analysis::block::reduction;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use self::tile::{DEVICE_TILES, DeviceTile};
use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{block_of, has_free_loops};

/// The most products of one block that are offered.
const MAX_VARIANTS: usize = 3;

/// Lets tensor cores compute a product, besides the variants of other rules.
///
/// Factors of `f32` are rounded to eleven binary digits, where the accuracy of the kernel allows that.
///
/// Offers, as variants, products along one iterator for each of rows, columns and depth, and a product in which all iterators of a kind
/// are numbered together: a convolution is then a product of a matrix of windows with a matrix of taps. A product of unknown size gets
/// tiles of the device.
#[schedule_rule(target = "gpu", after = "add_rfactor", before = "multi_level_thread_tiling")]
pub fn tensor_core_tiling(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let sums_up = reduction(&found).is_some() && found.init.is_some();
    if !sums_up || !has_free_loops(schedule.program(), &found) {
        return schedule.unchanged();
    }
    let mut variants = vec![schedule.fork()];
    for product in product::products(schedule, block)? {
        let of_device: Vec<Option<&DeviceTile>> = match product.is_of_any_size(&found) {
            true => DEVICE_TILES.iter().map(Some).collect(),
            false => vec![None],
        };
        for tile in of_device {
            let mut variant = schedule.fork();
            let tiled = prepare::prepare(&mut variant, block, &product, tile)
                .and_then(|iters| tile::tile(&mut variant, block, &product, iters, tile));
            if tiled.is_ok() && variants.len() <= MAX_VARIANTS {
                variants.push(variant);
            }
        }
        if variants.len() > MAX_VARIANTS {
            break;
        }
    }
    if variants.len() == 1 { schedule.unchanged() } else { Ok(RuleOutcome::Variants(variants)) }
}
