//! Running programs in the simulator, beside the interpreter.

use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;
use tilewright_core::interp;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::{GpuTarget, Target};
use tilewright_core::tensor::AnyTensor;
use tilewright_gpu::{FAILURE_RECORD_BYTES, GpuCode, Launch, LaunchArgument, emit};
use tilewright_ptx_sim::{self as sim, Finding, Memory, Module, Options, Remark};

use crate::assembler::assemble;

/// The types that programs compute with.
pub(crate) fn computed_types() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|dtype| !dtype.is_storage_only())
}

/// Parses a program.
pub(crate) fn parse(text: &str) -> Program {
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A program after the steps of a trace, lowered for a GPU.
pub(crate) fn scheduled(program: &Program, steps: &str) -> Program {
    let trace: Trace =
        format!("trace v1\n{steps}\n").parse().unwrap_or_else(|error| panic!("{error}\n{steps}"));
    let schedule = trace.replay(program, Target::generic_gpu(), 0);
    let schedule = schedule.unwrap_or_else(|error| panic!("{error}\n{program}\n{steps}"));
    lowered(schedule.program())
}

/// A program lowered for a GPU.
pub(crate) fn lowered(program: &Program) -> Program {
    let options = LowerOptions::of(&Target::generic_gpu());
    lower(program, &options).unwrap_or_else(|error| panic!("{error}\n{program}"))
}

/// The code of a program of the flat level.
pub(crate) fn code_of(flat: &Program) -> GpuCode {
    emit(flat, &GpuTarget::generic()).unwrap_or_else(|error| panic!("{error}\n{flat}"))
}

/// The arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    pub(crate) dims: Vec<i64>,
    pub(crate) scalars: Vec<Constant>,
    pub(crate) tensors: Vec<AnyTensor>,
}

/// The tensors after a run, and the failure record.
pub(crate) struct Outcome {
    pub(crate) tensors: Vec<AnyTensor>,
    pub(crate) failure: [i64; 3],
}

/// A run in the simulator: its outcome, and the remarks of the simulator.
pub(crate) struct Execution {
    pub(crate) outcome: Outcome,
    pub(crate) findings: Vec<Finding>,
    pub(crate) remarks: Vec<Remark>,
    /// Instructions that threads executed.
    pub(crate) instructions: u64,
    /// Sectors of device memory that warps touched, and as many as their data need.
    pub(crate) sectors: [u64; 2],
}

impl Call {
    /// A call of a program with small integers, whose products and sums are exact in every order.
    pub(crate) fn of_small_integers(program: &Program) -> Self {
        let tensors = program.buffer_params().zip(1..).map(|((id, _), seed)| {
            let buffer = program.buffer(id);
            let shape: Vec<usize> =
                buffer.shape.iter().map(|extent| extent.as_constant().expect("a size") as usize).collect();
            let least = if buffer.dtype.is_unsigned() { 0.0 } else { -3.0 };
            let values: Vec<f64> = (0..shape.iter().product())
                .map(|n: usize| ((n * (2 * seed + 3) + n / 13) % 7) as f64 + least)
                .collect();
            AnyTensor::from_f64s(buffer.dtype, &values, &shape).expect("a small tensor")
        });
        Call { tensors: tensors.collect(), ..Call::default() }
    }

    /// A call with tensors of random elements.
    pub(crate) fn random(program: &Program, dims: &[i64], seed: u64) -> Call {
        let mut seeds = seed..;
        Call::with(program, dims, |dtype, shape| {
            AnyTensor::random(dtype, shape, seeds.next().expect("seeds go on")).expect("a small tensor")
        })
    }

    /// A call with tensors whose elements rise: the largest of a row is its last.
    pub(crate) fn rising(program: &Program, dims: &[i64]) -> Call {
        Call::with(program, dims, |dtype, shape| {
            let values: Vec<f64> = (0..shape.iter().product::<usize>()).map(|place| place as f64).collect();
            AnyTensor::from_f64s(dtype, &values, shape).expect("a small tensor")
        })
    }

    /// A call with a tensor for each parameter, by its element type and shape.
    fn with(program: &Program, dims: &[i64], mut tensor: impl FnMut(DType, &[usize]) -> AnyTensor) -> Call {
        let tensors = program.buffer_params().map(|(id, _)| {
            let buffer = program.buffer(id);
            let extent = |extent: &tilewright_core::index::Index| {
                let of = |var| {
                    let position = program.dims().position(|(dim, _)| dim == var)?;
                    dims.get(position).copied()
                };
                extent.evaluate(&of).and_then(|extent| usize::try_from(extent).ok()).expect("a size")
            };
            let shape: Vec<usize> = buffer.shape.iter().map(extent).collect();
            tensor(buffer.dtype, &shape)
        });
        Call { dims: dims.to_vec(), scalars: Vec::new(), tensors: tensors.collect() }
    }

    /// The tensors after the interpreter has run a program.
    pub(crate) fn interpreted(&self, program: &Program) -> Vec<AnyTensor> {
        let mut tensors = self.tensors.clone();
        interp::run(program, &self.dims, &self.scalars, &mut tensors)
            .unwrap_or_else(|error| panic!("{error}\n{program}"));
        tensors
    }

    /// The tensors after the simulator has run the kernels of a program.
    pub(crate) fn simulated(&self, program: &Program, code: &GpuCode) -> Outcome {
        let module = Module::parse(&code.ptx).unwrap_or_else(|error| panic!("{error}\n{}", code.ptx));
        let execution = self.execute(program, code, &module, &Options::default());
        let findings: Vec<String> = execution.findings.iter().map(|finding| format!("{finding:?}")).collect();
        assert!(findings.is_empty(), "{}\n{program}\n{}", findings.join("\n"), code.ptx);
        execution.outcome
    }

