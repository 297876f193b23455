//! Kernels of many kinds, in sizes that divide evenly and not.

use crate::texts;

/// A kernel, and the dimensions that it is called with.
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) dims: Vec<Vec<i64>>,
}

fn fixed(name: String, text: String) -> Kernel {
    Kernel { name, text, dims: vec![Vec::new()] }
}

/// Kernels whose elements are computed each for itself.
pub(super) fn of_elements() -> Vec<Kernel> {
    let sizes = [(1, 1), (3, 7), (16, 32), (17, 61)];
    let mut kernels: Vec<Kernel> = sizes.into_iter().map(|(m, n)| add(m, n)).collect();
    kernels.extend([(8, 8), (33, 35), (1, 7), (13, 2)].map(|(m, n)| transpose(m, n)));
    kernels.extend([5, 64, 131].map(pad));
    kernels.push(symbolic());
    kernels
}

/// Products of matrices and convolutions.
pub(super) fn of_products() -> Vec<Kernel> {
    let sizes = [(1, 1, 1), (16, 16, 8), (17, 19, 5), (3, 40, 7), (33, 9, 13)];
    let mut kernels: Vec<Kernel> = sizes.into_iter().map(|(m, n, k)| matmul(m, n, k)).collect();
    kernels.extend([(2, 8, 4), (3, 5, 7)].map(|(b, n, k)| batched(b, n, k)));
    kernels.extend([(6, 3, 4), (7, 1, 5), (10, 4, 8)].map(|(size, c, f)| convolution(size, c, f)));
    kernels
}

/// Kernels that reduce rows or columns.
pub(super) fn of_rows() -> Vec<Kernel> {
    let sizes = [(1, 1), (2, 63), (3, 97), (4, 128)];
    let mut kernels: Vec<Kernel> = sizes.into_iter().map(|(m, n)| softmax(m, n)).collect();
    kernels.extend([(2, 33), (3, 64), (5, 50)].map(|(m, n)| layer_norm(m, n)));
    kernels.extend([1, 32, 97, 1000].map(sum));
    kernels.extend([1, 32, 97].map(columns));
    kernels
}

fn add(m: i64, n: i64) -> Kernel {
    fixed(
        format!("add {m}×{n}"),
        format!(
            "kernel add(in a: f32[{m}, {n}], in b: f32[{n}], out y: f32[{m}, {n}]) {{
  for i in 0..{m} {{ for j in 0..{n} {{
    block y(vi: spatial {m} = i, vj: spatial {n} = j) {{ y[vi, vj] = a[vi, vj] + b[vj] }}
  }} }}
}}"
        ),
    )
}

fn symbolic() -> Kernel {
    let dims = [[0, 5], [1, 1], [7, 13], [30, 40]].map(Vec::from).into();
    Kernel { name: "add of symbolic sizes".into(), text: texts::SYMBOLIC_ADD.into(), dims }
}

fn transpose(m: i64, n: i64) -> Kernel {
    fixed(format!("transpose {m}×{n}"), texts::transpose(m, n))
}

fn pad(n: i64) -> Kernel {
    let padded = n + 4;
    fixed(
        format!("pad {n}"),
        format!(
            "kernel pad(in x: f32[{n}], out y: f32[{padded}]) {{
  for i in 0..{padded} {{
    block y(v: spatial {padded} = i) {{ y[v] = select((v >= 2) & (v < {}), x[v - 2], 0.0) }}
  }}
}}",
            n + 2
        ),
    )
}

fn matmul(m: i64, n: i64, k: i64) -> Kernel {
    fixed(format!("matmul {m}×{n}×{k}"), texts::matmul(m, n, k))
}

fn batched(b: i64, n: i64, k: i64) -> Kernel {
    fixed(
        format!("batched product {b}×{n}×{k}"),
        format!(
            "kernel batched(in a: f32[{b}, {n}, {k}], in w: f32[{b}, {n}, {k}], out c: f32[{b}, {n}, {n}]) {{
  for b in 0..{b} {{ for i in 0..{n} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block c(vb: spatial {b} = b, vi: spatial {n} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ c[vb, vi, vj] = 0.0 }}
      c[vb, vi, vj] = c[vb, vi, vj] + a[vb, vi, vk] * w[vb, vj, vk]
    }}
  }} }} }} }}
}}"
        ),
    )
}

/// A convolution of an image with `c` channels to `f` channels, with a window of 3×3 and a border of zeros.
fn convolution(size: i64, c: i64, f: i64) -> Kernel {
    fixed(
        format!("convolution {size}×{size}×{c} to {f}"),
        format!(
            "kernel conv(in x: f32[{size}, {size}, {c}], in w: f32[3, 3, {c}, {f}], out y: f32[{size}, {size}, {f}]) {{
  for i in 0..{size} {{ for j in 0..{size} {{ for o in 0..{f} {{ for p in 0..3 {{ for q in 0..3 {{ for k in 0..{c} {{
    block y(vi: spatial {size} = i, vj: spatial {size} = j, vo: spatial {f} = o, vp: reduce 3 = p, vq: reduce 3 = q, vk: reduce {c} = k) {{
      init {{ y[vi, vj, vo] = 0.0 }}
      y[vi, vj, vo] = y[vi, vj, vo] + select((vi + vp >= 1) & (vi + vp < {last}) & (vj + vq >= 1) & (vj + vq < {last}), x[vi + vp - 1, vj + vq - 1, vk], 0.0) * w[vp, vq, vk, vo]
    }}
  }} }} }} }} }} }}
}}",
            last = size + 1
        ),
    )
}

fn softmax(m: i64, n: i64) -> Kernel {
    fixed(format!("softmax {m}×{n}"), texts::softmax(m, n))
}

fn layer_norm(m: i64, n: i64) -> Kernel {
    let scale = 1.0 / n as f64;
    fixed(
        format!("layer norm {m}×{n}"),
        format!(
            "kernel norm(in x: f32[{m}, {n}], in g: f32[{n}], out y: f32[{m}, {n}]) {{
  buffer mean: f32[{m}] global
  buffer square: f32[{m}] global
  for i in 0..{m} {{ for k in 0..{n} {{
    block mean(vi: spatial {m} = i, vk: reduce {n} = k) {{
      init {{ mean[vi] = 0.0 }}
      mean[vi] = mean[vi] + x[vi, vk] * {scale:.6}
    }}
  }} }}
  for i in 0..{m} {{ for k in 0..{n} {{
    block square(vi: spatial {m} = i, vk: reduce {n} = k) {{
      init {{ square[vi] = 0.0 }}
      square[vi] = square[vi] + (x[vi, vk] - mean[vi]) * (x[vi, vk] - mean[vi])
    }}
  }} }}
  for i in 0..{m} {{ for j in 0..{n} {{
    block y(vi: spatial {m} = i, vj: spatial {n} = j) {{
      y[vi, vj] = (x[vi, vj] - mean[vi]) / sqrt(square[vi] * {scale:.6} + 0.00001) * g[vj]
    }}
  }} }}
}}"
        ),
    )
}

fn sum(n: i64) -> Kernel {
    fixed(format!("sum of {n}"), texts::sum(n))
}

fn columns(n: i64) -> Kernel {
    fixed(format!("sums of columns of {n}"), texts::columns(n))
}
