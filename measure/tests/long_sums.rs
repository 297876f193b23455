//! Sums of millions of terms: a definition that adds them up one by one is the inexact one.

use std::sync::Arc;

use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::program::Program;
use tilewright_core::tensor::AnyTensor;
use tilewright_cpu::CpuDevice;
use tilewright_measure::reason;
use tilewright_measure::subject::{Inputs, Subject, SubjectOptions};
use tilewright_runtime::Error;

const TERMS: usize = 1 << 22;

fn sum_of_squares() -> Program {
    let text = format!(
        "kernel squares(in x: f32[{TERMS}], out y: f32[1]) {{
  for i in 0..1 {{
    for k in 0..{TERMS} {{
      block y(vi: spatial 1 = i, vk: reduce {TERMS} = k) {{
        init {{
          y[vi] = 0.0
        }}
        y[vi] = y[vi] + x[vk] * x[vk]
      }}
    }}
  }}
}}
"
    );
    text.parse().expect("the text is a program")
}

/// Adds up in `f32`, one by one, as the definition says.
fn one_by_one(_: &Program, inputs: &Inputs) -> Result<Vec<Option<AnyTensor>>, Error> {
    let x = inputs.tensors[0].as_slice::<f32>().expect("floats");
    let sum = x.iter().fold(0.0f32, |sum, x| sum + x * x);
    Ok(vec![None, Some(AnyTensor::from_f64s(DType::F32, &[f64::from(sum)], &[1])?)])
}

fn subject(options: &SubjectOptions) -> Subject {
    let device: Arc<dyn Device> = Arc::new(CpuDevice::host().expect("no override"));
    Subject::of_program::<Error>(sum_of_squares(), device, options, &one_by_one).expect("it can be prepared")
}

#[test]
fn partial_sums_are_right_and_incomplete_ones_wrong() {
    let options = SubjectOptions { seed: 1, threads: 1, cache: None };
    let subject = subject(&options);
    let partial = "trace v1\n%0 = get_block \"y\"\n%1, %2 = get_loops %0\n\
                 %3, %4 = split %2, [none, 16]\n%5, %6 = rfactor %0, %4, -1\n";
    let compiled = subject.compile(&[partial.to_owned()]).remove(0).expect("it is a schedule");
    let mut tensors = subject.arguments();
    subject.reset(&mut tensors);
    subject.run(&compiled, &mut tensors, 1).expect("it runs");
    let error = subject.check(&tensors).expect("partial sums are more exact than one sum");
    assert!(error < 1e-4, "{error}");

    let sum = tensors[1].to_f64_vec()[0];
    let reference = subject.arguments();
    let reference = reference[0].as_slice::<f32>().expect("floats").iter().fold(0.0f32, |sum, x| sum + x * x);
    assert!(
        (f64::from(reference) - sum).abs() > 1e-3 * sum,
        "the definition itself is off: {reference} and {sum}"
    );

    tensors[1] = AnyTensor::from_f64s(DType::F32, &[sum * 0.995], &[1]).expect("it fits");
    let failure = subject.check(&tensors).expect_err("one term in two hundred is missing");
    assert_eq!(failure.reason, reason::WRONG_RESULT);
}

#[test]
fn kept_results_are_as_exact() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = SubjectOptions { seed: 1, threads: 1, cache: Some(directory.path().to_owned()) };
    let exact: f64 = {
        let tensors = subject(&options).arguments();
        tensors[0].to_f64_vec().iter().map(|x| x * x).sum()
    };
    let again = subject(&options);
    let mut tensors = again.arguments();
    tensors[1] = AnyTensor::from_f64s(DType::F32, &[exact], &[1]).expect("it fits");
    assert!(again.check(&tensors).expect("the sum in `f64`") < 1e-6);
}
