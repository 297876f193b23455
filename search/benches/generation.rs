//! How many candidates are generated per second on one core (replayed, postprocessed, described by features, their speed
//! predicted), with the rate there should be, and a fingerprint of them: one JSON line for each program, of
//! `cargo bench -p tilewright-search --bench generation`.
//!
//! The fingerprint covers the traces proposed in a few rounds with made-up times. It changes when, and only when, the
//! search proposes something else for the same seed: what makes generation faster must leave it alone.

use std::hash::Hasher;
use std::time::{Duration, Instant};

use rustc_hash::FxHasher;
use tilewright_core::program::Program;
use tilewright_core::target::{CpuTarget, GpuTarget, RunContext, Target};
use tilewright_search::candidate::{Candidate, Generator};
use tilewright_search::model::{BoostedModel, CostModel, Sample};
use tilewright_search::space::design_spaces;
use tilewright_search::spec::SearchSpec;
use tilewright_search::strategy::{Evolution, EvolutionOptions};
use tilewright_search::strategy::{SearchSpace, Strategy};

const MATMUL: &str = r#"
kernel matmul(in a: f32[1, 1024, 1024], in b: f32[1, 1024, 1024], out c: f32[1, 1024, 1024]) {
  for n in 0..1 {
    for i in 0..1024 {
      for j in 0..1024 {
        for k in 0..1024 {
          block c(vn: spatial 1 = n, vi: spatial 1024 = i, vj: spatial 1024 = j, vk: reduce 1024 = k) {
            init { c[vn, vi, vj] = 0.0f32 }
            c[vn, vi, vj] = c[vn, vi, vj] + a[vn, vi, vk] * b[vn, vk, vj]
          }
        }
      }
    }
  }
}
"#;

const CONVOLUTION: &str = r#"
kernel conv2d(in x: f32[224, 224, 3], in w: f32[7, 7, 3, 64], in bias: f32[64], out z: f32[112, 112, 64]) {
  buffer padded: f32[230, 230, 3] global
  buffer y: f32[112, 112, 64] global
  for h in 0..230 {
    for v in 0..230 {
      for c in 0..3 {
        block padded(vh: spatial 230 = h, vv: spatial 230 = v, vc: spatial 3 = c) {
          padded[vh, vv, vc] = select((vh >= 3) & (vh <= 226) & ((vv >= 3) & (vv <= 226)), x[vh - 3, vv - 3, vc], 0.0)
        }
      }
    }
  }
  for h in 0..112 {
    for v in 0..112 {
      for co in 0..64 {
        for kh in 0..7 {
          for kw in 0..7 {
            for ci in 0..3 {
              block y(
                vh: spatial 112 = h,
                vv: spatial 112 = v,
                vco: spatial 64 = co,
                vkh: reduce 7 = kh,
                vkw: reduce 7 = kw,
                vci: reduce 3 = ci,
              ) {
                init { y[vh, vv, vco] = 0.0f32 }
                y[vh, vv, vco] = y[vh, vv, vco] + padded[vh*2 + vkh, vv*2 + vkw, vci] * w[vkh, vkw, vci, vco]
              }
            }
          }
        }
      }
    }
  }
  for h in 0..112 {
    for v in 0..112 {
      for co in 0..64 {
        block z(vh: spatial 112 = h, vv: spatial 112 = v, vco: spatial 64 = co) {
          z[vh, vv, vco] = max(y[vh, vv, vco] + bias[vco], 0.0)
        }
      }
    }
  }
}
"#;

const NORMALISATION: &str = r#"
kernel normalise(in x: f32[128, 768], out y: f32[128, 768]) {
  buffer sum: f32[128] global
  for i in 0..128 {
    for j in 0..768 {
      block sum(vi: spatial 128 = i, vj: reduce 768 = j) {
        init { sum[vi] = 0.0f32 }
        sum[vi] = sum[vi] + x[vi, vj] * x[vi, vj]
      }
    }
  }
  for i in 0..128 {
    for j in 0..768 {
      block y(vi: spatial 128 = i, vj: spatial 768 = j) {
        y[vi, vj] = x[vi, vj] * rsqrt(sum[vi])
      }
    }
  }
}
"#;

