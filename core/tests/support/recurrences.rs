//! Kernels with loops that carry values. All elements are integers, so that results can be compared exactly.

/// The kernels by name, with sizes of their dimensions.
pub(crate) const RECURRENCES: &[(&str, &str, &[&[i64]])] = &[
    ("running", RUNNING, &[&[5, 9], &[1, 1], &[8, 16], &[3, 0], &[0, 3]]),
    ("columns", COLUMNS, &[&[5, 37], &[1, 1], &[8, 16], &[0, 3]]),
    ("recurrent", RECURRENT, &[&[4, 9], &[1, 1], &[3, 16], &[0, 3], &[3, 0]]),
    ("batched", BATCHED, &[&[4, 5, 3], &[1, 1, 1], &[6, 2, 16], &[3, 0, 4], &[0, 2, 2]]),
    ("sequences", SEQUENCES, &[&[3, 5, 4], &[1, 1, 1], &[4, 2, 8], &[2, 0, 3]]),
    ("scattered", SCATTERED, &[&[11, 5, 8], &[1, 1, 9], &[6, 16, 8], &[0, 3, 8]]),
    ("relaxed", RELAXED, &[&[5, 7], &[1, 1], &[8, 16]]),
    ("diagonal", DIAGONAL, &[&[4, 6], &[1, 1], &[9, 3]]),
];

/// The running sum and maximum of each row.
const RUNNING: &str = r#"
kernel running(M, N, in x: i32[M, N], out y: i32[M, N]) {
  buffer s: i32[M] global
  buffer t: i32[M, N] global
  for i in 0..M {
    for j in 0..N {
      block t(vi: spatial M = i, vj: spatial N = j) {
        t[vi, vj] = x[vi, vj] * 3i32 - 4i32
      }
    }
  }
  for i in 0..M {
    block s_init(vi: spatial M = i) {
      s[vi] = 1i32
    }
  }
  for i in 0..M {
    for j in 0..N {
      block s(vi: spatial M = i, vj: ordered N = j) {
        s[vi] = max(s[vi] + t[vi, vj], -9i32)
      }
      block y(wi: spatial M = i, wj: ordered N = j) {
        y[wi, wj] = s[wi] * 2i32 + x[wi, wj]
      }
    }
  }
}
"#;

/// A recurrence down the columns, then another one up the rows.
const COLUMNS: &str = r#"
kernel columns(M, N, in x: i32[M, N], inout y: i32[M + 1, N], out z: i32[M + 1, N]) {
  for i in 0..M {
    for j in 0..N {
      block y(vi: ordered M = i, vj: spatial N = j) {
        y[vi + 1, vj] = y[vi, vj] * 2i32 - x[vi, vj]
      }
    }
  }
  for i in 0..M + 1 {
    for j in 0..N {
      block z(vi: spatial M + 1 = i, vj: spatial N = j) {
        z[vi, vj] = y[vi, vj] + 1i32
      }
    }
  }
}
"#;

/// A recurrent state that a matrix maps in each step.
const RECURRENT: &str = r#"
kernel recurrent(T, H, in x: i32[T, H], in w: i32[H, H], out y: i32[T, H]) {
  buffer state: i32[H] global
  buffer next: i32[H] global
  buffer bias: i32[H] global
  for j in 0..H {
    block bias(vj: spatial H = j) {
      bias[vj] = w[vj, 0] - 3i32
    }
  }
  for j in 0..H {
    block state_init(vj: spatial H = j) {
      state[vj] = 1i32
    }
  }
  for t in 0..T {
    for j in 0..H {
      for k in 0..H {
        block next(vt: ordered T = t, vj: spatial H = j, vk: reduce H = k) {
          init { next[vj] = bias[vj] }
          next[vj] = next[vj] + w[vj, vk] * state[vk]
        }
      }
    }
    for j in 0..H {
      block state(vt: ordered T = t, vj: spatial H = j) {
        state[vj] = min(max(next[vj] + x[vt, vj], -20i32), 20i32)
      }
    }
    for j in 0..H {
      block y(vt: ordered T = t, vj: spatial H = j) {
        y[vt, vj] = state[vj] - bias[vj]
      }
    }
  }
}
"#;

