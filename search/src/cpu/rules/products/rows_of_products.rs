//! Products that follow each other, computed together for a few rows.
//!
//! ```text
//! attention of queries r to keys c:
//!   s[c, r] = Σ k[c, d] · q[d, r]    most[r] = max s[:, r]    e[c, r] = exp(s[c, r] - most[r])
//!   sum[r] = Σ e[:, r]    x[v, r] = Σ v[c, v] · e[c, r]    y[r, v] = x[v, r] / sum[r]
//! parallel for blocks of r { s   most   e   sum   x   y }
//! ```
//!
//! Each step reads what the one before it has just written for the same rows, from a cache. One after the other for all rows, they would pass
//! whole matrices through memory.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tilewright_core::analysis::block::{Reducer, all_loads, reduction, single_store};
use tilewright_core::analysis::constant::constant_blocks;
use tilewright_core::analysis::scope::{blocks, consumers, loops_around};
use tilewright_core::annotation::TILING;
use tilewright_core::expr::{BinaryOp, ExprKind};
use tilewright_core::ids::{BlockId, VarId};
use tilewright_core::index::Index;
use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind, Symbol};
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{
    block_of, can_end_rows, can_precede_rows, loop_of, needs_multi_level_tiling,
};
use crate::space::rules::tiles::{UsefulTiles, sample_tile};

/// The structure of the tiles of a product.
const STRUCTURE: &str = "SSRS";

/// The most vectors of rows that are computed together.
const MOST_VECTORS: i64 = 4;

/// The fewest and the most results of a row in a register tile.
const RESULTS: [i64; 2] = [4, 16];

/// Computes chained products, and all between them and the last block, for a few rows after each other, where there are enough rows for all
/// threads. Steps that stay apart are no variant: of each step they have as many variants as it has alone, of all steps together far too
/// many to choose from, and they were not faster (see the decision on attention).
#[schedule_rule(target = "cpu", after = "auto_inline", before = "add_rfactor")]
pub fn rows_of_products(schedule: &mut Schedule, last: BlockRv) -> RuleResult {
    let found = block_of(schedule, last)?;
    let Some(chain) = Chain::of(schedule.program(), &found) else { return schedule.unchanged() };
    let (threads, lanes) = (i64::from(schedule.threads()), i64::from(schedule.cpu()?.lanes(4)));
    if chain.blocks_of_rows(&found, lanes).is_some_and(|blocks| blocks < threads) {
        return schedule.unchanged();
    }
    let mut joined = schedule.fork();
    match chain.join(&mut joined, last) {
        Ok(()) => Ok(RuleOutcome::Variants(vec![joined])),
        Err(_) => schedule.unchanged(),
    }
}

/// The steps that compute rows of a result by several products.
struct Chain {
    /// The steps before the last one, in the order of the program.
    steps: Vec<Step>,
    /// The iterators of the last step that all steps have, by their places. The last of them is the one that vectors run along.
    rows: Vec<usize>,
}

struct Step {
    name: Symbol,
    is_product: bool,
    /// The place of the iterator that vectors run along.
    lane: usize,
}

/// For iterators of a step: those of the last step that have the same value.
type RowsOf = FxHashMap<VarId, VarId>;

impl Chain {
    fn of(program: &Program, last: &Arc<Block>) -> Option<Self> {
        if !can_end_rows(program, last) {
            return None;
        }
        let found = members(program, last);
        let is_product = |block: &Arc<Block>| is_product(program, block);
        if found.iter().filter(|(block, _)| is_product(block)).count() < 2 {
            return None;
        }
        let is_shared = |var: VarId| {
            let mut products = found.iter().filter(|(block, _)| is_product(block));
            products.all(|(_, rows)| rows.values().any(|row| *row == var))
        };
        let mut rows: Vec<usize> =
            (0..last.iters.len()).filter(|&iter| is_shared(last.iters[iter].var)).collect();
        let var = |iter: usize| last.iters[iter].var;
        // Vectors run along the last dimension of what products give.
        let lane_of = |block: &Block, own: &RowsOf| {
            let index = single_store(block)?.indices.last()?.as_var()?;
            Some((block.iters.iter().position(|iter| iter.var == index)?, *own.get(&index)?))
        };
        let (_, lane) = found
            .iter()
            .filter(|(block, _)| is_product(block))
            .map(|(block, own)| lane_of(block, own))
            .reduce(|one, other| one.zip(other).filter(|(one, other)| one.1 == other.1).map(|(one, _)| one))
            .flatten()?;
        rows.retain(|&row| var(row) != lane);
        rows.push(last.iters.iter().position(|iter| iter.var == lane)?);
        // Steps that are the same for several rows are computed before.
        let has_all = |own: &RowsOf| rows.iter().all(|&row| own.values().any(|of| *of == var(row)));
        let steps = found.iter().filter(|(_, own)| has_all(own)).map(|(block, own)| {
            let (lane, along) = lane_of(block, own)?;
            let step = Step { name: block.name.clone(), is_product: is_product(block), lane };
            Some(step).filter(|_| along == var(rows[rows.len() - 1]))
        });
        let steps = steps.collect::<Option<Vec<Step>>>()?;
        Some(Chain { steps, rows })
    }

    /// How many vectors of rows there are; `None` where an extent is symbolic.
    fn blocks_of_rows(&self, last: &Block, lanes: i64) -> Option<i64> {
        let (lane, others) = self.rows.split_last()?;
        let extent = |row: &usize| last.iters[*row].extent.as_constant();
        let others = others.iter().map(extent).try_fold(1i64, |rows, extent| rows.checked_mul(extent?))?;
        others.checked_mul((extent(lane)? + lanes - 1) / lanes)
    }