/// A machine with wide vectors and the caches of a current server.
fn context() -> RunContext {
    let cpu = CpuTarget {
        cores: 2,
        vector_bits: 512,
        vector_registers: 32,
        l1_bytes: 48 << 10,
        l2_bytes: 2 << 20,
        l3_bytes: 32 << 20,
        ..CpuTarget::generic()
    };
    cpu.into()
}

/// A search over the design spaces of a program on one thread, and a model that has learned something: it costs what a
/// model costs. Its training does not matter here.
struct Search {
    evolution: Evolution,
    model: BoostedModel,
}

impl Search {
    fn new(program: &Program, context: RunContext) -> Self {
        let spec = SearchSpec::built_in(context.target.kind()).expect("each device can be searched");
        let spaces = design_spaces(program, &context, &spec.rules, 1);
        let generator = Generator::new(program.clone(), context, spec);
        let space = SearchSpace { threads: 1, ..SearchSpace::new(generator, spaces, 1) };
        let evolution = Evolution::new(space, EvolutionOptions::default());
        Search { evolution, model: BoostedModel::default() }
    }

    /// Proposes candidates and learns made-up times of them.
    fn round(&mut self, count: usize) -> Vec<Candidate> {
        let candidates = self.evolution.propose(count, &self.model);
        let mut samples = Vec::new();
        for candidate in &candidates {
            let seconds = 1e-3 + (candidate.hash % 1000) as f64 * 1e-6;
            self.evolution.learn(candidate, Some(seconds));
            let features = candidate.features.clone();
            samples.push(Sample { task: 1, features, seconds: Some(seconds) });
        }
        self.model.update(&samples);
        candidates
    }
}

/// A GPU of a data centre.
fn gpu() -> RunContext {
    RunContext::from(Target::from(GpuTarget::a100()))
}

/// A name, a program, the machine that it is scheduled for, and how many candidates of it a second should see.
type Case = (&'static str, &'static str, fn() -> RunContext, Option<f64>);

const CASES: [Case; 6] = [
    ("matmul", MATMUL, context, Some(5000.0)),
    ("conv2d", CONVOLUTION, context, Some(1000.0)),
    ("normalise", NORMALISATION, context, None),
    ("matmul on a GPU", MATMUL, gpu, Some(2000.0)),
    ("conv2d on a GPU", CONVOLUTION, gpu, Some(2000.0)),
    ("normalise on a GPU", NORMALISATION, gpu, Some(2000.0)),
];

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    for (name, text, context, target) in CASES {
        let program: Program = text.trim().parse().unwrap_or_else(|error| panic!("{error}"));
        let start = Instant::now();
        let mut search = Search::new(&program, context());
        let spanning = start.elapsed();
        let mut fingerprint = FxHasher::default();
        for _ in 0..5 {
            for candidate in search.round(32) {
                fingerprint.write(candidate.trace.to_string().as_bytes());
                fingerprint.write_u64(candidate.hash);
            }
        }
        let (before, start) = (search.evolution.statistics().generated, Instant::now());
        let mut rounds = 0;
        while start.elapsed() < Duration::from_secs(2) {
            search.evolution.propose(16, &search.model);
            rounds += 1;
        }
        let seconds = start.elapsed().as_secs_f64();
        let generated = search.evolution.statistics().generated - before;
        println!(
            "{{\"program\": \"{name}\", \"spaces_ms\": {:.0}, \"candidates_per_s\": {:.0}, \"target\": {}, \"proposals_per_s\": {:.2}, \"fingerprint\": \"{:016x}\"}}",
            spanning.as_secs_f64() * 1e3,
            generated as f64 / seconds,
            target.map_or_else(|| "null".to_owned(), |target| target.to_string()),
            f64::from(rounds) / seconds,
            fingerprint.finish(),
        );
    }
}
