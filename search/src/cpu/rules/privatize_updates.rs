//! Private copies for histograms and scatters of integers.

use tilewright_core::analysis::block::{is_ordered, reduction};
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::IterKind;
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{block_of, domain_size, has_own_loops, loop_of};

/// The fewest updates of a thread: starting and joining threads takes as long as some thousand of them.
const LEAST_UPDATES: i64 = 4096;

/// The fewest updates for each element of the copies: an element is cleared, and added to the others.
const UPDATES_PER_ELEMENT: i64 = 4;

/// Splits ordered updates of integers over the threads, each with a copy of the buffer of its own, where there are several times as many
/// updates as the copies have elements. Offers updates of long rows in their order, too.
#[schedule_rule(target = "cpu", after = "add_rfactor", before = "multi_level_tiling")]
pub fn privatize_updates(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let workers = i64::from(schedule.context().workers());
    let elements = reduction(&found).and_then(|reduction| {
        let shape = &schedule.program().buffer(reduction.store.buffer).shape;
        shape.iter().try_fold(1i64, |size, extent| size.checked_mul(extent.as_constant()?))
    });
    let points = |kind| domain_size(&found, kind);
    let (Some(elements), Some(ordered), Some(spatial)) =
        (elements, points(IterKind::Ordered), points(IterKind::Spatial))
    else {
        return schedule.unchanged();
    };
    let updates = ordered.saturating_mul(spatial);
    let copied = elements.saturating_mul(workers).saturating_mul(UPDATES_PER_ELEMENT);
    let pays = copied <= updates && updates / workers.max(1) >= LEAST_UPDATES;
    let is_open = is_ordered(&found) && has_own_loops(schedule.program(), &found);
    if workers < 2 || !is_open || !pays {
        return schedule.unchanged();
    }
    let mut variant = schedule.fork();
    if spread(&mut variant, block, workers).is_err() {
        return schedule.unchanged();
    }
    // Long rows can be cut into a part for each thread, without copies.
    let is_long = spatial >= workers.saturating_mul(i64::from(schedule.cpu()?.lanes(4)));
    let in_order = is_long.then(|| schedule.fork());
    Ok(RuleOutcome::Variants(in_order.into_iter().chain([variant]).collect()))
}

/// Splits the longest loop over ordered points into a part for each worker, and puts the loop over these parts outermost.
fn spread(schedule: &mut Schedule, block: BlockRv, workers: i64) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let ordered = found.iters.iter().enumerate().filter(|(_, iter)| iter.kind == IterKind::Ordered);
    let longest = ordered.max_by_key(|(_, iter)| iter.extent.as_constant()).map(|(number, _)| number);
    let refusal = ScheduleError::OrderMatters(found.id);
    let target = loop_of(schedule, block, longest.ok_or(refusal)?)?.ok_or(refusal)?;
    let id = schedule.values().target_loop(target)?;
    let around = schedule.get_loops(block)?;
    let is_ahead = |node: &LoopRv| schedule.values().target_loop(*node) != Ok(id);
    let ahead: Vec<LoopRv> = around.into_iter().take_while(is_ahead).collect();
    let parts = schedule.split(target, &[Some(workers), None])?;
    schedule.privatize(block, parts[0])?;
    if !ahead.is_empty() {
        schedule.reorder(&[&parts[..1], &ahead].concat())?;
    }
    Ok(())
}
