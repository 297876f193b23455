//! Programs that read parts of other tensors can be measured: their arguments are as long as their strides reach.

use std::sync::Arc;

use tilewright_core::device::Device;
use tilewright_core::program::Program;
use tilewright_cpu::CpuDevice;
use tilewright_measure::subject::{Oracle, SubjectOptions};

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
