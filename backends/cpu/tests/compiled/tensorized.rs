//! Tensorized programs: dot products of bytes and of `bf16` as instructions where the machine has them, and as the
//! statements that describe them elsewhere.

use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, ScheduleError};
use tilewright_core::tensor::AnyTensor;

use crate::support::{Call, any_machine, exact_elements, host, list};

const DOT_PRODUCTS: &str = "
kernel dot_products(M, N, K, in a: SPREAD[M, GROUP*K], in b: VECTOR[N, K, LANES, GROUP], inout c: SUM[M, LANES*N]) {
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        for l in 0..LANES {
          for r in 0..GROUP {
            block c(vi: spatial M = i, vj: spatial LANES*N = LANES*j + l, vk: reduce GROUP*K = GROUP*k + r) {
              INIT
              c[vi, vj] = c[vi, vj] + (a[vi, vk] as SUM FIRST) * (b[vj/LANES, vk/GROUP, vj%LANES, vk%GROUP] as SUM SECOND)
            }
          }
        }
      }
    }
  }
}";

/// An intrinsic with the types of the elements that are spread, of those of the lanes, and of the sums.
pub(crate) type Product = (&'static str, DType, DType, DType);

const PRODUCTS: [Product; 9] = [
    ("vpdpbusd", DType::U8, DType::I8, DType::I32),
    ("vpdpbssd", DType::I8, DType::I8, DType::I32),
    ("vpdpbsud", DType::I8, DType::U8, DType::I32),
    ("vpdpbuud", DType::U8, DType::U8, DType::I32),
    ("vpdpbssd_offset_a", DType::I8, DType::I8, DType::I32),
    ("vpdpbssd_offset_b", DType::I8, DType::I8, DType::I32),
    ("vpdpbuud_offset_a", DType::U8, DType::U8, DType::I32),
    ("vpdpbuud_offset_b", DType::U8, DType::U8, DType::I32),
    HALVES,
];

pub(crate) const HALVES: Product = ("vdpbf16ps", DType::BF16, DType::BF16, DType::F32);

/// Every product on vectors of every width.
fn products() -> impl Iterator<Item = (Product, usize)> {
    PRODUCTS.into_iter().flat_map(|product| [16, 8, 4].map(|lanes| (product, lanes)))
}

/// Tiles of `rows` rows and `vectors` vectors around each dot product.
pub(crate) fn scheduled(
    (name, spread, vector, sum): Product,
    lanes: usize,
    rows: i64,
    vectors: i64,
    has_init: bool,
) -> Result<Program, ScheduleError> {
    let zero = if sum == DType::F32 { "0.0" } else { "0i32" };
    let init = if has_init { format!("init {{ c[vi, vj] = {zero} }}") } else { String::new() };
    let text = DOT_PRODUCTS.replace("LANES", &lanes.to_string()).replace("INIT", &init);
    let text = text.replace("GROUP", &(4 / spread.bytes()).to_string()).replace("SUM", &sum.to_string());
    let offset = if spread == DType::U8 { "+ -128i32" } else { "+ 128i32" };
    let offset_of = |ending| if name.ends_with(ending) { offset } else { "" };
    let text = text.replace("FIRST", offset_of("offset_a")).replace("SECOND", offset_of("offset_b"));
    let text = text.replace("SPREAD", &spread.to_string()).replace("VECTOR", &vector.to_string());
    let program: Program = text.parse().expect("a program");
    let mut schedule = Schedule::new(program, any_machine(), 0);
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

pub(crate) fn options() -> LowerOptions {
    let names = products().map(|((name, ..), lanes)| format!("{name}_{lanes}").as_str().into());
    LowerOptions { intrinsics: names.collect(), ..LowerOptions::default() }
}

pub(crate) fn call(
    dims: [usize; 3],
    (_, spread, vector, sum): Product,
    lanes: usize,
    fill: impl Fn(DType, usize, u64) -> AnyTensor,
) -> Call {
    let [m, n, k] = dims;
    let group = 4 / spread.bytes();
    let tensors = vec![
        fill(spread, m * group * k, 1),
        fill(vector, n * k * group * lanes, 2),
        fill(sum, m * lanes * n, 3),
    ];
    Call { dims: dims.map(|dim| dim as i64).to_vec(), tensors, ..Call::default() }
}

#[test]
fn products_are_exact_in_tiles_of_any_size() {
    for (product, lanes) in products() {
        for (rows, vectors, has_init) in [(1, 1, true), (3, 2, true), (7, 4, true), (2, 3, false)] {
            let scheduled = scheduled(product, lanes, rows, vectors, has_init).unwrap();
            let flat = lower(&scheduled, &options()).unwrap();
            for dims in [[1, 1, 1], [7, 3, 1], [13, 5, 9], [0, 3, 1], [2, 1, 0]] {
                call(dims, product, lanes, exact_elements).check(&flat);
            }
        }
    }
}

#[test]
fn sums_wrap_and_never_saturate() {
    let extreme = |dtype, len: usize, _| {
        let mut tensor = AnyTensor::zeros(dtype, &[len]).unwrap();
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
    for (product, lanes) in products().filter(|(product, _)| *product != HALVES) {
        let flat = lower(&scheduled(product, lanes, 2, 2, false).unwrap(), &options()).unwrap();
        call([5, 3, 7], product, lanes, extreme).check(&flat);
    }
}

#[test]
fn the_instruction_is_emitted_where_the_machine_has_it_and_refused_visibly_elsewhere() {
    let cases: [(Product, &[&str]); 3] = [
        (PRODUCTS[0], &["", "-avx512f", "-avx512vnni", "-avx512f,-avxvnni"]),
        (PRODUCTS[4], &["", "-avx512f", "-avx512vnni", "-avx512f,-avxvnni"]),
        (HALVES, &["", "-avx512bf16", "-avx512f"]),
    ];
    for (product, all_removed) in cases {
        let flat = lower(&scheduled(product, 8, 6, 1, true).unwrap(), &options()).unwrap();
        let intrinsic = format!("{}_8", product.0);
        for removed in all_removed {
            let backend = tilewright_cpu::CpuDevice::without_features(removed).unwrap();
            let emits = |own: &str| backend.target().intrinsics().iter().any(|name| **name == *own);
            let has = emits(&intrinsic);
            // Products with an offset need instructions for dot products, without which those of words serve the others.
            let instruction = match product {
                HALVES => "vdpbf16ps ",
                _ if emits("vpdpbssd_offset_a_8") || intrinsic.contains("offset") => "vpdpbusd ",
                _ => "vpmaddwd ",
            };
            let text = list(&backend, &flat);
            assert_eq!(text.contains(instruction), has, "{removed}\n{text}");
            let refused = text.contains(&format!("a tensor intrinsic that is not emitted here: {intrinsic}"));
            assert!(
                has || refused || host().target().cpu().expect("a CPU").vector_bits == 128,
                "{removed}\n{text}"
            );
        }
    }
}

const NIBBLES: &str = "
kernel nibbles(M, N, K, in a: i8[M, 2, K, 4], in b: u8[N, K, LANES, 4], inout c: i32[M, LANES*N]) {
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        for l in 0..LANES {
          for r in 0..4 {
            block c(vi: spatial M = i, vj: spatial LANES*N = LANES*j + l, vk: reduce 4*K = 4*k + r) {
              c[vi, vj] = c[vi, vj] + (a[vi, 0, vk/4, vk%4] as i32 * (b[vj/LANES, vk/4, vj%LANES, vk%4] & 15u8) as i32
                + a[vi, 1, vk/4, vk%4] as i32 * (b[vj/LANES, vk/4, vj%LANES, vk%4] >> 4u8) as i32)
            }
          }
        }
      }
    }
  }
}";

