//! Products of matrices on tensor cores.

use tilewright_core::analysis::block::reads;
use tilewright_core::analysis::scope::blocks;
use tilewright_core::annotation::PIPELINE_ASYNC;
use tilewright_core::dtype::DType;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule};
use tilewright_core::target::{GpuTarget, Target};
use tilewright_core::tensor::AnyTensor;
use tilewright_core::thread_axis::ThreadAxis;
use tilewright_gpu::GpuCode;
use tilewright_gpu::intrinsics::with_intrinsics;
use tilewright_ptx_sim::{Module, Options, Remark, RemarkKind};

use crate::assembler::{assemble, assemble_all, resources};
use crate::support::{Call, Execution, parse};

/// A kind of product.
#[derive(Clone, Copy)]
struct Kind {
    intrinsic: &'static str,
    factors: [DType; 2],
    sum: DType,
    /// The length of the products of one instruction.
    depth: i64,
    is_transposed: bool,
}

const fn plain(intrinsic: &'static str, factors: [DType; 2], sum: DType, depth: i64) -> Kind {
    Kind { intrinsic, factors, sum, depth, is_transposed: false }
}

/// A product whose second factor has its columns as rows.
const fn transposed(intrinsic: &'static str, factors: [DType; 2], sum: DType, depth: i64) -> Kind {
    Kind { is_transposed: true, ..plain(intrinsic, factors, sum, depth) }
}

const KINDS: [Kind; 14] = [
    plain("mma_m16n8k16_bf16", [DType::BF16; 2], DType::F32, 16),
    transposed("mma_m16n8k16_bf16_nt", [DType::BF16; 2], DType::F32, 16),
    plain("mma_m16n8k16_f16", [DType::F16; 2], DType::F32, 16),
    transposed("mma_m16n8k16_f16_nt", [DType::F16; 2], DType::F32, 16),
    plain("mma_m16n8k32_s8", [DType::I8; 2], DType::I32, 32),
    transposed("mma_m16n8k32_s8_nt", [DType::I8; 2], DType::I32, 32),
    plain("mma_m16n8k32_u8", [DType::U8; 2], DType::I32, 32),
    transposed("mma_m16n8k32_u8_nt", [DType::U8; 2], DType::I32, 32),
    plain("mma_m16n8k8_tf32", [DType::F32; 2], DType::F32, 8),
    transposed("mma_m16n8k8_tf32_nt", [DType::F32; 2], DType::F32, 8),
    plain("mma_m16n8k32_u8_s8", [DType::U8, DType::I8], DType::I32, 32),
    transposed("mma_m16n8k32_u8_s8_nt", [DType::U8, DType::I8], DType::I32, 32),
    plain("mma_m16n8k32_s8_u8", [DType::I8, DType::U8], DType::I32, 32),
    transposed("mma_m16n8k32_s8_u8_nt", [DType::I8, DType::U8], DType::I32, 32),
];

impl Kind {
    /// Whether the factors are rounded, as the kernel's accuracy allows.
    const fn rounds(self) -> bool {
        matches!(self.factors[0], DType::F32)
    }
}

/// The warps of a block along each axis of the result, and the instructions of a warp.
#[derive(Clone, Copy)]
struct Tiles {
    warps: [i64; 2],
    products: [i64; 2],
    steps: i64,
    /// The elements that a thread copies at once.
    width: i64,
    /// The tiles of an operand that are in shared memory or on the way there.
    stages: i64,
    layout: Layout,
}

/// How rows of operands lie in different banks of shared memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// They are an odd multiple of 16 bytes apart.
    Padded,
    /// Their pieces are exchanged.
    Swizzled,
}

impl Tiles {
    const fn new(warps: [i64; 2], products: [i64; 2], steps: i64) -> Self {
        Tiles { warps, products, steps, width: 1, stages: 1, layout: Layout::Padded }
    }
}

