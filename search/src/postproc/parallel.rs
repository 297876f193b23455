//! Spreads the outer loops of each nest over threads.

use std::sync::Arc;

use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::ids::VarId;
use tilewright_core::schedule::{LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, For, IterKind, LoopKind, Stmt};

use crate::postproc::{find, nest_setting};
use crate::rules::parallelize_vectorize_unroll::PARALLEL;

/// In each nest, fuses the outermost independent loops while they have no more iterations than the nest's
/// setting allows, and makes the result parallel.
pub(super) fn parallelize_nests(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    let nests: Vec<(Arc<Block>, i64)> = root_nests(schedule)
        .into_iter()
        .filter_map(|nest| {
            let inside = blocks(nest);
            let limit = nest_setting(&inside, PARALLEL)?;
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

/// How many perfectly nested outer loops can be fused into one parallel loop of at most `limit` iterations;
/// the outermost counts even when it alone has more.
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
        match node.extent.as_constant() {
            Some(extent) if extent < 1 => return 0,
            Some(extent) => product = product.saturating_mul(extent.max(1)),
            None if count > 0 => break,
            None => return 1,
        }
        if product > limit && count > 0 {
            break;
        }
        count += 1;
        previous = Some(node);
    }
    count
}

/// Whether no block inside reduces over the variable.
fn is_spatial(body: &Stmt, var: VarId) -> bool {
    blocks(body).iter().all(|block| {
        !block.iters.iter().any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(var))
    })
}
