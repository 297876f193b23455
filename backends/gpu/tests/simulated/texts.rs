//! Kernels, as text, that several tests compile.

/// C = A·B.
pub(crate) fn matmul(m: i64, n: i64, k: i64) -> String {
    format!(
        "kernel matmul(in a: f32[{m}, {k}], in b: f32[{k}, {n}], out c: f32[{m}, {n}]) {{
  for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block c(vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ c[vi, vj] = 0.0 }}
      c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
    }}
  }} }} }}
}}"
    )
}

/// The transposed matrix.
pub(crate) fn transpose(m: i64, n: i64) -> String {
    format!(
        "kernel transpose(in x: f32[{m}, {n}], out y: f32[{n}, {m}]) {{
  for i in 0..{n} {{ for j in 0..{m} {{
    block y(vi: spatial {n} = i, vj: spatial {m} = j) {{ y[vi, vj] = x[vj, vi] }}
  }} }}
}}"
    )
}

/// The softmax of each row.
pub(crate) fn softmax(m: i64, n: i64) -> String {
    format!(
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
    block y(vi: spatial {m} = i, vj: spatial {n} = j) {{ y[vi, vj] = exp(x[vi, vj] - most[vi]) / sum[vi] }}
  }} }}
}}"
    )
}

/// The sum of all elements.
pub(crate) fn sum(n: i64) -> String {
    format!(
        "kernel sum(in x: f32[{n}], out s: f32[1]) {{
  for k in 0..{n} {{
    block s(vk: reduce {n} = k) {{
      init {{ s[0] = 0.0 }}
      s[0] = s[0] + x[vk]
    }}
  }}
}}"
    )
}

/// The sums of eight columns.
pub(crate) fn columns(n: i64) -> String {
    format!(
        "kernel columns(in x: f32[{n}, 8], out s: f32[8]) {{
  for j in 0..8 {{ for k in 0..{n} {{
    block s(vj: spatial 8 = j, vk: reduce {n} = k) {{
      init {{ s[vj] = 0.0 }}
      s[vj] = s[vj] + x[vk, vj]
    }}
  }} }}
}}"
    )
}

/// A row added to each row of a matrix, of any size.
pub(crate) const SYMBOLIC_ADD: &str = "kernel add(M, N, in a: f32[M, N], in b: f32[N], out y: f32[M, N]) {
  for i in 0..M { for j in 0..N {
    block y(vi: spatial M = i, vj: spatial N = j) { y[vi, vj] = a[vi, vj] + b[vj] }
  } }
}";
