//! The effects of statements.

use super::{parse, run, run_in_order, tensor, zeros};
use crate::dtype::DType;
use crate::expr::Constant;
use crate::interp::{Interpreter, Options};
use crate::tensor::AnyTensor;

const MATMUL: &str = "
kernel matmul(M, N, K, in a: f32[M, K], in b: f32[K, N], out c: f32[M, N]) {
  parallel for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        block c(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) {
          init {
            c[vi, vj] = 0.0
          }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}";

const TILED_MATMUL: &str = "
kernel matmul(M, N, K, in a: f32[M, K], in b: f32[K, N], out c: f32[M, N]) {
  parallel for i0 in 0..(M + 3) / 4 {
    for j in 0..N {
      for k0 in 0..(K + 1) / 2 {
        unrolled for i1 in 0..4 {
          for k1 in 0..2 {
            block c(vi: spatial M = i0 * 4 + i1, vj: spatial N = j, vk: reduce K = k0 * 2 + k1)
              where i0 * 4 + i1 < M, k0 * 2 + k1 < K {
              init {
                c[vi, vj] = 0.0
              }
              c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
            }
          }
        }
      }
    }
  }
}";

/// The product in the order of the definition: rows, columns, then the reduction.
fn product(a: &AnyTensor, b: &AnyTensor, [m, n, k]: [usize; 3]) -> Vec<f32> {
    let (a, b) = (a.as_slice::<f32>().unwrap(), b.as_slice::<f32>().unwrap());
    let mut c = vec![0.0f32; m * n];
    for (position, sum) in c.iter_mut().enumerate() {
        for step in 0..k {
            *sum += a[position / n * k + step] * b[step * n + position % n];
        }
    }
    c
}

#[test]
fn a_matmul_agrees_bit_for_bit_on_odd_shapes_and_schedules() {
    for [m, n, k] in [[1, 1, 1], [3, 5, 7], [13, 2, 11], [4, 8, 2], [0, 3, 2], [2, 0, 5]] {
        let a = AnyTensor::random(DType::F32, &[m, k], 1).unwrap();
        let b = AnyTensor::random(DType::F32, &[k, n], 2).unwrap();
        let dims = [m as i64, n as i64, k as i64];
        let expected = product(&a, &b, [m, n, k]);
        for text in [MATMUL, TILED_MATMUL] {
            for seed in [None, Some(1), Some(2)] {
                let mut buffers = [a.clone(), b.clone(), zeros(DType::F32, &[m, n])];
                let options = Options { parallel_order_seed: seed };
                let interpreter = Interpreter::new(&parse(text)).unwrap();
                interpreter.run(options, &dims, &[], &mut buffers).unwrap();
                let found = buffers[2].as_slice::<f32>().unwrap();
                assert_eq!(found, expected, "{dims:?} with seed {seed:?} in{text}");
            }
        }
    }
}

#[test]
fn one_interpreter_serves_many_shapes() {
    let interpreter = Interpreter::new(&parse(MATMUL)).unwrap();
    for size in [2usize, 9, 5] {
        let a = AnyTensor::random(DType::F32, &[size, size], 3).unwrap();
        let mut buffers = [a.clone(), a.clone(), zeros(DType::F32, &[size, size])];
        interpreter.run(Options::default(), &[size as i64; 3], &[], &mut buffers).unwrap();
        assert_eq!(buffers[2].as_slice::<f32>().unwrap(), product(&a, &a, [size; 3]), "{size}");
    }
}

#[test]
fn a_parallel_loop_over_a_dependency_shows_as_another_result() {
    let text = "
kernel scan(N, inout x: f32[N]) {
  parallel for i in 0..N {
    block x(v: spatial N = i) {
      x[v] = x[v] + select(index(v) > 0, x[v - 1], 0.0)
    }
  }
}";
    let run_with = |seed: u64| {
        let mut buffers = [tensor(DType::F32, &[1.0; 12])];
        run_in_order(text, seed, &[12], &mut buffers).unwrap();
        buffers[0].to_f64_vec()
    };
    let mut buffers = [tensor(DType::F32, &[1.0; 12])];
    run(text, &[12], &[], &mut buffers).unwrap();
    assert_eq!(buffers[0].to_f64_vec(), (1..=12).map(f64::from).collect::<Vec<_>>());
    assert_ne!(run_with(7), buffers[0].to_f64_vec());
    assert_eq!(run_with(7), run_with(7), "a seed decides the order");
}

#[test]
fn a_parallel_reduction_loses_what_came_before_its_init() {
    let text = "
kernel sum(N, in x: i32[N], out y: i32[1]) {
  parallel for i in 0..N {
    block y(v: reduce N = i) {
      init {
        y[0] = 0i32
      }
      y[0] = y[0] + x[v]
    }
  }
}";
    let mut buffers = [tensor(DType::I32, &[1.0; 20]), zeros(DType::I32, &[1])];
    run(text, &[20], &[], &mut buffers).unwrap();
    assert_eq!(buffers[1].to_f64_vec(), [20.0]);
    let failed = run_in_order(text, 1, &[20], &mut buffers).is_err();
    assert!(failed || buffers[1].to_f64_vec() != [20.0]);
}

#[test]
fn init_runs_where_all_reduction_iterators_are_zero() {
    let text = "
kernel sum(N, M, in x: i64[N, M], out y: i64[N]) {
  for i in 0..N {
    for j in 0..M {
      for k in 0..2 {
        block y(v: spatial N = i, r: reduce M = j, s: reduce 2 = k) {
          init {
            y[v] = 100
          }
          y[v] = y[v] + x[v, r]
        }
      }
    }
  }
}";
    let x = AnyTensor::from_slice(&[1i64, 2, 3, 4, 5, 6], &[2, 3]).unwrap();
    let mut buffers = [x, zeros(DType::I64, &[2])];
    run(text, &[2, 3], &[], &mut buffers).unwrap();
    assert_eq!(buffers[1].to_f64_vec(), [112.0, 130.0]);
}

#[test]
fn lanes_are_all_computed_before_any_is_stored() {
    let text = "
kernel shift(inout x: i32[9], out y: f64[8]) {
  x[lane<8> + 1] = x[lane<8>]
  y[7 - lane<8>] = index(lane<8> * 2) as f64
  x[0] = x[0] + 5i32
}";
    let start: Vec<f64> = (0..9).map(f64::from).collect();
    let mut buffers = [tensor(DType::I32, &start), zeros(DType::F64, &[8])];
    run(text, &[], &[], &mut buffers).unwrap();
    assert_eq!(buffers[0].to_f64_vec(), [5.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(buffers[1].to_f64_vec(), [14.0, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0, 0.0]);
}

#[test]
fn conditionals_scalars_and_allocations() {
    let text = "
kernel mixed(N, scale: f32, offset: i64, in x: f32[N], out y: f32[N]) {
  buffer t: f32[2] local
  for i in 0..N {
    alloc t {
      t[i % 2] = x[i] * scale
      if index(i) < offset {
        y[i] = t[i % 2]
      } else {
        if x[i] > 0.0 {
          y[i] = -t[i % 2]
        } else {
          y[i] = 9.0
        }
      }
    }
  }
}";
    let mut buffers = [tensor(DType::F32, &[1.0, -2.0, 3.0, -4.0, 5.0]), zeros(DType::F32, &[5])];
    run(text, &[5], &[Constant::float(2.0), Constant::Int(2)], &mut buffers).unwrap();
    assert_eq!(buffers[1].to_f64_vec(), [2.0, -4.0, -6.0, 9.0, -10.0]);
}

#[test]
fn gathers_follow_their_indices() {
    let text = "
kernel gather(N, V, in ids: i32[N], in table: f32[V], out y: f32[N]) {
  for i in 0..N {
    block y(v: spatial N = i) {
      y[v] = table[bounded(ids[v] as i64, 0..V)]
    }
  }
}";
    let arguments = |last: f64| {
        [tensor(DType::I32, &[2.0, 0.0, last]), tensor(DType::F32, &[0.5, 1.5, 2.5]), zeros(DType::F32, &[3])]
    };
    let mut buffers = arguments(1.0);
    run(text, &[3, 3], &[], &mut buffers).unwrap();
    assert_eq!(buffers[2].to_f64_vec(), [2.5, 0.5, 1.5]);
    let error = run(text, &[3, 3], &[], &mut arguments(3.0)).unwrap_err();
    assert_eq!(error.to_string(), "an index read from data is 3, outside 0..3 (block `y`)");
    assert!(run(text, &[3, 3], &[], &mut arguments(-1.0)).is_err());
}

#[test]
fn a_parameter_of_one_dimension_takes_any_rank() {
    let text = "kernel copy(M, N, in x: f32[M*N], out y: f32[M*N]) {
  for i in 0..M*N { y[i] = x[i] }
}";
    let x = AnyTensor::random(DType::F32, &[3, 4], 1).unwrap();
    let mut buffers = [x.clone(), zeros(DType::F32, &[3, 4])];
    run(text, &[3, 4], &[], &mut buffers).unwrap();
    assert_eq!(buffers[1], x);
}

#[test]
fn every_element_type_is_loaded_and_stored() {
    for dtype in DType::ALL {
        let text = format!(
            "kernel copy(N, in x: {dtype}[N, 3], out y: {dtype}[N, 3]) {{
  for i in 0..N {{ for j in 0..3 {{ y[N - 1 - i, j] = x[i, j] }} }}
}}"
        );
        let x = AnyTensor::random(dtype, &[5, 3], 4).unwrap();
        let mut buffers = [x.clone(), zeros(dtype, &[5, 3])];
        run(&text, &[5], &[], &mut buffers).unwrap();
        let reversed: Vec<f64> = x.to_f64_vec().chunks(3).rev().flatten().copied().collect();
        assert_eq!(buffers[1].to_f64_vec(), reversed, "{dtype}");
    }
}

#[test]
fn a_reduction_over_no_constant_number_of_points_leaves_its_initial_value() {
    let nested = "kernel sums(in x: f32[3, 0], out y: f32[3]) {
  for i in 0..3 {
    for k in 0..0 {
      block y(vi: spatial 3 = i, vk: reduce 0 = k) {
        init {
          y[vi] = 7.0
        }
        y[vi] = y[vi] + x[vi, vk]
      }
    }
  }
}
";
    let outside = nested.replace("i in 0..3", "k in 0..0").replacen(
        "for k in 0..0 {\n      block",
        "for i in 0..3 {\n      block",
        1,
    );
    for text in [nested, &outside] {
        let program = parse(text);
        let flat =
            crate::lower::lower(&program, &crate::lower::LowerOptions::default()).expect("it can be lowered");
        for program in [program, flat] {
            let mut buffers = [zeros(DType::F32, &[3, 0]), zeros(DType::F32, &[3])];
            crate::interp::run(&program, &[], &[], &mut buffers).unwrap();
            assert_eq!(buffers[1].to_f64_vec(), [7.0; 3], "{program}");
        }
    }
}
