//! The default schedule: a good one without any measurement.
//!
//! Points of the design spaces are drawn with a fixed seed, and the draft model, which also ranks the first trials of a search,
//! picks one. The same program and context always get the same schedule.

use tilewright_core::analysis::scope::blocks;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Instruction, Schedule, Trace};
use tilewright_core::stmt::{Block, IterKind};
use tilewright_core::target::{RunContext, TargetKind};

use crate::explore::candidate::{Candidate, Generator, Statistics};
use crate::explore::climb::{Climb, Halving, score};
use crate::explore::fit::fit;
use crate::explore::strategy::SearchSpace;
use crate::gpu;
use crate::space::rules::block::{domain_size, points};
use crate::space::spec::SearchSpec;
use crate::space::{Breadth, DesignSpaces, generate_some_design_spaces};

/// The work that goes into a choice without measurements. It is fixed: the same program always gets the same schedule.
#[derive(Clone, Copy, Debug)]
struct Effort {
    breadth: Breadth,
    /// Random points of each design space that goes on; more when there are few spaces.
    samples_per_space: usize,
    /// The least number of random points in all.
    samples: usize,
    /// How spaces drop out; `None` where all stay.
    halving: Option<Halving>,
    /// For each round: the number of best points that stay, and the number of mutations tried on each.
    rounds: &'static [(usize, usize)],
}

/// Few spaces of a GPU are good: the one with tensor cores beside the one without, for example.
const HALVING_OF_GPU: Halving = Halving { few: 2, period: 24 };

/// As much work as makes the draft model's choice a good one. Most spaces of a CPU are about equally good, so that all stay.
const THOROUGH: Effort = Effort {
    breadth: Breadth::MANY,
    samples_per_space: 2,
    samples: 40,
    halving: None,
    rounds: &[(5, 12), (2, 30), (1, 60)],
};

/// More work for a program whose calls take milliseconds: its choice pays after a few of them.
const THOROUGH_OF_LARGE: Effort = Effort { rounds: &[(5, 48), (2, 120), (1, 240)], ..THOROUGH };

/// The least number of points of a large program's largest block: about a millisecond of multiply-adds.
const LARGE: i64 = 1 << 27;

/// More work for a program with several products, such as attention or the step of a recurrent layer: each of them has a tile to be found.
const THOROUGH_OF_SEVERAL: Effort =
    Effort { samples: 120, rounds: &[(5, 24), (2, 60), (1, 120)], ..THOROUGH };

/// The least number of points of a product that counts among several: a few ten microseconds of multiply-adds.
const PRODUCT: i64 = 1 << 20;

/// As much work for a GPU, whose points need not be legal or executable: several remain.
const THOROUGH_OF_GPU: Effort = Effort {
    breadth: Breadth::ALL,
    samples_per_space: 12,
    samples: 800,
    halving: Some(HALVING_OF_GPU),
    rounds: &[(16, 16), (8, 40), (4, 60)],
};

/// A small part of that work, for a schedule that is needed at once and replaced soon.
const QUICK: Effort =
    Effort { breadth: Breadth::FEW, samples_per_space: 2, samples: 8, halving: None, rounds: &[(1, 2)] };

/// The work for a program that differs from another one in sizes, whose choice it begins with.
const NEAR: Effort = Effort {
    breadth: Breadth::FEW,
    samples_per_space: 2,
    samples: 8,
    halving: None,
    rounds: &[(2, 8), (1, 24)],
};

/// As [`THOROUGH_OF_LARGE`], for a large program that differs from another one in sizes.
const NEAR_OF_LARGE: Effort = Effort { rounds: &[(2, 32), (1, 96)], ..NEAR };

/// The candidate with the best score of the draft model; `None` when no candidate is legal.
///
/// Aligned points of every design space are drawn, and hill climbing improves the best of them: most faults of a good candidate can be
/// mended one decision at a time.
pub fn default_candidate(
    program: &Program,
    context: impl Into<RunContext>,
    spec: &SearchSpec,
) -> Option<Candidate> {
    default_with_rules(program, context, spec).map(|(candidate, _)| candidate)
}

