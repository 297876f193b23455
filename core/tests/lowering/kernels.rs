//! Unscheduled kernels of every kind that lowering must handle.

use tilewright_core::program::Program;

/// Parses a kernel.
pub(crate) fn parse(text: &str) -> Program {
    text.trim().parse().unwrap_or_else(|error| panic!("{error}"))
}

/// Every kernel, by name, with some sizes of its dimensions.
pub(crate) const ALL: &[(&str, &str, &[&[i64]])] = &[
    (
        "matmul",
        MATMUL,
        &[&[5, 7, 6], &[8, 16, 4], &[13, 11, 1], &[1, 9, 3], &[0, 5, 3], &[1, 1, 1], &[5, 6, 0]],
    ),
    ("matmul_relu", MATMUL_RELU, &[&[]]),
    ("conv2d", CONV2D, &[&[6, 5, 3, 4], &[4, 8, 1, 8], &[3, 4, 0, 5]]),
    ("softmax", SOFTMAX, &[&[4, 9], &[1, 16], &[7, 1], &[3, 0]]),
    ("layer_norm", LAYER_NORM, &[&[5, 12], &[3, 7], &[4, 0]]),
    ("transposed", TRANSPOSED, &[&[6, 10], &[8, 8], &[3, 0]]),
    ("elementwise", ELEMENTWISE, &[&[17], &[32], &[0], &[1]]),
    ("total", TOTAL, &[&[6, 11], &[8, 8], &[0, 3], &[5, 0], &[0, 0]]),
    ("gather", GATHER, &[&[5, 8, 9]]),
    ("quantised", QUANTISED, &[&[5, 6, 16], &[3, 4, 0]]),
    ("max_pool", MAX_POOL, &[&[11, 6], &[8, 3]]),
    ("in_place", IN_PLACE, &[&[9, 6]]),
    ("wide_pad", WIDE_PAD, &[&[10, 4], &[5, 9]]),
    ("argmax", ARGMAX, &[&[5, 9], &[3, 0]]),
    ("windows", WINDOWS, &[&[4, 9, 3], &[3, 2, 5], &[2, 4, 5], &[5, 3, 0]]),
    ("stencils", STENCILS, &[&[13, 21], &[7, 5], &[1, 17]]),
    ("stretched", STRETCHED, &[&[3, 4, 2], &[5, 9, 3], &[1, 1, 1], &[4, 3, 0]]),
    ("pooled", POOLED, &[&[7, 19], &[11, 3], &[1, 1]]),
    ("padded", PADDED, &[&[7, 9, 5], &[1, 16, 3], &[2, 8, 0], &[13, 4, 1]]),
    ("triangle", TRIANGLE, &[&[9, 5], &[1, 7], &[16, 8], &[0, 3]]),
    ("head", HEAD, &[&[5, 7], &[8, 1], &[0, 3], &[4, 0]]),
    ("joined", JOINED, &[&[3, 5, 17], &[1, 4, 8], &[0, 2, 5], &[4, 0, 1], &[2, 3, 0]]),
];

/// Parts one after the other along the first and along the last axis, of which the second result uses the first.
const JOINED: &str = r#"
kernel joined(A, B, N, in a: f32[A, N], in b: f32[B, N], in c: f32[2, N], in d: f32[A + B + 2, 3], out y: f32[A + B + 2, N], out z: f32[A + B + 2, N + 3]) {
  for i in 0..A + B + 2 {
    for j in 0..N {
      block y(vi: spatial A + B + 2 = i, vj: spatial N = j) {
        y[vi, vj] = select(vi < A, a[vi, vj], select(vi < index(A + B), b[vi - A, vj], c[vi - A - B, vj]))
      }
    }
  }
  for i in 0..A + B + 2 {
    for j in 0..N + 3 {
      block z(vi: spatial A + B + 2 = i, vj: spatial N + 3 = j) {
        z[vi, vj] = select(vj < N, y[vi, vj], d[vi, vj - N]) + select(vi < A, select(vj < N, a[vi, vj], 1.0), 2.0)
      }
    }
  }
}
"#;

