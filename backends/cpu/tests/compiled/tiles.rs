//! Products of tiles (AMX) in scheduled kernels: as instructions where the machine has them, and as the statements that
//! describe them elsewhere.

use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{Schedule, ScheduleError};

use crate::support::{Call, any_machine, exact_elements, host, list};

/// The intrinsics with the types of the operands and of the sums.
const PRODUCTS: [(&str, DType, DType, DType); 5] = [
    ("tdpbusd", DType::U8, DType::I8, DType::I32),
    ("tdpbssd", DType::I8, DType::I8, DType::I32),
    ("tdpbsud", DType::I8, DType::U8, DType::I32),
    ("tdpbuud", DType::U8, DType::U8, DType::I32),
    ("tdpbf16ps", DType::BF16, DType::BF16, DType::F32),
];

/// The dimensions in tiles: rows, columns and depth.
type Shape = [usize; 3];

fn text(product: (&str, DType, DType, DType), [m, n, k]: Shape) -> String {
    let (_, a, b, c) = product;
    let group = 4 / a.bytes();
    let zero = if c == DType::F32 { "0.0" } else { "0i32" };
    let (rows, columns, lines, depth) = (16 * m, 16 * n, 16 * k, 16 * group * k);
    format!(
        "kernel tiles(in a: {a}[{rows}, {depth}], in b: {b}[{lines}, {columns}, {group}], out c: {c}[{rows}, {columns}]) {{
           for i in 0..{rows} {{ for j in 0..{columns} {{ for k in 0..{depth} {{
             block c(vi: spatial {rows} = i, vj: spatial {columns} = j, vk: reduce {depth} = k) {{
               init {{ c[vi, vj] = {zero} }}
               c[vi, vj] = c[vi, vj] + a[vi, vk] as {c} * b[vk/{group}, vj, vk%{group}] as {c}
             }}
           }} }} }}
         }}"
    )
}

/// A product whose tiles of sums (`tiles` rows and columns at once) are an intermediate or the output itself.
fn scheduled(
    product: (&str, DType, DType, DType),
    shape: Shape,
    tiles: [i64; 2],
    is_copied: bool,
) -> Result<Program, ScheduleError> {
    let text = text(product, shape);
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut schedule = Schedule::new(program, any_machine(), 0);
    let block = schedule.get_block("c")?;
    let copy = if is_copied { Some(schedule.cache_write(block, Scope::Local)?) } else { None };
    let [i, j, k] = schedule.get_loops(block)?[..] else { panic!("three loops") };
    let group = 4 / product.1.bytes() as i64;
    let [i0, i1, i2] = schedule.split(i, &[None, Some(tiles[0]), Some(16)])?[..] else { panic!("three") };
    let [j0, j1, j2] = schedule.split(j, &[None, Some(tiles[1]), Some(16)])?[..] else { panic!("three") };
    let [k0, k1, k2] = schedule.split(k, &[None, Some(16), Some(group)])?[..] else { panic!("three") };
    schedule.reorder(&[i0, j0, k0, i1, j1, i2, j2, k1, k2])?;
    if let Some(copy) = copy {
        schedule.reverse_compute_at(copy, j0)?;
    }
    schedule.decompose_reduction(block, k0)?;
    schedule.parallel(i0)?;
    schedule.tensorize(i2, product.0)?;
    Ok(schedule.program().clone())
}

fn lowered(scheduled: &Program) -> Program {
    let intrinsics = PRODUCTS.map(|(name, ..)| name.into()).into();
    lower(scheduled, &LowerOptions { intrinsics, ..LowerOptions::default() }).unwrap()
}

fn call((_, a, b, c): (&str, DType, DType, DType), [m, n, k]: Shape) -> Call {
    let line = 64 / a.bytes();
    let elements = [(a, 16 * m * line * k), (b, 16 * n * line * k), (c, 256 * m * n)];
    let tensors = elements.into_iter().zip(1..).map(|((dtype, len), seed)| exact_elements(dtype, len, seed));
    Call { tensors: tensors.collect(), ..Call::default() }
}

/// Says so when the products are statements, because the machine has no instruction for them.
fn say_what_is_executed() {
    let has = |name: &str| host().target().intrinsics().iter().any(|known| &**known == name);
    if !has("tdpbusd") || !has("tdpbf16ps") {
        eprintln!("NOT TESTED HERE: this machine has no AMX; products of tiles are executed as statements");
    }
}

#[test]
fn products_of_tiles_are_exact() {
    say_what_is_executed();
    for product in PRODUCTS {
        for (shape, tiles, is_copied) in [
            ([1, 1, 1], [1, 1], true),
            ([2, 4, 3], [2, 2], true),
            ([2, 2, 5], [2, 2], false),
            ([3, 2, 2], [3, 2], true),
            ([2, 4, 2], [2, 4], true),
            ([3, 5, 1], [1, 1], false),
        ] {
            let flat = lowered(&scheduled(product, shape, tiles, is_copied).unwrap());
            call(product, shape).check(&flat);
        }
    }
}

#[test]
fn the_instruction_is_emitted_where_the_machine_has_it_and_refused_visibly_elsewhere() {
    say_what_is_executed();
    let flat = lowered(&scheduled(PRODUCTS[0], [2, 2, 3], [2, 2], true).unwrap());
    for removed in ["", "-amx-tile", "-amx-int8"] {
        let backend = tilewright_cpu::CpuDevice::without_features(removed).unwrap();
        let has = backend.target().intrinsics().iter().any(|name| &**name == "tdpbusd");
        assert!(!has || removed.is_empty(), "{removed} leaves the instruction");
        let text = list(&backend, &flat);
        assert_eq!(text.contains("tdpbusd "), has, "{removed}\n{text}");
        let refused = text.contains("a tensor intrinsic that is not emitted here: tdpbusd");
        assert!(
            has || refused || host().target().cpu().expect("a CPU").vector_bits == 128,
            "{removed}\n{text}"
        );
    }
}
