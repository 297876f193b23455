//! Generates design spaces by rules.
//!
//! A design space (a "sketch") is a trace whose structure is fixed and whose decisions are open: the search
//! draws and mutates the decisions. Rules are applied one after the other, each to every block of every
//! schedule made so far, consumers first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use tilewright_core::analysis::scope::blocks;
use tilewright_core::annotation::SCHEDULE_RULE;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Rng, Schedule, ScheduleError, Step, Trace};
use tilewright_core::stmt::Symbol;
use tilewright_core::target::RunContext;

use crate::space::endless;
use crate::space::rule::{RuleEntry, RuleOutcome, RuleSet};
use crate::space::rules::custom_rule;

use crate::space::fault::{Misbehaviour, RuleFault};

/// The most design spaces that are kept, and the most schedules that a rule may make of one. When there are more, an evenly
/// distributed selection stays.
pub const MAX_SPACES: usize = 256;

/// The number of schedules made before the selection, as a multiple of the selection: most programs have far fewer, and for a few
/// programs making all schedules would take longer than the search.
const SURPLUS: usize = 4;

/// How much of a program's design is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Breadth {
    /// The most design spaces.
    pub(crate) spaces: usize,
    /// The most schedules made before the selection.
    pub(crate) schedules: usize,
    /// The most runs of the rules, each with fresh samples: a rule that branches on a sample makes each of its structures
    /// in some of these runs.
    pub(crate) runs: u64,
    /// Whether runs end as soon as they have made as many schedules as there may be spaces.
    pub(crate) ends_when_full: bool,
}

impl Breadth {
    /// As much as a search looks at.
    pub(crate) const ALL: Breadth =
        Breadth { spaces: MAX_SPACES, schedules: SURPLUS * MAX_SPACES, runs: 4, ends_when_full: false };

    /// As much as a choice without measurements looks at. For 253 kernels of three networks (two of them quantised, AVX-512 with VNNI, two
    /// threads), a choice among 64 spaces took 1.3 times as long, and the draft model expected 0.3 % more of it; for 597 kernels of
    /// eight networks of floats (AVX2), one among [`Breadth::ALL`] took 1.33 times as long as one among 64, and it expected 0.1 % more.
    pub(crate) const MANY: Breadth = Breadth { spaces: 24, schedules: 96, runs: 2, ends_when_full: true };

    /// A few spaces, for a schedule that is needed at once.
    pub(crate) const FEW: Breadth = Breadth { spaces: 4, schedules: 8, runs: 1, ends_when_full: true };
}

/// The stack of a thread in which rules run, in bytes.
const STACK: usize = 256 << 20;

/// The interval between two checks whether a rule takes too long.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Limits of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleLimits {
    /// The longest time of one application of a rule to one block.
    pub time: Duration,
    /// The most variants of one application.
    pub variants: usize,
}

impl Default for RuleLimits {
    fn default() -> Self {
        RuleLimits { time: Duration::from_secs(10), variants: 64 }
    }
}

/// The design spaces of a program, and the rules that misbehaved.
#[derive(Clone, Debug, Default)]
pub struct DesignSpaces {
    /// Without duplicates, in a deterministic order.
    pub spaces: Vec<Trace>,
    /// For each space, the names of the rules that changed it, in the order of their application.
    pub rules: Vec<Vec<&'static str>>,
    /// The rules that misbehaved. The spaces are those without them.
    pub faults: Vec<RuleFault>,
}

/// The design spaces of a program, without duplicates, in a deterministic order. Rules that misbehave are only logged;
/// [`generate_design_spaces`] returns them.
pub fn design_spaces(
    program: &Program,
    context: impl Into<RunContext>,
    rules: &RuleSet,
    seed: u64,
) -> Vec<Trace> {
    generate_design_spaces(program, context, rules, seed).spaces
}

/// As [`generate_design_spaces_within`], with the usual limits.
pub fn generate_design_spaces(
    program: &Program,
    context: impl Into<RunContext>,
    rules: &RuleSet,
    seed: u64,
) -> DesignSpaces {
    generate_design_spaces_within(program, context, rules, seed, RuleLimits::default())
}

/// As [`generate_design_spaces`], for a given breadth.
pub(crate) fn generate_some_design_spaces(
    program: &Program,
    context: impl Into<RunContext>,
    rules: &RuleSet,
    breadth: Breadth,
) -> DesignSpaces {
    generate(program, context.into(), rules, 0, RuleLimits::default(), breadth)
}

