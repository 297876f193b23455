//! Random steps of a schedule, most of which are legal.

use tilewright_core::analysis::block::{reads, writes};
use tilewright_core::index::map::IndexMap;
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, LoopRv, Rng, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, Stmt};
use tilewright_core::thread_axis::ThreadAxis;
use tilewright_core::visit::{find_block, find_loop, for_each_stmt};

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

fn shuffle<T>(random: &mut Rng, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last + 1));
    }
}

fn pick<T: Copy>(random: &mut Rng, items: &[T]) -> T {
    items[random.below(items.len())]
}

/// A map that permutes, splits and leaves out indices; most are legal for something.
fn random_map(random: &mut Rng, inputs: usize) -> IndexMap {
    let names: Vec<String> = (0..inputs).map(|input| format!("i{input}")).collect();
    let mut outputs = Vec::new();
    for name in &names {
        let factor = 2 + random.below(4);
        match random.below(8) {
            0 | 1 => outputs.extend([format!("{name}/{factor}"), format!("{name}%{factor}")]),
            2 => {}
            3 => outputs.push(format!("{name}*{factor}")),
            _ => outputs.push(name.clone()),
        }
    }
    shuffle(random, &mut outputs);
    let text = format!("({}) -> ({})", names.join(", "), outputs.join(", "));
    text.parse().unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn iter_count(schedule: &Schedule, block: BlockRv) -> usize {
    find(schedule, block).map_or(0, |block| block.iters.len())
}

/// The rank of a buffer that a block reads or writes; 0 when there is none.
fn rank_of(schedule: &Schedule, block: BlockRv, access: &str, number: usize) -> usize {
    let Some(block) = find(schedule, block) else { return 0 };
    let buffers = if access == "read" { reads(block) } else { writes(block) };
    buffers.get(number).map_or(0, |buffer| schedule.program().buffer(*buffer).shape.len())
}

fn find(schedule: &Schedule, block: BlockRv) -> Option<&Block> {
    let id = schedule.values().block(block).ok()?;
    find_block(&schedule.program().body, id).map(|block| &**block)
}

/// Applies one random primitive with random arguments.
pub(crate) fn random_step(schedule: &mut Schedule, random: &mut Rng) -> Result<(), ScheduleError> {
    let (block, loops) = random_nest(schedule, random)?;
    if loops.is_empty() {
        return schedule.compute_inline(block);
    }
    let one = loops[random.below(loops.len())];
    let scope = if random.below(2) == 0 { Scope::Global } else { Scope::Local };
    match random.below(42) {
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
            shuffle(random, &mut order);
            order.truncate(2 + random.below(2));
            schedule.reorder(&order)
        }
        5 if random.below(2) == 0 => schedule.parallel(loops[0]),
        5 => schedule.sink_loop(loops[random.below(loops.len().min(2))]).map(drop),
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
            let axis = random.below(2) as i64;
            // The first one takes reductions, the others updates in order.
            let factored = schedule.rfactor(block, one, axis).map(drop);
            if random.below(2) == 0 {
                factored.or_else(|_| schedule.update_atomically(block))
            } else {
                factored.or_else(|_| schedule.privatize(block, one).map(drop))
            }
        }
        15 => schedule.blockize(one).map(drop),
        16 => {
            let access = pick(random, &["read", "write"]);
            let number = random.below(2);
            let map = random_map(random, rank_of(schedule, block, access, number));
            schedule.transform_layout(block, access, number as i64, map)
        }
        17 | 18 => {
            let map = random_map(random, iter_count(schedule, block));
            schedule.transform_block_layout(block, map)
        }
        19 => {
            let access = pick(random, &["read", "write"]);
            schedule.reindex(block, access, random.below(2) as i64).map(drop)
        }
        20 => {
            let map = random_map(random, iter_count(schedule, block));
            schedule.reindex_cache_read(block, random.below(3) as i64, scope, map).map(drop)
        }
        21 => {
            let map = random_map(random, iter_count(schedule, block));
            schedule.reindex_cache_write(block, scope, map).map(drop)
        }
        26 => schedule.read_at(one, block, random.below(2) as i64, scope).map(drop),
        27 => schedule.write_at(one, block, scope).map(drop),
        28 | 29 => {
            let (_, others) = random_nest(schedule, random)?;
            if others.is_empty() {
                return Ok(());
            }
            let other = others[random.below(others.len().min(2))];
            schedule.merge(&[loops[random.below(loops.len().min(2))], other]).map(drop)
        }
        30 => {
            let first = Some(1 + random.below(3) as i64);
            schedule.loop_partition(one, &[first, None, Some(1)][..2 + random.below(2)]).map(drop)
        }
        31 | 32 => schedule.fuse_reduction_epilogue(block),
        33 => {
            let padding: Vec<i64> =
                (0..iter_count(schedule, block)).map(|_| 1 + random.below(4) as i64).collect();
            schedule.pad_einsum(block, &padding)
        }
        34 => schedule.decompose_padding(block).map(drop),
        35 => {
            let factor = 1 + random.below(8) as i64;
            let offset = random.below(factor as usize) as i64;
            match random.below(3) {
                0 => schedule.storage_swizzle(block, 0),
                _ => schedule.storage_align(block, 0, random.below(2) as i64, factor, offset),
            }
        }
        36 => schedule.stream_writes(block, 0),
        37 => match random.below(8) as i64 {
            7 => schedule.prefetch_for_siblings(one),
            distance => schedule.prefetch(one, 1 + distance),
        },
        38 => {
            let offset = 1 + random.below(255) as i64;
            schedule.offset_products(block, random.below(2) as i64, offset).map(drop)
        }
        39 => stage_some_loop(schedule, random),
        40 => Staging::random(schedule, random, one)?.apply(schedule),
        22 => schedule.cache_inplace(block, 0, scope).map(drop),
        23 => schedule.set_scope(block, 0, scope),
        24 => {
            let mut order: Vec<i64> = (0..iter_count(schedule, block) as i64).collect();
            shuffle(random, &mut order);
            schedule.reorder_block_iter_var(block, &order)
        }
        25 if random.below(2) == 0 => schedule.add_unit_loop(block).map(drop),
        25 => schedule.add_unit_loop(one).map(drop),
        _ => schedule.decompose_reduction(block, one).map(drop),
    }
}