    /// Moves all steps into the loop over blocks of rows.
    fn join(&self, schedule: &mut Schedule, last: BlockRv) -> Result<(), ScheduleError> {
        let found = block_of(schedule, last)?;
        let refusal = || ScheduleError::NotReduction(found.id);
        let mut loops = Vec::new();
        for &row in &self.rows {
            loops.extend(loop_of(schedule, last, row)?);
        }
        let lane = loops.pop().ok_or_else(refusal)?;
        let others: Vec<LoopRv> = schedule
            .get_loops(last)?
            .into_iter()
            .filter(|target| !self.is_row(schedule, *target, &loops, lane))
            .collect();
        let lanes = i64::from(schedule.cpu()?.lanes(4));
        let sizes: Vec<i64> = (1..=MOST_VECTORS).map(|vectors| vectors * lanes).collect();
        let size = schedule.sample_categorical(&sizes, &vec![1.0 / sizes.len() as f64; sizes.len()])?;
        let parts = schedule.split(lane, &[None, Some(size)])?;
        loops.push(parts[0]);
        schedule.reorder(&[&loops[..], &[parts[1]], &others].concat())?;
        for step in self.steps.iter().rev() {
            let block = schedule.get_block(&step.name)?;
            schedule.compute_at(block, parts[0])?;
        }
        for step in &self.steps {
            let block = schedule.get_block(&step.name)?;
            tile(schedule, block, step, loops.len())?;
            schedule.annotate(block, TILING, STRUCTURE)?;
        }
        schedule.annotate(last, TILING, STRUCTURE)
    }

    fn is_row(&self, schedule: &Schedule, target: LoopRv, rows: &[LoopRv], lane: LoopRv) -> bool {
        let id = |target: LoopRv| schedule.values().target_loop(target).ok();
        rows.iter().chain([&lane]).any(|row| id(*row) == id(target))
    }
}

/// Orders the loops of a step below the common ones: the rows of a vector innermost, and around them, for a product, a few of its
/// results and its reduction.
fn tile(schedule: &mut Schedule, block: BlockRv, step: &Step, common: usize) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let loops = schedule.get_loops(block)?;
    let path = loops_around(&schedule.program().body, found.id).unwrap_or_default();
    let (mut spatial, mut reduce, mut lanes) = (Vec::new(), Vec::new(), Vec::new());
    for (target, node) in loops.iter().zip(&path).skip(common) {
        let of = |kind: IterKind| {
            found.iters.iter().any(|iter| iter.kind == kind && iter.binding.mentions(node.var))
        };
        match found.iters[step.lane].binding.mentions(node.var) {
            true => lanes.push(*target),
            false if of(IterKind::Reduce) => reduce.push(*target),
            false => spatial.push(*target),
        }
    }
    let mut tile = Vec::new();
    if step.is_product
        && let Some(target) = spatial.pop()
    {
        let [least, most] = RESULTS;
        let useful = UsefulTiles { least, most, most_dividing: most, multiple: 1 };
        let factors = sample_tile(schedule, target, 2, useful)?;
        let parts = schedule.split(target, &[Some(factors[0]), Some(factors[1])])?;
        spatial.push(parts[0]);
        tile.push(parts[1]);
    }
    schedule.reorder(&[spatial, reduce, tile, lanes].concat())
}

/// The producers that serve the last block alone, directly or through each other, in the order of the program, with the iterators of
/// the last block that theirs are.
fn members(program: &Program, last: &Arc<Block>) -> Vec<(Arc<Block>, RowsOf)> {
    let ahead = constant_blocks(program);
    let mut known: FxHashMap<BlockId, RowsOf> = FxHashMap::default();
    known.insert(last.id, last.iters.iter().map(|iter| (iter.var, iter.var)).collect());
    let mut found = Vec::new();
    // Consumers stand behind producers.
    for block in blocks(&program.body).into_iter().rev() {
        let readers = consumers(program, block);
        let serves = !readers.is_empty() && readers.iter().all(|reader| known.contains_key(&reader.id));
        if block.id == last.id || !serves || !can_precede_rows(program, block) || ahead.contains(&block.id) {
            continue;
        }
        let rows = rows_of(block, &readers, &known);
        known.insert(block.id, rows.clone());
        found.push((Arc::clone(block), rows));
    }
    found.reverse();
    found
}

/// Whether a block sums up products of elements that are used several times.
fn is_product(program: &Program, block: &Block) -> bool {
    let multiplies = reduction(block).is_some_and(|found| {
        found.reducer == Reducer::Sum && matches!(found.value.kind(), ExprKind::Binary(BinaryOp::Mul, ..))
    });
    multiplies && needs_multi_level_tiling(program, block)
}

/// The iterators of the last block that those of a producer are for all of its readers.
fn rows_of(block: &Block, readers: &[&Arc<Block>], known: &FxHashMap<BlockId, RowsOf>) -> RowsOf {
    let Some(store) = single_store(block) else { return RowsOf::default() };
    let mut rows: Option<RowsOf> = None;
    for reader in readers {
        for load in all_loads(reader).into_iter().filter(|load| load.buffer == store.buffer) {
            let pairs = store.indices.iter().zip(load.indices.iter());
            let own: RowsOf = pairs
                .filter_map(|(own, read)| {
                    Some((own.as_var()?, *known[&reader.id].get(&Index::as_var(read)?)?))
                })
                .collect();
            rows = Some(match rows {
                None => own,
                Some(rows) => rows.into_iter().filter(|(var, row)| own.get(var) == Some(row)).collect(),
            });
        }
    }
    rows.unwrap_or_default()
}