/// As [`default_candidate`], with the names of the rules that made its design space. For a GPU, the schedule that
/// [`schedule_by_default`] chooses, which may be of no design space and have no rules.
pub fn default_with_rules(
    program: &Program,
    context: impl Into<RunContext>,
    spec: &SearchSpec,
) -> Option<(Candidate, Vec<&'static str>)> {
    let context = context.into();
    match context.target.kind() {
        TargetKind::Cpu => choose(program, context, spec, thorough(program), None).into_iter().next(),
        TargetKind::Gpu => {
            let found = choose(program, context.clone(), spec, &THOROUGH_OF_GPU, None);
            best_on_gpu(found, by_blocks(program, &context, spec), program, spec)
        }
    }
}

/// The work for a program on a CPU.
fn thorough(program: &Program) -> &'static Effort {
    match products(program) {
        _ if is_large(program) => &THOROUGH_OF_LARGE,
        ..=1 => &THOROUGH,
        _ => &THOROUGH_OF_SEVERAL,
    }
}

/// How many blocks sum up [`PRODUCT`] points or more.
fn products(program: &Program) -> usize {
    let is_product = |block: &Block| {
        points(block).is_some_and(|points| points >= PRODUCT)
            && domain_size(block, IterKind::Reduce).is_some_and(|terms| terms > 1)
    };
    blocks(&program.body).into_iter().filter(|block| is_product(block)).count()
}

/// Whether a call takes milliseconds. A program of unknown size counts as small.
fn is_large(program: &Program) -> bool {
    let largest = blocks(&program.body).into_iter().filter_map(|block| points(block)).max();
    largest.is_some_and(|points| points >= LARGE)
}

/// The schedule of no design space for a GPU.
fn by_blocks(program: &Program, context: &RunContext, spec: &SearchSpec) -> Schedule {
    gpu::schedule_by_blocks(program, context, spec, &|part| {
        let found = choose(part, context.clone(), spec, &THOROUGH_OF_GPU, None);
        found.into_iter().next().map(|(best, _)| best.decisions)
    })
}

