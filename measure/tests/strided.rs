//! Programs that read or write parts of other tensors can be measured: their arguments are as long as their strides reach.

use std::sync::Arc;

use tilewright_core::device::Device;
use tilewright_core::program::Program;
use tilewright_core::target::{RunContext, RunOptions};
use tilewright_cpu::CpuDevice;
use tilewright_measure::subject::{Oracle, SubjectOptions};
use tilewright_search::{schedule_by_default, schedule_quickly};

/// Sums of the rows of a matrix that is a part of a wider one.
const SUMS: &str = "kernel sums(in x: f32[5, 6] strides [16, 1], inout z: f32[5]) {
  for i in 0..5 {
    for k in 0..6 {
      block s(vi: spatial 5 = i, vk: reduce 6 = k) {
        z[vi] = z[vi] + x[vi, vk]
      }
    }
  }
}
";

/// A product and its activation, written to columns of a wider matrix.
const COLUMNS: &str =
    "kernel columns(in a: f32[33, 24], in b: f32[24, 40], out c: f32[33, 40] strides [100, 1]) {
  buffer p: f32[33, 40] global
  for i in 0..33 {
    for j in 0..40 {
      for k in 0..24 {
        block p(vi: spatial 33 = i, vj: spatial 40 = j, vk: reduce 24 = k) {
          init { p[vi, vj] = 0.0 }
          p[vi, vj] = p[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
  for i1 in 0..33 {
    for j1 in 0..40 {
      block c(vi1: spatial 33 = i1, vj1: spatial 40 = j1) {
        c[vi1, vj1] = max(p[vi1, vj1], 0.0)
      }
    }
  }
}
";

#[test]
fn the_memory_between_elements_of_a_result_stays() {
    let device: Arc<dyn Device> = Arc::new(CpuDevice::host().expect("no override"));
    let options = SubjectOptions { seed: 1, threads: 2, cache: None };
    let program: Program = COLUMNS.parse().unwrap_or_else(|error| panic!("{error}"));
    let context = RunContext::new(device.target().clone(), RunOptions::with_threads(2));
    let subject = Oracle::Interpreter
        .subject(program.clone(), Arc::clone(&device), &options)
        .unwrap_or_else(|error| panic!("{error}"));
    let schedules = [schedule_by_default(&program, context.clone()), schedule_quickly(&program, context)];
    let mut traces: Vec<String> = schedules.iter().map(|schedule| schedule.trace().to_string()).collect();
    traces.push("trace v1\n".to_owned());
    let mut tensors = subject.arguments();
    let before = tensors[2].to_f64_vec();
    assert_eq!(before.len(), 32 * 100 + 40);
    for compiled in subject.compile(&traces) {
        let compiled = compiled.expect("it is compiled");
        subject.reset(&mut tensors);
        subject.run(&compiled, &mut tensors, 1).expect("it runs");
        subject.check(&tensors).expect("all elements are computed");
        let after = tensors[2].to_f64_vec();
        let is_between = |place: &usize| place % 100 >= 40;
        assert!((0..before.len()).filter(is_between).all(|place| before[place] == after[place]));
    }
}

#[test]
fn strided_arguments_are_as_long_as_their_strides_reach() {
    let device: Arc<dyn Device> = Arc::new(CpuDevice::host().expect("no override"));
    let options = SubjectOptions { seed: 1, threads: 1, cache: None };
    let program: Program = SUMS.parse().expect("the text is a program");
    let subject =
        Oracle::Interpreter.subject(program, Arc::clone(&device), &options).expect("it can be prepared");
    let mut tensors = subject.arguments();
    assert_eq!((tensors[0].len(), tensors[1].len()), (4 * 16 + 6, 5));
    let compiled =
        subject.compile(&["trace v1\n".to_owned()]).pop().expect("one for one").expect("it is compiled");
    subject.run(&compiled, &mut tensors, 1).expect("it runs");
    subject.check(&tensors).expect("both add the same");
}
