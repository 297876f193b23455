//! Products of `f32` that are formed from `bf16` pieces: random candidates are as exact as the kernel's accuracy promises, as
//! blocks, as flat programs, and compiled. No machine with the intrinsic is needed: its description is executed.

#[path = "../benches/operators/pieces.rs"]
mod pieces;

use std::sync::Arc;

use tilewright::kernel::Kernel;
use tilewright::{Tensor, tensor_kernel};
use tilewright_core::accuracy::{Accuracy, PieceProducts};
use tilewright_core::device::{Arguments, BufferArgument, Device};
use tilewright_core::dtype::DType;
use tilewright_core::interp::{Interpreter, Options};
use tilewright_core::lower::{LowerOptions, lower, split_constants};
use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::stmt::{Stmt, Symbol};
use tilewright_core::target::{CpuTarget, RunOptions, Target, TargetKind};
use tilewright_core::tensor::{AnyTensor, Random};
use tilewright_core::visit::for_each_stmt;
use tilewright_cpu::CpuDevice;
use tilewright_search::candidate::{Candidate, Generator, Statistics};
use tilewright_search::space::design_spaces;
use tilewright_search::spec::SearchSpec;

/// A product with a weight that stays the same, output × input.
#[tensor_kernel(accuracy = 1e-4)]
fn dense(x: &Tensor<f32, M, K>, #[constant] w: &Tensor<f32, N, K>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                y[[i, j]] += x[[i, k]] * w[[j, k]];
            }
        }
    }
    y
}

/// A batch of products: rows, columns and depth, and whether the second factor lies along the depth.
struct Case {
    kernel: &'static Kernel,
    dims: Vec<i64>,
    size: [usize; 4],
    is_transposed: bool,
}

/// A kernel of the benches at `B × N × K` by `B × K × M`.
fn product(kernel: &'static Kernel, [b, n, m, k]: [usize; 4]) -> Case {
    let dims = [b, n, k, m].map(|extent| extent as i64).to_vec();
    Case { kernel, dims, size: [b, n, m, k], is_transposed: false }
}

fn dense_product([m, n, k]: [usize; 3]) -> Case {
    let dims = [m, k, n].map(|extent| extent as i64).to_vec();
    Case { kernel: dense::kernel(), dims, size: [1, m, n, k], is_transposed: true }
}

impl Case {
    fn program(&self) -> Program {
        self.kernel.program_for(&self.dims).expect("the dimensions fit")
    }

    fn way(&self) -> PieceProducts {
        PieceProducts::fewest(self.program().accuracy.expect("every kernel here states one"))
    }

    /// Numbers of very different sizes, of which many cancel each other.
    fn arguments(&self) -> Vec<AnyTensor> {
        let [b, n, m, k] = self.size;
        let mut random = Random::new(7);
        let mut tensor = |shape: &[usize]| {
            let mut last = 1.0;
            let values: Vec<f64> = (0..shape.iter().product())
                .map(|_| {
                    let scale = 2f64.powi(random.below(41) as i32 - 20);
                    last =
                        if random.below(4) == 0 { -last } else { f64::from((random.unit() * scale) as f32) };
                    last
                })
                .collect();
            AnyTensor::from_f64s(DType::F32, &values, shape).expect("a small shape")
        };
        match self.is_transposed {
            true => vec![tensor(&[n, k]), tensor(&[m, k]), tensor(&[n, m])],
            false => vec![tensor(&[b, n, k]), tensor(&[b, k, m]), tensor(&[b, n, m])],
        }
    }

    /// Panics unless a result is as exact as promised.
    fn check(&self, found: &AnyTensor, what: &dyn Fn() -> String) {
        let [b, n, m, k] = self.size;
        let arguments = self.arguments();
        let (first, second) = (arguments[0].to_f64_vec(), arguments[1].to_f64_vec());
        let way = self.way();
        // Each term is added once, and partial sums to each other.
        let additions = (2 * k * way.count as usize) as f64;
        let promised = way.error + 1.01 * additions * f64::from(f32::EPSILON) / 2.0;
        for (position, found) in found.to_f64_vec().into_iter().enumerate() {
            let (batch, i, j) = (position / m / n, position / m % n, position % m);
            assert!(batch < b);
            let term = |k0: usize| {
                let place =
                    if self.is_transposed { (batch * m + j) * k + k0 } else { (batch * k + k0) * m + j };
                first[(batch * n + i) * k + k0] * second[place]
            };
            let (exact, magnitude) =
                (0..k).map(term).fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
            let error: f64 = (found - exact).abs();
            assert!(
                error <= promised * magnitude,
                "[{batch}, {i}, {j}] is {found:e}, not {exact:e}, where products reach {magnitude:e}, in {}",
                what()
            );
        }
    }

