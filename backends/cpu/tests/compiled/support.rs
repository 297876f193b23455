//! Running a program in both ways and comparing.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use tilewright_core::device::{Arguments, BufferArgument, CallError, Device, Executable};
use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;
use tilewright_core::interp;
use tilewright_core::program::{Access, Program};
use tilewright_core::target::{CpuTarget, RunOptions, Target};
use tilewright_core::tensor::AnyTensor;
use tilewright_cpu::CpuDevice;

use crate::pages::Fenced;

/// The backends that every program is tested with.
static BACKENDS: LazyLock<Vec<(&str, CpuDevice)>> = LazyLock::new(|| {
    let host = CpuDevice::host().expect("no override");
    let plain = CpuDevice::without_features("-fma,-avx").expect("known features");
    let narrow = CpuDevice::without_features("-avx512f").expect("known features");
    let no_dots = CpuDevice::without_features("-avx512vnni,-avxvnni,-avx512bf16").expect("known features");
    vec![
        ("final", host),
        ("without AVX-512", narrow),
        ("without AVX", plain),
        ("without dot products", no_dots),
    ]
});

/// The backend for this machine.
pub(crate) fn host() -> &'static CpuDevice {
    &BACKENDS[0].1
}

/// Parses a program.
pub(crate) fn program(text: &str) -> Program {
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Compiles one program.
pub(crate) fn compile(backend: &CpuDevice, program: &Program) -> Box<dyn Executable> {
    let compiled = backend.compile(&[program]).remove(0);
    compiled.unwrap_or_else(|error| panic!("{error}\n{program}"))
}

/// The machine code of a program as text.
pub(crate) fn list(backend: &CpuDevice, program: &Program) -> String {
    backend.list(program).unwrap_or_else(|error| panic!("{error}\n{program}"))
}

/// A program as each of the backends compiles it.
type Kernels = Rc<[Box<dyn Executable>]>;

thread_local! {
    /// The last compiled program: most programs are checked with several calls.
    static LAST: RefCell<Option<(Program, Kernels)>> = const { RefCell::new(None) };
}

/// One program, compiled by each of the backends.
fn compiled(program: &Program) -> Kernels {
    let last = LAST.take().filter(|(known, _)| known == program);
    let kernels = last.map_or_else(
        || BACKENDS.iter().map(|(_, backend)| compile(backend, program)).collect(),
        |(_, kernels)| kernels,
    );
    LAST.set(Some((program.clone(), Rc::clone(&kernels))));
    kernels
}

/// Elements of a type: small whole numbers where it is one of floats, such that sums of products are exact in any order, and
/// anything otherwise.
pub(crate) fn exact_elements(dtype: DType, len: usize, seed: u64) -> AnyTensor {
    if !dtype.is_float() {
        return AnyTensor::random(dtype, &[len], seed).unwrap();
    }
    let number = |position: usize| ((position * 7 + position / 13 + seed as usize) % 17) as f64 - 8.0;
    let numbers: Vec<f64> = (0..len).map(number).collect();
    AnyTensor::from_f64s(dtype, &numbers, &[len]).unwrap()
}

/// The arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    pub(crate) dims: Vec<i64>,
    pub(crate) scalars: Vec<Constant>,
    pub(crate) tensors: Vec<AnyTensor>,
}

impl Call {
    /// Runs a compiled program on copies of the tensors between inaccessible pages and gives the tensors
    /// afterwards.
    pub(crate) fn run(
        &self,
        program: &Program,
        kernel: &dyn Executable,
        threads: usize,
        at_end: bool,
    ) -> Result<Vec<AnyTensor>, CallError> {
        let mut memory: Vec<Fenced> =
            self.tensors.iter().map(|tensor| Fenced::copy_of(tensor.bytes(), at_end)).collect();
        let accesses = program.buffer_params().map(|(_, access)| access);
        let mut buffers: Vec<BufferArgument> = memory
            .iter_mut()
            .zip(accesses)
            .map(|(memory, access)| match access {
                Access::Input | Access::Constant => BufferArgument::Read(memory.bytes()),
                Access::Output | Access::InOut => BufferArgument::Write(memory.bytes_mut()),
            })
            .collect();
        let mut arguments = Arguments { dims: &self.dims, scalars: &self.scalars, buffers: &mut buffers };
        kernel.run(&mut arguments, RunOptions::with_threads(threads))?;
        let mut results = self.tensors.clone();
        for (result, memory) in results.iter_mut().zip(&memory) {
            result.bytes_mut().copy_from_slice(memory.bytes());
        }
        Ok(results)
    }

    /// Runs a program in every way and compares each with the reference, bit by bit.
    pub(crate) fn check(&self, program: &Program) {
        let mut expected = self.tensors.clone();
        interp::run(program, &self.dims, &self.scalars, &mut expected)
            .unwrap_or_else(|error| panic!("{error}\n{program}"));
        for ((name, _), kernel) in BACKENDS.iter().zip(&*compiled(program)) {
            for (threads, at_end) in [(1, true), (2, false)] {
                let found = self
                    .run(program, &**kernel, threads, at_end)
                    .unwrap_or_else(|error| panic!("{name}, {threads} threads: {error}\n{program}"));
                for (position, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    if let Some(difference) = first_difference(found, expected) {
                        panic!("{name}, {threads} threads, tensor {position}: {difference}\n{program}");
                    }
                }
            }
        }
    }
}

/// The first element that differs. NaNs are equal, zeros of different sign are not.
fn first_difference(found: &AnyTensor, expected: &AnyTensor) -> Option<String> {
    if !expected.dtype().is_float() {
        // Not all integers are numbers of `f64`.
        let size = expected.dtype().bytes();
        let mut pairs = found.bytes().chunks(size).zip(expected.bytes().chunks(size));
        let position = pairs.position(|(found, expected)| found != expected)?;
        let [found, expected] = [found, expected].map(|tensor| &tensor.bytes()[position * size..][..size]);
        return Some(format!("element {position} has bytes {found:?}, expected {expected:?}"));
    }
    let (found, expected) = (found.to_f64_vec(), expected.to_f64_vec());
    let position = found.iter().zip(&expected).position(|(found, expected)| {
        !(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan())
    })?;
    Some(format!("element {position} is {}, expected {}", found[position], expected[position]))
}

/// A plain machine that knows the descriptions of all intrinsics.
pub(crate) fn any_machine() -> Arc<Target> {
    let descriptions = tilewright_cpu::intrinsics::known().clone();
    Arc::new(CpuTarget { descriptions, ..CpuTarget::generic() }.into())
}
