//! The operator set can be searched: each definition becomes a program with design spaces, and random points of
//! these spaces are legal, can be lowered, and compute what the definition says, in machine code too.

#[path = "../benches/operators/kernels.rs"]
mod kernels;

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright::backends::cpu::CpuBackend;
use tilewright::kernel::Kernel;
use tilewright_core::interp::{InterpError, Interpreter, Options};
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::{Access, Program};
use tilewright_core::schedule::Rng;
use tilewright_core::target::{Arguments, Backend, BufferArgument, Target, TargetKind};
use tilewright_core::tensor::AnyTensor;
use tilewright_search::candidate::{Generator, Statistics};
use tilewright_search::rule::RuleSet;
use tilewright_search::space::design_spaces;

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
    ]
}

fn bound(kernel: &Kernel, sizes: &[i64]) -> Program {
    let program = kernel.program().unwrap_or_else(|errors| panic!("{errors}"));
    let dims: Vec<_> = program.dims().map(|(var, _)| var).zip(sizes.iter().copied()).collect();
    assert_eq!(dims.len(), sizes.len(), "{}", program.name);
    program.bind_dims(&dims)
}

#[test]
fn every_operator_has_a_space_of_legal_candidates() {
    let target = Arc::new(Target::generic_cpu());
    let rules = RuleSet::built_in(TargetKind::Cpu).expect("the built-in rules are in order");
    for (name, kernel, sizes) in operators() {
        let program = bound(kernel, &sizes);
        let spaces = design_spaces(&program, &target, &rules, 1);
        assert!(!spaces.is_empty(), "{name} has no design space");
        let generator = Generator { program: program.clone(), target: target.clone() };
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

/// Each operator at a small, odd shape.
fn small_operators() -> Vec<(&'static str, &'static Kernel, Vec<i64>)> {
    use kernels::*;
    vec![
        ("C1D", conv1d::kernel(), vec![1, 13, 3, 3, 10, 2, 1]),
        ("C2D", conv2d::kernel(), vec![1, 7, 9, 3, 3, 3, 8, 2, 1, 1, 1]),
        ("C3D", conv3d::kernel(), vec![1, 4, 5, 4, 2, 3, 3, 3, 4, 1, 1]),
        ("DEP", depthwise_conv2d::kernel(), vec![2, 6, 5, 7, 3, 3, 1, 1]),
        ("DIL", conv2d::kernel(), vec![1, 9, 9, 2, 3, 3, 6, 1, 2, 2, 1]),
        ("GMM", batch_matmul::kernel(), vec![2, 12, 10, 9]),
        ("GRP", conv2d::kernel(), vec![1, 6, 6, 4, 3, 3, 8, 2, 1, 1, 2]),
        ("T2D", conv2d_transpose::kernel(), vec![1, 3, 4, 5, 4, 4, 6, 2, 1]),
        ("T2D uneven", conv2d_transpose::kernel(), vec![1, 3, 4, 2, 3, 3, 4, 2, 1]),
        ("CBR", conv2d_bias_norm_relu::kernel(), vec![1, 6, 6, 3, 3, 3, 8, 2, 1]),
        ("TBG", transpose_batch_matmul::kernel(), vec![1, 8, 3, 6]),
        ("TBG in lanes", transpose_batch_matmul::kernel(), vec![1, 6, 2, 24]),
        ("GRP in lanes", conv2d::kernel(), vec![1, 4, 5, 4, 3, 2, 32, 1, 1, 1, 2]),
        ("NRM", norm::kernel(), vec![2, 6, 8]),
        ("SFM", softmax::kernel(), vec![6, 12]),
        ("GMM of primes", batch_matmul::kernel(), vec![1, 37, 131, 3]),
        ("C2D of primes", conv2d::kernel(), vec![1, 75, 39, 1, 3, 3, 3, 2, 1, 1, 1]),
        ("SFM of primes", softmax::kernel(), vec![7, 131]),
        ("GMM of ones", batch_matmul::kernel(), vec![1, 1, 1, 1]),
        ("GMM of nothing", batch_matmul::kernel(), vec![1, 0, 4, 4]),
        ("GMM over nothing", batch_matmul::kernel(), vec![1, 3, 4, 0]),
    ]
}

fn arguments(program: &Program) -> Vec<AnyTensor> {
    let shapes = program.buffer_params().map(|(buffer, _)| program.buffer(buffer));
    shapes
        .enumerate()
        .map(|(number, buffer)| {
            let shape: Vec<usize> =
                buffer.shape.iter().map(|extent| extent.as_constant().expect("bound") as usize).collect();
            AnyTensor::random(buffer.dtype, &shape, number as u64).expect("a small shape")
        })
        .collect()
}

fn run(program: &Program) -> Result<Vec<AnyTensor>, InterpError> {
    let mut tensors = arguments(program);
    let options = Options { parallel_order_seed: Some(5) };
    Interpreter::new(program)?.run(options, &[], &[], &mut tensors)?;
    Ok(tensors)
}

/// As [`run`], in machine code on two threads.
fn run_compiled(flat: &Program) -> Result<Vec<AnyTensor>, String> {
    let backend = CpuBackend::host().map_err(|error| error.to_string())?;
    let kernel = backend.compile(&[flat]).remove(0).map_err(|error| error.to_string())?;
    let mut tensors = arguments(flat);
    let accesses = flat.buffer_params().map(|(_, access)| access);
    let mut buffers: Vec<BufferArgument<'_>> = tensors
        .iter_mut()
        .zip(accesses)
        .map(|(tensor, access)| match access {
            Access::Input | Access::Constant => BufferArgument::Read(tensor.bytes()),
            Access::Output | Access::InOut => BufferArgument::Write(tensor.bytes_mut()),
        })
        .collect();
    let mut arguments = Arguments { dims: &[], scalars: &[], buffers: &mut buffers };
    kernel.run(&mut arguments, 2).map_err(|error| error.to_string())?;
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

/// How many random candidates are drawn from each design space; `TILEWRIGHT_CASES` says otherwise.
fn cases() -> u64 {
    std::env::var("TILEWRIGHT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(6)
}

#[test]
fn random_candidates_compute_what_the_definition_says() {
    let target = Arc::new(Target::generic_cpu());
    let rules = RuleSet::built_in(TargetKind::Cpu).expect("the built-in rules are in order");
    for (name, kernel, sizes) in small_operators() {
        let program = bound(kernel, &sizes);
        let expected = run(&program).unwrap_or_else(|error| panic!("{name}: {error}\n{program}"));
        let generator = Generator { program: program.clone(), target: target.clone() };
        let mut statistics = Statistics::default();
        for (number, space) in design_spaces(&program, &target, &rules, 1).iter().enumerate() {
            for seed in 0..cases() {
                let made = generator.generate(number, space, seed, |_, _| None, &mut statistics);
                let Some(candidate) = made else { continue };
                let flat = lower(&candidate.program, &LowerOptions::default()).expect("it can be lowered");
                let context = |level| {
                    format!("{name} {level}, seed {seed}:\n{}\n{}", candidate.trace, candidate.program)
                };
                for (level, scheduled) in [("blocks", &candidate.program), ("flat", &flat)] {
                    let found = run(scheduled).unwrap_or_else(|error| panic!("{error}\n{}", context(level)));
                    assert!(agree(&found, &expected), "{}", context(level));
                }
                let found = run_compiled(&flat).unwrap_or_else(|error| panic!("{error}\n{}", context("CPU")));
                assert!(agree(&found, &expected), "{}", context("CPU"));
            }
        }
        println!("{name}: {statistics:?}");
    }
}
