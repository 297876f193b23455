//! The kernels whose meaning is kept.

use tilewright_core::program::{Access, Program};
use tilewright_core::tensor::{AnyTensor, Random};

/// A kernel, and dimensions to run it with.
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) dims: &'static [&'static [i64]],
}

impl Kernel {
    pub(crate) fn program(&self) -> Program {
        self.text.parse().unwrap_or_else(|error| panic!("{error}\n{}", self.text))
    }

    /// Small random arguments, of which `i64` ones are indices below 3.
    pub(crate) fn arguments(&self, dims: &[i64]) -> Vec<AnyTensor> {
        let program = self.program();
        let names: Vec<_> = program.dims().map(|(var, _)| var).collect();
        let extent = |index: &tilewright_core::index::Index| {
            let value = index.substitute(&|var| {
                let position = names.iter().position(|name| *name == var)?;
                Some(dims[position].into())
            });
            value.as_constant().expect("a shape of dimensions") as usize
        };
        let mut random = Random::new(dims.iter().sum::<i64>() as u64);
        let tensors = program.buffer_params().map(|(id, access)| {
            let buffer = program.buffer(id);
            let shape: Vec<usize> = buffer.shape.iter().map(extent).collect();
            match access {
                Access::Output => AnyTensor::zeros(buffer.dtype, &shape),
                _ => AnyTensor::random_indices(buffer.dtype, &shape, 3, random.bits()),
            }
        });
        tensors.collect::<Result<_, _>>().expect("small tensors")
    }
}

