//! Reductions whose results lie next to each other run in vectors along the results.

use tilewright_core::program::Program;
use tilewright_core::target::{CpuTarget, TargetKind};
use tilewright_search::default_schedule::default_candidate;
use tilewright_search::spec::SearchSpec;

/// Sums of the columns of a matrix.
const COLUMNS: &str = "kernel columns(in x: f32[49, 512], out y: f32[512]) {
  for c in 0..512 {
    for h in 0..49 {
      block y(vc: spatial 512 = c, vh: reduce 49 = h) {
        init { y[vc] = 0.0f32 }
        y[vc] = y[vc] + x[vh, vc]
      }
    }
  }
}
";

/// The largest elements of windows of five by five, with channels innermost.
const WINDOWS: &str = "kernel windows(in x: f32[17, 17, 192], out y: f32[13, 13, 192]) {
  for h in 0..13 {
    for v in 0..13 {
      for c in 0..192 {
        for kh in 0..5 {
          for kw in 0..5 {
            block y(vh: spatial 13 = h, vv: spatial 13 = v, vc: spatial 192 = c, vkh: reduce 5 = kh, vkw: reduce 5 = kw) {
              init { y[vh, vv, vc] = -1000.0f32 }
              y[vh, vv, vc] = max(y[vh, vv, vc], x[vh + vkh, vv + vkw, vc])
            }
          }
        }
      }
    }
  }
}
";

/// Sums of windows of three by three, with rows innermost.
const PLANES: &str = "kernel planes(in x: f32[64, 30, 30], out y: f32[64, 28, 28]) {
  for c in 0..64 {
    for h in 0..28 {
      for w in 0..28 {
        for kh in 0..3 {
          for kw in 0..3 {
            block y(vc: spatial 64 = c, vh: spatial 28 = h, vw: spatial 28 = w, vkh: reduce 3 = kh, vkw: reduce 3 = kw) {
              init { y[vc, vh, vw] = 0.0f32 }
              y[vc, vh, vw] = y[vc, vh, vw] + x[vc, vh + vkh, vw + vkw]
            }
          }
        }
      }
    }
  }
}
";

/// Sums of windows of five elements.
const SIGNAL: &str = "kernel signal(in x: f32[8, 1004], out y: f32[8, 1000]) {
  for c in 0..8 {
    for w in 0..1000 {
      for k in 0..5 {
        block y(vc: spatial 8 = c, vw: spatial 1000 = w, vk: reduce 5 = k) {
          init { y[vc, vw] = 0.0f32 }
          y[vc, vw] = y[vc, vw] + x[vc, vw + vk]
        }
      }
    }
  }
}
";

#[test]
fn vectors_run_along_the_results() {
    // A copy names its loops after the dimensions of the result, of which the last one is in lanes.
    let cases = [(COLUMNS, 'c', "v0"), (WINDOWS, 'c', "v2"), (PLANES, 'w', "v2"), (SIGNAL, 'w', "v1")];
    for (text, own, last) in cases {
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
        for vector_bits in [256, 512] {
            let cpu = CpuTarget { vector_bits, vector_registers: 16, ..CpuTarget::generic() };
            let spec = SearchSpec::built_in(TargetKind::Cpu).unwrap();
            let scheduled = default_candidate(&program, cpu, &spec).expect("a candidate is legal").program;
            let scheduled = scheduled.to_string();
            let along = scheduled.lines().filter_map(|line| {
                let (_, rest) = line.split_once("vectorized for ")?;
                rest.split(' ').next()
            });
            let lanes: Vec<&str> = along.collect();
            // Loops that are one in memory are fused, the innermost one last.
            let fused = format!("_{own}_");
            // One that is longer than a few vectors is cut into parts.
            let is_last = |lane: &str| {
                lane.strip_prefix(last).is_some_and(|part| part.is_empty() || part.starts_with('_'))
            };
            let is_along = |lane: &&str| lane.starts_with(own) || is_last(lane) || lane.contains(&fused);
            assert!(!lanes.is_empty() && lanes.iter().all(is_along), "{scheduled}");
        }
    }
}
