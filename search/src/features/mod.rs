//! What the cost model sees of a scheduled program.
//!
//! One row per block: counts of arithmetic, how its loops run (lanes, copies, threads), and for each buffer it
//! touches how much memory that is and how often it is fetched again. The rows are taken from the `Blocks`
//! level, where the loops are still whole; nothing is lowered for them. The last value besides is the
//! draft model's estimate ([`draft`]). What runs ahead of calls costs nothing, and is left out.
//!
//! The groups follow the per-store features of MetaSchedule and Ansor; sizes enter as `log2(x + 1)`.

mod access;
mod arithmetic;
mod cache;
pub mod draft;
mod nest;
mod reuse;

use std::sync::Arc;

use tilewright_core::analysis::block::{reads, writes};
use tilewright_core::analysis::constant::constant_blocks;
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::ids::BufferId;
use tilewright_core::program::Program;
use tilewright_core::stmt::{Block, For, LoopKind};
use tilewright_core::target::Target;

use crate::model::{FeatureShapeError, ProgramFeatures};
use access::AccessFact;
use nest::BlockFacts;

/// Buffers described in a row; the rest, the smallest, is left out.
const BUFFERS: usize = 5;
/// Values per buffer.
const BUFFER_WIDTH: usize = 16;
/// Values of a row that describe the block itself.
const OWN_WIDTH: usize = 33;

/// What stands for a distance to data that nothing has touched before, in bytes.
const FARTHEST: f64 = 1e12;

/// The number of values in a row.
pub const WIDTH: usize = OWN_WIDTH + BUFFERS * BUFFER_WIDTH;

/// The features of a scheduled program at the `Blocks` level.
///
/// # Errors
/// Never for programs that verify; a wrong number of values would be a bug of this module.
pub fn extract(program: &Program, target: &Arc<Target>) -> Result<ProgramFeatures, FeatureShapeError> {
    let ahead = constant_blocks(program);
    let located: Vec<(&Block, Vec<&Arc<For>>)> = blocks(&program.body)
        .into_iter()
        .filter(|block| !ahead.contains(&block.id))
        .map(|block| (&**block, loops_around(&program.body, block.id).unwrap_or_default()))
        .collect();
    let scopes = scopes(program, &located);
    let mut facts: Vec<BlockFacts<'_>> =
        located.iter().map(|(block, path)| BlockFacts::new(program, block, path, &scopes)).collect();
    reuse::measure(program, &mut facts);
    let mut values = Vec::with_capacity(facts.len() * WIDTH);
    for block in &facts {
        push_row(&mut values, block, target);
    }
    ProgramFeatures::new(values, WIDTH, draft::score(program, &facts, target))
}

/// How many loops are around all uses of each intermediate.
fn scopes(program: &Program, located: &[(&Block, Vec<&Arc<For>>)]) -> Vec<(BufferId, usize)> {
    let mut scopes: Vec<(BufferId, &[&Arc<For>])> = Vec::new();
    for (block, path) in located {
        for buffer in reads(block).into_iter().chain(writes(block)) {
            if program.access(buffer).is_some() {
                continue;
            }
            match scopes.iter_mut().find(|(other, _)| *other == buffer) {
                Some((_, common)) => {
                    let shared = common.iter().zip(path).take_while(|(a, b)| a.id == b.id).count();
                    *common = &common[..shared];
                }
                None => scopes.push((buffer, path)),
            }
        }
    }
    scopes.into_iter().map(|(buffer, common)| (buffer, common.len())).collect()
}

/// `log2(x + 1)`: sizes span many orders of magnitude.
fn log(value: f64) -> f32 {
    (value.max(0.0) + 1.0).log2() as f32
}

fn push_row(values: &mut Vec<f32>, block: &BlockFacts<'_>, target: &Target) {
    let start = values.len();
    let points = block.points();
    for count in block.arithmetic.counts() {
        values.push(log(count * points));
    }
    values.push(log(points));
    for kind in [LoopKind::Vectorized, LoopKind::Unrolled, LoopKind::Parallel] {
        push_kind(values, block, kind);
    }
    values.push(log(block.reduction));
    values.push(log(block.accumulators(target)));
    values.push(log(block.copies(target)));
    values.push(log(block.innermost_extent()));
    values.push(block.loops.len() as f32);
    values.push(f32::from(u8::from(block.is_guarded)));
    values.push(log(block.loads_per_operation(target)));
    values.push(log(block.points_ahead()));
    for bytes in [target.l1_bytes, target.l2_bytes] {
        let level = block.level_within(bytes as f64);
        values.push(log(block.working_set[level]));
        values.push(log(block.traffic(level)));
        values.push(log(block.operations() / block.traffic(level).max(1.0)));
    }
    debug_assert_eq!(values.len() - start, OWN_WIDTH, "the width of the block's own values");
    let mut accesses: Vec<&AccessFact> = block.accesses.iter().collect();
    accesses.sort_by(|a, b| b.touched(0).total_cmp(&a.touched(0)).then(a.buffer.cmp(&b.buffer)));
    for number in 0..BUFFERS {
        match accesses.get(number) {
            Some(access) => push_access(values, block, access, target),
            None => values.extend([0.0; BUFFER_WIDTH]),
        }
    }
}

/// How many loops run in a certain way, how long they are, and where the innermost of them stands.
fn push_kind(values: &mut Vec<f32>, block: &BlockFacts<'_>, kind: LoopKind) {
    let own: Vec<(usize, f64)> = block
        .loops
        .iter()
        .enumerate()
        .filter(|(_, node)| node.kind == kind)
        .map(|(depth, node)| (depth, node.extent))
        .collect();
    values.push(own.len() as f32);
    values.push(log(
        own.iter().map(|(_, extent)| extent).product::<f64>() * f64::from(u8::from(!own.is_empty()))
    ));
    values.push(own.last().map_or(-1.0, |(depth, _)| (block.loops.len() - depth) as f32));
}

fn push_access(values: &mut Vec<f32>, block: &BlockFacts<'_>, access: &AccessFact, target: &Target) {
    let start = values.len();
    values.push(f32::from(u8::from(access.is_read)));
    values.push(f32::from(u8::from(access.is_written) + u8::from(access.is_streamed)));
    let innermost = access.strides.last().copied().flatten();
    values.push(f32::from(u8::from(innermost == Some(0))));
    values.push(f32::from(u8::from(innermost == Some(1))));
    values.push(innermost.map_or(32.0, |stride| log(stride.unsigned_abs() as f64)));
    values.push(log(block.points() * access.bytes));
    values.push(log(access.touched(0)));
    values.push(log(access.lines(0)));
    for bytes in [target.l1_bytes, target.l2_bytes] {
        let level = block.level_within(bytes as f64);
        values.push(log(access.touched(level)));
        values.push(log(access.fetched(level, &block.loops)));
    }
    let reuse = access.innermost_reuse(&block.loops);
    values.push(log(reuse.map_or(0.0, |(_, count)| count)));
    values.push(log(reuse.map_or(0.0, |(depth, _)| block.working_set[depth + 1])));
    values.push(log(access.bytes));
    values.push(log(access.distance.min(FARTHEST)));
    debug_assert_eq!(values.len() - start, BUFFER_WIDTH, "the width of a buffer's values");
}
