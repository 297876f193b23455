//! Random candidates of kernels for machines with some intrinsics.

use std::sync::Arc;

use tilewright::kernel::Kernel;
use tilewright_backends::cpu::CpuBackend;
use tilewright_core::index::Index;
use tilewright_core::interp::{Interpreter, Options};
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::{Buffer, Program};
use tilewright_core::stmt::{Stmt, Symbol};
use tilewright_core::target::{Arguments, Backend, BufferArgument, Target, TargetKind};
use tilewright_core::tensor::AnyTensor;
use tilewright_core::visit::for_each_stmt;
use tilewright_search::candidate::{Generator, Statistics};
use tilewright_search::rule::RuleSet;
use tilewright_search::space::design_spaces;

/// A kernel at a shape.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    program: Program,
}

impl Case {
    /// With sizes for the dimensions in their order.
    pub(crate) fn new(name: &'static str, kernel: &Kernel, sizes: &[i64]) -> Self {
        let program = kernel.program().unwrap_or_else(|errors| panic!("{errors}"));
        let dims: Vec<_> = program.dims().map(|(var, _)| var).zip(sizes.iter().copied()).collect();
        assert_eq!(dims.len(), sizes.len(), "{}", program.name);
        Case { name, program: program.bind_dims(&dims) }
    }

    /// What the definition gives.
    pub(crate) fn expected(&self, argument: Argument<'_>) -> Vec<AnyTensor> {
        interpreted(&self.program, argument)
    }
}

/// Makes the tensor of a number among a program's, for a buffer of a shape.
pub(crate) type Argument<'a> = &'a dyn Fn(usize, &Buffer, &[usize]) -> AnyTensor;

/// Any machine can execute what is marked, so that tests do not depend on this one's instructions.
pub(crate) fn all_intrinsics() -> Vec<Symbol> {
    tilewright_core::intrinsic::all().iter().map(|intrinsic| intrinsic.name().clone()).collect()
}

fn arguments(program: &Program, argument: Argument<'_>) -> Vec<AnyTensor> {
    let shapes = program.buffer_params().map(|(buffer, _)| program.buffer(buffer));
    let extent = |extent: &Index| extent.as_constant().expect("bound") as usize;
    let tensor = |(number, buffer): (usize, &Buffer)| {
        argument(number, buffer, &buffer.shape.iter().map(extent).collect::<Vec<_>>())
    };
    shapes.enumerate().map(tensor).collect()
}

fn interpreted(program: &Program, argument: Argument<'_>) -> Vec<AnyTensor> {
    let mut tensors = arguments(program, argument);
    let mut run =
        || Interpreter::new(program)?.run(Options { parallel_order_seed: Some(5) }, &[], &[], &mut tensors);
    run().unwrap_or_else(|error| panic!("{error}\n{program}"));
    tensors
}

fn compiled(backend: &CpuBackend, flat: &Program, argument: Argument<'_>) -> Vec<AnyTensor> {
    let mut tensors = arguments(flat, argument);
    let mut buffers: Vec<BufferArgument<'_>> =
        tensors.iter_mut().map(|tensor| BufferArgument::Write(tensor.bytes_mut())).collect();
    let executable = backend.compile(&[flat]).remove(0).unwrap_or_else(|error| panic!("{error}\n{flat}"));
    let mut arguments = Arguments { dims: &[], scalars: &[], buffers: &mut buffers };
    executable.run(&mut arguments, 2).unwrap_or_else(|error| panic!("{error}\n{flat}"));
    tensors
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

/// Draws random candidates of a kernel for a machine with some intrinsics, and compares blocks, flat programs and, if there
/// is a backend for them, machine code with the definition. Gives how many of them are tensorized.
pub(crate) fn check(
    case: &Case,
    intrinsics: Vec<Symbol>,
    backend: Option<&CpuBackend>,
    argument: Argument<'_>,
    agree: &dyn Fn(&[AnyTensor], &[AnyTensor]) -> bool,
) -> usize {
    let Case { name, program } = case;
    let target = Target { intrinsics, vector_bits: 512, vector_registers: 32, ..Target::generic_cpu() };
    let target = Arc::new(target);
    let rules = RuleSet::built_in(TargetKind::Cpu).expect("the built-in rules are in order");
    let expected = case.expected(argument);
    let generator = Generator::new(program.clone(), target.clone());
    let mut statistics = Statistics::default();
    let (mut tensorized, mut legal) = (0, 0);
    let spaces = design_spaces(program, &target, &rules, 1);
    for (number, space) in spaces.iter().enumerate() {
        for seed in 0..cases() {
            let made = generator.generate(number, space, seed, |_, _| None, &mut statistics);
            let Some(candidate) = made else { continue };
            let flat = lower(&candidate.program, &LowerOptions::of(&target)).expect("it can be lowered");
            legal += 1;
            tensorized += usize::from(marks(&flat) > 0);
            let context = || format!("{name}, seed {seed}:\n{}\n{flat}", candidate.trace);
            let found = interpreted(&candidate.program, argument);
            assert!(agree(&found, &expected), "blocks of {}", context());
            assert!(agree(&interpreted(&flat, argument), &expected), "flat program of {}", context());
            if let Some(backend) = backend {
                let found = compiled(backend, &flat, argument);
                assert!(agree(&found, &expected), "machine code of {}", context());
            }
        }
    }
    println!(
        "{name}: {} spaces, {tensorized} of {legal} candidates tensorized, {statistics:?}",
        spaces.len()
    );
    tensorized
}