fn matmul(kind: Kind, [m, n, k]: [i64; 3]) -> Program {
    let Kind { factors: [left, right], sum, .. } = kind;
    let zero = if sum == DType::F32 { "0.0" } else { "0i32" };
    let as_sum = if left == sum { String::new() } else { format!(" as {sum}") };
    let accuracy = if kind.rounds() { " accuracy 0.001" } else { "" };
    let (shape, second) = if kind.is_transposed { ([n, k], "vj, vk") } else { ([k, n], "vk, vj") };
    parse(&format!(
        "kernel matmul(in a: {left}[{m}, {k}], in b: {right}[{}, {}], out c: {sum}[{m}, {n}]){accuracy} {{
  for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block c(vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ c[vi, vj] = {zero} }}
      c[vi, vj] = c[vi, vj] + a[vi, vk]{as_sum} * b[{second}]{as_sum}
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
fn fetch(schedule: &mut Schedule, copy: BlockRv, around: usize, Tiles { warps, width, .. }: Tiles) {
    let loops = schedule.get_loops(copy).unwrap();
    let elements = schedule.fuse(&loops[around..]).unwrap();
    let parts =
        schedule.split(elements, &[None, Some(warps[0]), Some(warps[1]), Some(32), Some(width)]).unwrap();
    schedule.reorder(&[parts[1], parts[2], parts[3], parts[0], parts[4]]).unwrap();
    bind_warps(schedule, parts[1], parts[2]);
    schedule.bind(parts[3], ThreadAxis::ThreadX).unwrap();
    if width > 1 {
        schedule.vectorize(parts[4]).unwrap();
    }
}

/// Blocks of warps compute tiles of the result from tiles of the factors in shared memory.
fn on_tensor_cores(program: &Program, kind: Kind, tiles: Tiles) -> Schedule {
    let mut schedule = Schedule::new(program.clone(), Target::from(with_intrinsics(GpuTarget::generic())), 0);
    let s = &mut schedule;
    let block = s.get_block("c").unwrap();
    if kind.rounds() {
        s.round_products(block).unwrap();
    }
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
        let in_row = 16 / kind.factors[0].bytes() as i64;
        match tiles.layout {
            Layout::Padded => s.storage_align(shared, 0, 0, 2 * in_row, in_row).unwrap(),
            Layout::Swizzled => s.storage_swizzle(shared, 0).unwrap(),
        }
        fetch(s, shared, 3, tiles);
    }
    let initial = s.decompose_reduction(block, k[0]).unwrap();
    let own = s.get_loops(initial).unwrap();
    bind_warps(s, own[2], own[3]);
    bind_warps(s, i[1], j[1]);
    s.bind(i[0], ThreadAxis::BlockY).unwrap();
    s.bind(j[0], ThreadAxis::BlockX).unwrap();
    s.tensorize(i[3], kind.intrinsic).unwrap();
    if tiles.stages > 1 {
        s.software_pipeline(k[0], &[0, 0, tiles.stages - 1], &[0, 1, 2]).unwrap();
        s.annotate(k[0], PIPELINE_ASYNC, vec![0]).unwrap();
    }
    schedule
}

/// Checks a product in the simulator. Its module is for [`assemble_all`].
fn check(kind: Kind, sizes: [i64; 3], tiles: Tiles) -> GpuCode {
    let program = matmul(kind, sizes);
    let schedule = on_tensor_cores(&program, kind, tiles);
    let options = LowerOptions::of(schedule.target());
    let flat =
        lower(schedule.program(), &options).unwrap_or_else(|error| panic!("{error}\n{}", schedule.program()));
    let call = Call::of_small_integers(&program);
    let code = call.compare(&flat);
    let [per_warp, warps] = [tiles.products, tiles.warps].map(|[rows, columns]| rows * columns);
    assert!(warps > 0);
    let found = code.ptx.matches("mma.sync").count() as i64;
    assert!(found >= per_warp, "{found} products\n{}", code.ptx);
    for (found, expected) in call.interpreted(&flat).iter().zip(call.interpreted(&program)) {
        assert_eq!(found.bytes(), expected.bytes(), "{flat}");
    }
    assert_only_products_are_kept(&code.ptx);
    let execution = call.execute(&flat, &code, &parse_ptx(&code.ptx), &Options::default());
    assert_matrices(kind, &execution, &code);
    if tiles.layout == Layout::Swizzled {
        // Tiles at an edge are copied element by element: pieces of 16 bytes are what the layout exchanges.
        let lines: Vec<&str> = code.ptx.lines().collect();
        let is_of_pieces =
            |line: &str| ["ldmatrix", "shared.v4", "cp.async"].iter().any(|part| line.contains(part));
        let conflicts = execution.remarks.iter().filter(|remark| {
            remark.kind == RemarkKind::BankConflict && is_of_pieces(lines[remark.line as usize - 1])
        });
        assert_eq!(conflicts.count(), 0, "{:?}\n{}", execution.remarks, code.ptx);
    }
    code
}

/// Checks that the assembler keeps a loop only where there are products between its first label and its branch back there. Where it may
/// write others out, [`assemble_all`] sees that no register is spilled.
fn assert_only_products_are_kept(ptx: &str) {
    let lines: Vec<&str> = ptx.lines().map(str::trim).collect();
    for (first, line) in lines.iter().enumerate() {
        let Some(label) = line.strip_suffix(':') else { continue };
        let back = format!("bra {label};");
        let Some(length) = lines[first..].iter().position(|line| line.ends_with(&back)) else { continue };
        let has_products = lines[first..first + length].iter().any(|line| line.starts_with("mma.sync"));
        let is_kept = lines[first + 1] == ".pragma \"nounroll\";";
        assert!(has_products || !is_kept, "{label}\n{ptx}");
    }
}

fn parse_ptx(ptx: &str) -> Module {
    Module::parse(ptx).unwrap_or_else(|error| panic!("{error}\n{ptx}"))
}

/// Checks that fragments are loaded as matrices without bank conflicts. Elements of one byte cannot be exchanged across the diagonal, so
/// that second factors in the order of their rows are loaded one by one.
fn assert_matrices(kind: Kind, execution: &Execution, code: &GpuCode) {
    let is_each = kind.factors[0].bytes() == 2 || kind.is_transposed;
    assert!(code.ptx.contains("ldmatrix"), "{}", code.ptx);
    assert_eq!(!is_each, code.ptx.contains("ld.shared"), "{}", code.ptx);
    assert_eq!(code.ptx.contains(".trans"), kind.factors[0].bytes() == 2 && !kind.is_transposed);
    let line = |remark: &Remark| code.ptx.lines().nth(remark.line as usize - 1).unwrap_or_default();
    let conflicts = execution.remarks.iter().filter(|remark| remark.kind == RemarkKind::BankConflict);
    for conflict in conflicts {
        assert!(!line(conflict).contains("ldmatrix"), "{conflict:?}\n{}", code.ptx);
    }
}

#[test]
fn every_product_of_every_type() {
    let mut modules = Vec::new();
    for kind in KINDS {
        modules.push(check(kind, [64, 32, 2 * kind.depth], Tiles::new([2, 2], [1, 2], 1)).ptx);
        modules.push(check(kind, [16, 8, kind.depth], Tiles::new([1, 1], [1, 1], 1)).ptx);
    }
    assemble_all(&modules);
}

#[test]
fn tiles_of_several_shapes() {
    let codes = [
        check(KINDS[0], [192, 96, 96], Tiles::new([3, 2], [2, 3], 2)),
        check(KINDS[1], [64, 128, 64], Tiles::new([2, 2], [1, 4], 2)),
        check(KINDS[5], [128, 128, 128], Tiles::new([2, 2], [2, 4], 2)),
    ];
    assemble_all(&codes.map(|code| code.ptx));
}

#[test]
fn factors_of_tf32_are_rounded() {
    let kind = KINDS[9];
    let program = matmul(kind, [32, 16, 16]);
    let schedule = on_tensor_cores(&program, kind, Tiles::new([2, 1], [1, 2], 1));
    let flat = lower(schedule.program(), &LowerOptions::of(schedule.target())).unwrap();
    let mut call = Call::of_small_integers(&program);
    // Factors with twelve digits, of which one is rounded off, beside small integers: sums are exact in every order.
    let values: Vec<f64> = (0..32 * 16).map(|n| 1.0 + f64::from(n * 37 % 2048) / 2048.0).collect();
    call.tensors[0] = AnyTensor::from_f64s(DType::F32, &values, &[32, 16]).unwrap();
    call.compare(&flat);
    let [found, exact] = [&flat, &program].map(|program| call.interpreted(program)[2].to_f64_vec());
    assert_ne!(found, exact);
    for (row, (found, exact)) in found.iter().zip(&exact).enumerate().map(|(n, pair)| (n / 16, pair)) {
        // A factor is at most two, and another one at most three.
        let magnitude = 16.0 * 2.0 * 3.0;
        assert!((found - exact).abs() <= magnitude / 1024.0, "row {row}: {found} instead of {exact}");
    }
}

#[test]
fn a_larger_product() {
    assemble(&check(KINDS[0], [256, 256, 256], Tiles::new([2, 2], [2, 4], 2)).ptx);
}

/// A tile of 128 × 128 results from tiles of 128 × 32 and 32 × 128 elements, as libraries use it on this hardware.
const LARGE: Tiles = Tiles { width: 8, stages: 3, ..Tiles::new([2, 4], [4, 4], 2) };

#[test]
fn pipelines_of_large_tiles_leave_room_for_two_blocks() {
    let mut modules = Vec::new();
    for kind in [KINDS[0], KINDS[1], KINDS[2], KINDS[3]] {
        let code = check(kind, [128, 256, 160], LARGE);
        let launch = &code.launches[0];
        let threads = launch.threads.iter().product();
        assert!(
            code.ptx.contains("cp.async.cg.shared.global") && code.ptx.contains("cp.async.wait_group 1;")
        );
        assert!(!code.ptx.contains("st.shared"), "{}", code.ptx);
        for target in [GpuTarget::a100(), GpuTarget::h100()] {
            let architecture = target.compute_capability.to_string();
            let Some(found) = resources(&code.ptx, &architecture) else { continue };
            let resident = target.resident_blocks(threads, found.registers, launch.shared_bytes);
            let problem =
                format!("{architecture}: {resident} blocks, {} bytes shared, {found:?}", launch.shared_bytes);
            assert_eq!(found.spilled_bytes, 0, "{}: {problem}", kind.intrinsic);
            assert!(resident >= 2, "{}: {problem}", kind.intrinsic);
        }
        modules.push(code.ptx);
    }
    assemble_all(&modules);
}

#[test]
fn swizzled_rows_have_no_conflicts_between_their_pieces() {
    let mut modules = Vec::new();
    for kind in [KINDS[0], KINDS[1], KINDS[3], KINDS[5], KINDS[9]] {
        for steps in 1..=4 {
            let depth = steps * kind.depth;
            let bytes = kind.factors[0].bytes() as i64;
            let width = 16 / bytes;
            let tiles = Tiles::new([2, 2], [2, 2], steps);
            let tiles = Tiles { width, stages: 2, layout: Layout::Swizzled, ..tiles };
            modules.push(check(kind, [64, 64, 3 * depth], tiles).ptx);
        }
    }
    assemble_all(&modules);
}

#[test]
fn pipelines_of_integers_on_tensor_cores() {
    let mut modules = Vec::new();
    for kind in [KINDS[5], KINDS[7], KINDS[11], KINDS[13]] {
        for stages in 2..=4 {
            let tiles = Tiles { width: 16, stages, ..Tiles::new([2, 2], [2, 4], 1) };
            modules.push(check(kind, [64, 64, 256], tiles).ptx);
        }
    }
    assemble_all(&modules);
}

#[test]
fn pipelines_of_rounded_factors_on_tensor_cores() {
    let mut modules = Vec::new();
    for kind in [KINDS[8], KINDS[9]] {
        let tiles = Tiles { width: 4, stages: 3, ..Tiles::new([2, 2], [2, 4], 2) };
        modules.push(check(kind, [64, 64, 96], tiles).ptx);
    }
    assemble_all(&modules);
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
