//! Kernels of symbolic sizes: one schedule and one module serve every size.

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::target::{GpuTarget, RunContext, Target};
use tilewright_gpu::{GpuCode, emit};
use tilewright_search::candidate::Candidate;
use tilewright_search::schedule_by_default;

use crate::assembler::assemble;
use crate::points::draw_points;
use crate::support::{Call, parse};

const MATMUL: &str = "kernel matmul(M, N, K, in x: f32[M, K], in y: f32[K, N], out z: f32[M, N]) {
  for i in 0..M { for j in 0..N { for k in 0..K {
    block z(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) {
      init { z[vi, vj] = 0.0 }
      z[vi, vj] = z[vi, vj] + x[vi, vk] * y[vk, vj]
    }
  } } }
}";

const DENSE: &str =
    "kernel dense(M, N, K, in x: f32[M, K], in w: f32[N, K], in b: f32[N], out y: f32[M, N]) {
  buffer s: f32[M, N] global
  for i in 0..M { for j in 0..N { for k in 0..K {
    block s(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) {
      init { s[vi, vj] = 0.0 }
      s[vi, vj] = s[vi, vj] + x[vi, vk] * w[vj, vk]
    }
  } } }
  for i in 0..M { for j in 0..N {
    block y(vi: spatial M = i, vj: spatial N = j) { y[vi, vj] = max(s[vi, vj] + b[vj], 0.0) }
  } }
}";

/// Sizes of which one is 1, prime, a power of two or none at all.
const SIZES: [[i64; 3]; 10] = [
    [1, 1, 1],
    [1, 7, 3],
    [16, 16, 16],
    [17, 33, 65],
    [64, 64, 64],
    [128, 96, 80],
    [37, 5, 129],
    [3, 200, 2],
    [131, 1, 31],
    [2, 3, 0],
];

/// Executes the kernels of a program at every size.
fn check_sizes(program: &Program, flat: &Program, code: &GpuCode, trace: &str) {
    for sizes in SIZES {
        let call = Call::random(program, &sizes, 11);
        let found = call.simulated(flat, code);
        assert_eq!(found.failure, [0; 3], "{sizes:?}\n{trace}\n{flat}");
        for (found, expected) in found.tensors.iter().zip(call.interpreted(program)) {
            assert!(found.all_close(&expected, 1e-4, 1e-4), "{sizes:?}\n{trace}\n{flat}");
        }
    }
}

fn target() -> RunContext {
    RunContext::from(Target::from(GpuTarget::generic()))
}

#[test]
fn one_default_schedule_serves_every_size() {
    for text in [MATMUL, DENSE] {
        let program = parse(text);
        let schedule = schedule_by_default(&program, target());
        let flat =
            lower(schedule.program(), &LowerOptions::of(schedule.target())).expect("it can be lowered");
        let code = emit(&flat, &GpuTarget::generic()).expect("it can be emitted");
        println!("{}", schedule.trace());
        assert!(code.launches.iter().all(|launch| launch.shared_bytes > 0), "{}", schedule.program());
        assemble(&code.ptx);
        check_sizes(&program, &flat, &code, &schedule.trace().to_string());
    }
}

#[test]
fn every_point_of_symbolic_spaces_serves_every_size() {
    let program = parse(MATMUL);
    let context = target();
    let check = |candidate: &Candidate| {
        let flat = lower(&candidate.program, &LowerOptions::of(&context.target)).expect("it can be lowered");
        let code = emit(&flat, &GpuTarget::generic()).expect("it can be emitted");
        check_sizes(&program, &flat, &code, &candidate.trace.to_string());
    };
    draw_points(&program, &context, |_| true, 2, 5, check);
}

/// Factors of `f16` with sums of `f32`.
const HALVES: &str =
    "kernel halves(M, N, K, in x: f16[M, K], in w: f16[N, K], in b: f32[N], out y: f32[M, N]) {
  buffer s: f32[M, N] global
  for i in 0..M { for j in 0..N { for k in 0..K {
    block s(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) {
      init { s[vi, vj] = 0.0 }
      s[vi, vj] = s[vi, vj] + x[vi, vk] as f32 * w[vj, vk] as f32
    }
  } } }
  for i in 0..M { for j in 0..N {
    block y(vi: spatial M = i, vj: spatial N = j) { y[vi, vj] = max(s[vi, vj] + b[vj], 0.0) }
  } }
}";

#[test]
fn one_kernel_on_tensor_cores_serves_every_size() {
    let program = parse(HALVES);
    let gpu = tilewright_gpu::intrinsics::with_intrinsics(GpuTarget::generic());
    let schedule = schedule_by_default(&program, Target::from(gpu));
    let flat = lower(schedule.program(), &LowerOptions::of(schedule.target())).expect("it can be lowered");
    let code = emit(&flat, &GpuTarget::generic()).expect("it can be emitted");
    assert!(code.ptx.contains("mma.sync"), "{}", schedule.program());
    assemble(&code.ptx);
    check_sizes(&program, &flat, &code, &schedule.trace().to_string());
}
