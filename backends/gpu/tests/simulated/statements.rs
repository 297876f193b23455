//! Loops, conditions, shared memory, barriers and checks.

use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;
use tilewright_core::tensor::AnyTensor;

use crate::support::{Call, code_of, computed_types, parse, scheduled};

#[test]
fn a_reduction_of_one_thread() {
    for (rows, columns) in [(1, 1), (3, 7), (65, 33)] {
        let program = parse(&format!(
            "kernel sums(in a: f32[{rows}, {columns}], out s: f32[{rows}]) {{
  for i in 0..{rows} {{
    for k in 0..{columns} {{
      block s(vi: spatial {rows} = i, vk: reduce {columns} = k) {{
        init {{ s[vi] = 0.0 }}
        s[vi] = s[vi] + a[vi, vk]
      }}
    }}
  }}
}}"
        ));
        let flat = scheduled(
            &program,
            "%0 = get_block \"s\"
%1, %2 = get_loops %0
%3, %4 = split %1, [none, 32]
bind %3, \"block_x\"
bind %4, \"thread_x\"",
        );
        Call::random(&program, &[], 3).check(&flat);
    }
}

#[test]
fn a_reduction_of_a_block_in_shared_memory() {
    let flat = parse(
        "kernel sums(in a: f32[640], out s: f32[5]) {
  buffer p: f32[16] shared
  buffer r: f32[1] local
  bound block_x for b in 0..5 {
    alloc p {
      bound thread_x for t in 0..16 {
        alloc r {
          r[0] = 0.0
          for k in 0..8 { r[0] = r[0] + a[b*128 + k*16 + t] }
          p[t] = r[0]
        }
        barrier()
        if t < 1 {
          s[b] = 0.0
          for k in 0..16 { s[b] = s[b] + p[k] }
        }
      }
    }
  }
}",
    );
    Call::random(&flat, &[], 3).check(&flat);
}

#[test]
fn memory_of_one_thread_that_registers_cannot_hold() {
    let flat = parse(
        "kernel reverse(in a: f32[64], out y: f32[64]) {
  buffer r: f32[8] local
  bound thread_x for t in 0..8 {
    alloc r {
      for k in 0..8 { r[k] = a[t*8 + k] }
      for k in 0..8 { y[t*8 + k] = r[7 - k] }
    }
  }
}",
    );
    Call::random(&flat, &[], 1).check(&flat);
}

#[test]
fn a_load_under_a_condition_stays_inside() {
    let flat = parse(
        "kernel pad(in a: f32[6], out y: f32[8]) {
  bound thread_x for t in 0..8 {
    y[t] = select((t >= 1) & (t < 7), a[t - 1], 0.0)
  }
}",
    );
    Call::random(&flat, &[], 1).check(&flat);
}

#[test]
fn scalars_of_every_type() {
    for dtype in computed_types() {
        let program = parse(&format!(
            "kernel fill(x: {dtype}, out y: {dtype}[3]) {{
  bound thread_x for t in 0..3 {{ y[t] = x }}
}}"
        ));
        let scalar = if dtype.is_float() { Constant::float(1.5) } else { Constant::Int(1) };
        let tensors = vec![AnyTensor::zeros(dtype, &[3]).unwrap()];
        Call { scalars: vec![scalar], tensors, ..Call::default() }.check(&program);
    }
}

#[test]
fn an_index_out_of_bounds_is_recorded_once() {
    let flat = parse(
        "kernel gather(in i: i64[4], in a: f32[8], out y: f32[4]) {
  bound thread_x for t in 0..4 { y[t] = a[bounded(i[t], 0..8)] }
}",
    );
    let code = code_of(&flat);
    assert!(code.can_fail());
    for (indices, failure) in
        [([0, 7, 3, 3], [0, 0, 0]), ([0, 8, 1, 2], [1, 8, 8]), ([-1, 1, 1, 1], [1, -1, 8])]
    {
        let tensors = vec![
            AnyTensor::from_slice(&indices.map(i64::from), &[4]).unwrap(),
            AnyTensor::from_f64s(DType::F32, &[0., 1., 2., 3., 4., 5., 6., 7.], &[8]).unwrap(),
            AnyTensor::zeros(DType::F32, &[4]).unwrap(),
        ];
        let outcome = Call { tensors, ..Call::default() }.simulated(&flat, &code);
        assert_eq!(outcome.failure, failure);
    }
}

#[test]
fn several_nests_are_several_kernels() {
    let program = parse(
        "kernel chain(N, in a: f32[N], out y: f32[N]) {
  buffer b: f32[N] global
  for i in 0..N { block b(v: spatial N = i) { b[v] = a[v] + 1.0 } }
  for i in 0..N { block y(v: spatial N = i) { y[v] = b[N - 1 - v] * 2.0 } }
}",
    );
    let bind = |first: u32, block: &str| {
        format!(
            "%{first} = get_block \"{block}\"\n%{} = get_loops %{first}\n%{}, %{} = split %{}, [none, 32]\nbind %{}, \"block_x\"\nbind %{}, \"thread_x\"\n",
            first + 1,
            first + 2,
            first + 3,
            first + 1,
            first + 2,
            first + 3
        )
    };
    let flat = scheduled(&program, &(bind(0, "b") + &bind(4, "y")));
    let code = code_of(&flat);
    assert_eq!((code.launches.len(), code.workspaces.len()), (2, 1), "{flat}");
    for len in [0, 1, 32, 77] {
        Call::random(&program, &[len], 1).check(&flat);
    }
    assert_eq!(code.ptx, code_of(&parsed_again(&flat)).ptx);
}

/// The same program from its text: its emission must not depend on identities.
fn parsed_again(flat: &tilewright_core::program::Program) -> tilewright_core::program::Program {
    parse(&flat.to_string())
}

/// Elements beside each other that several statements load, in an order of their own: some begin at multiples of 16 bytes, some lack a
/// neighbour, some are loaded under a condition alone, and some change in between.
#[test]
fn loads_of_statements_that_follow_each_other_are_one() {
    for (dtype, wide) in [(DType::F32, "v4.f32"), (DType::F64, "v2.f64"), (DType::I32, "v4.b32")] {
        let flat = parse(&format!(
            "kernel steps(in a: {dtype}[256], in c: {dtype}[64], out y: {dtype}[80], inout z: {dtype}[64]) {{
  buffer s: {dtype}[5] local
  bound thread_x for t in 0..16 {{
    alloc s {{
      s[0] = a[t*16 + 1] + a[t*16 + 3]
      s[1] = a[t*16] * a[t*16 + 2]
      s[2] = a[t*16 + 5] + select(t < 8, a[t*16 + 6], a[t*16 + 5]) + a[t*16 + 9]
      s[3] = a[t*16 + 7] + a[t*16 + 4] + a[t*16 + 8] + a[t*16 + 12]
      s[4] = c[t*3] + c[t*3 + 1] + c[t*3 + 2]
      z[t*4] = z[t*4 + 1] + s[0]
      z[t*4 + 1] = z[t*4] + s[1]
      y[t*5] = s[0]
      y[t*5 + 1] = s[1]
      y[t*5 + 2] = s[2] + z[t*4 + 2] + z[t*4 + 3]
      y[t*5 + 3] = s[3]
      y[t*5 + 4] = s[4]
    }}
  }}
}}"
        ));
        let code = Call::of_small_integers(&flat).compare(&flat);
        assert!(code.ptx.contains(&format!("ld.global.nc.{wide}")), "{}", code.ptx);
    }
}