/// The design spaces of a program. A rule that panics, does not come to an end or forks without end is left out, and the
/// spaces are those that the other rules make.
///
/// Rules that are not built in run in a thread of their own. One that never returns cannot be ended, only
/// abandoned: its thread goes on, and keeps a core busy, until the process ends. One that applies primitives
/// without end comes to an end by itself, because a schedule takes a limited
/// number of them ([`MAX_STEPS`](tilewright_core::schedule::MAX_STEPS)). A rule that once did not come to an end in as much
/// time is not applied again in this process; its fault is reported each time. In a program that is built with
/// `panic = "abort"` a rule that panics ends the program.
pub fn generate_design_spaces_within(
    program: &Program,
    context: impl Into<RunContext>,
    rules: &RuleSet,
    seed: u64,
    limits: RuleLimits,
) -> DesignSpaces {
    generate(program, context.into(), rules, seed, limits, Breadth::ALL)
}

fn generate(
    program: &Program,
    context: RunContext,
    rules: &RuleSet,
    seed: u64,
    limits: RuleLimits,
    breadth: Breadth,
) -> DesignSpaces {
    let start = Start::Program { program: program.clone(), context, seed };
    let (schedules, faults) = apply_all_but_faulty(&start, rules, limits, breadth, None);
    let spaces = distinct(schedules);
    let left_out = spaces.len().saturating_sub(breadth.spaces);
    if left_out > 0 && breadth.spaces == MAX_SPACES {
        tracing::warn!(kept = breadth.spaces, left_out, "there are more design spaces than are searched");
    }
    let (spaces, rules) = select_evenly(spaces, breadth.spaces, &mut Rng::new(seed)).into_iter().unzip();
    DesignSpaces { spaces, rules, faults }
}

/// The schedules that rules make of one schedule by changing the blocks of given names. Rules that misbehave are left out, and are
/// only logged.
pub(crate) fn complete(start: Schedule, rules: &RuleSet, only: &[Symbol]) -> Vec<Schedule> {
    let start = Start::Schedule(Box::new(start));
    let made = apply_all_but_faulty(&start, rules, RuleLimits::default(), Breadth::ALL, Some(only)).0;
    made.into_iter().map(|made| made.schedule).collect()
}

/// A schedule, and the rules that have made it so far.
#[derive(Clone)]
struct Made {
    schedule: Schedule,
    rules: Vec<&'static str>,
}

impl Made {
    /// A schedule that a rule has made of this one. The rule counts if it applied a primitive that changes something.
    fn by(&self, rule: &'static str, schedule: Schedule) -> Made {
        let mut rules = self.rules.clone();
        let before = self.schedule.trace().steps().len();
        let steps = schedule.trace().steps();
        let own = steps.get(before..).unwrap_or(&[]);
        if own.iter().any(|step| !step.instruction.is_pure()) && !rules.contains(&rule) {
            rules.push(rule);
        }
        Made { schedule, rules }
    }
}

/// The schedules that the rules make, and the faults of rules that were left out.
fn apply_all_but_faulty(
    start: &Start,
    rules: &RuleSet,
    limits: RuleLimits,
    breadth: Breadth,
    only: Option<&[Symbol]>,
) -> (Vec<Made>, Vec<RuleFault>) {
    let known = rules.rules().iter().filter_map(|rule| endless::fault_of(rule, limits.time));
    let mut faults: Vec<RuleFault> = known.collect();
    let mut rules = faults.iter().fold(rules.clone(), |rules, fault| rules.skipping(fault.rule));
    loop {
        let only = only.map(<[Symbol]>::to_vec);
        match (Job { start: start.clone(), rules: rules.clone(), limits, breadth, only }).run() {
            Ok(schedules) => return (schedules, faults),
            Err(fault) => {
                tracing::warn!(%fault, "a schedule rule is skipped");
                rules = rules.skipping(fault.rule);
                faults.push(fault);
            }
        }
    }
}

/// The schedule that rules start from.
#[derive(Clone)]
enum Start {
    /// An unscheduled program, several times with fresh samples.
    Program { program: Program, context: RunContext, seed: u64 },
    /// A schedule.
    Schedule(Box<Schedule>),
}

/// One application of all rules, supervised where a rule is not trusted.
struct Job {
    start: Start,
    rules: RuleSet,
    limits: RuleLimits,
    breadth: Breadth,
    /// The blocks that rules are applied to; `None` for all blocks.
    only: Option<Vec<Symbol>>,
}

