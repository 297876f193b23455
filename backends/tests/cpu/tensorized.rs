//! Tensorized programs: byte dot products as instructions where the machine has them, and as the statements that
//! describe them elsewhere.

use std::sync::Arc;

use tilewright_core::dtype::DType;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, ScheduleError};
use tilewright_core::target::{Backend, Target};
use tilewright_core::tensor::AnyTensor;

use crate::support::{Call, compile, host};

const DOT_PRODUCTS: &str = "
kernel dot_products(M, N, K, in a: SPREAD[M, 4*K], in b: VECTOR[N, K, LANES, 4], inout c: i32[M, LANES*N]) {
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        for l in 0..LANES {
          for r in 0..4 {
            block c(vi: spatial M = i, vj: spatial LANES*N = LANES*j + l, vk: reduce 4*K = 4*k + r) {
              INIT
              c[vi, vj] = c[vi, vj] + a[vi, vk] as i32 * b[vj/LANES, vk/4, vj%LANES, vk%4] as i32
            }
          }
        }
      }
    }
  }
}";

/// The intrinsics with the types of the bytes that are spread and of those of the lanes.
const PRODUCTS: [(&str, DType, DType); 4] = [
    ("vpdpbusd", DType::U8, DType::I8),
    ("vpdpbssd", DType::I8, DType::I8),
    ("vpdpbsud", DType::I8, DType::U8),
    ("vpdpbuud", DType::U8, DType::U8),
];

type Product = (&'static str, DType, DType);

/// Every product on vectors of every width.
fn products() -> impl Iterator<Item = (Product, usize)> {
    PRODUCTS.into_iter().flat_map(|product| [16, 8, 4].map(|lanes| (product, lanes)))
}

/// Tiles of so many rows and vectors around each dot product.
fn scheduled(
    (name, spread, vector): Product,
    lanes: usize,
    rows: i64,
    vectors: i64,
    has_init: bool,
) -> Result<Program, ScheduleError> {
    let init = if has_init { "init { c[vi, vj] = 0i32 }" } else { "" };
    let text = DOT_PRODUCTS.replace("LANES", &lanes.to_string()).replace("INIT", init);
    let text = text.replace("SPREAD", &spread.to_string()).replace("VECTOR", &vector.to_string());
    let program: Program = text.parse().expect("a program");
    let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), 0);
    let block = schedule.get_block("c")?;
    let [i, j, k, l, r] = schedule.get_loops(block)?[..] else { panic!("five loops") };
    let [i0, i1] = schedule.split(i, &[None, Some(rows)])?[..] else { panic!("two loops") };
    let [j0, j1] = schedule.split(j, &[None, Some(vectors)])?[..] else { panic!("two loops") };
    schedule.reorder(&[i0, j0, k, i1, j1, l, r])?;
    if has_init {
        schedule.decompose_reduction(block, k)?;
    }
    schedule.parallel(i0)?;
    schedule.tensorize(l, &format!("{name}_{lanes}"))?;
    schedule.unroll(i1)?;
    schedule.unroll(j1)?;
    Ok(schedule.program().clone())
}

fn options() -> LowerOptions {
    let names = products().map(|((name, ..), lanes)| format!("{name}_{lanes}").as_str().into());
    LowerOptions { intrinsics: names.collect(), ..LowerOptions::default() }
}

fn call(
    dims: [usize; 3],
    (_, spread, vector): Product,
    lanes: usize,
    fill: impl Fn(DType, &[usize], u64) -> AnyTensor,
) -> Call {
    let [m, n, k] = dims;
    let tensors = vec![
        fill(spread, &[m * 4 * k], 1),
        fill(vector, &[n * k * 4 * lanes], 2),
        fill(DType::I32, &[m * lanes * n], 3),
    ];
    Call { dims: dims.map(|dim| dim as i64).to_vec(), tensors, ..Call::default() }
}

#[test]
fn products_are_exact_in_tiles_of_any_size() {
    let random = |dtype, shape: &[usize], seed| AnyTensor::random(dtype, shape, seed).unwrap();
    for (product, lanes) in products() {
        for (rows, vectors, has_init) in [(1, 1, true), (3, 2, true), (7, 4, true), (2, 3, false)] {
            let scheduled = scheduled(product, lanes, rows, vectors, has_init).unwrap();
            let flat = lower(&scheduled, &options()).unwrap();
            for dims in [[1, 1, 1], [7, 3, 1], [13, 5, 9], [0, 3, 1], [2, 1, 0]] {
                call(dims, product, lanes, random).check(&flat);
            }
        }
    }
}

#[test]
fn sums_wrap_and_never_saturate() {
    let extreme = |dtype, shape: &[usize], _| {
        let mut tensor = AnyTensor::zeros(dtype, shape).unwrap();
        for (number, bytes) in tensor.bytes_mut().chunks_exact_mut(dtype.bytes()).enumerate() {
            let value: i64 = match (dtype, number / 5 % 3) {
                (DType::U8, _) => 255,
                (DType::I8, 0 | 1) => -128,
                (DType::I8, _) => 127,
                (_, 0) => i64::from(i32::MAX) - 1000,
                (_, _) => i64::from(i32::MIN) + 1000,
            };
            bytes.copy_from_slice(&value.to_le_bytes()[..dtype.bytes()]);
        }
        tensor
    };
    for (product, lanes) in products() {
        let flat = lower(&scheduled(product, lanes, 2, 2, false).unwrap(), &options()).unwrap();
        call([5, 3, 7], product, lanes, extreme).check(&flat);
    }
}

#[test]
fn the_instruction_is_emitted_where_the_machine_has_it_and_refused_visibly_elsewhere() {
    let flat = lower(&scheduled(PRODUCTS[0], 8, 6, 1, true).unwrap(), &options()).unwrap();
    let listing = |removed: &str| {
        let backend = tilewright_backends::cpu::CpuBackend::without_features(removed).unwrap();
        (
            backend.target().intrinsics.iter().any(|name| &**name == "vpdpbusd_8"),
            compile(&backend, &flat).disassembly(),
        )
    };
    for removed in ["", "-avx512f", "-avx512vnni", "-avx512f,-avxvnni"] {
        let (has, text) = listing(removed);
        assert_eq!(text.contains("vpdpbusd "), has, "{removed}\n{text}");
        let refused = text.contains("a tensor intrinsic that is not emitted here: vpdpbusd_8");
        assert!(has || refused || host().target().vector_bits == 128, "{removed}\n{text}");
    }
}
