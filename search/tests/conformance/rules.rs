//! MetaSchedule's rules for a CPU (`llvm`), as ours with their choices set to its parameters.

use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_core::target::{RunContext, Target};
use tilewright_search::cpu::rules;
use tilewright_search::cpu::rules::multi_level_tiling::{Innermost, MultiLevelTiling};
use tilewright_search::cpu::rules::parallelize_vectorize_unroll::ParallelizeVectorizeUnroll;
use tilewright_search::rule::{RuleEntry, RuleFunction, RuleResult, RuleSet};
use tilewright_search::space::rules as neutral;

/// The cores of an `aws/cpu/c5.9xlarge`.
const THREADS: usize = 18;

/// The parallel iterations per core.
const JOBS_PER_THREAD: i64 = 16;

/// The longest innermost loop of a tile.
const MAX_INNERMOST: i64 = 64;

/// The machine.
pub(crate) fn context() -> RunContext {
    RunContext::from(Target::generic_cpu()).with_threads(THREADS)
}

/// `SSRSRS`, with the result in a tile of its own or not.
fn tiling(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let innermost = Innermost { reduction: MAX_INNERMOST, lanes: MAX_INNERMOST, rows: MAX_INNERMOST };
    MultiLevelTiling { innermost, covers: false, packs: false }.apply(schedule, block)
}

/// Only how much to write out is drawn.
fn notes(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    ParallelizeVectorizeUnroll {
        parallel: vec![(THREADS as i64 * JOBS_PER_THREAD, 1.0)],
        vectorize: vec![(64, 1.0)],
        unroll: vec![(0, 0.25), (16, 0.25), (64, 0.25), (512, 0.25)],
        unroll_reduction: Vec::new(),
        unrolls_spatial: false,
    }
    .apply(schedule, block)
}

/// A rule of this file that takes the place of a built-in one.
fn instead_of(built_in: RuleEntry, apply: RuleFunction) -> RuleEntry {
    RuleEntry { apply, module: module_path!(), file: file!(), line: line!(), ..built_in }
}

/// MetaSchedule's rules, in its order.
pub(crate) fn rule_set() -> RuleSet {
    let own = [
        neutral::inline_constant_scalars::inline_constant_scalars::ENTRY,
        neutral::auto_inline::auto_inline::ENTRY,
        neutral::add_rfactor::add_rfactor::ENTRY,
        instead_of(rules::multi_level_tiling::multi_level_tiling::ENTRY, tiling),
        instead_of(rules::parallelize_vectorize_unroll::parallelize_vectorize_unroll::ENTRY, notes),
        rules::random_compute_location::random_compute_location::ENTRY,
    ];
    own.into_iter().fold(RuleSet::new(), |set, rule| set.with(rule).expect("the rules are in order"))
}
