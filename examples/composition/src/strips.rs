//! Products that feed each other, a strip of rows at a time.

use std::sync::Arc;

use tilewright::core::analysis::block::{loads, reads, reduction, writes};
use tilewright::core::analysis::scope::{consumers, producers};
use tilewright::core::index::map::IndexMap;
use tilewright::core::program::Scope;
use tilewright::core::schedule::ScheduleError;
use tilewright::core::stmt::{Block, IterKind};
use tilewright::core::visit::find_block;
use tilewright::prelude::*;
use tilewright::search::rule::RuleOutcome;

/// Where two products lead to a result, as in attention or in two layers of a network, computes all that leads to it a strip
/// of rows at a time: what lies between the products then never leaves the caches. The built-in rules tile each
/// product for itself.
///
/// An expert on the network knows that a row of the result needs one row of each intermediate. Where the intermediates would fit
/// into the caches as a whole, the rule also offers the other schedule.
#[schedule_rule(target = "cpu", after = "auto_inline", before = "add_rfactor")]
pub fn products_in_strips(s: &mut Schedule, result: BlockRv) -> RuleResult {
    let found = block_of(s, result)?;
    let stages = stages_before(s, &found);
    let products: Vec<&Arc<Block>> =
        stages.iter().chain([&found]).filter(|stage| is_product(stage)).collect();
    if !consumers(s.program(), &found).is_empty() || products.len() != 2 {
        return s.unchanged();
    }
    let apart = fits_into_caches(s, &stages).then(|| s.fork());
    let spatial = found.iters.iter().filter(|iter| iter.kind == IterKind::Spatial).count();
    let loops = s.get_loops(result)?;
    let Some(rows) = spatial.checked_sub(2).and_then(|rows| loops.get(rows)) else { return s.unchanged() };
    let height = s.sample_categorical(&[8, 16, 32, 64], &[0.2, 0.3, 0.3, 0.2])?;
    let strips = s.split(*rows, &[None, Some(height)])?;
    for stage in &stages {
        let stage = s.get_block(&stage.name)?;
        s.compute_at(stage, strips[0])?;
    }
    for product in products {
        let product = s.get_block(&product.name)?;
        tile(s, product)?;
    }
    Ok(RuleOutcome::Variants([s.clone()].into_iter().chain(apart).collect()))
}

/// Whether the second-level caches hold all that some stages write.
fn fits_into_caches(s: &Schedule, stages: &[Arc<Block>]) -> bool {
    let bytes = |buffer| {
        let buffer = s.program().buffer(buffer);
        buffer.constant_len().map_or(u64::MAX, |len| len as u64 * buffer.dtype.bytes() as u64)
    };
    let written = stages.iter().flat_map(|stage| writes(stage)).map(bytes).fold(0, u64::saturating_add);
    s.cpu().is_ok_and(|cpu| written <= cpu.l2_bytes * u64::from(s.threads()))
}

/// Cuts the innermost loops of a product so that a tile of it stays in registers while it is summed up. An operand that
/// lies along the sum in memory is transposed before.
fn tile(s: &mut Schedule, product: BlockRv) -> Result<(), ScheduleError> {
    if let Some((operand, order)) = operand_along_sum(&*block_of(s, product)?) {
        let copy = s.cache_read(product, operand, Scope::Global)?;
        s.transform_layout(copy, "write", 0, order)?;
    }
    let [.., rows, columns, along] = s.get_loops(product)?[..] else {
        return Err(ScheduleError::NotReduction(s.values().block(product)?));
    };
    let lanes = i64::from(s.cpu()?.lanes(4));
    let height = s.sample_perfect_tile(rows, 2, 8)?;
    let width = s.sample_categorical(&[lanes, 2 * lanes, 4 * lanes], &[0.2, 0.4, 0.4])?;
    let rows = s.split(rows, &[Some(height[0]), Some(height[1])])?;
    let columns = s.split(columns, &[None, Some(width)])?;
    s.reorder(&[columns[0], rows[0], along, rows[1], columns[1]])
}

/// Everything that a block is made from, consumers before producers.
fn stages_before(s: &Schedule, block: &Arc<Block>) -> Vec<Arc<Block>> {
    let mut stages: Vec<Arc<Block>> = Vec::new();
    let mut open = vec![Arc::clone(block)];
    while let Some(next) = open.pop() {
        for producer in producers(s.program(), &next) {
            // One that is found again comes before all of its consumers that are known by now.
            stages.retain(|stage| stage.id != producer.id);
            stages.push(Arc::clone(producer));
            open.push(Arc::clone(producer));
        }
    }
    stages
}

/// Whether a block sums up products of what it reads.
fn is_product(block: &Block) -> bool {
    let Some(found) = reduction(block) else { return false };
    reads(block).into_iter().filter(|operand| *operand != found.store.buffer).count() > 1
}

/// The number of the operand whose last dimension is summed over while its columns come before, and the order of dimensions in
/// which they come last.
fn operand_along_sum(product: &Block) -> Option<(i64, IndexMap)> {
    let found = reduction(product)?;
    let columns = found.store.indices.last()?.as_var()?;
    let operand = loads(&product.body).into_iter().find(|access| {
        let is_result = access.buffer == found.store.buffer;
        let [.., place, _] = &access.indices[..] else { return false };
        !is_result && place.as_var() == Some(columns)
    })?;
    let last = operand.indices.len() as i64 - 1;
    let order: Vec<i64> = (0..last - 1).chain([last, last - 1]).collect();
    let number = reads(product).iter().position(|buffer| *buffer == operand.buffer)?;
    Some((number as i64, IndexMap::permutation(&order)?))
}

fn block_of(s: &Schedule, block: BlockRv) -> Result<Arc<Block>, ScheduleError> {
    let id = s.values().block(block)?;
    find_block(&s.program().body, id).cloned().ok_or(ScheduleError::MissingBlock(id))
}
