//! Distributes the outer loops of each nest over threads.

use std::sync::Arc;

use tilewright_core::analysis::block::is_ordered_by;
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::annotation::PARALLEL;
use tilewright_core::ids::VarId;
use tilewright_core::schedule::{LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, For, IterKind, LoopKind, Stmt};

use crate::cpu::postproc::{find, nest_annotation};

/// In each nest, fuses the outermost independent loops while they have no more iterations than the nest's
/// annotation allows, and makes the result parallel.
pub(super) fn parallelize_nests(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    let nests: Vec<(Arc<Block>, i64)> = root_nests(schedule)
        .into_iter()
        .filter_map(|nest| {
            let inside = blocks(nest);
            let limit = nest_annotation(&inside, PARALLEL)?;
            Some((inside.first().map(|block| Arc::clone(block))?, limit))
        })
        .collect();
    for (first, limit) in nests {
        if limit > 1 {
            move_out_of_recurrence(schedule, &first, limit)?;
        }
        let count = leading_loops(schedule, &first, limit);
        if limit <= 1 || count == 0 {
            continue;
        }
        let (block, _) = find(schedule, &first.name)?;
        let loops: Vec<LoopRv> = schedule.get_loops(block)?.into_iter().take(count).collect();
        let fused = if count > 1 { schedule.fuse(&loops)? } else { loops[0] };
        // Iterations may still share a buffer: then the nest stays serial.
        if schedule.parallel(fused).is_err() {
            continue;
        }
    }
    Ok(())
}

fn root_nests(schedule: &Schedule) -> Vec<&Stmt> {
    match &schedule.program().body {
        Stmt::Seq(stmts) => stmts.iter().collect(),
        single => vec![single],
    }
}

/// Puts a part of a loop over independent points around a recurrence that holds it: each thread then executes the recurrence for
/// points of its own. The inner part is at least a vector.
fn move_out_of_recurrence(schedule: &mut Schedule, first: &Block, limit: i64) -> Result<(), ScheduleError> {
    let path = loops_around(&schedule.program().body, first.id).unwrap_or_default();
    let chained =
        path.windows(2).take_while(|pair| matches!(&pair[0].body, Stmt::For(node) if node.id == pair[1].id));
    let chain = &path[..path.len().min(chained.count() + 1)];
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
    let (block, _) = find(&mut attempt, &first.name)?;
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

/// How many perfectly nested outer loops can be fused into one parallel loop of at most `limit` iterations; the outermost that
/// has several iterations counts even when it alone has more. 0 where no loop has several iterations.
fn leading_loops(schedule: &Schedule, block: &Block, limit: i64) -> usize {
    let program = schedule.program();
    let path = loops_around(&program.body, block.id).unwrap_or_default();
    let mut product = 1i64;
    let mut count = 0;
    let mut previous: Option<&Arc<For>> = None;
    for node in path {
        let is_chained =
            previous.is_none_or(|outer| matches!(&outer.body, Stmt::For(inner) if inner.id == node.id));
        if node.kind != LoopKind::Serial || !is_chained || !is_spatial(&node.body, node.var) {
            break;
        }
        let fused = match node.extent.as_constant() {
            Some(extent) if extent < 1 => return 0,
            Some(extent) => product.saturating_mul(extent),
            None if product > 1 => break,
            None => return count + 1,
        };
        if fused > limit && product > 1 {
            break;
        }
        product = fused;
        count += 1;
        previous = Some(node);
    }
    if product > 1 { count } else { 0 }
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

    #[test]
    fn a_loop_of_one_iteration_shares_nothing() {
        assert_eq!(parallel_extent([1, 56, 8], 8), Some(56), "the outermost with several");
        assert_eq!(parallel_extent([1, 4, 8], 8), Some(4));
        assert_eq!(parallel_extent([1, 1, 1], 8), None);
    }
}
