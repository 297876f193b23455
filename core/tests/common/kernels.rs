//! Unscheduled kernels of every kind that lowering must handle.

use tilewright_core::program::Program;

/// Parses a kernel.
pub(crate) fn parse(text: &str) -> Program {
    text.trim().parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A matrix product of symbolic extents.
pub(crate) const MATMUL: &str = r#"
kernel matmul(M, N, K, in a: f32[M, K], in b: f32[K, N], out c: f32[M, N]) {
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        block c(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) {
          init { c[vi, vj] = 0.0 }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}
"#;

/// A matrix product followed by a bias and a rectifier, of fixed extents.
pub(crate) const MATMUL_RELU: &str = r#"
kernel matmul_relu(in a: f32[32, 24], in b: f32[24, 48], in bias: f32[48], out d: f32[32, 48]) {
  buffer c: f32[32, 48] global
  for i in 0..32 {
    for j in 0..48 {
      for k in 0..24 {
        block c(vi: spatial 32 = i, vj: spatial 48 = j, vk: reduce 24 = k) {
          init { c[vi, vj] = 0.0 }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
  for i in 0..32 {
    for j in 0..48 {
      block d(vi: spatial 32 = i, vj: spatial 48 = j) {
        d[vi, vj] = max(c[vi, vj] + bias[vj], 0.0)
      }
    }
  }
}
"#;
