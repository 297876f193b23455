//! From rules to design spaces.
//!
//! A design space (a "sketch") is a trace whose structure is fixed and whose decisions are open: the search
//! draws and mutates the decisions. Rules are applied one after the other, each to every block of every
//! schedule made so far, consumers first.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use tilewright_core::analysis::scope::blocks;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, Trace};
use tilewright_core::stmt::Symbol;
use tilewright_core::target::Target;

use crate::rule::{RuleEntry, RuleOutcome, RuleSet};
use crate::rules::custom_rule;

/// Most design spaces that are kept: a rule that forks without end is cut off here.
pub const MAX_SPACES: usize = 256;

/// How often the rules are run with fresh samples: a rule that branches on what it samples shows each of
/// its structures to some of these runs.
const RUNS: u64 = 4;

/// The design spaces of a program, without duplicates, in a deterministic order.
pub fn design_spaces(program: &Program, target: &Arc<Target>, rules: &RuleSet, seed: u64) -> Vec<Trace> {
    let mut seen = FxHashSet::default();
    let mut spaces = Vec::new();
    for run in 0..RUNS {
        let start = Schedule::new(program.clone(), target.clone(), seed.wrapping_add(run));
        for schedule in apply_rules(start, rules) {
            let space = schedule.into_parts().1.simplified();
            if spaces.len() < MAX_SPACES && seen.insert(structure(&space)) {
                spaces.push(space);
            }
        }
    }
    spaces
}

/// The text of a trace without its decisions.
fn structure(trace: &Trace) -> String {
    let without = |line: &str| line.split(" !decision").next().unwrap_or(line).to_owned();
    trace.to_string().lines().map(without).collect::<Vec<_>>().join("\n")
}

/// Every schedule that the rules make of one.
pub fn apply_rules(start: Schedule, rules: &RuleSet) -> Vec<Schedule> {
    let mut schedules = vec![start];
    for rule in rules.rules() {
        let mut next = Vec::new();
        for schedule in schedules {
            let names: Vec<Symbol> =
                blocks(&schedule.program().body).iter().rev().map(|block| block.name.clone()).collect();
            apply_to_blocks(rule, schedule, &names, &mut next);
            if next.len() >= MAX_SPACES {
                tracing::warn!(rule = rule.name, "the design spaces are cut off at {MAX_SPACES}");
                next.truncate(MAX_SPACES);
                break;
            }
        }
        schedules = next;
    }
    schedules
}

/// Applies a rule to the named blocks that are still there; every variant goes on with the rest.
fn apply_to_blocks(rule: &RuleEntry, schedule: Schedule, names: &[Symbol], done: &mut Vec<Schedule>) {
    let mut open = vec![(schedule, 0)];
    while let Some((schedule, position)) = open.pop() {
        if done.len() + open.len() >= MAX_SPACES {
            done.push(schedule);
            continue;
        }
        match names.get(position) {
            None => done.push(schedule),
            Some(name) => {
                let variants = apply_to_block(rule, schedule, name);
                open.extend(variants.into_iter().rev().map(|variant| (variant, position + 1)));
            }
        }
    }
}

/// Applies a rule to one block. A refused or unchanged schedule is used as it was.
fn apply_to_block(rule: &RuleEntry, schedule: Schedule, name: &str) -> Vec<Schedule> {
    let found = blocks(&schedule.program().body).into_iter().find(|block| *block.name == *name).cloned();
    let Some(found) = found else { return vec![schedule] };
    // A block without points has nothing to schedule.
    if found.iters.iter().any(|iter| iter.extent.is(0)) {
        return vec![schedule];
    }
    let has_own_rule = found.annotations.contains_key(custom_rule::ANNOTATION);
    if has_own_rule && rule.name != custom_rule::custom_rule::ENTRY.name {
        return vec![schedule];
    }
    let mut attempt = schedule.clone();
    let Ok(block) = attempt.get_block(name) else { return vec![schedule] };
    match (rule.apply)(&mut attempt, block) {
        Ok(RuleOutcome::Changed) => vec![attempt],
        Ok(RuleOutcome::Variants(variants)) if !variants.is_empty() => variants,
        Ok(RuleOutcome::Unchanged | RuleOutcome::Variants(_)) => vec![schedule],
        Err(error) => {
            let program = attempt.program();
            tracing::debug!(rule = rule.name, block = name, "refused: {}", error.describe(program));
            vec![schedule]
        }
    }
}
