//! Candidates of a kernel with an accuracy, measured as on a machine with products of tiles: the intrinsic's description is
//! executed.

use std::sync::Arc;
use std::time::Duration;

use tilewright_core::device::{
    CompileError, Device, DeviceBuffer, DeviceError, DeviceSlice, DeviceSliceMut, Executable,
};
use tilewright_core::dtype::DType;
use tilewright_core::program::Program;
use tilewright_core::target::{CpuTarget, RunContext, RunOptions, Target};
use tilewright_measure::anchor::Anchors;
use tilewright_measure::peak::peak_of;
use tilewright_measure::reason;
use tilewright_measure::runner::{InProcessRunner, Interrupt};
use tilewright_measure::subject::{Subject, SubjectOptions, Tolerance};
use tilewright_runtime::devices;
use tilewright_search::candidate::{Candidate, Generator, Statistics};
use tilewright_search::space::design_spaces;
use tilewright_search::spec::SearchSpec;
use tilewright_search::tuner::{Runner, TrialOutcome};

use crate::kernel::Kernel;
use crate::prelude::*;

/// C = A·B, each product with a relative error of at most 10⁻⁴.
#[tensor_kernel(accuracy = 1e-4)]
fn product(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] * b[[k, j]];
            }
        }
    }
    c
}

/// The same with at most 10⁻².
#[tensor_kernel(accuracy = 1e-2)]
fn rough_product(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] * b[[k, j]];
            }
        }
    }
    c
}

const DIMS: [i64; 3] = [32, 64, 32];

/// This machine, as if it had products of tiles.
struct WithTiles {
    target: Target,
    host: Arc<dyn Device>,
}

impl WithTiles {
    fn new() -> Self {
        let host = devices::default_device().expect("a device");
        let intrinsics = vec!["tdpbf16ps".into()];
        let cpu = host.target().cpu().expect("a CPU").clone();
        WithTiles { target: CpuTarget { intrinsics, ..cpu }.into(), host }
    }

    /// Runs on one thread.
    fn context(&self) -> RunContext {
        RunContext::new(self.target.clone(), RunOptions::with_threads(1))
    }
}

impl Device for WithTiles {
    fn label(&self) -> &str {
        self.host.label()
    }

    fn target(&self) -> &Target {
        &self.target
    }

    fn compile(&self, programs: &[&Program]) -> Vec<Result<Box<dyn Executable>, CompileError>> {
        self.host.compile(programs)
    }

    fn list(&self, program: &Program) -> Result<String, CompileError> {
        self.host.list(program)
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, DeviceError> {
        self.host.allocate(bytes)
    }

    fn upload(&self, from: &[u8], to: DeviceSliceMut<'_>) -> Result<(), DeviceError> {
        self.host.upload(from, to)
    }

    fn download(&self, from: DeviceSlice<'_>, to: &mut [u8]) -> Result<(), DeviceError> {
        self.host.download(from, to)
    }

    fn measure_peak(&self, dtype: DType, options: RunOptions, window: Duration) -> Option<f64> {
        self.host.measure_peak(dtype, options, window)
    }
}

fn subject(kernel: &Kernel, device: &Arc<WithTiles>) -> Subject {
    let options = SubjectOptions { seed: 3, threads: 1, cache: None };
    let device = Arc::clone(device) as Arc<dyn Device>;
    Subject::new(kernel, &DIMS, device, &options).expect("it can be prepared")
}

/// One candidate of each space in which products are split.
fn candidates(device: &WithTiles, program: &Program) -> Vec<Candidate> {
    let context = device.context();
    let spec = SearchSpec::built_in(context.target.kind()).expect("a CPU can be searched");
    let spaces = design_spaces(program, &context, &spec.rules, 1);
    let generator = Generator::new(program.clone(), context, spec);
    let mut statistics = Statistics::default();
    let split = spaces.iter().enumerate().filter(|(_, space)| space.to_string().contains("split_products"));
    split
        .filter_map(|(number, space)| generator.generate(number, space, 1, |_, _| None, &mut statistics))
        .collect()
}

#[test]
fn errors_within_the_accuracy_are_measured_and_told() {
    let device = Arc::new(WithTiles::new());
    let subject = subject(product::kernel(), &device);
    let tolerance = Tolerance::of(subject.program()).relative;
    let found = candidates(&device, subject.program());
    assert!(!found.is_empty());
    let mut runner = InProcessRunner::new(subject, Interrupt::new(None, None), Anchors::default());
    for measurement in runner.measure(&found).into_iter().flatten() {
        let TrialOutcome::Ok { max_relative_error, .. } = measurement else { panic!("{measurement:?}") };
        assert!((1e-7..tolerance).contains(&max_relative_error), "{max_relative_error}");
    }
}

#[test]
fn what_is_less_exact_than_agreed_is_a_wrong_result() {
    let device = Arc::new(WithTiles::new());
    let (rough, close) = (subject(rough_product::kernel(), &device), subject(product::kernel(), &device));
    let trace = |products| format!("trace v1\n%0 = get_block \"c\"\n%1, %2 = split_products %0, {products}");
    let result = |products| {
        let executable = rough.compile(&[trace(products)]).remove(0).expect("it is allowed");
        let mut tensors = rough.arguments();
        rough.reset(&mut tensors);
        rough.run(&executable, &mut tensors, 1).expect("nothing is wrong with it");
        tensors
    };
    assert!(close.check(&result(3)).is_ok() && close.check(&result(9)).is_ok());
    assert!(rough.check(&result(1)).is_ok());
    assert_eq!(close.check(&result(1)).expect_err("it is off by 10⁻³").reason, reason::WRONG_RESULT);
    // Such a schedule of the other kernel is not even replayed.
    let refused = close.compile(&[trace(1)]).remove(0).err().expect("its accuracy does not allow it");
    assert_eq!(refused.reason, reason::REPLAY);
}

#[test]
fn the_peak_of_multiply_adds_is_no_limit_for_products_of_tiles() {
    let device = Arc::new(WithTiles::new());
    let mut program = product::kernel().program_for(&DIMS).expect("the dimensions fit");
    assert_eq!(peak_of(&program, &*device, RunOptions::with_threads(1), None), None);
    let options = RunOptions::with_threads(1);
    program.accuracy = None;
    let known = super::peak_gflops(&*device, DType::F32, options);
    assert_eq!(peak_of(&program, &*device, options, None).is_some(), known.is_some());
}
