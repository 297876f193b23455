//! How far nests are parallelized, vectorized and unrolled.

use std::sync::Arc;

use tilewright_core::analysis::block::is_spatial;
use tilewright_core::analysis::constant::constant_blocks;
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::annotation::{Key, PARALLEL, UNROLL, UNROLL_REDUCTION, VECTORIZE};
use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::Block;
use tilewright_core::target::CpuTarget;
use tilewright_macros::schedule_rule;

use crate::cpu::features::draft::PARALLEL_START;
use crate::cpu::features::operations;
use crate::space::rule::{RuleExtension, RuleResult};
use crate::space::rules::block::block_of;

/// Parallel iterations per thread: 16 balance well, fewer cost less to start.
const JOBS_PER_THREAD: [i64; 3] = [1, 4, 16];

/// The most operations of a program that is hardly worth a second thread: with vectors they take about as long as the start of two parallel
/// loops. Several nests that each draw a number of iterations would seldom all draw one.
const FEW_OPERATIONS: f64 = 8.0 * PARALLEL_START;

/// Annotates the last block of each nest with the limits for the postprocessors. It changes no loop, so that later rules
/// still see serial loops.
#[schedule_rule(target = "cpu", after = "multi_level_tiling", before = "random_compute_location")]
pub fn parallelize_vectorize_unroll(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let mut rule = ParallelizeVectorizeUnroll::of(schedule.cpu()?, schedule.threads());
    if !rule.parallel.is_empty() && has_few_operations(schedule.program()) {
        rule.parallel = vec![(1, 0.8), (i64::from(schedule.threads()), 0.2)];
    }
    rule.apply(schedule, block)
}

/// Whether a program has at most [`FEW_OPERATIONS`]; one of unknown size has more.
fn has_few_operations(program: &Program) -> bool {
    let mut sum = 0.0;
    blocks(&program.body).into_iter().all(|block| {
        sum += operations(block).unwrap_or(f64::INFINITY);
        sum <= FEW_OPERATIONS
    })
}

/// The rule with its choices, for a rule that replaces it. It draws among several candidates and takes a single one without a
/// decision; without candidates it leaves the annotation out.
#[derive(Clone, Debug, PartialEq)]
pub struct ParallelizeVectorizeUnroll {
    /// The most iterations that a parallel loop should have.
    pub parallel: Candidates,
    /// The most elements that a vectorized loop should have.
    pub vectorize: Candidates,
    /// The most copies of a statement that unrolling may make.
    pub unroll: Candidates,
    /// The unroll factor of the innermost reduction loop.
    pub unroll_reduction: Candidates,
    /// Whether nests without a reduction get annotations for unrolling.
    pub unrolls_spatial: bool,
}

/// Numbers to choose from, with their probabilities up to a common factor.
pub type Candidates = Vec<(i64, f64)>;

impl ParallelizeVectorizeUnroll {
    /// The choices of the rule [`parallelize_vectorize_unroll()`] for runs on a number of threads.
    pub fn of(cpu: &CpuTarget, threads: u32) -> Self {
        let (threads, lanes) = (i64::from(threads), i64::from(cpu.lanes(4)));
        let jobs = |choice: usize| JOBS_PER_THREAD[choice] * threads;
        let parallel = vec![(1, 0.1), (jobs(0), 0.2), (jobs(1), 0.3), (jobs(2), 0.4)];
        ParallelizeVectorizeUnroll {
            parallel: if threads > 1 { parallel } else { Vec::new() },
            vectorize: vec![(lanes, 0.15), (2 * lanes, 0.3), (4 * lanes, 0.35), (8 * lanes, 0.2)],
            unroll: vec![(1, 0.1), (16, 0.3), (64, 0.4), (256, 0.2)],
            unroll_reduction: vec![(1, 0.4), (2, 0.2), (4, 0.3), (8, 0.1)],
            unrolls_spatial: true,
        }
    }

    /// Applies the rule to a block.
    ///
    /// # Errors
    /// When the probabilities of candidates are all zero.
    pub fn apply(&self, schedule: &mut Schedule, block: BlockRv) -> RuleResult {
        let found = block_of(schedule, block)?;
        if !lacks_annotations(schedule, block)? {
            return schedule.unchanged();
        }
        let nest = nest_of(schedule, block)?;
        let unrolls =
            self.unrolls_spatial || nest.iter().any(|block| block.init.is_some() || !is_spatial(block));
        if constant_blocks(schedule.program()).contains(&found.id) {
            annotate_constant_nest(schedule, block)?;
            return schedule.changed();
        }
        annotate_choice(schedule, block, PARALLEL, &self.parallel)?;
        annotate_choice(schedule, block, VECTORIZE, &self.vectorize)?;
        if unrolls {
            annotate_choice(schedule, block, UNROLL, &self.unroll)?;
            annotate_choice(schedule, block, UNROLL_REDUCTION, &self.unroll_reduction)?;
        }
        schedule.changed()
    }
}

/// Annotates a block with one of the candidates.
fn annotate_choice(
    schedule: &mut Schedule,
    block: BlockRv,
    key: Key<i64>,
    candidates: &Candidates,
) -> Result<(), ScheduleError> {
    match candidates[..] {
        [] => Ok(()),
        [(only, _)] => schedule.annotate(block, key, only),
        _ => {
            let (numbers, weights): (Vec<i64>, Vec<f64>) = candidates.iter().copied().unzip();
            let drawn = schedule.sample_categorical(&numbers, &weights)?;
            schedule.annotate(block, key, drawn)
        }
    }
}

/// Annotates a nest that runs once, ahead of calls, with fixed values: its speed is not worth a decision.
pub(crate) fn annotate_constant_nest(schedule: &mut Schedule, block: BlockRv) -> Result<(), ScheduleError> {
    let (threads, lanes) = (i64::from(schedule.threads()), i64::from(schedule.cpu()?.lanes(4)));
    if threads > 1 {
        schedule.annotate(block, PARALLEL, JOBS_PER_THREAD[1] * threads)?;
    }
    schedule.annotate(block, VECTORIZE, 4 * lanes)?;
    schedule.annotate(block, UNROLL, 16)
}

/// Whether a block is the last of its nest and has no annotations of this rule.
pub(crate) fn lacks_annotations(schedule: &Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    let found = block_of(schedule, block)?;
    let has_annotations = [PARALLEL, VECTORIZE, UNROLL].iter().any(|key| key.is_in(&found.annotations));
    Ok(!has_annotations && nest_of(schedule, block)?.last().is_none_or(|last| last.id == found.id))
}

/// The blocks of the nest that a block is in, in program order.
fn nest_of(schedule: &Schedule, block: BlockRv) -> Result<Vec<Arc<Block>>, ScheduleError> {
    let found = block_of(schedule, block)?;
    let path = loops_around(&schedule.program().body, found.id).unwrap_or_default();
    let Some(outermost) = path.first() else { return Ok(vec![found]) };
    Ok(blocks(&outermost.body).into_iter().cloned().collect())
}
