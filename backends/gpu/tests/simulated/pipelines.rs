//! Products whose operands are copied asynchronously, some iterations ahead.

use tilewright_core::annotation::PIPELINE_ASYNC;
use tilewright_core::dtype::DType;
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule};
use tilewright_core::target::Target;
use tilewright_core::thread_axis::ThreadAxis;

use crate::assembler::assemble;
use crate::support::{Call, lowered, parse};
use crate::tensor_cores::number_of;

/// The threads of a block along each axis, and the elements of a thread.
const THREADS: i64 = 8;
const ELEMENTS: i64 = 2;
/// The depth of a tile.
const DEPTH: i64 = 16;

fn matmul(dtype: DType, [m, n, k]: [i64; 3]) -> Program {
    let cast = if dtype == DType::F32 { "" } else { " as f32" };
    parse(&format!(
        "kernel matmul(in a: {dtype}[{m}, {k}], in b: {dtype}[{k}, {n}], out c: f32[{m}, {n}]) {{
  for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block c(vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ c[vi, vj] = 0.0 }}
      c[vi, vj] = c[vi, vj] + a[vi, vk]{cast} * b[vk, vj]{cast}
    }}
  }} }} }}
}}"
    ))
}

fn bind_threads(s: &mut Schedule, [rows, columns]: [LoopRv; 2]) {
    s.bind(rows, ThreadAxis::ThreadY).unwrap();
    s.bind(columns, ThreadAxis::ThreadX).unwrap();
}

/// All threads of a block copy a tile, `width` elements with each access.
fn fetch(s: &mut Schedule, copy: BlockRv, width: i64) {
    let loops = s.get_loops(copy).unwrap();
    let elements = s.fuse(&loops[3..]).unwrap();
    let parts = s.split(elements, &[None, Some(THREADS), Some(THREADS), Some(width)]).unwrap();
    s.reorder(&[parts[1], parts[2], parts[0], parts[3]]).unwrap();
    bind_threads(s, [parts[1], parts[2]]);
    if width > 1 {
        s.vectorize(parts[3]).unwrap();
    }
}

/// A product with tiles in shared memory that are copied in a pipeline of `stages` stages.
fn pipelined(program: &Program, stages: i64, width: i64) -> Program {
    let mut schedule = Schedule::new(program.clone(), Target::generic_gpu(), 0);
    let s = &mut schedule;
    let block = s.get_block("c").unwrap();
    let result = s.cache_write(block, Scope::Local).unwrap();
    let loops = s.get_loops(block).unwrap();
    let factors = [None, Some(THREADS), Some(ELEMENTS)];
    let (i, j) = (s.split(loops[0], &factors).unwrap(), s.split(loops[1], &factors).unwrap());
    let k = s.split(loops[2], &[None, Some(DEPTH)]).unwrap();
    s.reorder(&[i[0], j[0], k[0], i[1], j[1], k[1], i[2], j[2]]).unwrap();
    s.reverse_compute_at(result, j[0]).unwrap();
    let own = s.get_loops(result).unwrap();
    let factors = [Some(THREADS), Some(ELEMENTS)];
    let (rows, columns) = (s.split(own[2], &factors).unwrap(), s.split(own[3], &factors).unwrap());
    s.reorder(&[rows[0], columns[0], rows[1], columns[1]]).unwrap();
    bind_threads(s, [rows[0], columns[0]]);
    for name in ["b", "a"] {
        let copy = s.cache_read(block, number_of(s, "c", name), Scope::Shared).unwrap();
        s.compute_at(copy, k[0]).unwrap();
        fetch(s, copy, width);
    }
    let initial = s.decompose_reduction(block, k[0]).unwrap();
    let own = s.get_loops(initial).unwrap();
    bind_threads(s, [own[2], own[3]]);
    bind_threads(s, [i[1], j[1]]);
    s.unroll(i[2]).unwrap();
    s.unroll(j[2]).unwrap();
    s.bind(i[0], ThreadAxis::BlockY).unwrap();
    s.bind(j[0], ThreadAxis::BlockX).unwrap();
    s.software_pipeline(k[0], &[0, 0, stages - 1], &[0, 1, 2]).unwrap();
    s.annotate(k[0], PIPELINE_ASYNC, vec![0]).unwrap();
    lowered(schedule.program())
}

/// Checks a pipelined product with copies of `width` elements, and gives its PTX.
fn check(dtype: DType, sizes: [i64; 3], stages: i64, width: i64) -> String {
    let program = matmul(dtype, sizes);
    let flat = pipelined(&program, stages, width);
    let call = Call::of_small_integers(&program);
    let code = call.compare(&flat);
    assemble(&code.ptx);
    for (found, expected) in call.interpreted(&flat).iter().zip(call.interpreted(&program)) {
        assert_eq!(found.bytes(), expected.bytes(), "{flat}");
    }
    code.ptx
}

#[test]
fn copies_are_two_to_four_stages_ahead() {
    for stages in 2..=4 {
        for k in [32, 48, 96] {
            let ptx = check(DType::F32, [32, 16, k], stages, 4);
            assert!(ptx.contains("cp.async.cg.shared.global"), "{ptx}");
            assert!(!ptx.contains("st.shared"), "{ptx}");
        }
        let ptx = check(DType::F32, [32, 16, 96], stages, 4);
        assert!(ptx.contains(&format!("cp.async.wait_group {};", stages - 2)), "{ptx}");
    }
}

#[test]
fn copies_are_of_4_8_and_16_bytes() {
    for (dtype, width, text) in [
        (DType::F32, 1, "cp.async.ca.shared.global [%r"),
        (DType::F32, 2, ", 8;"),
        (DType::F32, 4, ", 16;"),
        (DType::BF16, 2, ", 4;"),
        (DType::F16, 4, ", 8;"),
        (DType::BF16, 8, ", 16;"),
    ] {
        let ptx = check(dtype, [16, 16, 64], 3, width);
        assert!(ptx.contains("cp.async") && ptx.contains(text), "{ptx}");
    }
    // No instruction copies two bytes.
    assert!(!check(DType::BF16, [16, 16, 64], 3, 1).contains("cp.async.ca"));
}

#[test]
fn odd_extents_are_guarded() {
    for sizes in [[17, 19, 23], [33, 47, 50], [31, 18, 40]] {
        let ptx = check(DType::F32, sizes, 3, 1);
        assert!(ptx.contains("cp.async.ca.shared.global"), "{ptx}");
    }
}

#[test]
fn padding_is_zeros_that_nothing_is_read_for() {
    let program = parse(
        "kernel pad(in x: f32[61], out y: f32[4, 16]) {
  buffer s: f32[4, 16] shared
  @software_pipeline_async_stages [0]
  @software_pipeline_order [0, 1]
  @software_pipeline_stage [0, 1]
  for k in 0..4 {
    bound thread_x for t in 0..16 {
      block s(vk: spatial 4 = k, vt: spatial 16 = t) { s[vk, vt] = select(vk*16 + vt < 61, x[vk*16 + vt], 0.0) }
    }
    bound thread_x for u in 0..16 {
      block y(wk: spatial 4 = k, wt: spatial 16 = u) { y[wk, wt] = s[wk, 15 - wt] }
    }
  }
}",
    );
    let flat = lowered(&program);
    let code = Call::random(&program, &[], 3).compare(&flat);
    assemble(&code.ptx);
    let with_sizes =
        code.ptx.lines().filter(|line| line.contains("cp.async.ca") && line.matches(", ").count() == 3);
    assert!(with_sizes.count() > 0, "{}", code.ptx);
}