    /// Runs the kernels of a module, which has the entries of `code`, one after the other until one has a fault.
    pub(crate) fn execute(
        &self,
        program: &Program,
        code: &GpuCode,
        module: &Module,
        options: &Options,
    ) -> Execution {
        let (mut findings, mut remarks, mut instructions) = (Vec::new(), Vec::new(), 0);
        let mut sectors = [0; 2];
        let mut memory = Memory::default();
        let upload = |memory: &mut Memory, bytes: &[u8], name: &str| {
            // An allocation of a device is never empty.
            let bytes = if bytes.is_empty() { &[0] } else { bytes };
            memory.allocate_with(bytes, name).expect("enough memory")
        };
        let tensors: Vec<u64> =
            self.tensors.iter().map(|tensor| upload(&mut memory, tensor.bytes(), "tensor")).collect();
        let workspaces: Vec<u64> = code
            .workspaces
            .iter()
            .map(|workspace| {
                let bytes = code.workspace_bytes(workspace, &self.dims).expect("a small workspace");
                memory.allocate(bytes.max(1) as u64, &workspace.name).expect("enough memory")
            })
            .collect();
        let record = upload(&mut memory, &[0; FAILURE_RECORD_BYTES], "failure record");
        for launch in &code.launches {
            let scalars: Vec<(DType, Constant)> =
                program.scalar_params().map(|(_, dtype)| dtype).zip(self.scalars.iter().copied()).collect();
            let params = self.params(module, launch, &tensors, &workspaces, record, &scalars);
            let grid = code.grid(launch, &self.dims).expect("a small grid");
            if grid.contains(&0) {
                continue;
            }
            let shared_bytes = launch.dynamic_shared_bytes.into();
            let launched = sim::Launch { grid, block: launch.threads, shared_bytes, params };
            let report = module.run(&launch.entry, &launched, &mut memory, options);
            let report = report.unwrap_or_else(|error| panic!("{error}\n{}", code.ptx));
            findings.extend(report.findings);
            remarks.extend(report.remarks);
            instructions += report.instructions;
            sectors[0] += report.totals.global_sectors;
            sectors[1] += report.totals.global_sectors_needed;
            if !findings.is_empty() {
                break;
            }
        }
        let mut results = self.tensors.clone();
        for (result, address) in results.iter_mut().zip(&tensors) {
            let len = result.bytes().len() as u64;
            result.bytes_mut().copy_from_slice(memory.read(*address, len).expect("a tensor"));
        }
        let record = memory.read(record, FAILURE_RECORD_BYTES as u64).expect("the record");
        let word = |number: usize| i64::from_le_bytes(record[8 * number..][..8].try_into().expect("a word"));
        let outcome = Outcome { tensors: results, failure: [word(0), word(1), word(2)] };
        Execution { outcome, findings, remarks, instructions, sectors }
    }

    fn params(
        &self,
        module: &Module,
        launch: &Launch,
        tensors: &[u64],
        workspaces: &[u64],
        record: u64,
        scalars: &[(DType, Constant)],
    ) -> Vec<u8> {
        let kernel = module.kernel(&launch.entry).expect("the kernel is in the module");
        assert_eq!(kernel.params.len(), launch.arguments.len());
        let mut bytes = vec![0; kernel.param_bytes as usize];
        for (param, argument) in kernel.params.iter().zip(&launch.arguments) {
            let value: Vec<u8> = match argument {
                LaunchArgument::Tensor(number) => tensors[*number].to_le_bytes().to_vec(),
                LaunchArgument::Workspace(number) => workspaces[*number].to_le_bytes().to_vec(),
                LaunchArgument::Dimension(number) => self.dims[*number].to_le_bytes().to_vec(),
                LaunchArgument::FailureRecord => record.to_le_bytes().to_vec(),
                LaunchArgument::Scalar(number) => {
                    let (dtype, value) = scalars[*number];
                    let tensor = AnyTensor::from_f64s(dtype, &[value.as_f64()], &[1]).expect("one element");
                    tensor.bytes().to_vec()
                }
            };
            assert_eq!(value.len() as u64, param.bytes, "{}", param.name);
            bytes[param.offset as usize..][..value.len()].copy_from_slice(&value);
        }
        bytes
    }

    /// As [`Call::compare`]; the assembler must accept the kernels, too.
    pub(crate) fn check(&self, flat: &Program) {
        assemble(&self.compare(flat).ptx);
    }

    /// Runs a flat program in the simulator and in the interpreter, and compares the results bit by bit.
    pub(crate) fn compare(&self, flat: &Program) -> GpuCode {
        let code = code_of(flat);
        let expected = self.interpreted(flat);
        let found = self.simulated(flat, &code);
        assert_eq!(found.failure, [0; 3], "an index was out of bounds\n{flat}");
        for (number, (found, expected)) in found.tensors.iter().zip(&expected).enumerate() {
            assert!(
                same(found, expected),
                "tensor {number} differs: {:?} instead of {:?}\n{flat}\n{}",
                found.to_f64_vec(),
                expected.to_f64_vec(),
                code.ptx
            );
        }
        code
    }
}

/// Whether all bits are equal, except for which NaN is where one is.
pub(crate) fn same(a: &AnyTensor, b: &AnyTensor) -> bool {
    let is_same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    match a.dtype().is_float() {
        true => a.to_f64_vec().iter().zip(&b.to_f64_vec()).all(is_same),
        false => a.bytes() == b.bytes(),
    }
}
