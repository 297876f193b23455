//! The operator set can be searched: each definition becomes a program with design spaces, and random points of
//! these spaces are legal, can be lowered, and compute what the definition says, in machine code too.

#[path = "../../benches/operators/attention.rs"]
mod attention;
#[path = "../../benches/operators/kernels.rs"]
mod kernels;
#[path = "../../benches/operators/memory.rs"]
mod memory;
#[path = "../../benches/operators/recurrences.rs"]
mod recurrences;
mod symbolic;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use tilewright::backends::cpu::CpuDevice;
use tilewright::kernel::Kernel;
use tilewright_core::device::{Arguments, BufferArgument, Device, Executable};
use tilewright_core::interp::{InterpError, Interpreter, Options};
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::{Access, Program};
use tilewright_core::schedule::Rng;
use tilewright_core::target::{RunOptions, Target, TargetKind};
use tilewright_core::tensor::AnyTensor;
use tilewright_core::verify::{Level, verify};
use tilewright_search::candidate::{Candidate, Generator, Statistics};
use tilewright_search::space::design_spaces;
use tilewright_search::spec::SearchSpec;

/// Each operator at its first shape.
fn operators() -> Vec<(&'static str, &'static Kernel, Vec<i64>)> {
    use kernels::*;
    vec![
        ("C1D", conv1d::kernel(), vec![1, 256, 64, 3, 128, 2, 1]),
        ("C2D", conv2d::kernel(), vec![1, 224, 224, 3, 7, 7, 64, 2, 3, 1, 1]),
        ("C3D", conv3d::kernel(), vec![1, 16, 224, 224, 3, 7, 7, 7, 64, 2, 3]),
        ("DEP", depthwise_conv2d::kernel(), vec![1, 112, 112, 32, 3, 3, 1, 1]),
        ("DIL", conv2d::kernel(), vec![1, 224, 224, 3, 7, 7, 64, 2, 3, 2, 1]),
        ("GMM", batch_matmul::kernel(), vec![1, 128, 128, 128]),
        ("GRP", conv2d::kernel(), vec![1, 56, 56, 64, 3, 3, 128, 2, 1, 1, 4]),
        ("T2D", conv2d_transpose::kernel(), vec![1, 4, 4, 512, 4, 4, 256, 2, 1]),
        ("CBR", conv2d_bias_norm_relu::kernel(), vec![1, 224, 224, 3, 7, 7, 64, 2, 3]),
        ("TBG", transpose_batch_matmul::kernel(), vec![1, 128, 12, 64]),
        ("NRM", norm::kernel(), vec![1, 256, 256]),
        ("SFM", softmax::kernel(), vec![256, 256]),
        ("RNN", recurrences::recurrent::kernel(), vec![2, 8, 32, 64]),
    ]
}

fn bound(kernel: &Kernel, sizes: &[i64]) -> Program {
    bound_but(kernel, sizes, &[])
}

/// The program with its sizes bound, apart from those at some positions.
fn bound_but(kernel: &Kernel, sizes: &[i64], symbolic: &[usize]) -> Program {
    let program = kernel.program().unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(program.dims().count(), sizes.len(), "{}", program.name);
    let dims = program.dims().map(|(var, _)| var).zip(sizes.iter().copied()).enumerate();
    let dims: Vec<_> =
        dims.filter(|(position, _)| !symbolic.contains(position)).map(|(_, dim)| dim).collect();
    program.bind_dims(&dims)
}