/// The best of the points that can be executed, or the schedule of no space where the draft model expects more of it.
fn best_on_gpu(
    found: Vec<(Candidate, Vec<&'static str>)>,
    by_blocks: Schedule,
    program: &Program,
    spec: &SearchSpec,
) -> Option<(Candidate, Vec<&'static str>)> {
    let context = by_blocks.context().clone();
    let by_blocks = of_no_space(by_blocks, spec);
    let least = by_blocks.as_ref().map_or(f32::MIN, score);
    let is_executable = |candidate: &Candidate| {
        let replayed = candidate.trace.replay(program, &context, 0);
        replayed.is_ok_and(|schedule| gpu::is_executable(&schedule))
    };
    let mut better = found.into_iter().take_while(|(candidate, _)| score(candidate) >= least);
    let point = better.find(|(candidate, _)| is_executable(candidate));
    point.or_else(|| by_blocks.map(|candidate| (candidate, Vec::new())))
}

/// A schedule that no design space made, as a candidate.
fn of_no_space(schedule: Schedule, spec: &SearchSpec) -> Option<Candidate> {
    let features = (spec.device.extract_features)(schedule.program(), schedule.context()).ok()?;
    let (program, trace) = schedule.into_parts();
    let hash = program.execution_hash();
    let space = SearchSpace::FOREIGN;
    Some(Candidate { space, decisions: trace.clone(), trace, program, hash, features })
}

/// The best points that are found, the best one first, with the rules that made their design spaces; `start`, which no space here made, is among the points
/// that are changed for the better.
fn choose(
    program: &Program,
    context: RunContext,
    spec: &SearchSpec,
    effort: &Effort,
    start: Option<Candidate>,
) -> Vec<(Candidate, Vec<&'static str>)> {
    let generator = Generator::new(program.clone(), context, spec.clone());
    let DesignSpaces { spaces, rules, .. } =
        generate_some_design_spaces(program, &generator.context, &spec.rules, effort.breadth);
    let mut climb = Climb::new(generator);
    // Points that tensorize are rarely good, and few of the spaces have them.
    let has_choice = effort.halving.is_none()
        && spaces.iter().any(tensorizes)
        && spaces.iter().any(|space| !tensorizes(space));
    let samples = if has_choice { 2 * effort.samples } else { effort.samples };
    let rounds = effort.samples_per_space.max(samples.div_ceil(spaces.len().max(1)));
    let mut found = climb.sample(&spaces, rounds, effort.halving);
    found.extend(start.map(|candidate| Candidate { space: spaces.len(), ..candidate }));
    let by_score = |a: &Candidate, b: &Candidate| score(b).total_cmp(&score(a)).then(a.hash.cmp(&b.hash));
    for &(kept, steps) in effort.rounds {
        found.sort_by(by_score);
        if has_choice {
            best_of_both_kinds_first(&mut found, &spaces);
        }
        found.truncate(kept);
        found = found.into_iter().map(|start| climb.ascend(start, steps)).collect();
    }
    found.sort_by(by_score);
    found
        .into_iter()
        .map(|candidate| {
            let rules = rules.get(candidate.space).cloned().unwrap_or_default();
            (candidate, rules)
        })
        .collect()
}

/// Whether the points of a space have tensor intrinsics.
fn tensorizes(space: &Trace) -> bool {
    space.steps().iter().any(|step| matches!(step.instruction, Instruction::Tensorize(_)))
}

/// Moves the best candidate with tensor intrinsics and the best one without to the front: the one that is better after many changes may be behind at
/// first.
fn best_of_both_kinds_first(found: &mut Vec<Candidate>, spaces: &[Trace]) {
    let mut seen = [false; 2];
    let (mut first, others): (Vec<_>, Vec<_>) = found.drain(..).partition(|candidate| {
        let kind = usize::from(spaces.get(candidate.space).is_some_and(tensorizes));
        !std::mem::replace(&mut seen[kind], true)
    });
    first.extend(others);
    *found = first;
}

/// A schedule for a program without any measurement: that of [`default_candidate`] with the built-in search, or
/// the program as it is when there is none. For a GPU, the best point that can be lowered, or, where the draft model expects more of it, a
/// schedule that executes each block in the first way that suits it.
pub fn schedule_by_default(program: &Program, context: impl Into<RunContext>) -> Schedule {
    schedule_with(program, context.into(), Work::Thorough)
}

/// A schedule for a program that differs from another one in sizes, which is chosen in a part of the time of [`schedule_by_default`]: the best of
/// few points, most of them near `trace`, the other one's schedule. As [`schedule_by_default`] for a GPU, and where the trace does not suit the program.
pub fn schedule_near(program: &Program, context: impl Into<RunContext>, trace: &Trace) -> Schedule {
    schedule_with(program, context.into(), Work::Near(trace))
}

/// A schedule that is chosen in a small part of the time of [`schedule_by_default`], among a few design spaces, and is less good:
/// it serves until a better one is made.
pub fn schedule_quickly(program: &Program, context: impl Into<RunContext>) -> Schedule {
    schedule_with(program, context.into(), Work::Quick)
}

/// How a schedule is chosen.
#[derive(Clone, Copy)]
enum Work<'a> {
    Thorough,
    /// Near the trace of a program with other sizes.
    Near(&'a Trace),
    Quick,
}

fn schedule_with(program: &Program, context: RunContext, work: Work<'_>) -> Schedule {
    let kind = context.target.kind();
    let unscheduled = || Schedule::new(program.clone(), &context, 0);
    if kind == TargetKind::Gpu && matches!(work, Work::Quick) {
        return gpu::schedule_by_ways(program, &context);
    }
    let Ok(built_in) = SearchSpec::built_in(kind) else { return unscheduled() };
    match kind {
        TargetKind::Gpu => {
            let by_blocks = by_blocks(program, &context, &built_in);
            let found = choose(program, context.clone(), &built_in, &THOROUGH_OF_GPU, None);
            let best = best_on_gpu(found, by_blocks.clone(), program, &built_in);
            let replayed = best.and_then(|(best, _)| best.trace.replay(program, &context, 0).ok());
            replayed.unwrap_or(by_blocks)
        }
        TargetKind::Cpu => {
            let fitted = |trace| {
                let generator = Generator::new(program.clone(), context.clone(), built_in.clone());
                fit(&generator, trace, &mut Statistics::default())
            };
            let (effort, start) = match work {
                Work::Quick => (&QUICK, None),
                Work::Thorough => (thorough(program), None),
                Work::Near(trace) => match fitted(trace) {
                    None => (thorough(program), None),
                    start if is_large(program) => (&NEAR_OF_LARGE, start),
                    start => (&NEAR, start),
                },
            };
            let found = choose(program, context.clone(), &built_in, effort, start);
            let mut replayed =
                found.iter().filter_map(|(candidate, _)| candidate.trace.replay(program, &context, 0).ok());
            replayed.next().unwrap_or_else(unscheduled)
        }
    }
}