/// The number of schedules that a rule may make of each schedule.
struct Share {
    most: usize,
    /// The number of schedules beyond that, which were left out.
    left_out: usize,
}

/// The rule that is being applied, its block, and the time of the start.
type Current = Mutex<Option<(RuleEntry, Symbol, Instant)>>;

impl Job {
    /// Applies the rules; in a supervised thread if one of them is not built in.
    fn run(self) -> Result<Vec<Made>, RuleFault> {
        let current = Arc::new(Current::default());
        let Some(first) = self.rules.rules().iter().find(|rule| !rule.is_built_in()).copied() else {
            return self.schedules(&current);
        };
        let (limit, watched) = (self.limits.time, Arc::clone(&current));
        let (sender, receiver) = channel();
        // Statements nest as deeply as a rule likes.
        let worker = std::thread::Builder::new().stack_size(STACK);
        let started = worker.spawn(move || sender.send(self.schedules(&current)));
        if let Err(error) = started {
            return Err(RuleFault::new(&first, "", Misbehaviour::Unwatched(error.to_string())));
        }
        loop {
            match receiver.recv_timeout(CHECK_INTERVAL) {
                Ok(schedules) => return schedules,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("generating design spaces does not panic"),
            }
            let current = watched.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((rule, block, since)) = &*current
                && since.elapsed() > limit
            {
                let fault = RuleFault::new(rule, block, Misbehaviour::Endless { limit });
                if !rule.is_built_in() {
                    endless::remember(&fault);
                }
                return Err(fault);
            }
        }
    }

    fn schedules(&self, current: &Current) -> Result<Vec<Made>, RuleFault> {
        match &self.start {
            Start::Schedule(start) => self.apply_rules(Schedule::clone(start), 0, current),
            Start::Program { program, context, seed } => {
                let mut made = Vec::new();
                for run in 0..self.breadth.runs {
                    let seed = seed.wrapping_add(run);
                    made.extend(self.apply_rules(
                        Schedule::new(program.clone(), context, seed),
                        seed,
                        current,
                    )?);
                    if self.breadth.ends_when_full && made.len() >= self.breadth.spaces {
                        break;
                    }
                }
                Ok(made)
            }
        }
    }

    /// The schedules that the rules make of one: all of them, or a selection that the seed determines.
    fn apply_rules(&self, start: Schedule, seed: u64, current: &Current) -> Result<Vec<Made>, RuleFault> {
        let mut rng = Rng::new(seed);
        let mut schedules = vec![Made { schedule: start, rules: Vec::new() }];
        for rule in self.rules.rules() {
            let mut share = Share { most: self.breadth.schedules.div_ceil(schedules.len()), left_out: 0 };
            let mut next = Vec::new();
            for made in schedules {
                let is_meant = |name: &Symbol| self.only.as_ref().is_none_or(|only| only.contains(name));
                let found = blocks(&made.schedule.program().body);
                let names = found.into_iter().rev().map(|block| block.name.clone());
                let names: Vec<Symbol> = names.filter(is_meant).collect();
                next.extend(self.apply_to_blocks(rule, made, &names, &mut share, &mut rng, current)?);
            }
            let kept = self.breadth.spaces;
            let left_out = share.left_out + next.len().saturating_sub(kept);
            if left_out > 0 && self.breadth.spaces == MAX_SPACES {
                let rule = rule.name;
                tracing::warn!(rule, kept, left_out, "there are more schedules than are kept");
            }
            schedules = select_evenly(next, kept, &mut rng);
        }
        Ok(schedules)
    }

    /// Applies a rule to the named blocks that still exist; the rule then continues with every variant. Only the variants that this rule
    /// makes of this schedule count against its limit.
    fn apply_to_blocks(
        &self,
        rule: &RuleEntry,
        start: Made,
        names: &[Symbol],
        share: &mut Share,
        rng: &mut Rng,
        current: &Current,
    ) -> Result<Vec<Made>, RuleFault> {
        let mut all = vec![start];
        for name in names {
            let mut next = Vec::new();
            for made in all {
                match self.apply_to_block(rule, &made.schedule, name, current)? {
                    None => next.push(made),
                    Some(variants) => {
                        next.extend(variants.into_iter().map(|variant| made.by(rule.name, variant)));
                    }
                }
                if next.len() >= MAX_SPACES && !rule.is_built_in() {
                    return Err(RuleFault::new(rule, name, Misbehaviour::Forks { most: MAX_SPACES }));
                }
            }
            share.left_out += next.len().saturating_sub(share.most);
            all = select_evenly(next, share.most, rng);
        }
        Ok(all)
    }

