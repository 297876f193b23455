//! Points of the design spaces of more kernels: types, orders, reductions in rows, and extents without a tile.

use tilewright_core::program::Program;

use crate::searched::check;
use crate::support::parse;
use crate::texts;

/// The product of matrices of one type, in another.
fn product(from: &str, to: &str, zero: &str, [m, n, k]: [i64; 3]) -> Program {
    let cast = if from == to { String::new() } else { format!(" as {to}") };
    parse(&format!(
        "kernel product(in x: {from}[{m}, {k}], in y: {from}[{k}, {n}], out z: {to}[{m}, {n}]) {{
  for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block z(vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ z[vi, vj] = {zero} }}
      z[vi, vj] = z[vi, vj] + x[vi, vk]{cast} * y[vk, vj]{cast}
    }}
  }} }} }}
}}"
    ))
}

/// The sums of rows, and each element over that of its row, in a type.
fn shares(dtype: &str, zero: &str, m: i64, n: i64) -> Program {
    parse(&format!(
        "kernel shares(in x: {dtype}[{m}, {n}], out y: {dtype}[{m}, {n}]) {{
  buffer e: {dtype}[{m}, {n}] global
  buffer s: {dtype}[{m}] global
  for i in 0..{m} {{ for j in 0..{n} {{
    block e(vi: spatial {m} = i, vj: spatial {n} = j) {{ e[vi, vj] = exp(x[vi, vj]) }}
  }} }}
  for i in 0..{m} {{ for k in 0..{n} {{
    block s(vi: spatial {m} = i, vk: reduce {n} = k) {{
      init {{ s[vi] = {zero} }}
      s[vi] = s[vi] + e[vi, vk]
    }}
  }} }}
  for i in 0..{m} {{ for j in 0..{n} {{
    block y(vi: spatial {m} = i, vj: spatial {n} = j) {{ y[vi, vj] = e[vi, vj] / s[vi] }}
  }} }}
}}"
    ))
}

/// The root of the sum of squares of each matrix of a batch.
fn norms_of_matrices(b: i64, m: i64, n: i64) -> Program {
    parse(&format!(
        "kernel norms(in x: f32[{b}, {m}, {n}], out y: f32[{b}]) {{
  buffer s: f32[{b}] global
  for b in 0..{b} {{ for i in 0..{m} {{ for k in 0..{n} {{
    block s(vb: spatial {b} = b, vi: reduce {m} = i, vk: reduce {n} = k) {{
      init {{ s[vb] = 0.0 }}
      s[vb] = s[vb] + x[vb, vi, vk] * x[vb, vi, vk]
    }}
  }} }} }}
  for b in 0..{b} {{
    block y(vb: spatial {b} = b) {{ y[vb] = sqrt(s[vb]) }}
  }}
}}"
    ))
}

#[test]
fn points_of_products_of_many_types() {
    check(&product("i8", "i32", "0i32", [19, 32, 24]));
    check(&product("i32", "i32", "0i32", [16, 12, 40]));
    check(&product("i64", "i64", "0i64", [7, 33, 9]));
    check(&product("f64", "f64", "0.0f64", [13, 16, 21]));
    check(&product("bf16", "f32", "0.0", [24, 20, 11]));
}

#[test]
fn points_of_rows() {
    for (m, n) in [(1, 1), (3, 37), (16, 96), (2, 523)] {
        check(&parse(&texts::softmax(m, n)));
        check(&shares("f32", "0.0", m, n));
    }
    check(&shares("f64", "0.0f64", 8, 70));
    check(&norms_of_matrices(3, 5, 29));
    check(&norms_of_matrices(1, 64, 32));
}

#[test]
fn points_of_transpositions_and_sums() {
    for (m, n) in [(1, 7), (31, 33), (64, 48)] {
        check(&parse(&texts::transpose(m, n)));
    }
    for len in [1, 127, 2048] {
        check(&parse(&texts::sum(len)));
        check(&parse(&texts::columns(len)));
    }
}