pub(crate) const KERNELS: &[Kernel] = &[
    Kernel {
        name: "biased_sums",
        dims: &[&[1, 1], &[5, 3], &[8, 6]],
        text: "
kernel biased_sums(M, K, in a: i32[M, K], in b: i32[M], out s: i32[M]) {
  buffer c: i32[M] global
  for i in 0..M {
    block c(vi: spatial M = i) {
      c[vi] = b[vi] * 2i32
    }
  }
  for i in 0..M {
    for k in 0..K {
      block s(vi: spatial M = i, vk: reduce K = k) {
        init { s[vi] = c[vi] }
        s[vi] = s[vi] + a[vi, vk]
      }
    }
  }
}
",
    },
    Kernel {
        name: "matmul_relu",
        dims: &[&[1, 1, 1], &[5, 7, 3], &[8, 4, 6]],
        text: "
kernel matmul_relu(M, N, K, in a: i32[M, K], in b: i32[K, N], in bias: i32[N], out d: i32[M, N]) {
  buffer c: i32[M, N] global
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        block c(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) {
          init { c[vi, vj] = 0i32 }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block d(vi: spatial M = i, vj: spatial N = j) {
        d[vi, vj] = max(c[vi, vj] + bias[vj], 1i32)
      }
    }
  }
}",
    },
    Kernel {
        name: "matmul_fixed",
        dims: &[&[]],
        text: "
kernel matmul_fixed(in a: i32[8, 12], in b: i32[12, 6], out c: i32[8, 6]) {
  for i in 0..8 {
    for j in 0..6 {
      for k in 0..12 {
        block c(vi: spatial 8 = i, vj: spatial 6 = j, vk: reduce 12 = k) {
          init { c[vi, vj] = 3i32 }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}",
    },
    Kernel {
        name: "padded_convolution",
        dims: &[&[1, 1], &[6, 3], &[9, 2]],
        text: "
kernel padded_convolution(W, C, in x: i32[W, C], in w: i32[3, C, 4], out y: i32[W, 4]) {
  buffer p: i32[W + 2, C] global
  for i in 0..W + 2 {
    for c in 0..C {
      block p(vi: spatial W + 2 = i, vc: spatial C = c) {
        p[vi, vc] = select((index(vi) > 0) & (index(vi) <= index(W)), x[vi - 1, vc], 0i32)
      }
    }
  }
  for i in 0..W {
    for o in 0..4 {
      for r in 0..3 {
        for c in 0..C {
          block y(vi: spatial W = i, vo: spatial 4 = o, vr: reduce 3 = r, vc: reduce C = c) {
            init { y[vi, vo] = 0i32 }
            y[vi, vo] = y[vi, vo] + p[vi + vr, vc] * w[vr, vc, vo]
          }
        }
      }
    }
  }
}",
    },
    Kernel {
        name: "normalised_rows",
        dims: &[&[1, 1], &[4, 5], &[3, 8]],
        text: "
kernel normalised_rows(M, N, in x: i32[M, N], out y: i32[M, N]) {
  buffer top: i32[M] global
  buffer total: i32[M] global
  for i in 0..M {
    for j in 0..N {
      block top(vi: spatial M = i, vj: reduce N = j) {
        init { top[vi] = -100i32 }
        top[vi] = max(top[vi], x[vi, vj])
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block total(vi: spatial M = i, vj: reduce N = j) {
        init { total[vi] = 0i32 }
        total[vi] = total[vi] + (x[vi, vj] - top[vi])
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block y(vi: spatial M = i, vj: spatial N = j) {
        y[vi, vj] = (x[vi, vj] - top[vi]) * total[vi]
      }
    }
  }
}",
    },
    Kernel {
        name: "chain",
        dims: &[&[1], &[7], &[12]],
        text: "
kernel chain(N, in x: i32[N, 4], out y: i32[4, N]) {
  buffer a: i32[N, 4] global
  buffer b: i32[N, 4] global
  for i in 0..N {
    for j in 0..4 {
      block a(vi: spatial N = i, vj: spatial 4 = j) {
        a[vi, vj] = x[vi, vj] * 3i32
      }
    }
  }
  for i in 0..N {
    for j in 0..4 {
      block b(vi: spatial N = i, vj: spatial 4 = j) {
        b[vi, vj] = a[vi, vj] + x[vi, 3 - vj]
      }
    }
  }
  for j in 0..4 {
    for i in 0..N {
      block y(vj: spatial 4 = j, vi: spatial N = i) {
        y[vj, vi] = b[vi, vj] - 1i32
      }
    }
  }
}",
    },
    Kernel {
        name: "reversed_in_place",
        dims: &[&[1], &[2], &[7]],
        text: "
kernel reversed_in_place(N, in bias: i32[N], inout d: i32[N]) {
  buffer b: i32[N] global
  buffer s: i32[N] global
  for i in 0..N {
    block b(v: spatial N = i) {
      b[v] = d[N - 1 - v]
    }
  }
  for i in 0..N {
    for r in 0..3 {
      block s(v: spatial N = i, vr: reduce 3 = r) {
        init { s[v] = 2i32 }
        s[v] = s[v] + b[v] * d[v]
      }
    }
  }
  for i in 0..N {
    block d(v: spatial N = i) {
      d[v] = s[v] + bias[v]
    }
  }
}",
    },
    Kernel {
        name: "updated_in_place",
        dims: &[&[1, 1], &[5, 3], &[4, 6]],
        text: "
kernel updated_in_place(M, N, in a: i32[M, N], inout e: i32[M, N]) {
  buffer b: i32[M, N] global
  for i in 0..M {
    for j in 0..N {
      block b(vi: spatial M = i, vj: spatial N = j) {
        b[vi, vj] = a[vi, vj] - 1i32
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block e(vi: spatial M = i, vj: spatial N = j) {
        e[vi, vj] = e[vi, vj] * 3i32 + b[vi, vj]
      }
    }
  }
}",
    },
    Kernel {
        name: "stencils",
        dims: &[&[1, 1], &[5, 3], &[8, 6]],
        text: "
kernel stencils(H, W, in x: i32[H + 4, W + 2], out y: i32[H, W]) {
  buffer a: i32[H + 2, W + 2] global
  buffer b: i32[H, W + 2] global
  for i in 0..H + 2 {
    for j in 0..W + 2 {
      block a(vi: spatial H + 2 = i, vj: spatial W + 2 = j) {
        a[vi, vj] = x[vi, vj] - x[vi + 1, vj] * 3i32 + x[vi + 2, vj]
      }
    }
  }
  for i in 0..H {
    for j in 0..W + 2 {
      block b(vi: spatial H = i, vj: spatial W + 2 = j) {
        b[vi, vj] = a[vi, vj] + a[vi + 2, vj]
      }
    }
  }
  for i in 0..H {
    for j in 0..W {
      block y(vi: spatial H = i, vj: spatial W = j) {
        y[vi, vj] = b[vi, vj] * 2i32 - b[vi, vj + 1] + b[vi, vj + 2]
      }
    }
  }
}",
    },
    Kernel {
        name: "pooled_sums",
        dims: &[&[1, 1], &[4, 3], &[7, 5]],
        text: "
kernel pooled_sums(H, C, in x: i32[2*H + 1, C, 3], out y: i32[H, C]) {
  buffer s: i32[2*H + 1, C] global
  for i in 0..2*H + 1 {
    for c in 0..C {
      for r in 0..3 {
        block s(vi: spatial 2*H + 1 = i, vc: spatial C = c, vr: reduce 3 = r) {
          init { s[vi, vc] = 1i32 }
          s[vi, vc] = s[vi, vc] + x[vi, vc, vr]
        }
      }
    }
  }
  for i in 0..H {
    for c in 0..C {
      for r in 0..3 {
        block y(vi: spatial H = i, vc: spatial C = c, vr: reduce 3 = r) {
          init { y[vi, vc] = -100i32 }
          y[vi, vc] = max(y[vi, vc], s[2*vi + vr, vc])
        }
      }
    }
  }
}",
    },
    Kernel {
        name: "padded_stencil",
        dims: &[&[1], &[4], &[9]],
        text: "
kernel padded_stencil(H, in x: i32[H, 5], out y: i32[H, 5]) {
  buffer p: i32[H, 5] global
  for i in 0..H {
    for j in 0..5 {
      block p(vi: spatial H = i, vj: spatial 5 = j) {
        p[vi, vj] = x[vi, vj] * 5i32
      }
    }
  }
  for i in 0..H {
    for j in 0..5 {
      block y(vi: spatial H = i, vj: spatial 5 = j) {
        y[vi, vj] = p[vi, vj] + select(index(vi) > 0, p[vi - 1, vj], 0i32) + select(index(vi) < index(H - 1), p[vi + 1, vj], 7i32)
      }
    }
  }
}",
    },
    Kernel {
        name: "pooled_twice",
        dims: &[&[1, 1], &[5, 4], &[9, 7]],
        text: "
kernel pooled_twice(H, W, in x: i32[H + 4, W + 4], out y: i32[H, W]) {
  buffer p: i32[H + 2, W + 2] global
  for i in 0..H + 2 {
    for j in 0..W + 2 {
      for r in 0..3 {
        for s in 0..3 {
          block p(vi: spatial H + 2 = i, vj: spatial W + 2 = j, vr: reduce 3 = r, vs: reduce 3 = s) {
            init { p[vi, vj] = -9i32 }
            p[vi, vj] = max(p[vi, vj], x[vi + vr, vj + vs] * 3i32)
          }
        }
      }
    }
  }
  for i in 0..H {
    for j in 0..W {
      for r in 0..3 {
        for s in 0..3 {
          block y(vi: spatial H = i, vj: spatial W = j, vr: reduce 3 = r, vs: reduce 3 = s) {
            init { y[vi, vj] = 1i32 }
            y[vi, vj] = y[vi, vj] + p[vi + vr, vj + vs]
          }
        }
      }
    }
  }
}",
    },
    Kernel {
        name: "upscaled",
        dims: &[&[1], &[5], &[9]],
        text: "
kernel upscaled(H, in x: i32[H + 2, 3], out y: i32[2*H, 3]) {
  buffer b: i32[H + 2, 3] global
  for i in 0..H + 2 {
    for c in 0..3 {
      block b(vi: spatial H + 2 = i, vc: spatial 3 = c) {
        b[vi, vc] = x[vi, vc] * 7i32
      }
    }
  }
  for i in 0..2*H {
    for c in 0..3 {
      block y(vi: spatial 2*H = i, vc: spatial 3 = c) {
        y[vi, vc] = b[vi/2, vc] - b[vi/2 + 1, vc] + b[vi/2 + 2, vc]
      }
    }
  }
}",
    },
    Kernel {
        name: "embedding_sum",
        dims: &[&[1, 1], &[5, 6]],
        text: "
kernel embedding_sum(T, D, in ids: i64[T], in table: i32[3, D], out y: i32[D]) {
  for t in 0..T {
    for d in 0..D {
      block y(vt: reduce T = t, vd: spatial D = d) {
        init { y[vd] = 0i32 }
        y[vd] = y[vd] + table[bounded(ids[vt], 0..3), vd]
      }
    }
  }
}",
    },
    Kernel {
        name: "head",
        dims: &[&[1, 1], &[5, 3], &[8, 6], &[0, 4], &[4, 0]],
        text: "
kernel head(M, N, in a: i32[M + 3, N], out y: i32[M, N]) {
  buffer t: i32[M + 3, N] global
  buffer c: i32[M, N] global
  for i in 0..M + 3 {
    for j in 0..N {
      block t(vi: spatial M + 3 = i, vj: spatial N = j) {
        t[vi, vj] = a[vi, vj] * 2i32
      }
    }
  }
  for i in 0..M {
    for j in 0..N {
      block c(vi: spatial M = i, vj: spatial N = j) {
        c[vi, vj] = t[vi, vj] + 1i32
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
}",
    },
];
