//! The shape of lowered programs.

use std::sync::Arc;

use crate::kernels::{MATMUL, MATMUL_RELU, parse};
use tilewright_core::lower::{LowerOptions, lower_with};
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::Schedule;
use tilewright_core::target::Target;

/// A tiled matrix product in the usual structure: outer tiles, reduction, inner tiles, write cache.
fn tiled_matmul(text: &str, tile: [i64; 2]) -> Program {
    let mut s = Schedule::new(parse(text), Arc::new(Target::generic_cpu()), 1);
    let c = s.get_block("c").unwrap();
    let copy = s.cache_write(c, Scope::Local).unwrap();
    let [i, j, k] = s.get_loops(c).unwrap()[..] else { panic!("three loops") };
    let i = s.split(i, &[None, Some(tile[0])]).unwrap();
    let j = s.split(j, &[None, Some(tile[1])]).unwrap();
    s.reorder(&[i[0], j[0], k, i[1], j[1]]).unwrap();
    s.reverse_compute_at(copy, j[0]).unwrap();
    s.decompose_reduction(c, k).unwrap();
    s.parallel(i[0]).unwrap();
    s.unroll(i[1]).unwrap();
    s.vectorize(j[1]).unwrap();
    let (program, _) = s.into_parts();
    program
}

/// The lowered program as text.
fn lowered(program: &Program) -> String {
    let mut stages = String::new();
    let mut note = |pass: &str, program: &Program| stages += &format!("--- {pass}\n{program}\n");
    match lower_with(program, &LowerOptions::default(), &mut note) {
        Ok(program) => program.to_string(),
        Err(error) => panic!("{error}\n{stages}"),
    }
}

#[test]
fn a_tile_of_a_matmul_becomes_a_small_local_buffer_and_vector_stores() {
    let text = lowered(&tiled_matmul(MATMUL_RELU, [4, 8]));
    assert!(text.contains("buffer c_local: f32[32] local"), "{text}");
    assert!(text.contains("c_local_register[lane<8> + 24] = mul_add("), "{text}");
    assert!(!text.contains("if "), "nothing is guarded when the tiles divide:\n{text}");
}

#[test]
fn symbolic_extents_lower_to_guarded_tiles_of_constant_size() {
    let text = lowered(&tiled_matmul(MATMUL, [4, 8]));
    assert!(text.contains("buffer c_local: f32[32] local"), "{text}");
    assert!(text.contains("out c: f32[M*N]"), "{text}");
}

/// The product with fixed extents.
fn fixed_matmul(m: i64, n: i64, k: i64) -> String {
    MATMUL
        .replace("M, N, K, ", "")
        .replace('M', &m.to_string())
        .replace('N', &n.to_string())
        .replace('K', &k.to_string())
}

#[test]
fn the_last_tile_of_fixed_extents_is_written_out_as_well() {
    let text = lowered(&tiled_matmul(&fixed_matmul(50, 44, 20), [4, 8]));
    assert!(text.contains("if i_0 < 12 {"), "the parallel loop asks for its last tile:\n{text}");
    assert!(
        text.contains("for j_0 in 0..5 {"),
        "the loop over columns is cut in front of its last tile:\n{text}"
    );
    assert!(text.contains("lane<4>"), "the last columns are a shorter vector:\n{text}");
    assert_eq!(text.matches("if ").count(), 1, "nothing else is asked:\n{text}");
}

#[test]
fn a_long_copy_leaves_the_budget_for_tiles_of_sums() {
    let text = "kernel sums(in x: f32[200, 44], out y: f32[200, 44], in a: f32[8, 70], in b: f32[8, 44], inout s: f32[70, 44]) {
  for i in 0..3 {
    unrolled for r in 0..200 {
      vectorized for l in 0..16 {
        block y(vr: spatial 200 = r, vc: spatial 44 = i*16 + l) where i*16 + l < 44 {
          y[vr, vc] = 2.0 * x[vr, vc]
        }
      }
    }
  }
  for j in 0..3 {
    for k in 0..8 {
      unrolled for r_1 in 0..70 {
        vectorized for l_1 in 0..16 {
          block s(vr_1: spatial 70 = r_1, vc_1: spatial 44 = j*16 + l_1, vk: reduce 8 = k) where j*16 + l_1 < 44 {
            s[vr_1, vc_1] = s[vr_1, vc_1] + a[vk, vr_1] * b[vk, vc_1]
          }
        }
      }
    }
  }
}
";
    let text = lowered(&parse(text));
    assert!(!text.contains("if "), "the copy and the sums are cut:\n{text}");
}