/// A pipeline to try: a loop, and the stage and the place of each of its statements.
pub(crate) struct Staging {
    pub(crate) target: LoopRv,
    pub(crate) stages: Vec<i64>,
    pub(crate) order: Vec<i64>,
}

impl Staging {
    /// Random stages, most of which grow, for the statements of a loop.
    fn random(schedule: &Schedule, random: &mut Rng, target: LoopRv) -> Result<Staging, ScheduleError> {
        let id = schedule.values().target_loop(target)?;
        let statements = match find_loop(&schedule.program().body, id).map(|node| &node.body) {
            Some(Stmt::Seq(stmts)) => stmts.len(),
            _ => 1,
        };
        let mut stage = random.below(2) as i64;
        let stages: Vec<i64> = (0..statements)
            .map(|_| {
                stage += pick(random, &[0, 1, 1, 1, 2, -1]);
                stage.max(0)
            })
            .collect();
        let mut order: Vec<i64> = (0..statements as i64).collect();
        if random.below(2) == 0 {
            shuffle(random, &mut order);
        }
        Ok(Staging { target, stages, order })
    }

    pub(crate) fn apply(&self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        schedule.software_pipeline(self.target, &self.stages, &self.order)
    }
}

/// Computes producers of a block, or copies of what it reads, in one of its loops, and stages for its statements.
pub(crate) fn loop_to_stage(
    schedule: &Schedule,
    random: &mut Rng,
) -> Result<(Schedule, Staging), ScheduleError> {
    let mut attempt = schedule.clone();
    let (block, loops) = random_nest(&mut attempt, random)?;
    let mut target = *loops.get(random.below(loops.len().max(1))).ok_or(ScheduleError::BadLoopList)?;
    if random.below(3) == 0 {
        target = attempt.split(target, &[None, Some(2 + random.below(3) as i64)])?[random.below(2)];
    }
    let mut made = 0;
    for _ in 0..1 + random.below(2) {
        let producers = attempt.get_producers(block)?;
        let scope = if random.below(2) == 0 { Scope::Global } else { Scope::Local };
        made += u32::from(match random.below(2) {
            0 if !producers.is_empty() => attempt.compute_at(pick(random, &producers), target).is_ok(),
            _ => attempt.read_at(target, block, random.below(2) as i64, scope).is_ok(),
        });
    }
    if made == 0 {
        return Err(ScheduleError::NoNeighbour(schedule.values().block(block)?));
    }
    let staging = Staging::random(&attempt, random, target)?;
    Ok((attempt, staging))
}

/// As [`loop_to_stage`], and executes the statements in these stages.
pub(crate) fn stage_some_loop(schedule: &mut Schedule, random: &mut Rng) -> Result<(), ScheduleError> {
    let (mut attempt, staging) = loop_to_stage(schedule, random)?;
    staging.apply(&mut attempt)?;
    *schedule = attempt;
    Ok(())
}

/// Binds random loops of a random block to axes of threads. Such a program cannot be lowered.
pub(crate) fn random_binding(schedule: &mut Schedule, random: &mut Rng) -> Result<(), ScheduleError> {
    let (_, loops) = random_nest(schedule, random)?;
    loops.into_iter().try_for_each(|target| schedule.bind(target, pick(random, &ThreadAxis::ALL)))
}