    fn interpreted(&self, program: &Program) -> AnyTensor {
        let mut tensors = self.arguments();
        let options = Options { parallel_order_seed: Some(5) };
        let run = Interpreter::new(program).and_then(|it| it.run(options, &[], &[], &mut tensors));
        run.unwrap_or_else(|error| panic!("{error}\n{program}"));
        tensors.remove(2)
    }

    fn compiled(&self, backend: &CpuDevice, flat: &Program) -> AnyTensor {
        let mut tensors = self.arguments();
        let mut buffers: Vec<BufferArgument<'_>> =
            tensors.iter_mut().map(|tensor| BufferArgument::Write(tensor.bytes_mut())).collect();
        let executable = backend.compile(&[flat]).remove(0).unwrap_or_else(|error| panic!("{error}\n{flat}"));
        let mut arguments = Arguments { dims: &[], scalars: &[], buffers: &mut buffers };
        executable
            .run(&mut arguments, RunOptions::with_threads(2))
            .unwrap_or_else(|error| panic!("{error}\n{flat}"));
        tensors.remove(2)
    }
}

fn target(intrinsics: &[&str]) -> Arc<Target> {
    let intrinsics: Vec<Symbol> = intrinsics.iter().map(|name| (*name).into()).collect();
    let cpu = CpuTarget {
        intrinsics,
        descriptions: tilewright_cpu::intrinsics::known().clone(),
        vector_bits: 512,
        vector_registers: 32,
        ..CpuTarget::generic()
    };
    Arc::new(cpu.into())
}

fn spec() -> SearchSpec {
    SearchSpec::built_in(TargetKind::Cpu).expect("a CPU can be searched")
}

fn spaces(program: &Program, target: &Arc<Target>) -> Vec<Trace> {
    design_spaces(program, target, &spec().rules, 1)
}

fn is_split(trace: &Trace) -> bool {
    trace.steps().iter().any(|step| step.instruction.name() == "split_products")
}

fn marks(program: &Program) -> usize {
    let mut count = 0;
    for_each_stmt(&program.body, &mut |stmt| count += usize::from(matches!(stmt, Stmt::Intrinsic(_))));
    count
}

/// Random candidates of the spaces in which products are split.
fn candidates(case: &Case, target: &Arc<Target>) -> Vec<Candidate> {
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2);
    let program = case.program();
    let generator = Generator::new(program.clone(), target.clone(), spec());
    let mut statistics = Statistics::default();
    let mut found = Vec::new();
    for (number, space) in spaces(&program, target).iter().enumerate().filter(|(_, space)| is_split(space)) {
        for seed in 0..cases {
            found.extend(generator.generate(number, space, seed, |_, _| None, &mut statistics));
        }
    }
    found
}

#[test]
fn random_candidates_are_as_exact_as_promised() {
    use pieces::*;
    let (target, host) = (target(&["tdpbf16ps"]), CpuDevice::host().expect("no override"));
    let cases = [
        product(batch_matmul_3::kernel(), [1, 16, 16, 32]),
        product(batch_matmul_3::kernel(), [1, 29, 15, 100]),
        product(batch_matmul_3::kernel(), [2, 13, 23, 31]),
        product(batch_matmul_6::kernel(), [1, 32, 48, 64]),
        product(batch_matmul_6::kernel(), [1, 19, 31, 61]),
        product(batch_matmul_9::kernel(), [1, 16, 30, 35]),
        dense_product([16, 32, 64]),
        dense_product([13, 29, 53]),
    ];
    for case in cases {
        let name = format!("{} at {:?}", case.kernel.name(), case.size);
        let found = candidates(&case, &target);
        assert!(!found.is_empty(), "{name} is never split");
        for candidate in &found {
            let flat = lower(&candidate.program, &LowerOptions::of(&target)).expect("it can be lowered");
            assert!(marks(&flat) > 0, "{name} is split in vain:\n{}", candidate.trace);
            let results = [
                ("blocks", case.interpreted(&candidate.program)),
                ("flat program", case.interpreted(&flat)),
                ("machine code", case.compiled(&host, &flat)),
            ];
            for (level, result) in &results {
                case.check(result, &|| format!("{level} of {name}:\n{}\n{flat}", candidate.trace));
            }
        }
        println!("{name}: {} candidates", found.len());
    }
}

