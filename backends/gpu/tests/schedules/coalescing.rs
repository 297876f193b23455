//! Default schedules access whole sectors of device memory: the simulator counts them.

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::target::{GpuTarget, RunContext, Target};
use tilewright_gpu::emit;
use tilewright_gpu::intrinsics::with_intrinsics;
use tilewright_ptx_sim::{Module, Options};
use tilewright_search::gpu::features::report;
use tilewright_search::schedule_by_default;

use crate::support::{Call, parse};
use crate::tensor_cores::product;

/// The least share of the sectors that warps touch that their data need.
const LEAST: f64 = 0.95;

/// How far the report of a schedule may be off.
const TOLERANCE: f64 = 0.1;

fn matmul(m: i64, n: i64, k: i64) -> Program {
    parse(&format!(
        "kernel matmul(in x: f32[{m}, {k}], in y: f32[{k}, {n}], out z: f32[{m}, {n}]) {{
  for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block z(vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ z[vi, vj] = 0.0 }}
      z[vi, vj] = z[vi, vj] + x[vi, vk] * y[vk, vj]
    }}
  }} }} }}
}}"
    ))
}

/// The products of queries and keys, whose heads lie inside of their positions.
fn scores(h: i64, s: i64, d: i64) -> Program {
    parse(&format!(
        "kernel scores(in q: f32[{s}, {h}, {d}], in v: f32[{s}, {h}, {d}], out y: f32[{h}, {s}, {s}]) {{
  for h in 0..{h} {{ for i in 0..{s} {{ for j in 0..{s} {{ for k in 0..{d} {{
    block y(vh: spatial {h} = h, vi: spatial {s} = i, vj: spatial {s} = j, vk: reduce {d} = k) {{
      init {{ y[vh, vi, vj] = 0.0 }}
      y[vh, vi, vj] = y[vh, vi, vj] + q[vi, vh, vk] * v[vj, vh, vk]
    }}
  }} }} }} }}
}}"
    ))
}

/// The same product from a factor that another step transposes.
fn transposed_product(m: i64, n: i64, k: i64) -> Program {
    parse(&format!(
        "kernel product(in x: f32[{m}, {k}], in y: f32[{n}, {k}], out z: f32[{m}, {n}]) {{
  buffer t: f32[{k}, {n}] global
  for a in 0..{k} {{ for b in 0..{n} {{
    block t(va: spatial {k} = a, vb: spatial {n} = b) {{ t[va, vb] = y[vb, va] }}
  }} }}
  for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block z(vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ z[vi, vj] = 0.0 }}
      z[vi, vj] = z[vi, vj] + x[vi, vk] * t[vk, vj]
    }}
  }} }} }}
}}"
    ))
}

fn transposition(dtype: &str, m: i64, n: i64) -> Program {
    parse(&format!(
        "kernel transpose(in x: {dtype}[{m}, {n}], out y: {dtype}[{n}, {m}]) {{
  for i in 0..{n} {{ for j in 0..{m} {{
    block y(vi: spatial {n} = i, vj: spatial {m} = j) {{ y[vi, vj] = x[vj, vi] }}
  }} }}
}}"
    ))
}

/// Checks the accesses of a program's default schedule, its results, and what the report says about it.
fn check(program: &Program) {
    let gpu = with_intrinsics(GpuTarget::generic());
    let context = RunContext::from(Target::from(gpu.clone()));
    let schedule = schedule_by_default(program, context.clone());
    let flat = lower(schedule.program(), &LowerOptions::of(&context.target)).expect("it can be lowered");
    let code = emit(&flat, &gpu).expect("it can be emitted");
    let call = Call::of_small_integers(program);
    let module = Module::parse(&code.ptx).unwrap_or_else(|error| panic!("{error}\n{}", code.ptx));
    let execution = call.execute(&flat, &code, &module, &Options::default());
    assert!(execution.findings.is_empty(), "{:?}\n{}", execution.findings, code.ptx);
    for (found, expected) in execution.outcome.tensors.iter().zip(call.interpreted(program)) {
        assert_eq!(found.bytes(), expected.bytes(), "{}", schedule.program());
    }
    let [touched, needed] = execution.sectors.map(|count| count as f64);
    let found = needed / touched;
    let reports = report(schedule.program(), &gpu);
    println!("{}: {:.1} %", program.name, 100.0 * found);
    reports.iter().for_each(|report| println!("{report}"));
    assert!(found >= LEAST, "{found}\n{}\n{}", schedule.trace(), schedule.program());
    let reported = reports.iter().map(|report| report.coalescing).fold(1.0, f64::min);
    assert!(
        (reported - found).abs() <= TOLERANCE,
        "{found}, reported are {reported}\n{}",
        schedule.program()
    );
}

#[test]
fn products() {
    check(&matmul(128, 96, 64));
    check(&scores(4, 64, 32));
    check(&transposed_product(64, 96, 128));
    check(&product(["f16", "f32", "0.0"], [1, 128, 128, 128], false));
    check(&product(["i8", "i32", "0i32"], [1, 128, 128, 128], true));
}

#[test]
fn transpositions() {
    check(&transposition("f32", 512, 512));
    check(&transposition("f16", 512, 768));
    check(&transposition("i8", 1024, 512));
}
