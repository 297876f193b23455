//! Distributes the outer loops of each nest over threads.

use std::sync::Arc;

use tilewright_core::analysis::block::{is_ordered_by, writes};
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::annotation::{PARALLEL, PARALLEL_STEPS};
use tilewright_core::ids::VarId;
use tilewright_core::schedule::{LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{For, IterKind, LoopKind, Stmt, Symbol};
use tilewright_core::visit::find_block;

use crate::cpu::postproc::{find, nest_annotation};

/// In each nest, fuses the outermost independent loops while they have no more iterations than the nest's
/// annotation allows, and makes the result parallel. Where an extent is symbolic, loops are not fused, and several are made parallel. A
/// recurrence of one sequence has no such loops: each of its steps shares out the points of its large blocks.
pub(super) fn parallelize_nests(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    let nests: Vec<Nest> = root_nests(schedule)
        .into_iter()
        .filter_map(|nest| {
            let inside = blocks(nest);
            Some(Nest {
                limit: nest_annotation(&inside, PARALLEL)?,
                steps_first: nest_annotation(&inside, PARALLEL_STEPS) == Some(true),
                names: inside.iter().map(|block| block.name.clone()).collect(),
            })
        })
        .collect();
    for Nest { names, limit, steps_first } in nests {
        if limit <= 1 || (steps_first && parallelize_steps(schedule, &names, limit)?) {
            continue;
        }
        move_out_of_recurrence(schedule, &names[0], limit)?;
        if !parallelize(schedule, &names[0], 0, limit)? {
            parallelize_steps(schedule, &names, limit)?;
        }
    }
    Ok(())
}

/// A nest at the outermost level.
struct Nest {
    /// The names of its blocks, in program order.
    names: Vec<Symbol>,
    /// The most iterations of a parallel loop.
    limit: i64,
    /// Whether threads share steps, if they can.
    steps_first: bool,
}

/// Makes the outermost independent loops around a block parallel, without the first `shared` ones. The answer is whether there are any.
fn parallelize(
    schedule: &mut Schedule,
    name: &Symbol,
    shared: usize,
    limit: i64,
) -> Result<bool, ScheduleError> {
    let (block, id) = find(schedule, name)?;
    let path = loops_around(&schedule.program().body, id).unwrap_or_default();
    let extents = leading_extents(&path[shared..], limit);
    if extents.is_empty() {
        return Ok(false);
    }
    let loops = schedule.get_loops(block)?.into_iter().skip(shared);
    let mut loops: Vec<LoopRv> = loops.take(extents.len()).collect();
    if loops.len() > 1 && !extents.contains(&None) {
        loops = vec![schedule.fuse(&loops)?];
    }
    for each in loops {
        // Iterations may still share a buffer: then the rest of the nest stays serial.
        if schedule.parallel(each).is_err() {
            break;
        }
    }
    Ok(true)
}

/// The fewest points of a block that threads share in each step of a recurrence. They are started and joined in every step, which takes as long
/// as some ten thousand multiply-adds.
pub(crate) const LEAST_OF_STEP: i64 = 1 << 17;

/// Makes the loops of large blocks parallel that are inside of a loop over steps. The answer is whether there are any.
fn parallelize_steps(schedule: &mut Schedule, names: &[Symbol], limit: i64) -> Result<bool, ScheduleError> {
    let mut shares = false;
    for name in names {
        let (_, id) = find(schedule, name)?;
        let path = loops_around(&schedule.program().body, id).unwrap_or_default();
        let Some(block) = find_block(&schedule.program().body, id) else { continue };
        // The initial values of sums may be a block of their own.
        let written = writes(block);
        let is_shared = |node: &&&Arc<For>| blocks(&node.body).iter().any(|other| writes(other) != written);
        let shared = path.iter().take_while(is_shared).count();
        if shared > 0 && points(&path[shared..]) >= LEAST_OF_STEP {
            shares |= parallelize(schedule, name, shared, limit)?;
        }
    }
    Ok(shares)
}

fn root_nests(schedule: &Schedule) -> Vec<&Stmt> {
    match &schedule.program().body {
        Stmt::Seq(stmts) => stmts.iter().collect(),
        single => vec![single],
    }
}

/// Puts a part of a loop over independent points around a recurrence that holds it: each thread then executes the recurrence for
/// points of its own. The inner part is at least a vector.
fn move_out_of_recurrence(schedule: &mut Schedule, first: &Symbol, limit: i64) -> Result<(), ScheduleError> {
    let (_, id) = find(schedule, first)?;
    let path = loops_around(&schedule.program().body, id).unwrap_or_default();
    let chain = perfect_nest(&path);
    let is_open = |node: &Arc<For>| {
        node.kind == LoopKind::Serial
            && is_spatial(&node.body, node.var)
            && node.extent.as_constant().is_some_and(|extent| extent > 1)
    };
    let depth = chain.iter().position(|node| is_open(node)).unwrap_or(0);
    let is_recurrence = chain.first().is_some_and(|node| is_ordered(&node.body, node.var));
    if depth == 0 || !is_recurrence {
        return Ok(());
    }
    let lanes = i64::from(schedule.cpu()?.lanes(4));
    let extent = chain[depth].extent.as_constant().unwrap_or(1);
    let inner = ((extent + limit - 1) / limit + lanes - 1) / lanes * lanes;
    if inner >= extent {
        return Ok(());
    }
    let mut attempt = schedule.clone();
    let (block, _) = find(&mut attempt, first)?;
    let loops = attempt.get_loops(block)?;
    let parts = attempt.split(loops[depth], &[None, Some(inner)])?;
    let order: Vec<LoopRv> = parts[..1].iter().chain(&loops[..depth]).copied().collect();
    // Points that meet in an element stay inside.
    if attempt.reorder(&order).is_ok() {
        *schedule = attempt;
    }
    Ok(())
}

/// Whether a block inside executes its points in the order of the variable.
fn is_ordered(body: &Stmt, var: VarId) -> bool {
    blocks(body).iter().any(|block| is_ordered_by(block, var))
}

/// How many iterations are assumed of a loop whose extent is symbolic.
const ASSUMED_EXTENT: i64 = 16;

/// The least number of points in one iteration of a symbolic nest. To find an iteration's place in the nest takes a division for each loop.
const LEAST_POINTS: i64 = 256;

/// The extents of the perfectly nested outer loops that can be parallel together, with at most `limit` iterations; the outermost that has
/// several iterations counts even when it alone has more. Empty where no loop has several iterations. Where a symbolic extent, here
/// `None`, follows before there are as many, all loops count around enough points.
fn leading_extents(path: &[&Arc<For>], limit: i64) -> Vec<Option<i64>> {
    let is_open = |node: &&&Arc<For>| node.kind == LoopKind::Serial && is_spatial(&node.body, node.var);
    let open = perfect_nest(path).iter().take_while(is_open);
    let mut extents: Vec<Option<i64>> = open.map(|node| node.extent.as_constant()).collect();
    if extents.iter().flatten().any(|extent| *extent < 1) {
        return Vec::new();
    }
    let (mut product, mut count) = (1i64, 0);
    for extent in extents.iter().map_while(|extent| *extent) {
        if product > 1 && product.saturating_mul(extent) > limit {
            break;
        }
        (product, count) = (product.saturating_mul(extent), count + 1);
    }
    if product < limit && extents.get(count) == Some(&None) {
        let is_around_enough = |place: &usize| points(&path[place + 1..]) >= LEAST_POINTS;
        count = (count + 1).max((0..extents.len()).take_while(is_around_enough).count());
    } else if product <= 1 {
        count = 0;
    }
    extents.truncate(count);
    extents
}

/// The outer loops around a block of which each is the whole body of the one before.
fn perfect_nest<'p, 'a>(path: &'p [&'a Arc<For>]) -> &'p [&'a Arc<For>] {
    let chained =
        path.windows(2).take_while(|pair| matches!(&pair[0].body, Stmt::For(node) if node.id == pair[1].id));
    &path[..path.len().min(chained.count() + 1)]
}