#[test]
fn products_are_split_only_where_kernel_and_machine_allow_it() {
    let (with, without) = (target(&["tdpbf16ps"]), target(&["vpdpbusd_16", "tdpbusd"]));
    let mut program = product(pieces::batch_matmul_3::kernel(), [1, 32, 32, 32]).program();
    let is_offered = |program: &Program, target| spaces(program, target).iter().any(is_split);
    assert!(is_offered(&program, &with));
    assert!(!is_offered(&program, &without));
    // Unsplit products are offered as before.
    let plain = spaces(&program, &with).iter().filter(|space| !is_split(space)).count();
    // Dot products of pairs have twice the rate of multiply-adds: enough for one product of pieces, not for three.
    let pairs = self::target(&["vdpbf16ps_16"]);
    assert!(!is_offered(&program, &pairs));
    program.accuracy = Accuracy::new(0.01);
    assert!(is_offered(&program, &pairs));
    program.accuracy = None;
    assert!(!is_offered(&program, &with) && !is_offered(&program, &pairs));
    assert_eq!(spaces(&program, &with).len(), plain);
}

#[test]
fn odd_sizes_are_computed_without_pieces() {
    use pieces::*;
    let (target, host) = (target(&["tdpbf16ps"]), CpuDevice::host().expect("no override"));
    for size in [[1, 1, 1, 1], [1, 3, 5, 2], [2, 4, 3, 0], [0, 3, 5, 7], [1, 0, 5, 7]] {
        let case = product(batch_matmul_6::kernel(), size);
        assert!(candidates(&case, &target).is_empty(), "{size:?}");
        let schedule = tilewright_search::schedule_by_default(&case.program(), &target);
        let flat = lower(schedule.program(), &LowerOptions::of(&target)).expect("it can be lowered");
        case.check(&case.compiled(&host, &flat), &|| flat.to_string());
    }
}

#[test]
fn pieces_of_constants_are_made_ahead() {
    let target = target(&["tdpbf16ps"]);
    for size in [[16, 32, 64], [13, 29, 53]] {
        let found = candidates(&dense_product(size), &target);
        assert!(!found.is_empty(), "{size:?}");
        for candidate in found {
            let split = split_constants(&candidate.program).expect("something depends on the weight alone");
            let text = split.main.to_string();
            let weight = split.main.buffer_params().nth(1).map(|(id, _)| id).expect("two factors");
            let loads = tilewright_core::analysis::block::loads(&split.main.body);
            assert!(loads.iter().all(|access| access.buffer != weight), "a call reads the weight:\n{text}");
            assert!(split.prologue.to_string().contains("as bf16"), "{}", split.prologue);
        }
    }
}

#[test]
fn calls_keep_their_form() {
    use pieces::*;
    let case = product(batch_matmul_3::kernel(), [2, 9, 7, 33]);
    let arguments = case.arguments();
    let tensor = |number: usize| {
        let (values, shape) = (arguments[number].to_f64_vec(), arguments[number].shape().to_vec());
        let element = |[b, i, j]: [usize; 3]| values[(b * shape[1] + i) * shape[2] + j] as f32;
        Tensor::from_fn([shape[0], shape[1], shape[2]], element).expect("a small shape")
    };
    let (a, b) = (tensor(0), tensor(1));
    for result in [batch_matmul_3(&a, &b).unwrap(), batch_matmul_3::reference(&a, &b).unwrap()] {
        case.check(&AnyTensor::from(result), &|| "a call".to_owned());
    }
    let text = case.kernel.program().expect("it can be built").to_string();
    assert!(text.contains(") accuracy 0.0001 {"), "{text}");
}
