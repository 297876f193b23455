//! The errors of the interpreter, with their messages.

use super::{parse, run, tensor, zeros};
use crate::dtype::DType;
use crate::interp::{InterpError, Interpreter};
use crate::tensor::AnyTensor;

#[track_caller]
fn check_error(text: &str, dims: &[i64], buffers: &mut [AnyTensor], expected: &str) {
    match run(text, dims, &[], buffers) {
        Ok(()) => panic!("no error in{text}"),
        Err(error) => assert_eq!(error.to_string(), expected, "in{text}"),
    }
}

#[test]
fn accesses_outside_name_buffer_index_shape_and_block() {
    let text = "
kernel shift(N, in x: f32[N], out y: f32[N]) {
  for i in 0..N {
    block shifted(v: spatial N = i) {
      y[v] = x[v + 1]
    }
  }
}";
    let mut buffers = [tensor(DType::F32, &[1.0, 2.0]), zeros(DType::F32, &[2])];
    check_error(text, &[2], &mut buffers, "load of `x`[2] is outside its shape [2] (block `shifted`)");
    let text = "kernel negative(N, out y: f32[N, 2]) { for i in 0..N { y[i - 1, 0] = 1.0 } }";
    let mut buffers = [zeros(DType::F32, &[3, 2])];
    check_error(text, &[3], &mut buffers, "store of `y`[-1, 0] is outside its shape [3, 2]");
    let text = "kernel lanes(in x: f32[6], out y: f32[8]) { y[lane<8>] = x[lane<8>] }";
    let mut buffers = [zeros(DType::F32, &[6]), zeros(DType::F32, &[8])];
    check_error(text, &[], &mut buffers, "load of `x`[6] is outside its shape [6]");
}

#[test]
fn a_lazy_select_makes_no_load_outside() {
    let text = "
kernel pad(N, in x: f32[N], out y: f32[N + 2]) {
  for i in 0..N + 2 {
    block y(v: spatial N + 2 = i) {
      y[v] = select((index(v) >= 1) & (index(v) < index(N + 1)), x[v - 1], 0.0) + select(index(v) == 0, 1.0, x[0])
    }
  }
}";
    let mut buffers = [tensor(DType::F32, &[3.0, 4.0]), zeros(DType::F32, &[4])];
    run(text, &[2], &[], &mut buffers).unwrap();
    assert_eq!(buffers[1].to_f64_vec(), [1.0, 6.0, 7.0, 3.0]);
}

#[test]
fn undefined_elements_are_never_read() {
    let text = "
kernel early(N, in x: f32[N], out y: f32[N]) {
  buffer t: f32[N] global
  for i in 0..N {
    block y(v: spatial N = i) {
      y[v] = t[v]
    }
  }
  for i in 0..N {
    block t(v: spatial N = i) {
      t[v] = x[v]
    }
  }
}";
    let mut buffers = [tensor(DType::F32, &[1.0, 2.0]), zeros(DType::F32, &[2])];
    check_error(text, &[2], &mut buffers, "load of `t`[0] before anything wrote it (block `y`)");
    let text = "kernel accumulate(out y: f32[1]) { y[0] = y[0] + 1.0 }";
    check_error(text, &[], &mut [zeros(DType::F32, &[1])], "load of `y`[0] before anything wrote it");
    let text = "
kernel scoped(N, out y: f32[N]) {
  buffer t: f32[1] local
  for i in 0..N {
    alloc t {
      if index(i) == 0 { t[0] = 1.0 }
      y[i] = t[0]
    }
  }
}";
    check_error(text, &[2], &mut [zeros(DType::F32, &[2])], "load of `t`[0] before anything wrote it");
}

#[test]
fn outputs_must_be_written_completely() {
    let text = "kernel half(N, out y: f32[N, 3]) { for i in 0..N { for j in 0..2 { y[i, j] = 1.0 } } }";
    let expected = "`y`[0, 2] was never written, although `y` is an output";
    check_error(text, &[2], &mut [zeros(DType::F32, &[2, 3])], expected);
}

#[test]
fn a_missing_guard_is_noticed() {
    let text = "
kernel tiled(N, out y: f32[N]) {
  for i in 0..(N + 3) / 4 {
    for j in 0..4 {
      block y(v: spatial N = i * 4 + j) {
        y[v] = 1.0
      }
    }
  }
}";
    let expected = "iterator `v` of block `y` is 6, outside 0..6: a guard is missing";
    check_error(text, &[6], &mut [zeros(DType::F32, &[6])], expected);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let text = "kernel copy(N, in x: f32[N, 2], out y: f32[N, 2]) {
  for i in 0..N { for j in 0..2 { y[i, j] = x[i, j] } }
}";
    let good = || zeros(DType::F32, &[3, 2]);
    check_error(text, &[], &mut [good(), good()], "1 dimensions expected, 0 given");
    check_error(text, &[3], &mut [good()], "2 tensors expected, 1 given");
    check_error(text, &[-3], &mut [good(), good()], "dimension `N` = -3 is negative");
    let expected = "tensor `x` must be f32[4, 2], found f32[3, 2]";
    check_error(text, &[4], &mut [good(), good()], expected);
    let expected = "tensor `y` must be f32[3, 2], found i32[3, 2]";
    check_error(text, &[3], &mut [good(), zeros(DType::I32, &[3, 2])], expected);
    assert!(run(text, &[3], &[crate::expr::Constant::Int(1)], &mut [good(), good()]).is_err());
}

#[test]
fn impossible_intermediates_are_refused() {
    let text = "
kernel large(N, out y: f32[1]) {
  buffer t: f32[N * N] global
  t[0] = 1.0
  y[0] = t[0]
}";
    let error = run(text, &[1 << 31], &[], &mut [zeros(DType::F32, &[1])]).unwrap_err();
    assert!(matches!(error, InterpError::Memory { .. }), "{error}");
}

#[test]
fn malformed_programs_are_refused_before_they_run() {
    for (text, expected) in [
        ("kernel k(in x: f32[1]) { x[0] = 1.0 }", "input `x` is stored to"),
        ("kernel k(out x: f32[4]) { x[0] = index(lane<4>) as f32 }", ""),
        ("kernel k(out x: bool[1]) { x[0] = true + false }", "bool has no operator `+`"),
        ("kernel k(out x: i32[1]) { x[0] = exp(1i32) }", "i32 has no operator `exp`"),
    ] {
        match Interpreter::new(&parse(text)) {
            Err(InterpError::Malformed(what)) => assert_eq!(what, expected, "{text}"),
            Err(error) => panic!("{error} in {text}"),
            Ok(_) => assert_eq!(expected, "", "{text}"),
        }
    }
}
