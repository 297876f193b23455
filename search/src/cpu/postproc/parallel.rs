//! Distributes the outer loops of each nest over threads.

use std::sync::Arc;

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

    #[test]
    fn a_loop_of_one_iteration_shares_nothing() {
        assert_eq!(parallel_extent([1, 56, 8], 8), Some(56), "the outermost with several");
        assert_eq!(parallel_extent([1, 4, 8], 8), Some(4));
        assert_eq!(parallel_extent([1, 1, 1], 8), None);
    }
}
