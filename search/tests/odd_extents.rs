//! Default schedules at prime and other odd extents are predicted to be about as good as at aligned neighbours.

use tilewright_core::program::Program;
use tilewright_core::target::{CpuTarget, TargetKind};
use tilewright_search::default_schedule::default_candidate;
use tilewright_search::spec::SearchSpec;

/// The most that the share of the peak at an aligned extent may exceed that at an odd one.
const MOST_LOST: f32 = 1.6;

/// The sums of the squares of rows.
fn sums_of_squares([rows, length]: [i64; 2]) -> String {
    format!(
        "kernel squares(in x: f32[{rows}, {length}], out y: f32[{rows}]) {{
  for i in 0..{rows} {{
    for j in 0..{length} {{
      block y(vi: spatial {rows} = i, vj: reduce {length} = j) {{
        init {{ y[vi] = 0.0f32 }}
        y[vi] = y[vi] + x[vi, vj] * x[vi, vj]
      }}
    }}
  }}
}}
"
    )
}

/// The distances of rows from their maxima.
fn below_maxima([rows, length]: [i64; 2]) -> String {
    format!(
        "kernel below(in x: f32[{rows}, {length}], out y: f32[{rows}, {length}]) {{
  buffer largest: f32[{rows}] global
  for i in 0..{rows} {{
    for j in 0..{length} {{
      block largest(vi: spatial {rows} = i, vj: reduce {length} = j) {{
        init {{ largest[vi] = -1000.0f32 }}
        largest[vi] = max(largest[vi], x[vi, vj])
      }}
    }}
  }}
  for i_1 in 0..{rows} {{
    for j_1 in 0..{length} {{
      block y(vi_1: spatial {rows} = i_1, vj_1: spatial {length} = j_1) {{
        y[vi_1, vj_1] = largest[vi_1] - x[vi_1, vj_1]
      }}
    }}
  }}
}}
"
    )
}

/// A product of square matrices, the second one transposed.
fn scores([size, inner]: [i64; 2]) -> String {
    format!(
        "kernel scores(in a: f32[{size}, {inner}], in b: f32[{size}, {inner}], out c: f32[{size}, {size}]) {{
  for i in 0..{size} {{
    for j in 0..{size} {{
      for k in 0..{inner} {{
        block c(vi: spatial {size} = i, vj: spatial {size} = j, vk: reduce {inner} = k) {{
          init {{ c[vi, vj] = 0.0f32 }}
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vj, vk]
        }}
      }}
    }}
  }}
}}
"
    )
}

/// The predicted share of the peak of the default schedule.
fn predicted(text: &str, vector_bits: u32) -> f32 {
    let program: Program = text.trim().parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let vector_registers = if vector_bits == 512 { 32 } else { 16 };
    let cpu = CpuTarget { vector_bits, vector_registers, ..CpuTarget::generic() };
    let spec = SearchSpec::built_in(TargetKind::Cpu).expect("a CPU can be searched");
    let best =
        default_candidate(&program, cpu, &spec).unwrap_or_else(|| panic!("no candidate is legal:\n{text}"));
    best.features.prior()
}

#[test]
fn primes_are_predicted_to_be_about_as_fast_as_their_neighbours() {
    type Case = (fn([i64; 2]) -> String, [i64; 2], [i64; 2]);
    let cases: [Case; 8] = [
        (sums_of_squares, [1, 1009], [1, 1024]),
        (sums_of_squares, [1, 1_000_003], [1, 1_000_000]),
        (sums_of_squares, [64, 769], [64, 768]),
        (sums_of_squares, [67, 509], [64, 512]),
        (below_maxima, [256, 1021], [256, 1024]),
        (below_maxima, [197, 197], [192, 192]),
        (scores, [127, 61], [128, 64]),
        (scores, [509, 509], [512, 512]),
    ];
    for vector_bits in [256, 512] {
        for (kernel, odd, aligned) in cases {
            let [odd_share, aligned_share] =
                [odd, aligned].map(|sizes| predicted(&kernel(sizes), vector_bits));
            println!("{vector_bits} bits, {odd:?} and {aligned:?}: {odd_share:.3} and {aligned_share:.3}");
            assert!(
                odd_share * MOST_LOST >= aligned_share,
                "{vector_bits} bits: {odd_share} at {odd:?}, {aligned_share} at {aligned:?}"
            );
        }
    }
}
