//! Whole rows in one kernel: reductions that the threads of a block make together, and the steps that read their results.

use tilewright_core::program::Program;
use tilewright_core::target::Target;
use tilewright_search::schedule_by_default;

use crate::assembler::assemble;
use crate::support::{Call, code_of, lowered, parse};
use crate::texts;

/// The layer norm of each row, with its elements minus their mean as a step of their own.
fn layer_norm(dtype: &str, m: i64, n: i64) -> Program {
    let (zero, least) = match dtype {
        "f64" => ("0.0f64", "1e-5f64"),
        "f16" => ("0.0f16", "0.001f16"),
        _ => ("0.0", "1e-5"),
    };
    let count = match dtype {
        "f64" => format!("{n}.0f64"),
        "f16" => format!("{n}.0f16"),
        _ => format!("{n}.0"),
    };
    parse(&format!(
        "kernel layer_norm(in x: {dtype}[{m}, {n}], in w: {dtype}[{n}], out y: {dtype}[{m}, {n}]) {{
  buffer s: {dtype}[{m}] global
  buffer c: {dtype}[{m}, {n}] global
  buffer q: {dtype}[{m}] global
  for i in 0..{m} {{ for k in 0..{n} {{
    block s(vi: spatial {m} = i, vk: reduce {n} = k) {{
      init {{ s[vi] = {zero} }}
      s[vi] = s[vi] + x[vi, vk]
    }}
  }} }}
  for i in 0..{m} {{ for j in 0..{n} {{
    block c(vi: spatial {m} = i, vj: spatial {n} = j) {{ c[vi, vj] = x[vi, vj] - s[vi] / {count} }}
  }} }}
  for i in 0..{m} {{ for k in 0..{n} {{
    block q(vi: spatial {m} = i, vk: reduce {n} = k) {{
      init {{ q[vi] = {zero} }}
      q[vi] = q[vi] + c[vi, vk] * c[vi, vk]
    }}
  }} }}
  for i in 0..{m} {{ for j in 0..{n} {{
    block y(vi: spatial {m} = i, vj: spatial {n} = j) {{
      y[vi, vj] = c[vi, vj] / sqrt(q[vi] / {count} + {least}) * w[vj]
    }}
  }} }}
}}"
    ))
}

/// The greatest integer of each row, and how far each element is below it.
fn below_greatest(dtype: &str, m: i64, n: i64) -> Program {
    parse(&format!(
        "kernel below(in x: {dtype}[{m}, {n}], out y: {dtype}[{m}, {n}]) {{
  buffer g: {dtype}[{m}] global
  for i in 0..{m} {{ for k in 0..{n} {{
    block g(vi: spatial {m} = i, vk: reduce {n} = k) {{
      init {{ g[vi] = 0{dtype} }}
      g[vi] = max(g[vi], x[vi, vk])
    }}
  }} }}
  for i in 0..{m} {{ for j in 0..{n} {{
    block y(vi: spatial {m} = i, vj: spatial {n} = j) {{ y[vi, vj] = g[vi] - x[vi, vj] }}
  }} }}
}}"
    ))
}

/// Runs a kernel by its default schedule.
fn check(program: &Program, tolerance: f64) {
    let schedule = schedule_by_default(program, Target::generic_gpu());
    let flat = lowered(schedule.program());
    let call = Call::random(program, &[], 5);
    let code = call.compare(&flat);
    assemble(&code.ptx);
    let found = call.simulated(&flat, &code).tensors;
    for (found, expected) in found.iter().zip(&call.interpreted(program)) {
        assert!(found.all_close(expected, tolerance, tolerance), "{program}\n{}\n{flat}", schedule.program());
    }
}

/// Checks that a kernel by its default schedule is launched once, and that its threads exchange values.
fn is_joined(program: &Program) {
    let schedule = schedule_by_default(program, Target::generic_gpu());
    let code = code_of(&lowered(schedule.program()));
    assemble(&code.ptx);
    assert_eq!(code.launches.len(), 1, "{}", schedule.program());
    assert!(code.ptx.contains("shfl.sync.bfly.b32"), "{}", code.ptx);
    assert!(!code.ptx.contains(".local"), "{}\n{}", schedule.program(), code.ptx);
}

#[test]
fn softmax_and_norms_of_many_rows_are_one_kernel_each() {
    for (m, n) in [(256, 256), (1000, 1000), (4096, 768), (130, 33)] {
        is_joined(&parse(&texts::softmax(m, n)));
        is_joined(&layer_norm("f32", m, n));
    }
}

#[test]
fn rows_of_any_length_and_type() {
    let sizes = [(1, 1), (2, 3), (5, 31), (7, 97), (2, 1031), (40, 64)];
    let floats = [("f32", 1e-3), ("f64", 1e-9), ("f16", 0.1)];
    let integers = ["i32", "i64", "u8", "i8"];
    for (number, (m, n)) in sizes.into_iter().enumerate() {
        let (dtype, tolerance) = floats[number % floats.len()];
        check(&layer_norm(dtype, m, n), tolerance);
        check(&below_greatest(integers[number % integers.len()], m, n), 0.0);
        check(&parse(&texts::softmax(m, n)), 1e-4);
    }
}

/// As the steps are joined by hand, where the draft model would choose otherwise.
#[test]
fn steps_of_rows_that_a_schedule_joins() {
    for (m, n) in [(1, 1), (3, 5), (4, 32), (8, 33), (5, 130), (16, 64), (2, 1500)] {
        for program in [layer_norm("f32", m, n), layer_norm("f64", m, n), parse(&texts::softmax(m, n))] {
            let schedule = tilewright_search::schedule_quickly(&program, Target::generic_gpu());
            let flat = lowered(schedule.program());
            let call = Call::random(&program, &[], 5);
            let code = call.compare(&flat);
            let found = call.simulated(&flat, &code).tensors;
            for (found, expected) in found.iter().zip(&call.interpreted(&program)) {
                assert!(found.all_close(expected, 1e-3, 1e-3), "{}\n{flat}", schedule.program());
            }
        }
    }
}