#[test]
fn every_operator_has_a_space_of_legal_candidates() {
    let target = Arc::new(Target::generic_cpu());
    let spec = SearchSpec::built_in(TargetKind::Cpu).expect("a CPU can be searched");
    for (name, kernel, sizes) in operators() {
        let program = bound(kernel, &sizes);
        let spaces = design_spaces(&program, &target, &spec.rules, 1);
        assert!(!spaces.is_empty(), "{name} has no design space");
        let generator = Generator::new(program.clone(), target.clone(), spec.clone());
        let mut statistics = Statistics::default();
        let mut legal: BTreeMap<usize, u32> = BTreeMap::new();
        let mut rng = Rng::new(3);
        for round in 0..12 {
            for (number, space) in spaces.iter().enumerate() {
                let made = generator.generate(number, space, rng.next_u64(), |_, _| None, &mut statistics);
                let Some(candidate) = made else { continue };
                *legal.entry(number).or_default() += 1;
                if round == 0 {
                    lower(&candidate.program, &LowerOptions::default()).unwrap_or_else(|error| {
                        panic!("{name}: {error}\n{}\n{}", candidate.trace, candidate.program)
                    });
                }
            }
        }
        println!("{name}: {} spaces, {legal:?} {statistics:?}", spaces.len());
        assert!(legal.len() * 2 >= spaces.len(), "{name}: few spaces have legal candidates: {statistics:?}");
    }
}

/// Random candidates of operators at small, odd shapes, a test for each.
macro_rules! random_candidates {
    ($($test:ident of $module:ident: $(($kernel:ident, $sizes:expr)),+;)+) => {$(
        #[test]
        fn $test() {
            let shapes = [$(($module::$kernel::kernel(), &$sizes[..])),+];
            for (kernel, sizes) in shapes {
                check_random_candidates(kernel, sizes, cases().div_ceil(shapes.len() as u64));
            }
        }
    )+};
}

random_candidates! {
    random_candidates_of_c1d of kernels: (conv1d, [1, 13, 3, 3, 10, 2, 1]);
    random_candidates_of_c2d of kernels: (conv2d, [1, 7, 9, 3, 3, 3, 8, 2, 1, 1, 1]), (conv2d, [1, 75, 39, 1, 3, 3, 3, 2, 1, 1, 1]),
        (conv2d, [1, 7, 7, 17, 3, 3, 33, 1, 1, 1, 1]), (conv2d, [1, 5, 11, 9, 5, 5, 16, 1, 2, 1, 1]),
        (conv2d, [1, 9, 7, 37, 3, 3, 3, 1, 1, 1, 1]), (conv2d, [1, 14, 14, 16, 3, 3, 16, 1, 1, 1, 1]);
    random_candidates_of_c3d of kernels: (conv3d, [1, 4, 5, 4, 2, 3, 3, 3, 4, 1, 1]);
    random_candidates_of_dep of kernels: (depthwise_conv2d, [2, 6, 5, 7, 3, 3, 1, 1]);
    random_candidates_of_dil of kernels: (conv2d, [1, 9, 9, 2, 3, 3, 6, 1, 2, 2, 1]), (conv2d, [1, 7, 7, 16, 3, 3, 32, 1, 2, 2, 1]);
    random_candidates_of_gmm of kernels: (batch_matmul, [2, 12, 10, 9]), (batch_matmul, [1, 37, 131, 3]), (batch_matmul, [1, 1, 1, 1]);
    random_candidates_of_grp of kernels: (conv2d, [1, 6, 6, 4, 3, 3, 8, 2, 1, 1, 2]), (conv2d, [1, 4, 5, 4, 3, 2, 32, 1, 1, 1, 2]);
    random_candidates_of_t2d of kernels:
        (conv2d_transpose, [1, 3, 4, 5, 4, 4, 6, 2, 1]), (conv2d_transpose, [1, 3, 4, 2, 3, 3, 4, 2, 1]);
    random_candidates_of_cbr of kernels: (conv2d_bias_norm_relu, [1, 6, 6, 3, 3, 3, 8, 2, 1]);
    random_candidates_of_tbg of kernels: (transpose_batch_matmul, [1, 8, 3, 6]), (transpose_batch_matmul, [1, 6, 2, 24]);
    random_candidates_of_nrm of kernels: (norm, [2, 6, 8]), (norm, [1, 17, 67]);
    random_candidates_of_sfm of kernels: (softmax, [6, 12]), (softmax, [7, 131]);
    random_candidates_of_odd_sums of kernels: (norm, [1, 1, 1009]), (norm, [1, 31, 37]), (norm, [1, 1, 1]), (norm, [3, 2, 509]);
    random_candidates_of_dot of memory: (dot, [1]), (dot, [17]), (dot, [131]), (dot, [10007]);
    random_candidates_of_lnm of memory: (layer_norm, [5, 37]), (layer_norm, [3, 131]), (layer_norm, [257, 2]);
    random_candidates_of_trn of memory: (transpose, [67, 131]), (transpose, [1, 73]);
    random_candidates_of_att of attention: (attention, [1, 3, 37, 5]), (attention, [2, 5, 67, 19]);
    random_candidates_of_rnn of recurrences: (recurrent, [2, 5, 7, 9]), (recurrent, [1, 3, 17, 37]), (recurrent, [1, 4, 3, 64]),
        (recurrent, [7, 3, 5, 48]), (recurrent, [8, 4, 3, 33]), (recurrent, [1, 3, 3, 368]);
    random_candidates_of_rnn_of_bytes of recurrences: (recurrent_bytes, [3, 4, 48]), (recurrent_bytes, [1, 3, 64]),
        (recurrent_bytes, [5, 2, 32]), (recurrent_bytes, [2, 3, 7]);
    random_candidates_of_nothing of kernels: (batch_matmul, [1, 0, 4, 4]), (batch_matmul, [1, 3, 4, 0]);
}

