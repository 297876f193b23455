//! Random steps of a schedule, most of which are legal.

use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, LoopRv, Rng, Schedule, ScheduleError};
use tilewright_core::stmt::Stmt;
use tilewright_core::visit::for_each_stmt;

/// The names of all blocks, in order.
fn block_names(program: &Program) -> Vec<String> {
    let mut names = Vec::new();
    for_each_stmt(&program.body, &mut |stmt| {
        if let Stmt::Block(block) = stmt {
            names.push(block.name.to_string());
        }
    });
    names
}

fn random_block(schedule: &mut Schedule, random: &mut Rng) -> Result<BlockRv, ScheduleError> {
    let names = block_names(schedule.program());
    schedule.get_block(&names[random.below(names.len())])
}

/// A block and its loops.
fn random_nest(schedule: &mut Schedule, random: &mut Rng) -> Result<(BlockRv, Vec<LoopRv>), ScheduleError> {
    let block = random_block(schedule, random)?;
    let loops = schedule.get_loops(block)?;
    Ok((block, loops))
}

/// Applies one random primitive with random arguments.
pub(crate) fn random_step(schedule: &mut Schedule, random: &mut Rng) -> Result<(), ScheduleError> {
    let (block, loops) = random_nest(schedule, random)?;
    if loops.is_empty() {
        return schedule.compute_inline(block);
    }
    let one = loops[random.below(loops.len())];
    let scope = if random.below(2) == 0 { Scope::Global } else { Scope::Local };
    match random.below(18) {
        0..=2 => {
            let factors = [None, Some(2 + random.below(4) as i64), Some(1 + random.below(3) as i64)];
            schedule.split(one, &factors[..2 + random.below(2)]).map(drop)
        }
        3 => {
            let first = random.below(loops.len());
            schedule.fuse(&loops[first..loops.len().min(first + 2)]).map(drop)
        }
        4 => {
            let mut order = loops.clone();
            for last in (1..order.len()).rev() {
                order.swap(last, random.below(last + 1));
            }
            order.truncate(2 + random.below(2));
            schedule.reorder(&order)
        }
        5 => schedule.parallel(loops[0]),
        6 => schedule.vectorize(loops[loops.len() - 1]),
        7 => schedule.unroll(one),
        8 | 9 => {
            let (_, others) = random_nest(schedule, random)?;
            if others.is_empty() {
                return Ok(());
            }
            let place = others[random.below(others.len())];
            if random.below(2) == 0 {
                schedule.compute_at(block, place)
            } else {
                schedule.reverse_compute_at(block, place)
            }
        }
        10 => schedule.compute_inline(block),
        11 => schedule.reverse_compute_inline(block),
        12 => schedule.cache_read(block, random.below(2) as i64, scope).map(drop),
        13 => schedule.cache_write(block, scope).map(drop),
        14 => {
            let orders: [&[i64]; 3] = [&[1, 0], &[0, 2, 1], &[2, 0, 1]];
            schedule.transform_layout(block, orders[random.below(orders.len())])
        }
        15 => schedule.rfactor(block, one, random.below(2) as i64).map(drop),
        16 => schedule.blockize(one).map(drop),
        _ => schedule.decompose_reduction(block, one).map(drop),
    }
}
