//! The processing of a text from outside: by the fuzz targets, and by the test of mutations in
//! `tests/hostile_text.rs`. No text may lead to a panic, run for long or take much memory, and what is
//! accepted must come back from its printed form.

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, Trace};
use tilewright_core::target::{CpuTarget, RunContext, Target};
use tilewright_core::verify::{Level, verify};
use tilewright_search::records::Database;

/// A program that traces are replayed on.
const MATMUL: &str = "kernel matmul(M, in a: f32[M, 32], in b: f32[32, 48], out c: f32[M, 48]) {
  for i in 0..M {
    for j in 0..48 {
      for k in 0..32 {
        block c(vi: spatial M = i, vj: spatial 48 = j, vk: reduce 32 = k) {
          init { c[vi, vj] = 0.0 }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}";

/// A program that traces with `tensorize` are replayed on.
const DOT_PRODUCTS: &str = "kernel dots(in a: u8[4], in b: i8[32, 4], out c: i32[32]) {
  for i in 0..32 {
    block zero(vi: spatial 32 = i) {
      c[vi] = 0i32
    }
  }
  for i in 0..32 {
    for k in 0..4 {
      block dot(vi: spatial 32 = i, vk: reduce 4 = k) {
        c[vi] = c[vi] + a[vk] as i32 * b[vi, vk] as i32
      }
    }
  }
}";

/// Reads a program, and verifies and lowers what it reads. Says whether it is one.
pub fn program(text: &str) -> bool {
    let program: Program = match text.parse() {
        Ok(program) => program,
        Err(error) => return error.to_string().is_empty(),
    };
    let printed = program.to_string();
    let again: Program = printed.parse().unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again.to_string(), printed, "the printed form is not stable");
    for level in [Level::Blocks, Level::Loops, Level::Flat] {
        if let Err(errors) = verify(&program, level) {
            drop(errors.render(&program));
        }
    }
    if verify(&program, Level::Blocks).is_ok() {
        drop(lower(&program, &LowerOptions { verify: false, ..LowerOptions::default() }));
    }
    true
}

/// Reads a trace and replays what it reads. Says whether it replays.
pub fn trace(text: &str) -> bool {
    let trace: Trace = match text.parse() {
        Ok(trace) => trace,
        Err(error) => return error.to_string().is_empty(),
    };
    let printed = trace.to_string();
    let again: Trace = printed.parse().unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again.to_string(), printed, "the printed form is not stable");
    replays(&trace)
}

/// Lines that stand beside records: a program and a run, and a record with everything that a record may say.
pub fn lines_beside_records() -> String {
    let text = MATMUL.replace('\n', "\\n");
    let program: Program = MATMUL.parse().expect("the program is well-formed");
    let of = format!(r#""kernel":"matmul","program":"{:016x}""#, program.stable_hash());
    [
        format!(r#"{{"version":1,"kind":"program",{of},"text":"{text}"}}"#),
        format!(
            r#"{{"version":1,"kind":"run",{of},"shape":{{"M":8}},"params":{{"pad":1}},"target":"cpu;threads=2","seed":1,"earlier":0,"trials":3,"seconds":1.5,"generation_seconds":0.5,"end":"the trials are used up","best_ns":1234.5,"default_ns":2345.5,"flops":24576.0,"bytes":4096.0,"peak_gflops":120.5,"generated":700,"refused":{{"lowering":3}},"failed":{{"crash":1}},"rounds":[{{"candidates":3,"pairs":3,"correlation":0.5}}],"outlook":{{"trials":64,"notable":0.01,"chance":0.5,"expected_gain":0.1}},"tilewright":"0.1.0","cpu":"a CPU","time":1800000000}}"#
        ),
        format!(
            r#"{{"version":1,{of},"shape":{{"M":8}},"target":"cpu;threads=2","median_ns":1234.5,"spread":0.01,"max_rel_err":1e-6,"seed":1,"trial":1,"tilewright":"0.1.0","cpu":"a CPU","time":1800000000,"predicted":-0.25,"rules":["multi_level_tiling","prefetch"],"trace":"trace v1\n%0 = get_block \"c\"\n%1, %2, %3 = get_loops %0\nparallel %1\n"}}"#
        ),
    ]
    .map(|line| line + "\n")
    .concat()
}

/// Reads lines of records and replays the traces of what it reads. Says whether every line is one that replays.
pub fn record(bytes: &[u8]) -> bool {
    let mut database = Database::in_memory();
    database.add_text("fuzz", bytes);
    for run in database.runs() {
        assert!(run.ranking().is_none_or(|ranking| ranking.pairs > 0));
        let program = database.program(run.program);
        assert!(
            program.is_none_or(|program| program.stable_hash() == run.program),
            "a program under a false hash"
        );
    }
    let mut copy = Database::in_memory();
    let merged = copy.merge(&database).expect("memory takes everything");
    assert!(merged.records <= database.records().len() && merged.runs <= database.runs().len());
    database.problems().iter().for_each(|problem| drop(problem.to_string()));
    let context = RunContext::from(target());
    let mut replay_all = database.problems().is_empty();
    for record in database.records() {
        assert!(database.nearest(record.program, &record.shape, &context).is_none_or(|(_, far)| far >= 0.0));
        replay_all &= replays(&record.trace);
    }
    replay_all
}

/// Replays a trace on each of the programs. Says whether it replays on one of them.
fn replays(trace: &Trace) -> bool {
    let on = [MATMUL, DOT_PRODUCTS]
        .map(|text| replays_on(trace, &text.parse().expect("the program is well-formed")));
    on.contains(&true)
}

fn replays_on(trace: &Trace, program: &Program) -> bool {
    let replayed: Result<Schedule, _> = trace.replay(program, target(), 0);
    let Ok(schedule) = replayed else { return false };
    verify(schedule.program(), Level::Blocks)
        .unwrap_or_else(|errors| panic!("{}\n{trace}", errors.render(schedule.program())));
    true
}

/// A CPU with the descriptions of all intrinsics, as every machine has them for replay.
fn target() -> Target {
    CpuTarget { descriptions: tilewright_cpu::intrinsics::known().clone(), ..CpuTarget::generic() }.into()
}