#[test]
fn halves_of_bytes_are_multiplied_exactly() {
    for lanes in [16, 8, 4] {
        let program: Program = NIBBLES.replace("LANES", &lanes.to_string()).parse().expect("a program");
        let mut schedule = Schedule::new(program, any_machine(), 0);
        let block = schedule.get_block("c").unwrap();
        let [i, _, _, l, _] = schedule.get_loops(block).unwrap()[..] else { panic!("five loops") };
        schedule.parallel(i).unwrap();
        let name = format!("vpdpbsud_nibbles_{lanes}");
        schedule.tensorize(l, &name).unwrap();
        let options = LowerOptions { intrinsics: vec![name.as_str().into()], ..LowerOptions::default() };
        let flat = lower(schedule.program(), &options).unwrap();
        let extreme = |dtype: DType, len: usize, byte: u8| {
            let mut tensor = AnyTensor::zeros(dtype, &[len]).unwrap();
            tensor.bytes_mut().fill(byte);
            tensor
        };
        for ([m, n, k], byte) in [
            ([1, 1, 1], None),
            ([3, 2, 5], None),
            ([2, 3, 8], None),
            ([0, 1, 1], None),
            ([1, 1, 0], None),
            ([2, 1, 5], Some(0x80)),
            ([2, 1, 5], Some(0x7f)),
        ] {
            // All signed bytes the same, times 15: the sums of pairs that are largest in magnitude.
            let (a, b) = match byte {
                None => {
                    (exact_elements(DType::I8, m * 8 * k, 1), exact_elements(DType::U8, n * k * 4 * lanes, 2))
                }
                Some(byte) => {
                    (extreme(DType::I8, m * 8 * k, byte), extreme(DType::U8, n * k * 4 * lanes, 255))
                }
            };
            let tensors = vec![a, b, exact_elements(DType::I32, m * lanes * n, 3)];
            Call { dims: [m, n, k].map(|dim| dim as i64).to_vec(), tensors, ..Call::default() }.check(&flat);
        }
    }
}
