//! Products of bytes are computed by tensor intrinsics where the machine has them: random candidates give exactly what
//! the definition gives, as blocks, as flat programs, and compiled.

#[path = "../benches/operators/bytes.rs"]
mod bytes;

use std::sync::Arc;

use tilewright::kernel::Kernel;
use tilewright_backends::cpu::CpuBackend;
use tilewright_core::interp::{Interpreter, Options};
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::stmt::{Stmt, Symbol};
use tilewright_core::target::{Arguments, Backend, BufferArgument, Target, TargetKind};
use tilewright_core::tensor::AnyTensor;
use tilewright_core::visit::for_each_stmt;
use tilewright_search::candidate::{Generator, Statistics};
use tilewright_search::rule::RuleSet;
use tilewright_search::space::design_spaces;

fn kernels() -> Vec<(&'static str, &'static Kernel, Vec<i64>)> {
    use bytes::*;
    vec![
        ("matmul u8·i8", matmul_u8i8::kernel(), vec![8, 32, 48]),
        ("matmul u8·i8 of tails", matmul_u8i8::kernel(), vec![7, 13, 19]),
        ("matmul u8·i8 of ones", matmul_u8i8::kernel(), vec![1, 1, 1]),
        ("one row", matmul_u8i8::kernel(), vec![1, 37, 31]),
        ("matmul i8·i8", matmul_i8i8::kernel(), vec![12, 24, 32]),
        ("matmul i8·i8 of tails", matmul_i8i8::kernel(), vec![5, 11, 17]),
        ("matmul u8·u8", matmul_u8u8::kernel(), vec![12, 24, 32]),
        ("matmul u8·u8 of tails", matmul_u8u8::kernel(), vec![5, 11, 17]),
        ("matmul i8·u8", matmul_i8u8::kernel(), vec![12, 24, 32]),
        ("matmul i8·u8 of tails", matmul_i8u8::kernel(), vec![5, 11, 17]),
        ("linear", linear_u8i8::kernel(), vec![6, 16, 32]),
        ("linear of tails", linear_u8i8::kernel(), vec![3, 29, 23]),
        ("batch", batch_matmul_u8i8::kernel(), vec![3, 4, 12, 16]),
        ("conv channels last", conv2d_nhwc_u8i8::kernel(), vec![2, 6, 5, 8, 3, 2, 16, 1, 0]),
        ("conv of stride two", conv2d_nhwc_u8i8::kernel(), vec![1, 7, 6, 4, 3, 3, 19, 2, 1]),
        ("conv channels first", conv2d_nchw_u8i8::kernel(), vec![1, 8, 6, 7, 16, 3, 3]),
        ("conv of three channels", conv2d_nhwc_u8i8::kernel(), vec![1, 5, 5, 3, 3, 3, 10, 1, 1]),
    ]
}

fn bound(kernel: &Kernel, sizes: &[i64]) -> Program {
    let program = kernel.program().unwrap_or_else(|errors| panic!("{errors}"));
    let dims: Vec<_> = program.dims().map(|(var, _)| var).zip(sizes.iter().copied()).collect();
    assert_eq!(dims.len(), sizes.len(), "{}", program.name);
    program.bind_dims(&dims)
}

/// Arguments with many extreme values.
fn arguments(program: &Program) -> Vec<AnyTensor> {
    let shapes = program.buffer_params().map(|(buffer, _)| program.buffer(buffer));
    let tensor = |(number, buffer): (usize, &tilewright_core::program::Buffer)| {
        let extent = |extent: &tilewright_core::index::Index| extent.as_constant().expect("bound") as usize;
        let shape: Vec<usize> = buffer.shape.iter().map(extent).collect();
        let mut tensor = AnyTensor::random(buffer.dtype, &shape, number as u64).expect("a small shape");
        if buffer.dtype.bytes() == 1 {
            for (number, byte) in
                tensor.bytes_mut().iter_mut().enumerate().filter(|(number, _)| number % 3 > 0)
            {
                *byte = [0x80, 0x7F, 0xFF, 0x80, 0x81][number % 5];
            }
        }
        tensor
    };
    shapes.enumerate().map(tensor).collect()
}

fn interpreted(program: &Program) -> Vec<AnyTensor> {
    let mut tensors = arguments(program);
    let mut run =
        || Interpreter::new(program)?.run(Options { parallel_order_seed: Some(5) }, &[], &[], &mut tensors);
    run().unwrap_or_else(|error| panic!("{error}\n{program}"));
    tensors
}

fn compiled(backend: &CpuBackend, flat: &Program) -> Vec<AnyTensor> {
    let mut tensors = arguments(flat);
    let mut buffers: Vec<BufferArgument<'_>> =
        tensors.iter_mut().map(|tensor| BufferArgument::Write(tensor.bytes_mut())).collect();
    let executable = backend.compile(&[flat]).remove(0).unwrap_or_else(|error| panic!("{error}\n{flat}"));
    let mut arguments = Arguments { dims: &[], scalars: &[], buffers: &mut buffers };
    executable.run(&mut arguments, 2).unwrap_or_else(|error| panic!("{error}\n{flat}"));
    tensors
}

