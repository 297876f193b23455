//! Loops bound to the threads of a grid.

use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_core::stmt::LoopKind;
use tilewright_macros::schedule_rule;

use crate::gpu::by_element::{self, Threads};
use crate::space::rule::{RuleExtension, RuleResult};
use crate::space::rules::block::block_of;

/// The threads of a block, with the probabilities of the choices.
pub(super) const THREADS: [(i64, f64); 5] = [(64, 0.1), (128, 0.3), (256, 0.4), (512, 0.15), (1024, 0.05)];

/// Binds the elements of a block that no other rule has scheduled to threads, of which it draws how many form a block. A reduction
/// that is left is a serial loop of its thread.
#[schedule_rule(target = "gpu", after = "cross_thread_reduction")]
pub fn auto_bind(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let around = tilewright_core::analysis::scope::loops_around(&schedule.program().body, found.id);
    let is_serial = around.is_some_and(|loops| loops.iter().all(|node| node.kind == LoopKind::Serial));
    let is_tiled = tilewright_core::annotation::TILING.is_in(&found.annotations);
    if !is_serial || is_tiled {
        return schedule.unchanged();
    }
    match by_element::bind_elements(schedule, block, Threads::Drawn(&THREADS))? {
        true => schedule.changed(),
        false => schedule.unchanged(),
    }
}
