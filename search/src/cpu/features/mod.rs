//! The features of a scheduled program for the cost model.
//!
//! A row per block holds counts of arithmetic, how its loops run (lanes, copies, threads), and for each buffer the bytes touched and
//! how often they are fetched again. The rows are taken from the `Blocks` level, where the loops are still whole; nothing is lowered
//! for them. The draft model's estimate ([`draft`]) accompanies the rows. Blocks that run ahead of calls cost a call nothing, and are
//! left out.
//!
//! The groups follow the per-store features of MetaSchedule and Ansor; sizes enter as `log2(x + 1)`.

mod access;
pub(crate) mod arithmetic;
mod cache;
pub mod draft;
mod lanes;
mod nest;
mod padding;
mod reuse;
mod row;
mod transfers;

use std::sync::Arc;

use tilewright_core::analysis::block::{reads, writes};
use tilewright_core::analysis::constant::constant_blocks;
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::analysis::zeros::ZeroElements;
use tilewright_core::ids::BufferId;
use tilewright_core::program::Program;
use tilewright_core::stmt::{Block, For, Symbol};
use tilewright_core::target::{CpuTarget, RunContext};

use crate::cpu::features::arithmetic::Arithmetic;
use crate::model::ProgramFeatures;
use crate::space::rules::block::points;
use crate::space::spec::FeatureError;
use nest::BlockFacts;

pub use row::{Value, WIDTH};

/// The features of a scheduled program at the `Blocks` level.
///
/// # Errors
/// When the target is no CPU.
pub fn extract(program: &Program, context: &RunContext) -> Result<ProgramFeatures, FeatureError> {
    let cpu = context.target.cpu()?;
    let facts = facts(program);
    let mut values = Vec::with_capacity(facts.len() * WIDTH);
    for block in &facts {
        row::push(&mut values, block, cpu);
    }
    let prior = draft::score(program, &facts, cpu, context.threads());
    Ok(ProgramFeatures::new(values, WIDTH, prior)?)
}

/// The features of a block, by name.
#[derive(Clone, Debug)]
pub struct BlockFeatures {
    /// The block's name.
    pub block: Symbol,
    /// The values of the block itself.
    pub own: Vec<Value>,
    /// The values of each buffer that it touches, the largest first; a row holds only the first of them.
    pub buffers: Vec<(Symbol, Vec<Value>)>,
}

/// The values of [`extract`] with their names.
pub fn describe(program: &Program, cpu: &CpuTarget) -> Vec<BlockFeatures> {
    let describe = |block: &BlockFacts<'_>| BlockFeatures {
        block: block.block.name.clone(),
        own: row::own(block, cpu).to_vec(),
        buffers: row::largest_first(block)
            .into_iter()
            .map(|access| {
                let values = row::of_access(block, access, cpu).to_vec();
                (program.buffer(access.buffer).name.clone(), values)
            })
            .collect(),
    };
    facts(program).iter().map(describe).collect()
}

/// About how many cycles a block takes on one thread without vectors: its operations, or one for each point of a copy. `None` when an extent is
/// symbolic.
pub(crate) fn operations(block: &Block) -> Option<f64> {
    let points = points(block)? as f64 * nest::points_of_intrinsic(&block.body);
    Some(points * Arithmetic::of(block, &[]).operations().max(1.0))
}

/// The facts about each block that a call executes.
fn facts(program: &Program) -> Vec<BlockFacts<'_>> {
    let ahead = constant_blocks(program);
    let (before, called): (Vec<_>, Vec<_>) =
        blocks(&program.body).into_iter().partition(|block| ahead.contains(&block.id));
    let prepared: Vec<BufferId> = before.into_iter().flat_map(|block| writes(block)).collect();
    // Buffers that are prepared ahead of calls are whole during a call, as parameters are.
    let is_intermediate = |buffer| program.access(buffer).is_none() && !prepared.contains(&buffer);
    let located: Vec<(&Block, Vec<&Arc<For>>)> = called
        .into_iter()
        .map(|block| (&**block, loops_around(&program.body, block.id).unwrap_or_default()))
        .collect();
    let scopes = scopes(&located, &is_intermediate);
    let zeros = ZeroElements::of_blocks(program, located.iter().map(|(block, _)| *block));
    let mut facts: Vec<BlockFacts<'_>> =
        located.iter().map(|(block, path)| BlockFacts::new(program, block, path, &scopes, &zeros)).collect();
    reuse::measure(&mut facts, &is_intermediate);
    facts
}

/// The number of loops around all uses of each intermediate.
fn scopes(
    located: &[(&Block, Vec<&Arc<For>>)],
    is_intermediate: &dyn Fn(BufferId) -> bool,
) -> Vec<(BufferId, usize)> {
    let mut scopes: Vec<(BufferId, &[&Arc<For>])> = Vec::new();
    for (block, path) in located {
        for buffer in reads(block).into_iter().chain(writes(block)) {
            if !is_intermediate(buffer) {
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