/// How many points loops enumerate, as far as that is known.
fn points(loops: &[&Arc<For>]) -> i64 {
    let extents = loops.iter().map(|node| node.extent.as_constant().unwrap_or(ASSUMED_EXTENT));
    extents.fold(1, i64::saturating_mul)
}

/// Whether no block inside reduces over the variable, or executes its points in order.
fn is_spatial(body: &Stmt, var: VarId) -> bool {
    blocks(body).iter().all(|block| {
        !block.iters.iter().any(|iter| iter.kind != IterKind::Spatial && iter.binding.mentions(var))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::program::Program;
    use tilewright_core::target::Target;

    /// The extent of the parallel loop over an image of these extents, if there is one.
    fn parallel_extent(extents: [i64; 3], limit: i64) -> Option<i64> {
        let [n, h, w] = extents;
        let text = format!(
            "kernel twice(in x: f32[{n}, {h}, {w}], out y: f32[{n}, {h}, {w}]) {{
  for n in 0..{n} {{
    for h in 0..{h} {{
      for w in 0..{w} {{
        block y(vn: spatial {n} = n, vh: spatial {h} = h, vw: spatial {w} = w) {{
          y[vn, vh, vw] = 2.0f32 * x[vn, vh, vw]
        }}
      }}
    }}
  }}
}}
"
        );
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), 0);
        let block = schedule.get_block("y").unwrap();
        schedule.annotate(block, PARALLEL, limit).unwrap();
        parallelize_nests(&mut schedule).unwrap();
        let block = schedule.get_block("y").unwrap();
        let id = schedule.values().block(block).unwrap();
        let path = loops_around(&schedule.program().body, id).unwrap_or_default();
        let parallel = path.iter().find(|node| node.kind == LoopKind::Parallel)?;
        parallel.extent.as_constant()
    }

    #[test]
    fn outer_loops_are_fused_up_to_the_limit() {
        assert_eq!(parallel_extent([2, 4, 8], 8), Some(8));
        assert_eq!(parallel_extent([2, 4, 8], 7), Some(2));
        assert_eq!(parallel_extent([16, 4, 8], 8), Some(16), "the outermost alone");
    }

    /// The loops around a recurrence down the columns of a matrix.
    fn column_loops(value: &str) -> Vec<(LoopKind, i64)> {
        let text = format!(
            "kernel columns(in x: f32[9, 256], inout y: f32[10, 256]) {{
  for i in 0..9 {{
    for j in 0..256 {{
      block y(vi: ordered 9 = i, vj: spatial 256 = j) {{
        y[vi + 1, vj] = {value} + x[vi, vj]
      }}
    }}
  }}
}}
"
        );
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), 0);
        let block = schedule.get_block("y").unwrap();
        schedule.annotate(block, PARALLEL, 4).unwrap();
        parallelize_nests(&mut schedule).unwrap();
        let block = schedule.get_block("y").unwrap();
        let id = schedule.values().block(block).unwrap();
        let path = loops_around(&schedule.program().body, id).unwrap_or_default();
        path.iter().map(|node| (node.kind, node.extent.as_constant().unwrap())).collect()
    }

    #[test]
    fn independent_columns_of_a_recurrence_are_spread_over_threads() {
        let (parallel, serial) = (LoopKind::Parallel, LoopKind::Serial);
        assert_eq!(column_loops("y[vi, vj]"), [(parallel, 4), (serial, 9), (serial, 64)]);
        assert_eq!(column_loops("y[vi, (vj + 1)%256]"), [(serial, 9), (serial, 256)]);
    }

    /// The kinds of the loops around the sums, and the new states, of each step of recurrences with this many states.
    fn step_loops(recurrences: i64, states: i64, steps_first: bool) -> Vec<LoopKind> {
        let text = format!(
            "kernel steps(in x: f32[5, {states}], in w: f32[{states}, {states}], inout y: f32[{recurrences}, 6, {states}]) {{
  buffer next: f32[{recurrences}, {states}] global
  for d in 0..{recurrences} {{ for t in 0..5 {{
    for j in 0..{states} {{ for k in 0..{states} {{
      block next(vd: spatial {recurrences} = d, vt: ordered 5 = t, vj: spatial {states} = j, vk: reduce {states} = k) {{
        init {{ next[vd, vj] = 0.0 }}
        next[vd, vj] = next[vd, vj] + w[vj, vk] * y[vd, vt, vk]
      }}
    }} }}
    for j in 0..{states} {{
      block y(vd: spatial {recurrences} = d, vt: ordered 5 = t, vj: spatial {states} = j) {{
        y[vd, vt + 1, vj] = next[vd, vj] + x[vt, vj]
      }}
    }}
  }} }}
}}
"
        );
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), 0);
        let block = schedule.get_block("y").unwrap();
        schedule.annotate(block, PARALLEL, 1024).unwrap();
        schedule.annotate(block, PARALLEL_STEPS, i64::from(steps_first)).unwrap();
        parallelize_nests(&mut schedule).unwrap();
        let kinds = ["next", "y"].map(|name| {
            let block = schedule.get_block(name).unwrap();
            let id = schedule.values().block(block).unwrap();
            let path = loops_around(&schedule.program().body, id).unwrap_or_default();
            path.iter().map(|node| node.kind).collect::<Vec<_>>()
        });
        kinds.concat()
    }

    #[test]
    fn the_large_blocks_of_a_step_are_shared_out() {
        let (parallel, serial) = (LoopKind::Parallel, LoopKind::Serial);
        let shared = [serial, serial, parallel, serial, serial, serial, serial];
        let apart = [parallel, serial, serial, serial, parallel, serial, serial];
        assert_eq!(step_loops(1, 512, false), shared, "one recurrence");
        assert_eq!(step_loops(2, 512, false), apart);
        assert_eq!(step_loops(2, 512, true), shared);
        assert_eq!(step_loops(2, 64, true), apart, "small steps");
        assert_eq!(step_loops(1, 64, true), [serial; 7]);
    }

    #[test]
    fn a_loop_of_one_iteration_shares_nothing() {
        assert_eq!(parallel_extent([1, 56, 8], 8), Some(56), "the outermost with several");
        assert_eq!(parallel_extent([1, 4, 8], 8), Some(4));
        assert_eq!(parallel_extent([1, 1, 1], 8), None);
    }
}
