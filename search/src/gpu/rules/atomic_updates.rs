//! Updates in one step, by as many threads as there are updates.

use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use super::auto_bind::THREADS;
use crate::gpu::by_element::Threads;
use crate::gpu::by_update::bind_updates;
use crate::space::rule::{RuleExtension, RuleResult};

/// Binds the updates of a histogram or a scatter to threads, each as one step, where their order makes no difference.
#[schedule_rule(target = "gpu", after = "cross_thread_reduction", before = "auto_bind")]
pub fn atomic_updates(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let mut bound = schedule.fork();
    match bind_updates(&mut bound, block, Threads::Drawn(&THREADS)) {
        Ok(true) => {
            *schedule = bound;
            schedule.changed()
        }
        Ok(false) | Err(_) => schedule.unchanged(),
    }
}