/// The same for several sequences, each with a state of its own.
const BATCHED: &str = r#"
kernel batched(B, T, H, in x: i32[B, T, H], in w: i32[H, H], out y: i32[B, T, H]) {
  buffer state: i32[B, H] global
  buffer next: i32[B, T, H] global
  for b in 0..B {
    for j in 0..H {
      block state_init(vb: spatial B = b, vj: spatial H = j) {
        state[vb, vj] = 1i32
      }
    }
  }
  for b in 0..B {
    for t in 0..T {
      for j in 0..H {
        for k in 0..H {
          block next(vb: spatial B = b, vt: ordered T = t, vj: spatial H = j, vk: reduce H = k) {
            init { next[vb, vt, vj] = 0i32 }
            next[vb, vt, vj] = next[vb, vt, vj] + w[vj, vk] * state[vb, vk]
          }
        }
      }
      for j in 0..H {
        block state(vb: spatial B = b, vt: ordered T = t, vj: spatial H = j) {
          state[vb, vj] = min(max(next[vb, vt, vj] + x[vb, vt, vj], -20i32), 20i32)
        }
      }
      for j in 0..H {
        block y(vb: spatial B = b, vt: ordered T = t, vj: spatial H = j) {
          y[vb, vt, vj] = state[vb, vj] + w[vj, 0]
        }
      }
    }
  }
}
"#;

/// The same for several sequences, the state of each step kept.
const SEQUENCES: &str = r#"
kernel sequences(B, T, H, in x: i32[B, T, H], in w: i32[H, H], out y: i32[B, T, H], out last: i32[B, H]) {
  buffer state: i32[B, T + 1, H] global
  for b in 0..B {
    for j in 0..H {
      block state_init(vb: spatial B = b, vj: spatial H = j) {
        state[vb, 0, vj] = 0i32
      }
    }
  }
  for b in 0..B {
    for t in 0..T {
      for j in 0..H {
        for k in 0..H {
          block state(vb: spatial B = b, vt: ordered T = t, vj: spatial H = j, vk: reduce H = k) {
            init { state[vb, vt + 1, vj] = x[vb, vt, vj] }
            state[vb, vt + 1, vj] = state[vb, vt + 1, vj] + w[vj, vk] * state[vb, vt, vk]
          }
        }
      }
    }
  }
  for b in 0..B {
    for t in 0..T {
      for j in 0..H {
        block y(vb: spatial B = b, vt: spatial T = t, vj: spatial H = j) {
          y[vb, vt, vj] = state[vb, vt + 1, vj] * 2i32
        }
      }
    }
  }
  for b in 0..B {
    for j in 0..H {
      block last(vb: spatial B = b, vj: spatial H = j) {
        last[vb, vj] = state[vb, T, vj]
      }
    }
  }
}
"#;

/// Rows added to those that data choose, and counted.
const SCATTERED: &str = r#"
kernel scattered(N, D, BINS, in ids: i32[N], in x: i32[N, D], out h: i32[BINS, D], out last: i32[BINS]) {
  for i in 0..BINS {
    for d in 0..D {
      block h_init(vi: spatial BINS = i, vd: spatial D = d) {
        h[vi, vd] = 0i32
      }
    }
  }
  for i in 0..BINS {
    block last_init(vi: spatial BINS = i) {
      last[vi] = -1i32
    }
  }
  for i in 0..N {
    for d in 0..D {
      block h(vi: ordered N = i, vd: spatial D = d) {
        h[bounded(ids[vi] as i64, 0..BINS), vd] = h[bounded(ids[vi] as i64, 0..BINS), vd] + x[vi, vd] * 2i32
      }
    }
  }
  for i in 0..N {
    block last(vi: ordered N = i) {
      last[bounded(ids[vi] as i64, 0..BINS)] = index(vi) as i32
    }
  }
}
"#;

/// Neighbours combined in place, in order.
const RELAXED: &str = r#"
kernel relaxed(M, N, inout x: i32[M + 2, N + 2]) {
  for i in 0..M {
    for j in 0..N {
      block x(vi: ordered M = i, vj: ordered N = j) {
        x[vi + 1, vj + 1] = x[vi, vj + 1] + x[vi + 2, vj + 1] - x[vi + 1, vj] + x[vi + 1, vj + 2]
      }
    }
  }
}
"#;

/// A recurrence along diagonals: rows in order, columns of one row independent.
const DIAGONAL: &str = r#"
kernel diagonal(M, N, inout y: i32[M + 1, N + 1]) {
  for i in 0..M {
    for j in 0..N {
      block y(vi: ordered M = i, vj: spatial N = j) {
        y[vi + 1, vj] = y[vi, vj + 1] * 2i32 + 1i32
      }
    }
  }
}
"#;
