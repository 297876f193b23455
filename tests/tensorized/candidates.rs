//! Random candidates of kernels for machines with some intrinsics.

use std::sync::Arc;

use tilewright::kernel::Kernel;
use tilewright_core::analysis::block::loads;
use tilewright_core::device::{Arguments, BufferArgument, Device};
use tilewright_core::index::Index;
use tilewright_core::interp::{Interpreter, Options};
use tilewright_core::intrinsic::computes_tile;
use tilewright_core::lower::{LowerOptions, lower, split_constants};
use tilewright_core::program::{Buffer, Program};
use tilewright_core::stmt::{Stmt, Symbol};
use tilewright_core::target::{CpuTarget, RunOptions, Target, TargetKind};
use tilewright_core::tensor::AnyTensor;
use tilewright_core::visit::for_each_stmt;
use tilewright_cpu::CpuDevice;
use tilewright_search::candidate::{Candidate, Generator, Statistics};
use tilewright_search::space::design_spaces;
use tilewright_search::spec::SearchSpec;

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

    /// The definition's results.
    pub(crate) fn expected(&self, argument: Argument<'_>) -> Vec<AnyTensor> {
        interpreted(&self.program, argument)
    }
}

/// Makes the tensor of a number among a program's, for a buffer of a shape.
pub(crate) type Argument<'a> = &'a dyn Fn(usize, &Buffer, &[usize]) -> AnyTensor;

/// A machine with every intrinsic. Any machine can execute what is marked, so that tests do not depend on this one's
/// instructions.
pub(crate) fn able_machine() -> Arc<Target> {
    machine(tilewright_cpu::intrinsics::known().iter().map(|intrinsic| intrinsic.name().clone()).collect())
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

fn compiled(backend: &CpuDevice, flat: &Program, argument: Argument<'_>) -> Vec<AnyTensor> {
    let mut tensors = arguments(flat, argument);
    let mut buffers: Vec<BufferArgument<'_>> =
        tensors.iter_mut().map(|tensor| BufferArgument::Write(tensor.bytes_mut())).collect();
    let executable = backend.compile(&[flat]).remove(0).unwrap_or_else(|error| panic!("{error}\n{flat}"));
    let mut arguments = Arguments { dims: &[], scalars: &[], buffers: &mut buffers };
    executable
        .run(&mut arguments, RunOptions::with_threads(2))
        .unwrap_or_else(|error| panic!("{error}\n{flat}"));
    tensors
}

/// Marked statements that compute a tile in one instruction, by whether they still are what they are marked as.
fn tiles(program: &Program, target: &Target) -> Vec<bool> {
    let mut tiles = Vec::new();
    for_each_stmt(&program.body, &mut |stmt| {
        if let Stmt::Intrinsic(marked) = stmt
            && computes_tile(marked)
        {
            let known = target.descriptions().get(&marked.name).expect("it is described");
            tiles.push(known.matches(program, stmt).is_some());
        }
    });
    tiles
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

/// A machine with vectors of 512 bits and some intrinsics.
pub(crate) fn machine(intrinsics: Vec<Symbol>) -> Arc<Target> {
    let cpu = CpuTarget {
        intrinsics,
        descriptions: tilewright_cpu::intrinsics::known().clone(),
        vector_bits: 512,
        vector_registers: 32,
        ..CpuTarget::generic()
    };
    Arc::new(cpu.into())
}

/// Random candidates of a kernel with the seeds that they were drawn with.
fn drawn(case: &Case, target: &Arc<Target>) -> Vec<(u64, Candidate)> {
    let spec = SearchSpec::built_in(TargetKind::Cpu).expect("a CPU can be searched");
    let generator = Generator::new(case.program.clone(), target.clone(), spec.clone());
    let mut statistics = Statistics::default();
    let mut candidates = Vec::new();
    for (number, space) in design_spaces(&case.program, target, &spec.rules, 1).iter().enumerate() {
        for seed in 0..cases() {
            let made = generator.generate(number, space, seed, |_, _| None, &mut statistics);
            candidates.extend(made.map(|candidate| (seed, candidate)));
        }
    }
    println!("{}: {statistics:?}", case.name);
    candidates
}

/// For random tensorized candidates of a kernel whose second tensor is constant, whether what is done in each call reads that
/// tensor itself.
pub(crate) fn reads_constants_in_calls(case: &Case, target: &Arc<Target>) -> Vec<bool> {
    let tensorized = drawn(case, target).into_iter().filter(|(_, own)| marks(&own.program) > 0);
    let in_calls = tensorized.map(|(_, candidate)| {
        let split = split_constants(&candidate.program);
        let main = split.as_ref().map_or(&candidate.program, |split| &split.main);
        let (constant, _) = main.buffer_params().nth(1).expect("a second tensor");
        loads(&main.body).iter().any(|access| access.buffer == constant)
    });
    in_calls.collect()
}

/// Draws random candidates of a kernel for a machine, and compares blocks, flat programs and, if there
/// is a backend for them, machine code with the definition. Gives how many of them are tensorized.
pub(crate) fn check(
    case: &Case,
    target: &Arc<Target>,
    backend: Option<&CpuDevice>,
    argument: Argument<'_>,
    agree: &dyn Fn(&[AnyTensor], &[AnyTensor]) -> bool,
) -> usize {
    let name = case.name;
    let expected = case.expected(argument);
    let (mut tensorized, mut legal) = (0, 0);
    for (seed, candidate) in drawn(case, target) {
        let flat = lower(&candidate.program, &LowerOptions::of(target)).expect("it can be lowered");
        legal += 1;
        tensorized += usize::from(marks(&flat) > 0);
        let context = || format!("{name}, seed {seed}:\n{}\n{flat}", candidate.trace);
        assert!(tiles(&flat, target).into_iter().all(|is_tile| is_tile), "lost tiles of {}", context());
        let found = interpreted(&candidate.program, argument);
        assert!(agree(&found, &expected), "blocks of {}", context());
        assert!(agree(&interpreted(&flat, argument), &expected), "flat program of {}", context());
        if let Some(backend) = backend {
            let found = compiled(backend, &flat, argument);
            assert!(agree(&found, &expected), "machine code of {}", context());
        }
    }
    println!("{name}: {tensorized} of {legal} candidates tensorized");
    tensorized
}
