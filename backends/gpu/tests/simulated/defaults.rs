//! Kernels by their default schedules compute what their definitions say.

use tilewright_core::program::Program;
use tilewright_core::target::Target;
use tilewright_core::tensor::AnyTensor;
use tilewright_search::schedule_by_default;

use crate::support::{Call, assemble, lowered, parse};

/// Runs a kernel by its default schedule: its results are close to those of the definition, and equal to those of the
/// interpreter on the same flat program.
fn check(program: &Program, dims: &[i64]) {
    let schedule = schedule_by_default(program, Target::generic_gpu());
    let flat = lowered(schedule.program());
    let call = Call::random(program, dims, 5);
    let code = call.compare(&flat);
    assemble(&code.ptx);
    let found = call.simulated(&flat, &code).tensors;
    let expected: Vec<AnyTensor> = call.interpreted(program);
    for (found, expected) in found.iter().zip(&expected) {
        assert!(found.all_close(expected, 1e-4, 1e-5), "{program}\n{}\n{flat}", schedule.program());
    }
}

fn matmul(m: i64, n: i64, k: i64) -> Program {
    parse(&format!(
        "kernel matmul(in a: f32[{m}, {k}], in b: f32[{k}, {n}], out c: f32[{m}, {n}]) {{
  for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block c(vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ c[vi, vj] = 0.0 }}
      c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
    }}
  }} }} }}
}}"
    ))
}

#[test]
fn products_of_matrices() {
    for (m, n, k) in [(64, 64, 32), (1, 1, 1), (16, 16, 5), (67, 33, 17), (128, 64, 48), (3, 200, 7)] {
        check(&matmul(m, n, k), &[]);
    }
}

#[test]
fn rows_of_a_softmax() {
    for (m, n) in [(1, 1), (4, 128), (3, 97), (7, 1024), (2, 63)] {
        check(
            &parse(&format!(
                "kernel softmax(in x: f32[{m}, {n}], out y: f32[{m}, {n}]) {{
  buffer most: f32[{m}] global
  buffer sum: f32[{m}] global
  for i in 0..{m} {{ for k in 0..{n} {{
    block most(vi: spatial {m} = i, vk: reduce {n} = k) {{
      init {{ most[vi] = -3.0e38 }}
      most[vi] = max(most[vi], x[vi, vk])
    }}
  }} }}
  for i in 0..{m} {{ for k in 0..{n} {{
    block sum(vi: spatial {m} = i, vk: reduce {n} = k) {{
      init {{ sum[vi] = 0.0 }}
      sum[vi] = sum[vi] + exp(x[vi, vk] - most[vi])
    }}
  }} }}
  for i in 0..{m} {{ for j in 0..{n} {{
    block y(vi: spatial {m} = i, vj: spatial {n} = j) {{
      y[vi, vj] = exp(x[vi, vj] - most[vi]) / sum[vi]
    }}
  }} }}
}}"
            )),
            &[],
        );
    }
}

#[test]
fn elements_of_symbolic_shapes() {
    let program = parse(
        "kernel add(M, N, in a: f32[M, N], in b: f32[N], out y: f32[M, N]) {
  for i in 0..M { for j in 0..N {
    block y(vi: spatial M = i, vj: spatial N = j) { y[vi, vj] = a[vi, vj] + b[vj] }
  } }
}",
    );
    for dims in [[0, 5], [5, 0], [1, 1], [7, 13], [30, 40]] {
        check(&program, &dims);
    }
}

#[test]
fn sums_of_all_elements_and_of_columns() {
    for len in [1, 32, 97, 4096] {
        check(
            &parse(&format!(
                "kernel sum(in x: f32[{len}], out s: f32[1]) {{
  for k in 0..{len} {{
    block s(vk: reduce {len} = k) {{
      init {{ s[0] = 0.0 }}
      s[0] = s[0] + x[vk]
    }}
  }}
}}"
            )),
            &[],
        );
        check(
            &parse(&format!(
                "kernel columns(in x: f32[{len}, 8], out s: f32[8]) {{
  for j in 0..8 {{ for k in 0..{len} {{
    block s(vj: spatial 8 = j, vk: reduce {len} = k) {{
      init {{ s[vj] = 0.0 }}
      s[vj] = s[vj] + x[vk, vj]
    }}
  }} }}
}}"
            )),
            &[],
        );
    }
}

#[test]
fn a_matrix_is_transposed() {
    for (m, n) in [(8, 8), (33, 65), (1, 7)] {
        check(
            &parse(&format!(
                "kernel transpose(in x: f32[{m}, {n}], out y: f32[{n}, {m}]) {{
  for i in 0..{n} {{ for j in 0..{m} {{
    block y(vi: spatial {n} = i, vj: spatial {m} = j) {{ y[vi, vj] = x[vj, vi] }}
  }} }}
}}"
            )),
            &[],
        );
    }
}

/// The norm of all elements, by which each element is divided: a reduction with a single result, followed by another step.
fn divided_by_norm(dims: &str, index: &str, spatial: &str, len: i64) -> Program {
    parse(&format!(
        "kernel norm(in x: f32[{len}], out y: f32[{len}]) {{
  buffer s: f32[{dims}] global
  for i in 0..1 {{ for k in 0..{len} {{
    block s({spatial}vk: reduce {len} = k) {{
      init {{ s[{index}] = 0.0 }}
      s[{index}] = s[{index}] + x[vk] * x[vk]
    }}
  }} }}
  for j in 0..{len} {{
    block y(vj: spatial {len} = j) {{ y[vj] = x[vj] / sqrt(s[{zero}]) }}
  }}
}}",
        zero = if index.is_empty() { "" } else { "0" }
    ))
}

#[test]
fn a_single_result_that_another_step_uses() {
    for len in [1, 37, 64, 1147, 4096] {
        check(&divided_by_norm("1", "vi", "vi: spatial 1 = i, ", len), &[]);
        check(&divided_by_norm("", "", "", len), &[]);
    }
}
