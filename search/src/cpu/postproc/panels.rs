//! Lays packed operands out in panels: in the order in which the loops around the product read them.
//!
//! A tile of an operand that is copied row by row has rows as long as the tile. The inner loops read a few vectors of each,
//! so that the lines they need lie a row apart, compete for few sets of a cache, and escape the hardware prefetcher. In panels, after
//! Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008), these lines are contiguous.

use tilewright_core::analysis::block::{loads, single_store};
use tilewright_core::analysis::scope::{consumers, loops_around};
use tilewright_core::annotation::PANELS;
use tilewright_core::index::map::IndexMap;
use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, For};
use tilewright_core::visit::find_block;

use crate::cpu::postproc::loop_order::{LoopDigit, LoopOrder};
use crate::cpu::postproc::{block_names, find};

/// Lays the buffers of annotated copies out in panels.
pub(super) fn lay_out_panels(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    for name in block_names(schedule) {
        let (copy, id) = find(schedule, &name)?;
        let Some(found) = find_block(&schedule.program().body, id) else { continue };
        if PANELS.get(&found.annotations) != Some(true) {
            continue;
        }
        if let Some(panels) = panels(schedule.program(), found) {
            panels.apply(schedule, copy)?;
        }
    }
    Ok(())
}

/// A layout in panels, and the loop order that fills it contiguously.
struct Panels {
    map: IndexMap,
    order: LoopOrder,
    /// For each loop of the copy alone, outermost first: the dimension that it steps over.
    loops: Vec<usize>,
}

/// The panels of a copy; `None` when the product already reads it in memory order, or in no regular order.
fn panels(program: &Program, copy: &Block) -> Option<Panels> {
    let [consumer] = &consumers(program, copy)[..] else { return None };
    let store = single_store(copy)?;
    let (own, path) = (loops_around(&program.body, copy.id)?, loops_around(&program.body, consumer.id)?);
    let shared = own.iter().zip(&path).take_while(|(own, other)| own.id == other.id).count();
    let accesses = loads(&consumer.body);
    let mut reads = accesses.iter().filter(|access| access.buffer == store.buffer);
    let access = reads.next().filter(|_| reads.next().is_none())?;
    let mut order = LoopOrder::of(program, consumer, &path, access, shared)?;
    let map = order.map(&program.buffer(store.buffer).shape)?;
    order.digits.retain(|digit| digit.extent > 1);
    let dimension = |node: &For| {
        let iter = copy.iters.iter().find(|iter| iter.binding.mentions(node.var))?;
        let dimension = store.indices.iter().position(|index| index.as_var() == Some(iter.var))?;
        let is_panelled = node.extent.is(order.reach(dimension));
        is_panelled.then_some(dimension)
    };
    let loops = own[shared..].iter().map(|node| dimension(node)).collect::<Option<_>>()?;
    Some(Panels { map, order, loops })
}

impl Panels {
    fn apply(&self, schedule: &mut Schedule, copy: BlockRv) -> Result<(), ScheduleError> {
        schedule.transform_layout(copy, "write", 0, self.map.clone())?;
        let loops = schedule.get_loops(copy)?;
        let own = &loops[loops.len() - self.loops.len()..];
        let mut parts: Vec<(LoopDigit, LoopRv)> = Vec::new();
        for (target, dimension) in own.iter().zip(&self.loops) {
            let digits = self.order.slowest_first(*dimension);
            let inner = digits.iter().skip(1).map(|digit| Some(digit.extent));
            let factors: Vec<Option<i64>> = std::iter::once(None).chain(inner).collect();
            let split = if digits.len() > 1 { schedule.split(*target, &factors)? } else { vec![*target] };
            parts.extend(digits.into_iter().zip(split));
        }
        let in_order: Vec<LoopRv> = self
            .order
            .digits
            .iter()
            .filter_map(|digit| parts.iter().find(|(own, _)| own == digit).map(|(_, part)| *part))
            .collect();
        if in_order.len() > 1 { schedule.reorder(&in_order) } else { Ok(()) }
    }
}
