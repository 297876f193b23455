//! Products of `f32` formed from products of `bf16`, for machines with `bf16` instructions.

use tilewright_core::accuracy::PieceProducts;
use tilewright_core::analysis::scope::loops_around;
use tilewright_core::dtype::DType;
use tilewright_core::ids::{BlockId, LoopId};
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_macros::schedule_rule;

use crate::cpu::rules::auto_tensorize::{is_open, tensorized};
use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::block_of;

/// Lets tensor intrinsics compute a sum of products of `f32` from `bf16` pieces where the kernel's
/// [accuracy](tilewright_core::accuracy) allows it, besides the variants of other rules.
///
/// Offers, as variants, the mappings of the products of pieces that [`auto_tensorize`](super::auto_tensorize) finds. It offers none on
/// a machine without such an intrinsic, and none with as many instructions as multiply-adds of `f32` need: an intrinsic of twice the
/// rate does not pay for three products. It takes the fewest products that the accuracy allows, because more products only take
/// longer.
#[schedule_rule(target = "cpu", after = "reduce_in_lanes", before = "auto_tensorize")]
pub fn split_products(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let Some(accuracy) = schedule.program().accuracy else { return schedule.unchanged() };
    let found = block_of(schedule, block)?;
    if schedule.target().intrinsics().is_empty() || !is_open(&found) {
        return schedule.unchanged();
    }
    let extents = found.iters.iter().map(|iter| iter.extent.as_constant());
    let Some(points) = extents.map(|extent| Some(extent? as f64)).product::<Option<f64>>() else {
        return schedule.unchanged();
    };
    let multiply_adds = points / f64::from(schedule.cpu()?.lanes(DType::F32.bytes()));
    let mut variants = vec![schedule.fork()];
    let pieces = schedule.split_products(block, PieceProducts::fewest(accuracy).count)?;
    for mut variant in tensorized(schedule, block, multiply_adds)? {
        for made in [pieces.0, pieces.1] {
            make_in_place(&mut variant, block, made)?;
        }
        variants.push(variant);
    }
    Ok(RuleOutcome::Variants(variants))
}

/// Inlines the pieces into their copies, unless a copy is made in the nest of the product.
fn make_in_place(schedule: &mut Schedule, block: BlockRv, pieces: BlockRv) -> Result<(), ScheduleError> {
    let nest = nest_of(schedule, schedule.values().block(block)?);
    for reader in schedule.get_consumers(pieces)? {
        if nest_of(schedule, schedule.values().block(reader)?) == nest {
            return Ok(());
        }
    }
    schedule.compute_inline(pieces)
}

/// The outermost loop around a block.
fn nest_of(schedule: &Schedule, block: BlockId) -> Option<LoopId> {
    loops_around(&schedule.program().body, block)?.first().map(|node| node.id)
}
