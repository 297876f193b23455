//! Records replayed on the programs beside them.

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_measure::isolation::protocol::{Setup, Source};
use tilewright_measure::isolation::{IsolatedRunner, Limits, memory_limit};
use tilewright_measure::runner::Interrupt;
use tilewright_measure::subject::Oracle;
use tilewright_search::records::Shape;

use super::replay::{ReplayError, bind, compile, context, schedule, time, time_apart};
use super::tests as kernels;

fn product() -> Program {
    "kernel product(M, N, K, in a: f32[M, K], in b: f32[K, N], out c: f32[M, N]) {
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        block c(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) {
          init {
            c[vi, vj] = 0.0
          }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}
"
    .parse()
    .expect("the program is well-formed")
}

fn trace(last: &str) -> Trace {
    let text = format!("trace v1\n%0 = get_block \"c\"\n%1, %2, %3 = get_loops %0\n{last}\n");
    text.parse().expect("a trace")
}

#[test]
fn both_oracles_agree_and_times_are_positive() {
    for (size, oracle) in [(24, Oracle::Interpreter), (192, Oracle::Unscheduled)] {
        let shape = Shape::of_dims([("M", size), ("N", size), ("K", size)]);
        let bound = bind(&product(), &shape).expect("it fits");
        let timed = time(&bound, &trace("vectorize %2\nparallel %1"), 2, 1).expect("it runs");
        assert_eq!(timed.oracle, oracle);
        assert!(timed.seconds > 0.0 && timed.max_relative_error < 1e-5, "{timed:?}");
    }
}

#[test]
fn code_that_crashes_does_not_crash_who_replays_it() {
    let kernel = kernels::product::kernel();
    let dims = kernel.dims_by_name(&kernels::DIMS).expect("its dimensions");
    let program = kernel.program_for(&dims).expect("it fits");
    let [good, bad] = &kernels::candidates(2)[..] else { panic!("two candidates") };
    let flat = lower(&bad.program, &LowerOptions::default()).expect("it can be lowered");
    for oracle in [Oracle::Interpreter, Oracle::Unscheduled] {
        let of = Source::Program { text: program.to_string(), oracle };
        let setup = Setup {
            of,
            device: "cpu".to_owned(),
            threads: 1,
            seed: 1,
            cache: None,
            memory: memory_limit(),
            cold: false,
        };
        let command = kernels::worker_command(format!("crash:{:016x},", flat.stable_hash()));
        let interrupt = Interrupt::new(None, None);
        let mut runner = IsolatedRunner::new(command, setup, Limits::default(), interrupt);
        let timed = time_apart(&mut runner, oracle, &good.trace).expect("it runs");
        assert!(timed.seconds > 0.0 && timed.max_relative_error < 1e-5, "{timed:?}");
        let crash = time_apart(&mut runner, oracle, &bad.trace).expect_err("it crashes");
        assert!(
            matches!(&crash, ReplayError::Failed { reason, .. } if reason == super::reason::CRASH),
            "{crash}"
        );
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let shape = |k: i64| Shape::of_dims([("M", 8), ("N", 8), ("K", k)]);
    let other = bind(&product(), &Shape::of_dims([("M", 8), ("N", 8)])).unwrap_err().to_string();
    assert!(other.contains("whose dimensions are M, N, K"), "{other}");
    for size in [i64::MAX, 1 << 30] {
        let error = bind(&product(), &shape(size)).unwrap_err();
        assert!(matches!(error, ReplayError::TooLarge { .. }), "{size}: {error}");
    }
    let bound = bind(&product(), &shape(8)).expect("it fits");
    let context = context(1).expect("a machine");
    let error = schedule(&bound, &trace("reorder [%2, %2]"), &context).unwrap_err().to_string();
    assert!(error.starts_with("the trace does not replay: step 3 (`reorder`)"), "{error}");
    let scheduled = schedule(&bound, &trace("vectorize %2"), &context).expect("it replays");
    let code = compile(&scheduled, &context.target);
    assert!(code.expect("it compiles").code_bytes > 0);
}
