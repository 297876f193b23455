//! How many kernels per second become PTX on one core, from a schedule and from a lowered program: one JSON line for each program, of
//! `cargo bench -p tilewright-gpu --bench emission`.

use std::time::{Duration, Instant};

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::target::{GpuTarget, Target};
use tilewright_gpu::emit;
use tilewright_search::schedule_by_default;

/// The time for each measurement.
const TIME: Duration = Duration::from_secs(2);

const PROGRAMS: [(&str, &str); 2] = [
    (
        "matmul",
        "kernel matmul(in a: f32[1024, 1024], in b: f32[1024, 1024], out c: f32[1024, 1024]) {
  for i in 0..1024 { for j in 0..1024 { for k in 0..1024 {
    block c(vi: spatial 1024 = i, vj: spatial 1024 = j, vk: reduce 1024 = k) {
      init { c[vi, vj] = 0.0 }
      c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
    }
  } } }
}",
    ),
    (
        "normalise",
        "kernel normalise(in x: f32[128, 768], out y: f32[128, 768]) {
  buffer sum: f32[128] global
  for i in 0..128 { for j in 0..768 {
    block sum(vi: spatial 128 = i, vj: reduce 768 = j) {
      init { sum[vi] = 0.0 }
      sum[vi] = sum[vi] + x[vi, vj] * x[vi, vj]
    }
  } }
  for i in 0..128 { for j in 0..768 {
    block y(vi: spatial 128 = i, vj: spatial 768 = j) { y[vi, vj] = x[vi, vj] * rsqrt(sum[vi]) }
  } }
}",
    ),
];

/// How often something can be done in a second, after it was done once.
fn per_second(mut work: impl FnMut()) -> f64 {
    work();
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < TIME {
        work();
        count += 1;
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let gpu = GpuTarget::a100();
    let target = Target::from(gpu.clone());
    let options = LowerOptions::of(&target);
    for (name, text) in PROGRAMS {
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let schedule = schedule_by_default(&program, target.clone());
        let lowered = lower(schedule.program(), &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let kernels =
            emit(&lowered, &gpu).unwrap_or_else(|error| panic!("{name}: {error}")).launches.len() as f64;
        let emitted = per_second(|| drop(emit(&lowered, &gpu)));
        let from_schedule = per_second(|| {
            if let Ok(flat) = lower(schedule.program(), &options) {
                drop(emit(&flat, &gpu));
            }
        });
        println!(
            "{{\"program\": \"{name}\", \"kernels\": {kernels}, \"emitted_per_s\": {:.0}, \"lowered_and_emitted_per_s\": {:.0}, \"target\": 300}}",
            kernels * emitted,
            kernels * from_schedule,
        );
    }
}
