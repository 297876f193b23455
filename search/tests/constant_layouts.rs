//! Constant operands are laid out in the order of the loops, whatever dimensions of one value they have.

use tilewright_core::program::Program;
use tilewright_core::target::{CpuTarget, TargetKind};
use tilewright_search::default_schedule::default_candidate;
use tilewright_search::spec::SearchSpec;

/// A pointwise convolution with channels innermost, whose weights have `taps` behind filters and channels.
fn pointwise(taps: &str) -> String {
    pointwise_at(taps, if taps.is_empty() { "" } else { ", 0, 0" })
}

/// The same, which reads the tap at `indices`.
fn pointwise_at(taps: &str, indices: &str) -> String {
    format!(
        "kernel pointwise(in x: f32[196, 64], constant w: f32[128, 64{taps}], out y: f32[196, 128]) {{
  for p in 0..196 {{
    for f in 0..128 {{
      for c in 0..64 {{
        block y(vp: spatial 196 = p, vf: spatial 128 = f, vc: reduce 64 = c) {{
          init {{ y[vp, vf] = 0.0f32 }}
          y[vp, vf] = y[vp, vf] + x[vp, vc] * w[vf, vc{indices}]
        }}
      }}
    }}
  }}
}}
"
    )
}

/// A depthwise convolution with channels innermost, whose weights have a dimension for the one channel of each group.
fn depthwise(channels: &str) -> String {
    let index = if channels.is_empty() { "" } else { ", 0" };
    format!(
        "kernel depthwise(in x: f32[18, 18, 64], constant w: f32[64{channels}, 5, 5], out y: f32[14, 14, 64]) {{
  for h in 0..14 {{
    for v in 0..14 {{
      for c in 0..64 {{
        for kh in 0..5 {{
          for kw in 0..5 {{
            block y(vh: spatial 14 = h, vv: spatial 14 = v, vc: spatial 64 = c, vkh: reduce 5 = kh, vkw: reduce 5 = kw) {{
              init {{ y[vh, vv, vc] = 0.0f32 }}
              y[vh, vv, vc] = y[vh, vv, vc] + x[vh + vkh, vv + vkw, vc] * w[vc{index}, vkh, vkw]
            }}
          }}
        }}
      }}
    }}
  }}
}}
"
    )
}

/// The scheduled program, and the share of the peak that it is predicted to reach.
fn by_default(text: &str) -> (String, f32) {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let cpu = CpuTarget { vector_bits: 512, vector_registers: 32, ..CpuTarget::generic() };
    let spec = SearchSpec::built_in(TargetKind::Cpu).unwrap();
    let candidate = default_candidate(&program, cpu, &spec).expect("there is a legal candidate");
    (candidate.program.to_string(), candidate.features.prior())
}

#[test]
fn dimensions_of_one_value_change_nothing() {
    for (plain, with_one) in [(pointwise(""), pointwise(", 1, 1")), (depthwise(""), depthwise(", 1"))] {
        let ((_, expected), (program, found)) = (by_default(&plain), by_default(&with_one));
        assert!(found > 0.9 * expected, "{found} instead of {expected} of the peak: {program}");
        assert!(program.contains("vectorized for"), "{program}");
        assert!(program.contains("buffer w_local") || program.contains("buffer w_global"), "{program}");
    }
}

#[test]
fn a_part_of_an_operand_is_laid_out_as_a_whole_one() {
    let (_, expected) = by_default(&pointwise(""));
    let one_loop = pointwise_at(", 3, 3", ", 1, vk + 1")
        .replace("for c in 0..64 {", "for c in 0..64 { for k in 0..1 {")
        .replace("reduce 64 = c)", "reduce 64 = c, vk: reduce 1 = k)")
        .replace("w[vf, vc, 1, vk + 1]\n        }", "w[vf, vc, 1, vk + 1]\n        } }");
    for text in [pointwise_at(", 3, 3", ", 1, 1"), one_loop] {
        let (program, found) = by_default(&text);
        assert!(found > 0.9 * expected, "{found} instead of {expected} of the peak: {program}");
        assert!(program.contains("buffer w_global"), "{program}");
    }
}
