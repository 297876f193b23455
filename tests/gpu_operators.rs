//! The operator set on a GPU, by default schedules: every family at small shapes is compiled by the mock driver, executed by the
//! simulator behind it, and computes what its definition says.

#[path = "../benches/operators/attention.rs"]
mod attention;
#[path = "../benches/operators/bytes.rs"]
mod bytes;
#[path = "../benches/operators/halves.rs"]
mod halves;
#[path = "../benches/operators/kernels.rs"]
mod kernels;
#[path = "../benches/operators/memory.rs"]
mod memory;
#[expect(dead_code, reason = "counts of operations and the names of the paper's set are for the benches")]
#[path = "../benches/operators/opset.rs"]
mod opset;
#[path = "../benches/operators/pieces.rs"]
mod pieces;
#[path = "../benches/operators/quantised.rs"]
mod quantised;
#[path = "../benches/operators/recurrences.rs"]
mod recurrences;

use std::sync::OnceLock;

use tilewright::core::device::{Arguments, BufferArgument, Device};
use tilewright::core::interp;
use tilewright::core::lower::{LowerOptions, lower};
use tilewright::core::program::{Access, Program};
use tilewright::core::target::{RunOptions, Target};
use tilewright::core::tensor::AnyTensor;
use tilewright::search::schedule_by_default;
use tilewright_gpu::{Gpu, load_driver};

/// Opens the GPU of the mock driver.
fn open() -> Gpu {
    static LOADED: OnceLock<()> = OnceLock::new();
    LOADED.get_or_init(|| {
        let file = tilewright_mock_cuda::library().expect("the mock driver is built with the tests");
        load_driver(&file).expect("it is a library");
    });
    Gpu::open(0).expect("the GPU is there")
}

