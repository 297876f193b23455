//! Loops whose statements are executed in stages keep the meaning.

use std::sync::Arc;

use tilewright_core::analysis::pipeline::PipelineFault;
use tilewright_core::lower::{LowerError, LowerOptions, lower, lower_to_loops};
use tilewright_core::program::Program;
use tilewright_core::schedule::{Rng, Schedule, ScheduleError};
use tilewright_core::stmt::Stmt;
use tilewright_core::target::Target;
use tilewright_core::thread_axis::ThreadAxis;
use tilewright_core::visit::for_each_stmt;

use crate::kernels::{KERNELS, Kernel};
use crate::steps::Staging;
use crate::{check_schedule, disagreement, execute, steps};

/// A schedule of a program in which the statements of at least one loop are in stages; `None` when none was found.
fn staged(program: Program, seed: u64, random: &mut Rng) -> Option<Schedule> {
    let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), seed);
    for _ in 0..random.below(4) {
        let _refused = steps::random_step(&mut schedule, random);
    }
    (0..12).find_map(|_| steps::stage_some_loop(&mut schedule, random).ok()).map(|()| schedule)
}

/// How often something was seen.
#[derive(Debug, Default)]
struct Seen {
    accepted: u32,
    two_versions: u32,
    three_versions: u32,
    written_out: u32,
}

impl Seen {
    fn note(&mut self, lowered: &Program) {
        let text = lowered.to_string();
        self.accepted += 1;
        self.two_versions += u32::from(text.contains("%2"));
        self.three_versions += u32::from(text.contains("%3"));
    }
}

#[test]
fn statements_in_stages_keep_the_meaning() {
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let mut seen = Seen::default();
    for kernel in KERNELS {
        for seed in 0..cases {
            let mut random = Rng::stream(seed, 5);
            let Some(schedule) = staged(kernel.program(), seed, &mut random) else { continue };
            match lower_to_loops(schedule.program(), &LowerOptions::default()) {
                Ok(lowered) => seen.note(&lowered),
                Err(error) if is_shared_local(&error) => {}
                Err(error) => {
                    panic!(
                        "{}, seed {seed}: {error}\n{}\n{}",
                        kernel.name,
                        schedule.trace(),
                        schedule.program()
                    )
                }
            }
            assert_eq!(disagreement(kernel, schedule.program(), seed), None);
            check_schedule(kernel, &schedule, seed);
            check_bound(kernel, seed, &mut seen);
        }
    }
    println!("{seen:?}");
    assert!(seen.accepted > 200 && seen.two_versions > 50 && seen.three_versions > 5, "{seen:?}");
    assert!(seen.written_out > 200, "{seen:?}");
}

/// Whether a random step fixed a buffer to be local that a later step let threads share; lowering rightly refuses such a schedule.
fn is_shared_local(error: &LowerError) -> bool {
    matches!(error, LowerError::Scope { scope: "local", .. })
}

fn stores(program: &Program) -> usize {
    let mut count = 0;
    for_each_stmt(&program.body, &mut |stmt| count += usize::from(matches!(stmt, Stmt::Store(_))));
    count
}

/// As above, for sizes that are known, where first and last iterations are written out.
fn check_bound(kernel: &Kernel, seed: u64, seen: &mut Seen) {
    let symbolic = kernel.program();
    let dims = kernel.dims[seed as usize % kernel.dims.len()];
    let values: Vec<_> = symbolic.dims().map(|(var, _)| var).zip(dims.iter().copied()).collect();
    let program = symbolic.bind_dims(&values);
    let arguments = kernel.arguments(dims);
    let expected = execute(&symbolic, dims, &arguments, None).unwrap_or_else(|error| panic!("{error}"));
    let Some(schedule) = staged(program, seed, &mut Rng::stream(seed, 6)) else { return };
    let options = LowerOptions::default();
    for lowered in [lower_to_loops(schedule.program(), &options), lower(schedule.program(), &options)] {
        let context = || format!("{}, seed {seed}, {dims:?}\n{}", kernel.name, schedule.trace());
        let lowered = match lowered {
            Ok(lowered) => lowered,
            Err(error) if is_shared_local(&error) => continue,
            Err(error) => panic!("{error}\n{}", context()),
        };
        seen.written_out += u32::from(stores(&lowered) > stores(schedule.program()));
        let found = execute(&lowered, &[], &arguments, Some(seed))
            .unwrap_or_else(|error| panic!("{error}\n{}\n{lowered}", context()));
        assert!(found == expected, "another result\n{}\n{}\n{lowered}", context(), schedule.program());
    }
}