/// The tensors of a call with these dimensions.
fn arguments(program: &Program, sizes: &[i64]) -> Vec<AnyTensor> {
    let dims: Vec<_> = program.dims().map(|(var, _)| var).zip(sizes.iter().copied()).collect();
    let size = |var| dims.iter().find(|(dim, _)| *dim == var).map(|(_, size)| *size);
    let shapes = program.buffer_params().map(|(buffer, _)| program.buffer(buffer));
    shapes
        .enumerate()
        .map(|(number, buffer)| {
            let extents = buffer.shape.iter().map(|extent| extent.evaluate(&size).expect("known") as usize);
            let shape: Vec<usize> = extents.collect();
            AnyTensor::random(buffer.dtype, &shape, number as u64).expect("a small shape")
        })
        .collect()
}

fn run(program: &Program) -> Result<Vec<AnyTensor>, InterpError> {
    run_at(program, &[])
}

/// As [`run`], with values for the dimensions.
fn run_at(program: &Program, dims: &[i64]) -> Result<Vec<AnyTensor>, InterpError> {
    let mut tensors = arguments(program, dims);
    let options = Options { parallel_order_seed: Some(5) };
    Interpreter::new(program)?.run(options, dims, &[], &mut tensors)?;
    Ok(tensors)
}

/// The widths of vectors that the machine has: its own, half of it, and the 128 bits of machines without SIMD code.
static DEVICES: LazyLock<[(&str, CpuDevice); 3]> = LazyLock::new(|| {
    [
        ("CPU", CpuDevice::host().expect("this machine has a compiler")),
        ("CPU without AVX-512", CpuDevice::without_features("-avx512f").expect("known features")),
        ("CPU without AVX", CpuDevice::without_features("-fma,-avx").expect("known features")),
    ]
});

/// As [`run`], in machine code on two threads.
fn run_compiled(backend: &CpuDevice, flat: &Program) -> Result<Vec<AnyTensor>, String> {
    let kernel = backend.compile(&[flat]).remove(0).map_err(|error| error.to_string())?;
    execute(&*kernel, flat, &[])
}

/// Runs compiled code of a program with values for its dimensions.
fn execute(kernel: &dyn Executable, flat: &Program, dims: &[i64]) -> Result<Vec<AnyTensor>, String> {
    let mut tensors = arguments(flat, dims);
    let accesses = flat.buffer_params().map(|(_, access)| access);
    let mut buffers: Vec<BufferArgument<'_>> = tensors
        .iter_mut()
        .zip(accesses)
        .map(|(tensor, access)| match access {
            Access::Input | Access::Constant => BufferArgument::Read(tensor.bytes()),
            Access::Output | Access::InOut => BufferArgument::Write(tensor.bytes_mut()),
        })
        .collect();
    let mut arguments = Arguments { dims, scalars: &[], buffers: &mut buffers };
    kernel.run(&mut arguments, RunOptions::with_threads(2)).map_err(|error| error.to_string())?;
    Ok(tensors)
}

