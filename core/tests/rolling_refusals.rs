//! What cannot roll, and what is refused once a producer does: whatever would let an iteration miss what an earlier one has
//! made.

use std::sync::Arc;

use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, Trace};
use tilewright_core::target::Target;

/// Rows of `c` read three rows of `b`; those of `d` read one row of `c` each, and columns that overlap.
const KERNEL: &str = "
kernel k(N, in a: f32[18, 10], out h: f32[16, 10], out d: f32[16, 8], out e: f32[16, N]) {
  buffer b: f32[18, 10] global
  buffer c: f32[16, 10] global
  buffer f: f32[16, 10] global
  buffer g: f32[16 + N, 10] global
  for i in 0..18 {
    for j in 0..10 {
      block b(vi: spatial 18 = i, vj: spatial 10 = j) {
        b[vi, vj] = a[vi, vj] * 0.5
      }
    }
  }
  for i in 0..16 {
    for j in 0..10 {
      block c(vi: spatial 16 = i, vj: spatial 10 = j) {
        c[vi, vj] = b[vi, vj] + b[vi + 1, vj] + b[vi + 2, vj]
      }
    }
  }
  for i in 0..16 {
    for j in 0..10 {
      block h(vi: spatial 16 = i, vj: spatial 10 = j) {
        h[vi, vj] = c[vi, vj] * 2.0
      }
    }
  }
  for i in 0..16 {
    for j in 0..10 {
      block f(vi: spatial 16 = i, vj: spatial 10 = j) {
        f[vi, vj] = a[vi, vj] + 1.0
      }
    }
  }
  for i in 0..16 {
    for j in 0..8 {
      block d(vi: spatial 16 = i, vj: spatial 8 = j) {
        d[vi, vj] = f[vi, vj] + f[vi, vj + 2]
      }
    }
  }
  for i in 0..16 + N {
    for j in 0..10 {
      block g(vi: spatial 16 + N = i, vj: spatial 10 = j) {
        g[vi, vj] = 1.0
      }
    }
  }
  for i in 0..16 {
    for j in 0..N {
      block e(vi: spatial 16 = i, vj: spatial N = j) {
        e[vi, vj] = g[vi + vj, 1]
      }
    }
  }
}";

const PREFIX: &str = "trace v1
%0 = get_block \"b\"
%1, %2 = get_loops %0
%3 = get_block \"c\"
%4, %5 = get_loops %3
%6 = get_block \"f\"
%7, %8 = get_loops %6
%9 = get_block \"d\"
%10, %11 = get_loops %9
%12 = get_block \"g\"
%13 = get_block \"e\"
%14, %15 = get_loops %13
%16 = get_block \"h\"
%17, %18 = get_loops %16
";

/// The steps after which `b` rolls over the inner one of two loops.
const ROLLING: &str = "%19, %20 = split %4, [4, 4]
compute_at %0, %20
rolling_buffer %0, %20
%21, %22, %23, %24 = get_loops %0
";

/// The last step, after those of the prefix, is refused for a reason and with a message that says a thing.
fn check(steps: &str, reason: &str, says: &str) {
    let program: Program = KERNEL.parse().unwrap_or_else(|error| panic!("{error}"));
    let trace: Trace = format!("{PREFIX}{steps}").parse().unwrap_or_else(|error| panic!("{error}\n{steps}"));
    let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), 0);
    let (last, before) = trace.steps().split_last().expect("a step");
    for step in before {
        let fetched = schedule.push(step.instruction.clone(), step.decision.clone());
        fetched.unwrap_or_else(|error| panic!("{step}: {}", error.describe(schedule.program())));
    }
    let unchanged = (schedule.program().clone(), schedule.trace().clone());
    let error = schedule.push(last.instruction.clone(), last.decision.clone()).expect_err(steps);
    let message = error.describe(schedule.program());
    assert_eq!(error.reason(), reason, "{steps}: {message}\n{}", schedule.program());
    assert!(message.contains(says), "{steps}: {message}");
    assert_eq!((schedule.program().clone(), schedule.trace().clone()), unchanged, "{steps}");
}

/// As [`check`], after `b` rolls.
fn check_rolling(step: &str, reason: &str, says: &str) {
    check(&format!("{ROLLING}{step}"), reason, says);
}

#[test]
fn producers_and_consumers_are_inside_the_loop() {
    check("rolling_buffer %16, %17", "output_block", "writes a parameter");
    check("rolling_buffer %0, %1", "consumer_outside", "block `c` reads the result of block `b`");
    check("rolling_buffer %0, %4", "producer_outside", "block `b` makes what block `c` reads");
    check("compute_at %0, %4\nunroll %4\nrolling_buffer %0, %4", "not_serial", "already parallel");
    let again = "compute_at %0, %4\nrolling_buffer %0, %4\nrolling_buffer %0, %4";
    check(again, "already_rolling", "only a part of `b`, which block `b` accesses");
}

