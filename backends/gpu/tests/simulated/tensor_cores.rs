//! Products of matrices on tensor cores.

use tilewright_core::analysis::block::reads;
use tilewright_core::analysis::scope::blocks;
use tilewright_core::dtype::DType;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule};
use tilewright_core::target::{GpuTarget, Target};
use tilewright_core::tensor::AnyTensor;
use tilewright_core::thread_axis::ThreadAxis;
use tilewright_gpu::intrinsics::with_intrinsics;

use crate::support::{Call, parse};

/// A kind of product.
#[derive(Clone, Copy)]
struct Kind {
    intrinsic: &'static str,
    factor: DType,
    sum: DType,
    /// The length of the products of one instruction.
    depth: i64,
    is_transposed: bool,
}

const KINDS: [Kind; 8] = [
    Kind {
        intrinsic: "mma_m16n8k16_bf16",
        factor: DType::BF16,
        sum: DType::F32,
        depth: 16,
        is_transposed: false,
    },
    Kind {
        intrinsic: "mma_m16n8k16_bf16_nt",
        factor: DType::BF16,
        sum: DType::F32,
        depth: 16,
        is_transposed: true,
    },
    Kind {
        intrinsic: "mma_m16n8k16_f16",
        factor: DType::F16,
        sum: DType::F32,
        depth: 16,
        is_transposed: false,
    },
    Kind {
        intrinsic: "mma_m16n8k16_f16_nt",
        factor: DType::F16,
        sum: DType::F32,
        depth: 16,
        is_transposed: true,
    },
    Kind {
        intrinsic: "mma_m16n8k32_s8",
        factor: DType::I8,
        sum: DType::I32,
        depth: 32,
        is_transposed: false,
    },
    Kind {
        intrinsic: "mma_m16n8k32_s8_nt",
        factor: DType::I8,
        sum: DType::I32,
        depth: 32,
        is_transposed: true,
    },
    Kind {
        intrinsic: "mma_m16n8k32_u8",
        factor: DType::U8,
        sum: DType::I32,
        depth: 32,
        is_transposed: false,
    },
    Kind {
        intrinsic: "mma_m16n8k32_u8_nt",
        factor: DType::U8,
        sum: DType::I32,
        depth: 32,
        is_transposed: true,
    },
];

/// The warps of a block along each axis of the result, and the instructions of a warp.
#[derive(Clone, Copy)]
struct Tiles {
    warps: [i64; 2],
    products: [i64; 2],
    steps: i64,
}

fn matmul(kind: Kind, [m, n, k]: [i64; 3]) -> Program {
    let Kind { factor, sum, .. } = kind;
    let zero = if sum == DType::F32 { "0.0" } else { "0i32" };
    let (shape, second) = if kind.is_transposed { ([n, k], "vj, vk") } else { ([k, n], "vk, vj") };
    parse(&format!(
        "kernel matmul(in a: {factor}[{m}, {k}], in b: {factor}[{}, {}], out c: {sum}[{m}, {n}]) {{
  for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block c(vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ c[vi, vj] = {zero} }}
      c[vi, vj] = c[vi, vj] + a[vi, vk] as {sum} * b[{second}] as {sum}
    }}
  }} }} }}
}}",
        shape[0], shape[1]
    ))
}

/// The number by which a block reads a buffer whose name begins so.
pub(crate) fn number_of(schedule: &Schedule, block: &str, buffer: &str) -> i64 {
    let program = schedule.program();
    let found = blocks(&program.body);
    let block = found.iter().find(|found| &*found.name == block).expect("the block is there");
    let is_named = |id: &_| program.buffer(*id).name.starts_with(buffer);
    reads(block).iter().position(is_named).expect("the block reads it") as i64
}

fn bind_warps(schedule: &mut Schedule, rows: LoopRv, columns: LoopRv) {
    schedule.bind(rows, ThreadAxis::ThreadZ).unwrap();
    schedule.bind(columns, ThreadAxis::ThreadY).unwrap();
}

/// All threads of a block copy a tile together.
fn fetch(schedule: &mut Schedule, copy: BlockRv, around: usize, warps: [i64; 2]) {
    let loops = schedule.get_loops(copy).unwrap();
    let elements = schedule.fuse(&loops[around..]).unwrap();
    let parts = schedule.split(elements, &[None, Some(warps[0]), Some(warps[1]), Some(32)]).unwrap();
    schedule.reorder(&[parts[1], parts[2], parts[3], parts[0]]).unwrap();
    bind_warps(schedule, parts[1], parts[2]);
    schedule.bind(parts[3], ThreadAxis::ThreadX).unwrap();
}