fn program_of(name: &str) -> Program {
    let operator = opset::operator(name).unwrap_or_else(|problem| panic!("{problem}"));
    let kernel = (operator.kernel)();
    let dims = kernel.dims_by_name(&operator.dims).unwrap_or_else(|error| panic!("{name}: {error}"));
    kernel.program_for(&dims).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn arguments(program: &Program) -> Vec<AnyTensor> {
    let buffers = program.buffer_params().map(|(buffer, _)| program.buffer(buffer));
    let random = |(buffer, seed): (&tilewright::core::program::Buffer, u64)| {
        let extents = buffer.shape.iter().map(|extent| extent.as_constant().expect("bound") as usize);
        AnyTensor::random(buffer.dtype, &extents.collect::<Vec<_>>(), seed).expect("a small tensor")
    };
    buffers.zip(3..).map(random).collect()
}

fn interpreted(program: &Program) -> Vec<AnyTensor> {
    let mut tensors = arguments(program);
    interp::run(program, &[], &[], &mut tensors).unwrap_or_else(|error| panic!("{error}\n{program}"));
    tensors
}

/// The results of the simulator.
fn simulated(gpu: &Gpu, program: &Program, flat: &Program) -> Result<Vec<AnyTensor>, String> {
    let compiled = gpu.compile(&[flat]).remove(0).map_err(|error| error.to_string())?;
    let mut tensors = arguments(program);
    let mut buffers: Vec<BufferArgument<'_>> = flat
        .buffer_params()
        .zip(&mut tensors)
        .map(|((_, access), tensor)| match access {
            Access::Input | Access::Constant => BufferArgument::Read(tensor.bytes()),
            _ => BufferArgument::Write(tensor.bytes_mut()),
        })
        .collect();
    let mut arguments = Arguments { dims: &[], scalars: &[], buffers: &mut buffers };
    compiled.run(&mut arguments, RunOptions::with_threads(1)).map_err(|error| error.to_string())?;
    Ok(tensors)
}

/// The difference between results and those of the definition, if there is one.
fn difference(name: &str) -> Option<String> {
    let gpu = open();
    let program = program_of(name);
    let target = Target::from(gpu.target().gpu().expect("it is one").clone());
    let schedule = schedule_by_default(&program, target.clone());
    let flat = match lower(schedule.program(), &LowerOptions::of(&target)) {
        Ok(flat) => flat,
        Err(error) => return Some(format!("{name}: {error}\n{}", schedule.program())),
    };
    let found = match simulated(&gpu, &program, &flat) {
        Ok(found) => found,
        Err(error) => return Some(format!("{name}: {error}\n{flat}")),
    };
    let expected = interpreted(&program);
    let is_close = |(found, expected): (&AnyTensor, &AnyTensor)| match expected.dtype().is_float() {
        true => {
            found.all_close(expected, 1e-2, 1e-2)
                && (expected.dtype().bytes() < 4 || found.all_close(expected, 1e-3, 1e-4))
        }
        false => found.bytes() == expected.bytes(),
    };
    let is_same = found.iter().zip(&expected).all(is_close);
    (!is_same).then(|| format!("{name} computes something else\n{}\n{flat}", schedule.program()))
}

fn check(names: &[&str]) {
    let differences: Vec<String> = names.iter().filter_map(|name| difference(name)).collect();
    assert!(differences.is_empty(), "{} of {}:\n{}", differences.len(), names.len(), differences.join("\n"));
}

macro_rules! families {
    ($($test:ident: $($name:literal),+;)+) => {$(
        #[test]
        fn $test() {
            check(&[$($name),+]);
        }
    )+};
}

families! {
    c1d: "C1D:1x1x1x1x1x1x0", "C1D:1x13x3x10x3x2x1", "C1D:2x40x16x32x3x1x1", "C1D:1x64x64x4x3x2x1";
    c2d: "C2D:1x1x1x1x1x1x1x0", "C2D:1x7x9x3x8x3x2x1", "C2D:1x20x19x5x33x3x1x1";
    c3d: "C3D:1x1x1x1x1x1x1x1x0", "C3D:1x4x5x4x2x4x3x1x1";
    dep: "DEP:1x1x1x1x1x1x0", "DEP:2x6x5x7x3x1x1", "DEP:1x17x19x33x3x2x1";
    dil: "DIL:1x9x9x2x6x3x1x2x2", "DIL:1x20x18x3x17x3x2x2x2";
    gmm: "GMM:1x1x1x1", "GMM:2x12x10x9", "GMM:1x37x131x3", "GMM:3x64x48x32";
    grp: "GRP:1x6x6x4x8x3x1x1x1x2", "GRP:1x17x5x6x33x2x1x0x1x3";
    t2d: "T2D:1x1x1x1x1x1x1x0", "T2D:1x3x4x5x6x4x2x1", "T2D:1x3x4x2x4x3x2x1", "T2D:1x9x8x16x17x4x2x1";
    cbr: "CBR:1x1x1x1x1x1x1x0", "CBR:1x6x6x3x8x3x2x1", "CBR:1x18x19x3x33x3x1x1";
    tbg: "TBG:1x1x1x1", "TBG:1x8x3x6", "TBG:2x33x2x24";
    nrm: "NRM:1x1x1", "NRM:2x6x8", "NRM:3x2x509";
    sfm: "SFM:1x1", "SFM:6x12", "SFM:7x131", "SFM:3x256";
    products_of_pieces: "GMM3:1x17x33x9", "GMM6:1x17x33x9", "GMM9:1x4x5x6";
    products_of_bytes: "QMM:1x1x1", "QMM:17x33x19", "SMM:32x48x64", "UMM:7x9x11", "XMM:16x16x16", "QMW:17x33x19", "SMW:3x5x7";
    convolutions_of_bytes: "QCV:1x1x1x1x1x1x1x0", "QCV:1x7x9x3x8x3x2x1", "QCV:1x18x19x5x33x3x1x1";
    weighted_convolutions_of_bytes: "QCW:1x7x9x3x8x3x2x1", "SCW:1x9x7x16x24x3x1x1", "QCR:1x7x9x5x19x3x1x1";
    products_of_halves: "HMM:1x1x1", "HMM:17x33x19", "HMW:32x48x64", "HMR:17x33x19";
    limited_by_memory: "CPY:1x1", "CPY:67x131", "TRN:1x73", "TRN:67x131", "ADD:3x97", "GBE:5x37";
    rows: "LNM:1x1", "LNM:5x37", "LNM:3x131", "LNM:257x2";
    dot: "DOT:1", "DOT:17", "DOT:131", "DOT:10007";
    attention_of_heads: "ATT:1x1x1x1", "ATT:1x3x37x5", "ATT:2x5x67x19";
}
