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

#[test]
fn vectors_run_along_the_results() {
    // A copy names its loops after the dimensions of the result, of which the last one has the channels.
    for (text, last) in [(COLUMNS, "v0"), (WINDOWS, "v2")] {
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
            let is_channel = |lane: &&str| lane.starts_with('c') || *lane == last;
            assert!(!lanes.is_empty() && lanes.iter().all(is_channel), "{scheduled}");
        }
    }
}