/// A schedule with a pipeline that is noted, whether or not it is legal.
fn noted(schedule: &Schedule, staging: &Staging) -> Schedule {
    let mut noted = schedule.clone();
    for (key, numbers) in
        [("software_pipeline_stage", &staging.stages), ("software_pipeline_order", &staging.order)]
    {
        noted.annotate(staging.target, key, numbers.clone()).expect("the loop is there");
    }
    noted
}

/// The primitive judges blocks, lowering judges the loops that these became: a pipeline that is refused is refused by both.
#[test]
fn the_primitive_and_lowering_refuse_the_same_dependences() {
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let (mut refused, mut stricter) = (0_u32, Vec::new());
    for kernel in KERNELS {
        for seed in 0..cases {
            let mut random = Rng::stream(seed, 7);
            let schedule = Schedule::new(kernel.program(), Arc::new(Target::generic_cpu()), seed);
            for _ in 0..4 {
                let Ok((attempt, staging)) = steps::loop_to_stage(&schedule, &mut random) else { continue };
                let Err(ScheduleError::Pipeline { fault: PipelineFault::Dependence { .. }, .. }) =
                    staging.apply(&mut attempt.clone())
                else {
                    continue;
                };
                refused += 1;
                let noted = noted(&attempt, &staging);
                if lower_to_loops(noted.program(), &LowerOptions::default()).is_ok() {
                    stricter.push(format!("{}, seed {seed}\n{}", kernel.name, noted.program()));
                }
            }
        }
    }
    assert!(refused > 100, "{refused}");
    assert!(stricter.is_empty(), "{} of {refused}: {}", stricter.len(), stricter.join("\n"));
}

/// Rows of two stages, of which blocks of threads each have some.
const ROWS: Kernel = Kernel {
    name: "rows",
    dims: &[&[]],
    text: "
kernel rows(in a: i32[4, 8], out c: i32[4, 8]) {
  buffer b: i32[4, 8] global
  for i in 0..4 { for j in 0..8 {
    block b(vi: spatial 4 = i, vj: spatial 8 = j) { b[vi, vj] = a[vi, vj] * 5i32 }
  } }
  for i in 0..4 { for j in 0..8 {
    block c(vi: spatial 4 = i, vj: spatial 8 = j) { c[vi, vj] = b[vi, vj] + 1i32 }
  } }
}",
};

#[test]
fn a_pipeline_under_loops_of_threads_is_judged_as_any_other() {
    let staged = |axis: Option<ThreadAxis>, stages: &[i64], order: &[i64]| {
        let mut schedule = Schedule::new(ROWS.program(), Arc::new(Target::generic_cpu()), 0);
        let (b, c) = (schedule.get_block("b")?, schedule.get_block("c")?);
        let [rows, columns] = schedule.get_loops(c)?[..] else { panic!("two loops") };
        schedule.compute_at(b, columns)?;
        axis.map(|axis| schedule.bind(rows, axis)).transpose()?;
        schedule.software_pipeline(columns, stages, order).map(|()| schedule)
    };
    for axis in [None, Some(ThreadAxis::BlockX), Some(ThreadAxis::ThreadX)] {
        let schedule = staged(axis, &[0, 1], &[0, 1]).expect("the row is made before it is used");
        check_schedule(&ROWS, &schedule, 0);
        for (stages, order) in [([1, 0], [0, 1]), ([0, 0], [1, 0])] {
            let fault = match staged(axis, &stages, &order) {
                Err(ScheduleError::Pipeline { fault, .. }) => fault,
                other => panic!("{axis:?}, {stages:?}, {order:?}: {other:?}"),
            };
            assert!(matches!(fault, PipelineFault::Dependence { first: 0, second: 1, .. }), "{fault:?}");
        }
    }
}