#[test]
fn one_block_makes_what_rolls() {
    let text = "kernel k(in a: f32[8], out c: f32[6]) {
        buffer b: f32[8] global
        for i in 0..6 {
          for r in 0..3 { block even(v: spatial 8 = i + r) { if index(v % 2) == 0 { b[v] = a[v] } } }
          for r in 0..3 { block odd(v: spatial 8 = i + r) { if index(v % 2) == 1 { b[v] = 0.0 } } }
          block c(v: spatial 6 = i) { c[v] = b[v] + b[v + 2] }
        }
      }";
    let mut schedule = Schedule::new(text.parse().unwrap(), Arc::new(Target::generic_cpu()), 0);
    let (even, c) = (schedule.get_block("even").unwrap(), schedule.get_block("c").unwrap());
    let target = schedule.get_loops(c).unwrap()[0];
    assert_eq!(schedule.rolling_buffer(even, target).unwrap_err().reason(), "not_invertible");
    let text = text
        .replace("if index(v % 2) == 0 { b[v] = a[v] }", "b[v] = a[v]")
        .replace("b[v] = 0.0", "b[v] = a[v]");
    let mut schedule = Schedule::new(text.parse().unwrap(), Arc::new(Target::generic_cpu()), 0);
    let (even, c) = (schedule.get_block("even").unwrap(), schedule.get_block("c").unwrap());
    let target = schedule.get_loops(c).unwrap()[0];
    assert_eq!(schedule.rolling_buffer(even, target).unwrap_err().reason(), "several_writers");
}

#[test]
fn iterations_share_a_constant_part() {
    let apart = "compute_at %6, %10\nrolling_buffer %6, %10";
    check(apart, "no_overlap", "iterations of loop `i` share no constant part of `f`");
    let changing = "compute_at %12, %14\nrolling_buffer %12, %14";
    check(changing, "no_overlap", "share no constant part of `g`");
    let diagonal = "%19 = fuse [%4, %5]\ncompute_at %0, %19\nrolling_buffer %0, %19";
    check(diagonal, "no_overlap", "share no constant part of `b`");
}

#[test]
fn iterations_stay_in_order() {
    let says = "must come one after the other, since they use what earlier ones left in `b`";
    check_rolling("parallel %20", "rolling_out_of_order", says);
    check_rolling("vectorize %20", "shared_write", "would write the same elements of `b`");
    check_rolling("bind %20, \"thread_x\"", "rolling_out_of_order", says);
    check_rolling("%25, %26 = split %20, [2, 2]\nreorder [%26, %25]", "rolling_out_of_order", says);
    check_rolling("%25, %26 = split %20, [2, 2]\nparallel %25", "rolling_out_of_order", says);
    check_rolling("reorder [%20, %19]", "rolling_not_kept", "would read elements that `b` does not keep");
    check_rolling(
        "%25 = fuse [%19, %20]",
        "rolling_producer",
        "what earlier iterations have not left in `b`",
    );
}

#[test]
fn blocks_stay_together() {
    let says = "outside of the loop that it rolls over";
    check_rolling("compute_at %0, %19", "already_inside", "already contains");
    check_rolling(
        "compute_at %0, %5",
        "rolling_producer",
        "would no longer make just what earlier iterations",
    );
    check_rolling("compute_inline %3", "rolling_apart", says);
    check_rolling("compute_at %3, %17", "rolling_apart", says);
    check_rolling("%25 = blockize %24", "rolling_producer", "would no longer make just");
}

#[test]
fn what_is_made_stays_made() {
    let says = "would no longer make just what earlier iterations have not left in `b`";
    check_rolling(
        "%25, %26 = split %24, [none, 4]\n%27, %28 = loop_partition %25, [2, 1]",
        "rolling_producer",
        says,
    );
    let layout = "transform_layout %0, \"write\", 0, (i, j) -> (j, i)";
    check_rolling(layout, "already_rolling", "do this before rolling_buffer");
}

#[test]
fn whatever_keeps_the_order_is_allowed() {
    let program: Program = KERNEL.parse().unwrap();
    let allowed = "parallel %19
%25, %26 = split %20, [2, 2]
unroll %26
%27, %28 = split %24, [none, 4]
vectorize %28
reorder [%27, %23]
";
    let trace: Trace = format!("{PREFIX}{ROLLING}{allowed}").parse().unwrap();
    let replayed = trace.replay(&program, &Arc::new(Target::generic_cpu()), 0);
    let schedule = replayed.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(schedule.program().windows().len(), 1);
    assert_eq!(schedule.trace().to_string().parse::<Trace>().unwrap(), *schedule.trace());
    let text = schedule.program().to_string();
    assert_eq!(text.parse::<Program>().unwrap().to_string(), text);
}
