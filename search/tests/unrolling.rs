//! Which loops the postprocessors write out.

use tilewright_core::program::Program;
use tilewright_core::schedule::Schedule;
use tilewright_core::target::CpuTarget;
use tilewright_search::postproc::Postprocessors;

/// The program after the postprocessors, with what the rules would have noted at its block.
fn scheduled(text: &str, unroll: i64, unroll_reduction: i64) -> String {
    let program: Program = text.trim().parse().unwrap_or_else(|error| panic!("{error}"));
    let cpu = CpuTarget { vector_bits: 512, vector_registers: 32, ..CpuTarget::generic() };
    let mut schedule = Schedule::new(program, cpu, 0);
    let block = schedule.get_block("y").unwrap();
    for (key, value) in
        [("parallel", 1), ("vectorize", 16), ("unroll", unroll), ("unroll_reduction", unroll_reduction)]
    {
        schedule.annotate(block, key, value).unwrap();
    }
    Postprocessors::built_in(schedule.target().kind())
        .apply(&mut schedule)
        .unwrap_or_else(|rejection| panic!("{rejection}"));
    schedule.program().to_string()
}

/// A depthwise convolution with a tile of four rows.
const FILTER: &str = r#"
kernel filter(in x: f32[34, 18, 16], in w: f32[3, 3, 16], out y: f32[32, 16, 16]) {
  for h_0 in 0..8 {
    for v in 0..16 {
      for kh in 0..3 {
        for kw in 0..3 {
          for h_1 in 0..4 {
            for c in 0..16 {
              block y(vh: spatial 32 = h_0*4 + h_1, vv: spatial 16 = v, vc: spatial 16 = c, vkh: reduce 3 = kh, vkw: reduce 3 = kw) {
                init { y[vh, vv, vc] = 0.0f32 }
                y[vh, vv, vc] = y[vh, vv, vc] + x[vh + vkh, vv + vkw, vc] * w[vkh, vkw, vc]
              }
            }
          }
        }
      }
    }
  }
}
"#;

/// The same with the loop along the rows' taps inside the other.
fn with_rows_inside() -> String {
    let swapped = FILTER.replace("for kh in", "for swap in").replace("for kw in", "for kh in");
    swapped.replace("for swap in", "for kw in")
}

#[test]
fn taps_that_share_rows_are_written_out() {
    // The rows of the tile do not overlap along `kw`; only a loop around them does, which stays.
    let columns_inside = scheduled(FILTER, 64, 4);
    assert!(columns_inside.contains("for kw in 0..3"), "{columns_inside}");
    let written_out = scheduled(&with_rows_inside(), 64, 4);
    assert!(written_out.contains("unrolled for kh in 0..3"), "{written_out}");
    assert!(!written_out.contains("unrolled for kw"), "{written_out}");
}

#[test]
fn taps_stay_loops_where_too_much_would_be_written_out() {
    // Four rows of three taps are twelve copies, and two steps at once are fewer than three taps.
    for (unroll, unroll_reduction) in [(8, 4), (64, 2)] {
        let program = scheduled(&with_rows_inside(), unroll, unroll_reduction);
        assert!(!program.contains("unrolled for k"), "{unroll}, {unroll_reduction}: {program}");
    }
}

#[test]
fn sums_that_share_nothing_are_written_out_in_part() {
    let text = "kernel product(in a: f32[8, 12], in b: f32[12, 16], out y: f32[8, 16]) {
  for k in 0..12 {
    for i in 0..8 {
      for j in 0..16 {
        block y(vi: spatial 8 = i, vj: spatial 16 = j, vk: reduce 12 = k) {
          init { y[vi, vj] = 0.0f32 }
          y[vi, vj] = y[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}";
    let program = scheduled(text, 64, 4);
    assert!(program.contains("@unroll_factor 4"), "{program}");
    assert!(!program.contains("unrolled for k"), "{program}");
}