/// A matrix product.
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

/// A padded convolution, channels last.
const CONV2D: &str = r#"
kernel conv2d(H, W, C, O, in x: f32[H, W, C], in w: f32[3, 3, C, O], out y: f32[H, W, O]) {
  buffer padded: f32[H + 2, W + 2, C] global
  for h in 0..H + 2 {
    for s in 0..W + 2 {
      for c in 0..C {
        block padded(vh: spatial H + 2 = h, vw: spatial W + 2 = s, vc: spatial C = c) {
          padded[vh, vw, vc] = select((vh >= 1) & (vh <= H) & ((vw >= 1) & (vw <= W)), x[vh - 1, vw - 1, vc], 0.0)
        }
      }
    }
  }
  for h in 0..H {
    for s in 0..W {
      for o in 0..O {
        for r in 0..3 {
          for q in 0..3 {
            for c in 0..C {
              block y(vh: spatial H = h, vw: spatial W = s, vo: spatial O = o, vr: reduce 3 = r, vq: reduce 3 = q, vc: reduce C = c) {
                init { y[vh, vw, vo] = 0.0 }
                y[vh, vw, vo] = y[vh, vw, vo] + padded[vh + vr, vw + vq, vc] * w[vr, vq, vc, vo]
              }
            }
          }
        }
      }
    }
  }
}
"#;