/// Blocks of warps compute tiles of the result from tiles of the factors in shared memory.
fn on_tensor_cores(program: &Program, kind: Kind, tiles: Tiles) -> Schedule {
    let mut schedule = Schedule::new(program.clone(), Target::from(with_intrinsics(GpuTarget::generic())), 0);
    let s = &mut schedule;
    let block = s.get_block("c").unwrap();
    let result = s.cache_write(block, Scope::Fragment).unwrap();
    let loops = s.get_loops(block).unwrap();
    let [rows, columns, depth] = loops[..] else { panic!("three loops") };
    let i = s.split(rows, &[None, Some(tiles.warps[0]), Some(tiles.products[0]), Some(16)]).unwrap();
    let j = s.split(columns, &[None, Some(tiles.warps[1]), Some(tiles.products[1]), Some(8)]).unwrap();
    let k = s.split(depth, &[None, Some(tiles.steps), Some(kind.depth)]).unwrap();
    s.reorder(&[i[0], j[0], k[0], i[1], j[1], k[1], i[2], j[2], i[3], j[3], k[2]]).unwrap();
    s.reverse_compute_at(result, j[0]).unwrap();
    let own = s.get_loops(result).unwrap();
    let rows = s.split(own[2], &[Some(tiles.warps[0]), None]).unwrap();
    let columns = s.split(own[3], &[Some(tiles.warps[1]), None]).unwrap();
    s.reorder(&[rows[0], columns[0], rows[1], columns[1]]).unwrap();
    bind_warps(s, rows[0], columns[0]);
    for name in ["a", "b"] {
        let shared = s.cache_read(block, number_of(s, "c", name), Scope::Shared).unwrap();
        let fragment = s.cache_read(block, number_of(s, "c", name), Scope::Fragment).unwrap();
        s.compute_at(fragment, k[1]).unwrap();
        s.compute_at(shared, k[0]).unwrap();
        fetch(s, shared, 3, tiles.warps);
    }
    let initial = s.decompose_reduction(block, k[0]).unwrap();
    let own = s.get_loops(initial).unwrap();
    bind_warps(s, own[2], own[3]);
    bind_warps(s, i[1], j[1]);
    s.bind(i[0], ThreadAxis::BlockY).unwrap();
    s.bind(j[0], ThreadAxis::BlockX).unwrap();
    s.tensorize(i[3], kind.intrinsic).unwrap();
    schedule
}

/// Small integers, whose products and sums are exact in every order.
pub(crate) fn call(program: &Program) -> Call {
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

fn check(kind: Kind, sizes: [i64; 3], tiles: Tiles) {
    let program = matmul(kind, sizes);
    let schedule = on_tensor_cores(&program, kind, tiles);
    let options = LowerOptions::of(schedule.target());
    let flat =
        lower(schedule.program(), &options).unwrap_or_else(|error| panic!("{error}\n{}", schedule.program()));
    let call = call(&program);
    let code = call.compare(&flat);
    crate::support::assemble(&code.ptx);
    let [per_warp, warps] = [tiles.products, tiles.warps].map(|[rows, columns]| rows * columns);
    assert!(warps > 0);
    let found = code.ptx.matches("mma.sync").count() as i64;
    assert!(found >= per_warp, "{found} products\n{}", code.ptx);
    for (found, expected) in call.interpreted(&flat).iter().zip(call.interpreted(&program)) {
        assert_eq!(found.bytes(), expected.bytes(), "{flat}");
    }
}

#[test]
fn every_product_of_every_type() {
    for kind in KINDS {
        check(kind, [64, 32, 2 * kind.depth], Tiles { warps: [2, 2], products: [1, 2], steps: 1 });
        check(kind, [16, 8, kind.depth], Tiles { warps: [1, 1], products: [1, 1], steps: 1 });
    }
}

#[test]
fn tiles_of_several_shapes() {
    check(KINDS[0], [192, 96, 96], Tiles { warps: [3, 2], products: [2, 3], steps: 2 });
    check(KINDS[1], [64, 128, 64], Tiles { warps: [2, 2], products: [1, 4], steps: 2 });
    check(KINDS[5], [128, 128, 128], Tiles { warps: [2, 2], products: [2, 4], steps: 2 });
}

#[test]
fn a_larger_product() {
    check(KINDS[0], [256, 256, 256], Tiles { warps: [2, 2], products: [2, 4], steps: 2 });
}

#[test]
fn a_fragment_that_no_intrinsic_accesses_is_refused() {
    let program = parse(
        "kernel copy(in x: f32[16, 8], out y: f32[16, 8]) {
  for i in 0..16 { for j in 0..8 { block y(vi: spatial 16 = i, vj: spatial 8 = j) { y[vi, vj] = x[vi, vj] } } }
}",
    );
    let mut schedule = Schedule::new(program, Target::generic_gpu(), 0);
    let block = schedule.get_block("y").unwrap();
    schedule.cache_write(block, Scope::Fragment).unwrap();
    let flat = crate::support::lowered(schedule.program());
    let error = tilewright_gpu::emit(&flat, &GpuTarget::generic()).expect_err("there is no layout");
    assert!(error.to_string().contains("no tensor intrinsic accesses it"), "{error}");
}