/// Whether two lists of tensors hold the same bytes; flat programs have other shapes.
fn agree(found: &[AnyTensor], expected: &[AnyTensor]) -> bool {
    found.iter().zip(expected).all(|(found, expected)| found.bytes() == expected.bytes())
}

fn marks(program: &Program) -> usize {
    let mut count = 0;
    for_each_stmt(&program.body, &mut |stmt| count += usize::from(matches!(stmt, Stmt::Intrinsic(_))));
    count
}

/// How many random candidates are drawn from each design space; `TILEWRIGHT_CASES` says otherwise.
fn cases() -> u64 {
    std::env::var("TILEWRIGHT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2)
}

/// Sizes of which tiles of AMX are not much larger.
fn tiled_kernels() -> Vec<(&'static str, &'static Kernel, Vec<i64>)> {
    use bytes::*;
    vec![
        ("matmul u8·i8", matmul_u8i8::kernel(), vec![32, 128, 32]),
        ("matmul u8·i8 of one tile's depth", matmul_u8i8::kernel(), vec![16, 64, 48]),
        ("matmul u8·i8 of tails", matmul_u8i8::kernel(), vec![29, 100, 15]),
        ("matmul i8·i8", matmul_i8i8::kernel(), vec![16, 192, 16]),
        ("linear of tails", linear_u8i8::kernel(), vec![16, 48, 30]),
        ("conv", conv2d_nhwc_u8i8::kernel(), vec![1, 4, 17, 64, 2, 2, 16, 1, 0]),
        ("conv of stride two with tails", conv2d_nhwc_u8i8::kernel(), vec![1, 4, 30, 60, 3, 3, 15, 2, 1]),
    ]
}

/// Draws random candidates of a kernel for a machine with some intrinsics, and compares blocks, flat programs and, if there
/// is a backend for them, machine code with the definition. Gives how many of them are tensorized.
fn check_candidates(
    (name, kernel, sizes): (&str, &Kernel, Vec<i64>),
    intrinsics: Vec<Symbol>,
    backend: Option<&CpuBackend>,
) -> usize {
    let target = Target { intrinsics, vector_bits: 512, vector_registers: 32, ..Target::generic_cpu() };
    let target = Arc::new(target);
    let rules = RuleSet::built_in(TargetKind::Cpu).expect("the built-in rules are in order");
    let program = bound(kernel, &sizes);
    let expected = interpreted(&program);
    let generator = Generator::new(program.clone(), target.clone());
    let mut statistics = Statistics::default();
    let (mut tensorized, mut legal) = (0, 0);
    let spaces = design_spaces(&program, &target, &rules, 1);
    for (number, space) in spaces.iter().enumerate() {
        for seed in 0..cases() {
            let made = generator.generate(number, space, seed, |_, _| None, &mut statistics);
            let Some(candidate) = made else { continue };
            let flat = lower(&candidate.program, &LowerOptions::of(&target)).expect("it can be lowered");
            legal += 1;
            tensorized += usize::from(marks(&flat) > 0);
            let context = || format!("{name}, seed {seed}:\n{}\n{flat}", candidate.trace);
            assert!(agree(&interpreted(&candidate.program), &expected), "blocks of {}", context());
            assert!(agree(&interpreted(&flat), &expected), "flat program of {}", context());
            if let Some(backend) = backend {
                assert!(agree(&compiled(backend, &flat), &expected), "machine code of {}", context());
            }
        }
    }
    println!(
        "{name}: {} spaces, {tensorized} of {legal} candidates tensorized, {statistics:?}",
        spaces.len()
    );
    tensorized
}

#[test]
fn random_candidates_in_tiles_are_exact() {
    for case in tiled_kernels() {
        let name = case.0;
        let intrinsics = ["tdpbusd", "tdpbssd"].map(Into::into).into();
        assert!(check_candidates(case, intrinsics, None) > 0, "{name} is never tensorized");
    }
}

#[test]
fn random_candidates_are_exact() {
    // Any machine can execute what is marked, so that the test does not depend on this one's instructions.
    let all = tilewright_core::intrinsic::all();
    let host = CpuBackend::host().expect("no override");
    for case in kernels() {
        let name = case.0;
        let intrinsics = all.iter().map(|intrinsic| intrinsic.name().clone()).collect();
        let can_be = !name.contains("of ones");
        let tensorized = check_candidates(case, intrinsics, Some(&host));
        assert_eq!(tensorized > 0, can_be, "{name}: {tensorized} tensorized");
    }
}