/// A softmax over rows: a chain of reductions.
const SOFTMAX: &str = r#"
kernel softmax(M, N, in x: f32[M, N], out y: f32[M, N]) {
  buffer m: f32[M] global
  buffer e: f32[M, N] global
  buffer s: f32[M] global
  for i in 0..M {
    for j in 0..N {
      block m(vi: spatial M = i, vj: reduce N = j) {
        init { m[vi] = f32::NEG_INFINITY }
        m[vi] = max(m[vi], x[vi, vj])
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block e(vi: spatial M = i, vj: spatial N = j) {
        e[vi, vj] = exp(x[vi, vj] - m[vi])
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block s(vi: spatial M = i, vj: reduce N = j) {
        init { s[vi] = 0.0 }
        s[vi] = s[vi] + e[vi, vj]
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block y(vi: spatial M = i, vj: spatial N = j) {
        y[vi, vj] = e[vi, vj] / s[vi]
      }
    }
  }
}
"#;

/// A normalisation: two reductions and an expensive value that stays the same in the inner loop.
const LAYER_NORM: &str = r#"
kernel layer_norm(M, N, eps: f32, in x: f32[M, N], in g: f32[N], out y: f32[M, N]) {
  buffer s: f32[M] global
  buffer q: f32[M] global
  for i in 0..M {
    for j in 0..N {
      block s(vi: spatial M = i, vj: reduce N = j) {
        init { s[vi] = 0.0 }
        s[vi] = s[vi] + x[vi, vj]
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block q(vi: spatial M = i, vj: reduce N = j) {
        init { q[vi] = 0.0 }
        q[vi] = q[vi] + x[vi, vj] * x[vi, vj]
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block y(vi: spatial M = i, vj: spatial N = j) {
        y[vi, vj] = (x[vi, vj] - s[vi] / 12.0) * rsqrt(q[vi] / 12.0 + eps) * g[vj]
      }
    }
  }
}
"#;

/// A transposition and a sum.
const TRANSPOSED: &str = r#"
kernel transposed(M, N, in x: f32[M, N], in y: f32[N, M], out z: f32[N, M]) {
  buffer t: f32[N, M] global
  for j in 0..N {
    for i in 0..M {
      block t(vj: spatial N = j, vi: spatial M = i) {
        t[vj, vi] = x[vi, vj]
      }
    }
  }
  for j in 0..N {
    for i in 0..M {
      block z(vj: spatial N = j, vi: spatial M = i) {
        z[vj, vi] = t[vj, vi] + y[vj, vi]
      }
    }
  }
}
"#;

/// A chain of element-wise operations.
const ELEMENTWISE: &str = r#"
kernel elementwise(N, a: f32, in x: f32[N], in y: f32[N], out z: f32[N]) {
  buffer t: f32[N] global
  buffer u: f32[N] global
  for i in 0..N {
    block t(vi: spatial N = i) {
      t[vi] = tanh(x[vi]) * a
    }
  }
  for i in 0..N {
    block u(vi: spatial N = i) {
      u[vi] = select(t[vi] > 0.0, t[vi], y[vi] * 0.5)
    }
  }
  for i in 0..N {
    block z(vi: spatial N = i) {
      z[vi] = min(u[vi], 0.75) - t[vi] * y[vi]
    }
  }
}
"#;

/// A reduction of everything to one element.
const TOTAL: &str = r#"
kernel total(M, N, in x: f32[M, N], out t: f32[]) {
  for i in 0..M {
    for j in 0..N {
      block t(vi: reduce M = i, vj: reduce N = j) {
        init { t[] = 0.0 }
        t[] = t[] + x[vi, vj]
      }
    }
  }
}
"#;

/// Rows of a table, chosen by data.
const GATHER: &str = r#"
kernel gather(S, D, V, in ids: i32[S], in table: f32[V, D], out y: f32[S, D]) {
  for s in 0..S {
    for d in 0..D {
      block y(vs: spatial S = s, vd: spatial D = d) {
        y[vs, vd] = table[bounded(ids[vs] as i64, 0..V), vd] * 2.0
      }
    }
  }
}
"#;

/// An integer matrix product with narrow operands, rescaled.
const QUANTISED: &str = r#"
kernel quantised(M, N, K, in a: u8[M, K], in b: i8[K, N], out c: i8[M, N]) {
  buffer t: i32[M, N] global
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        block t(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) {
          init { t[vi, vj] = 0i32 }
          t[vi, vj] = t[vi, vj] + a[vi, vk] as i32 * b[vk, vj] as i32
        }
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block c(vi: spatial M = i, vj: spatial N = j) {
        c[vi, vj] = (max(min(round(t[vi, vj] as f32 * 0.03), 127.0), -128.0)) as i8
      }
    }
  }
}
"#;

/// Maxima over overlapping windows.
const MAX_POOL: &str = r#"
kernel max_pool(N, C, in x: f32[2*N + 1, C], out y: f32[N, C]) {
  for n in 0..N {
    for c in 0..C {
      for r in 0..3 {
        block y(vn: spatial N = n, vc: spatial C = c, vr: reduce 3 = r) {
          init { y[vn, vc] = f32::NEG_INFINITY }
          y[vn, vc] = max(y[vn, vc], x[2*vn + vr, vc])
        }
      }
    }
  }
}
"#;

/// An update in place under a condition on data.
const IN_PLACE: &str = r#"
kernel in_place(M, N, in m: bool[M], inout x: f32[M, N]) {
  for i in 0..M {
    for j in 0..N {
      block x(vi: spatial M = i, vj: spatial N = j) {
        if m[vi] {
          x[vi, vj] = x[vi, vj] * 2.0 + 1.0
        }
      }
    }
  }
}
"#;

/// A reduction that the schedule does not see: loops and conditions inside the block.
const ARGMAX: &str = r#"
kernel argmax(M, N, in x: f32[M, N], out p: i64[M]) {
  buffer best: f32[M] global
  for i in 0..M {
    block p(vi: spatial M = i) {
      best[vi] = f32::NEG_INFINITY
      p[vi] = 0
      for j in 0..N {
        if x[vi, j] > best[vi] {
          best[vi] = x[vi, j]
          p[vi] = index(j)
        }
      }
    }
  }
}
"#;

/// Padding wider than tiles, and a value that needs none.
const WIDE_PAD: &str = r#"
kernel wide_pad(N, C, in x: f32[N, C], out y: f32[N + 19, C], out z: f32[N + 19, C]) {
  for n in 0..N + 19 {
    for c in 0..C {
      block y(vn: spatial N + 19 = n, vc: spatial C = c) {
        y[vn, vc] = select((vn >= 9) & (vn < N + 9), x[vn - 9, vc], 0.0) + 1.0
      }
    }
  }
  for n in 0..N + 19 {
    for c in 0..C {
      block z(vn: spatial N + 19 = n, vc: spatial C = c) {
        z[vn, vc] = y[vn, vc] * 2.0
      }
    }
  }
}
"#;

/// Sums over as many elements as there are places for a window, onto a value of another kernel's: none when the window
/// is wider than the row.
const WINDOWS: &str = r#"
kernel windows(M, N, W, in x: f32[M, N], in b: f32[M], out y: f32[M, 6]) {
  buffer h: f32[M] global
  for i in 0..M {
    block h(vi: spatial M = i) {
      h[vi] = b[vi] * 0.5
    }
  }
  for i in 0..M {
    for c in 0..6 {
      for w in 0..N - W + 1 {
        for r in 0..4 {
          block y(vi: spatial M = i, vc: spatial 6 = c, vw: reduce N - W + 1 = w, vr: reduce 4 = r) {
            init { y[vi, vc] = h[vi] }
            y[vi, vc] = y[vi, vc] + select(vw + vr < N, x[vi, (vw + vr) % N], 0.0)
          }
        }
      }
    }
  }
}
"#;

/// Two layers of sums over neighbourhoods, of which the second reads several rows and columns of the first.
pub(crate) const STENCILS: &str = r#"
kernel stencils(H, W, in x: f32[H + 4, W + 4], out y: f32[H, W]) {
  buffer b: f32[H + 2, W + 2] global
  for i in 0..H + 2 {
    for j in 0..W + 2 {
      block b(vi: spatial H + 2 = i, vj: spatial W + 2 = j) {
        b[vi, vj] = x[vi, vj + 1] + x[vi + 1, vj] * 2.0 - x[vi + 1, vj + 2] + x[vi + 2, vj + 1] * 0.5
      }
    }
  }
  for i in 0..H {
    for j in 0..W {
      block y(vi: spatial H = i, vj: spatial W = j) {
        y[vi, vj] = max(b[vi, vj] - b[vi + 1, vj + 1] * 3.0 + b[vi + 2, vj + 2], b[vi + 1, vj])
      }
    }
  }
}
"#;

/// A layer of sums, and maxima over windows that move by two rows and are four rows high.
pub(crate) const POOLED: &str = r#"
kernel pooled(H, C, in x: f32[2*H + 2, 6], in w: f32[6, C], in bias: f32[C], out y: f32[H, C]) {
  buffer s: f32[2*H + 2, C] global
  buffer r: f32[2*H + 2, C] global
  for i in 0..2*H + 2 {
    for c in 0..C {
      for k in 0..6 {
        block s(vi: spatial 2*H + 2 = i, vc: spatial C = c, vk: reduce 6 = k) {
          init { s[vi, vc] = bias[vc] }
          s[vi, vc] = s[vi, vc] + x[vi, vk] * w[vk, vc]
        }
      }
    }
  }
  for i in 0..2*H + 2 {
    for c in 0..C {
      block r(vi: spatial 2*H + 2 = i, vc: spatial C = c) {
        r[vi, vc] = max(s[vi, vc], 0.0)
      }
    }
  }
  for i in 0..H {
    for c in 0..C {
      for k in 0..4 {
        block y(vi: spatial H = i, vc: spatial C = c, vk: reduce 4 = k) {
          init { y[vi, vc] = f32::NEG_INFINITY }
          y[vi, vc] = max(y[vi, vc], r[2*vi + vk, vc])
        }
      }
    }
  }
}
"#;

/// Rows and columns stretched to other sizes, with the neighbour to the right.
pub(crate) const STRETCHED: &str = r#"
kernel stretched(M, N, C, in x: f32[M, N, C], out y: f32[M*2, N*3, C], out z: f32[M*3, N, C]) {
  for i in 0..M*2 {
    for j in 0..N*3 {
      for c in 0..C {
        block y(vi: spatial M*2 = i, vj: spatial N*3 = j, vc: spatial C = c) {
          y[vi, vj, vc] = x[vi/2, vj/3, vc] * 0.75 + select(index(vj/3 + 1) < index(N), x[vi/2, vj/3 + 1, vc], 0.0)
        }
      }
    }
  }
  for i in 0..M*3 {
    for j in 0..N {
      for c in 0..C {
        block z(vi: spatial M*3 = i, vj: spatial N = j, vc: spatial C = c) {
          z[vi, vj, vc] = x[min(vi/2, M - 1), N - 1 - vj, vc] + x[vi%M, vj, vc]
        }
      }
    }
  }
}
"#;

/// A chain of which the middle reads only a part of what the first step makes.
const HEAD: &str = r#"
kernel head(M, N, in x: f32[M + 3, N], out y: f32[M, N]) {
  buffer t: f32[M + 3, N] global
  buffer c: f32[M, N] global
  for i in 0..M + 3 {
    for j in 0..N {
      block t(vi: spatial M + 3 = i, vj: spatial N = j) {
        t[vi, vj] = x[vi, vj] * 2.0
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block c(vi: spatial M = i, vj: spatial N = j) {
        c[vi, vj] = t[vi, vj] + 1.0
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block y(vi: spatial M = i, vj: spatial N = j) {
        y[vi, vj] = c[vi, vj] * c[vi, vj]
      }
    }
  }
}
"#;

/// A dilated convolution over one dimension and the largest element around each, with padding on both sides.
pub(crate) const PADDED: &str = r#"
kernel padded(N, O, C, in x: f32[N, C], in w: f32[5, C, O], out y: f32[N, O], out m: f32[N, C]) {
  for n in 0..N {
    for o in 0..O {
      for k in 0..5 {
        for c in 0..C {
          block y(vn: spatial N = n, vo: spatial O = o, vk: reduce 5 = k, vc: reduce C = c) {
            init { y[vn, vo] = 0.0 }
            y[vn, vo] = y[vn, vo] + select((vn + vk*2 >= 4) & (vn + vk*2 < N + 4), x[vn + vk*2 - 4, vc], 0.0) * w[vk, vc, vo]
          }
        }
      }
    }
  }
  for n in 0..N {
    for c in 0..C {
      for k in 0..3 {
        block m(vn: spatial N = n, vc: spatial C = c, vk: reduce 3 = k) {
          init { m[vn, vc] = f32::NEG_INFINITY }
          m[vn, vc] = max(m[vn, vc], select((vn + vk >= 1) & (vn + vk < N + 1), x[vn + vk - 1, vc], f32::NEG_INFINITY))
        }
      }
    }
  }
}
"#;

/// A product with the lower triangle of a matrix.
pub(crate) const TRIANGLE: &str = r#"
kernel triangle(N, M, in a: f32[N, N], in b: f32[N, M], out c: f32[N, M]) {
  for i in 0..N {
    for j in 0..M {
      for k in 0..N {
        block c(vi: spatial N = i, vj: spatial M = j, vk: reduce N = k) {
          init { c[vi, vj] = 0.0 }
          c[vi, vj] = c[vi, vj] + select(vk <= vi, a[vi, vk] * b[vk, vj], 0.0)
        }
      }
    }
  }
}
"#;