    /// Applies a rule to one block; `None` where the schedule stays as it was: refused, or unchanged.
    fn apply_to_block(
        &self,
        rule: &RuleEntry,
        schedule: &Schedule,
        name: &Symbol,
        current: &Current,
    ) -> Result<Option<Vec<Schedule>>, RuleFault> {
        let found = blocks(&schedule.program().body).into_iter().find(|block| block.name == *name).cloned();
        let Some(found) = found else { return Ok(None) };
        // A block without points has nothing to schedule.
        if found.iters.iter().any(|iter| iter.extent.is(0)) {
            return Ok(None);
        }
        let has_own_rule = SCHEDULE_RULE.is_in(&found.annotations);
        if has_own_rule && rule.name != custom_rule::custom_rule::ENTRY.name {
            return Ok(None);
        }
        let mut attempt = schedule.clone();
        let Ok(block) = attempt.get_block(name) else { return Ok(None) };
        let note = |now| *current.lock().unwrap_or_else(PoisonError::into_inner) = now;
        note(Some((*rule, name.clone(), Instant::now())));
        let outcome = catch_unwind(AssertUnwindSafe(|| (rule.apply)(&mut attempt, block)));
        note(None);
        match outcome {
            Err(panic) => Err(RuleFault::new(rule, name, Misbehaviour::of_panic(&*panic))),
            Ok(Ok(RuleOutcome::Changed)) => Ok(Some(vec![attempt])),
            Ok(Ok(RuleOutcome::Variants(variants))) if variants.len() > self.limits.variants => {
                let most = self.limits.variants;
                Err(RuleFault::new(rule, name, Misbehaviour::Forks { most }))
            }
            Ok(Ok(RuleOutcome::Variants(variants))) if !variants.is_empty() => Ok(Some(variants)),
            Ok(Ok(RuleOutcome::Unchanged | RuleOutcome::Variants(_))) => Ok(None),
            Ok(Err(ScheduleError::TooManySteps)) => {
                Err(RuleFault::new(rule, name, Misbehaviour::TooManySteps))
            }
            Ok(Err(error)) => {
                let program = attempt.program();
                tracing::debug!(rule = rule.name, block = &**name, "refused: {}", error.describe(program));
                Ok(None)
            }
        }
    }
}

/// The traces of schedules, one for each structure, with the rules that have made them. The first schedule of a structure
/// counts.
fn distinct(schedules: Vec<Made>) -> Vec<(Trace, Vec<&'static str>)> {
    let mut seen = FxHashSet::default();
    let traces = schedules.into_iter().map(|made| (made.schedule.into_parts().1.simplified(), made.rules));
    traces.filter(|(space, _)| seen.insert(structure(space))).collect()
}

/// The text of a trace without its decisions.
fn structure(trace: &Trace) -> String {
    let undecided = |step: &Step| format!("{}\n", Step { decision: None, ..step.clone() });
    trace.steps().iter().map(undecided).collect()
}

/// A selection of `most` elements of a list: the list is divided into as many equal parts, and one element is drawn from each. Fixed
/// distances would select the same variant of a block each time, since variants alternate.
fn select_evenly<T>(list: Vec<T>, most: usize, rng: &mut Rng) -> Vec<T> {
    let count = list.len();
    if count <= most {
        return list;
    }
    let mut rest = list.into_iter();
    let mut passed = 0;
    let mut kept = Vec::with_capacity(most);
    for part in 0..most {
        let (start, end) = (part * count / most, (part + 1) * count / most);
        let place = start + rng.below(end - start);
        kept.extend(rest.nth(place - passed));
        passed = place + 1;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_kept_of_each_part() {
        for (count, most) in [(0, 3), (3, 3), (4, 3), (100, 7), (257, 256), (1024, 256)] {
            let mut times = vec![0; count];
            for seed in 0..200 {
                let kept = select_evenly((0..count).collect(), most, &mut Rng::new(seed));
                assert_eq!(kept.len(), count.min(most), "{count} {most}: {kept:?}");
                for (part, place) in kept.iter().enumerate() {
                    let parts = count.min(most);
                    assert!((part * count / parts..(part + 1) * count / parts).contains(place), "{kept:?}");
                    times[*place] += 1;
                }
            }
            assert!(times.iter().all(|times| *times > 0), "each is kept by some seed: {times:?}");
        }
    }
}