/// Whether tensors hold the same elements, up to the rounding of sums in another order.
fn agree(found: &[AnyTensor], expected: &[AnyTensor]) -> bool {
    let is_close = |(a, b): (f64, f64)| (a - b).abs() <= 1e-4 * (1.0 + b.abs());
    found.iter().zip(expected).all(|(found, expected)| {
        expected.len() == found.len()
            && found.to_f64_vec().into_iter().zip(expected.to_f64_vec()).all(is_close)
    })
}

/// How many random candidates are drawn of an operator: `TILEWRIGHT_CASES`, or some dozens.
fn cases() -> u64 {
    setting("TILEWRIGHT_CASES").unwrap_or(60)
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Of so many candidates of a shape all are lowered and compiled as well; of more, every fourth one.
const ALL_COMPILED: u64 = 1000;

/// The candidate that failed.
struct Context<'a> {
    title: &'a str,
    target: &'static str,
    seed: u64,
    candidate: Option<&'a Candidate>,
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}, {} target, seed {}", self.title, self.target, self.seed);
            if let Some(candidate) = self.candidate {
                eprintln!("{}\n{}", candidate.trace, candidate.program);
            }
        }
    }
}

/// Draws candidates from all design spaces in turn, for a plain machine and for this one, with seeds from `TILEWRIGHT_SEED` on,
/// and compares them with the definition.
fn check_random_candidates(kernel: &Kernel, sizes: &[i64], count: u64) {
    let program = bound(kernel, sizes);
    let title = format!("{}{sizes:?}", kernel.name());
    let expected = run(&program).unwrap_or_else(|error| panic!("{title}: {error}\n{program}"));
    let spec = SearchSpec::built_in(TargetKind::Cpu).expect("a CPU can be searched");
    let host = CpuDevice::host().expect("this machine has a compiler").target().clone();
    let machines = [("generic", Target::generic_cpu()), ("host", host)].map(|(name, target)| {
        let target = Arc::new(target);
        let spaces = design_spaces(&program, &target, &spec.rules, 1);
        (name, Generator::new(program.clone(), target, spec.clone()), spaces)
    });
    let mut statistics = Statistics::default();
    let (first, mut legal) = (setting("TILEWRIGHT_SEED").unwrap_or(0), 0);
    for number in 0..count {
        let seed = first + number;
        let (target, generator, spaces) = &machines[(number % 2) as usize];
        let space = (number / 2) as usize % spaces.len();
        let context = Context { title: &title, target, seed, candidate: None };
        let made = generator.generate(space, &spaces[space], seed, |_, _| None, &mut statistics);
        drop(context);
        let Some(candidate) = made else { continue };
        let _context = Context { title: &title, target, seed, candidate: Some(&candidate) };
        verify(&candidate.program, Level::Blocks).unwrap_or_else(|errors| panic!("{errors}"));
        check("blocks", run(&candidate.program).map_err(|error| error.to_string()), &expected);
        legal += 1;
        if count <= ALL_COMPILED || legal % 4 == 1 {
            // So small a cache does not hold the weights of recurrences.
            let second_cache_bytes = (legal / 4 % 2 == 0).then_some(8 << 10);
            let options = LowerOptions { second_cache_bytes, ..LowerOptions::default() };
            let flat = lower(&candidate.program, &options).expect("it can be lowered");
            check("flat", run(&flat).map_err(|error| error.to_string()), &expected);
            for (name, device) in &*DEVICES {
                check(name, run_compiled(device, &flat), &expected);
            }
        }
    }
    println!("{title}: {legal} of {count} candidates are legal: {:?}", statistics.rejected);
    assert!(legal > 0 || count < 8, "{title} has no legal candidate");
}

fn check(level: &str, found: Result<Vec<AnyTensor>, String>, expected: &[AnyTensor]) {
    let found = found.unwrap_or_else(|error| panic!("{level}: {error}"));
    assert!(agree(&found, expected), "{level}: the results are wrong");
}
