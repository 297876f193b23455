//! Random legal schedules: what they compute does not depend on them.

use tilewright_core::device::CompileError;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::target::{GpuTarget, Target};
use tilewright_core::tensor::Random;
use tilewright_core::thread_axis::ThreadAxis;
use tilewright_gpu::emit;

use crate::support::{Call, parse};

/// How many schedules are tried; `TILEWRIGHT_CASES` asks for more.
const CASES: u64 = 150;

/// Kernels whose sizes divide evenly and not.
pub(crate) const KERNELS: [&str; 4] = [
    "kernel add(in a: f32[6, 35], in b: f32[35], out y: f32[6, 35]) {
  for i in 0..6 { for j in 0..35 {
    block y(vi: spatial 6 = i, vj: spatial 35 = j) { y[vi, vj] = a[vi, vj] + b[vj] }
  } }
}",
    "kernel matmul(in a: f32[12, 10], in b: f32[10, 16], out c: f32[12, 16]) {
  for i in 0..12 { for j in 0..16 { for k in 0..10 {
    block c(vi: spatial 12 = i, vj: spatial 16 = j, vk: reduce 10 = k) {
      init { c[vi, vj] = 0.0 }
      c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
    }
  } } }
}",
    "kernel means(in x: f16[5, 48], out y: f16[5, 48]) {
  buffer s: f32[5] global
  for i in 0..5 { for k in 0..48 {
    block s(vi: spatial 5 = i, vk: reduce 48 = k) {
      init { s[vi] = 0.0 }
      s[vi] = s[vi] + x[vi, vk] as f32
    }
  } }
  for i in 0..5 { for j in 0..48 {
    block y(vi: spatial 5 = i, vj: spatial 48 = j) { y[vi, vj] = x[vi, vj] - (s[vi] * 0.0208) as f16 }
  } }
}",
    "kernel blur(in x: i32[40], out y: i32[38]) {
  buffer d: i32[40] global
  for i in 0..40 { block d(v: spatial 40 = i) { d[v] = x[v] * 2i32 } }
  for i in 0..38 { block y(v: spatial 38 = i) { y[v] = d[v] + d[v + 1] + d[v + 2] } }
}",
];

const AXES: [ThreadAxis; 6] = [
    ThreadAxis::BlockX,
    ThreadAxis::ThreadX,
    ThreadAxis::BlockY,
    ThreadAxis::ThreadY,
    ThreadAxis::VirtualX,
    ThreadAxis::ThreadX,
];

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> Option<T> {
    (!from.is_empty()).then(|| from[random.below(from.len() as u64) as usize])
}

/// Tries one step on a block. A step that is refused leaves the schedule as it was.
fn step(
    schedule: &mut Schedule,
    block: BlockRv,
    random: &mut Random,
) -> Result<Option<BlockRv>, ScheduleError> {
    let loops = schedule.get_loops(block)?;
    let Some(target) = pick(random, &loops) else { return Ok(None) };
    match random.below(10) {
        0..=2 => {
            let factor = pick(random, &[2, 3, 4, 8, 16, 32]).unwrap_or(2);
            schedule.split(target, &[None, Some(factor)])?;
        }
        3..=5 => schedule.bind(target, pick(random, &AXES).unwrap_or(ThreadAxis::ThreadX))?,
        6 => {
            let other = pick(random, &loops).unwrap_or(target);
            schedule.reorder(&[target, other])?;
        }
        7 => {
            let last: LoopRv = loops[loops.len() - 1];
            if random.below(2) == 0 { schedule.unroll(last)? } else { schedule.vectorize(last)? }
        }
        8 => {
            let scope = if random.below(3) == 0 { Scope::Local } else { Scope::Shared };
            let copy = schedule.read_at(target, block, random.below(2) as i64, scope)?;
            return Ok(Some(copy));
        }
        _ => {
            let (partial, sum) = schedule.rfactor(block, target, -1)?;
            let loops = schedule.get_loops(sum)?;
            schedule.compute_at(partial, loops[random.below(loops.len() as u64) as usize])?;
            schedule.set_scope(partial, 0, Scope::Shared)?;
            return Ok(Some(sum));
        }
    }
    Ok(None)
}

/// A schedule of random steps, of which those that are refused are left out.
pub(crate) fn random_schedule(program: &Program, random: &mut Random) -> Schedule {
    let mut schedule = Schedule::new(program.clone(), Target::generic_gpu(), 0);
    let names: Vec<String> = tilewright_core::analysis::scope::blocks(&program.body)
        .iter()
        .map(|block| block.name.to_string())
        .collect();
    let mut blocks: Vec<BlockRv> =
        names.iter().map(|name| schedule.get_block(name).expect("the block is there")).collect();
    for _ in 0..4 + random.below(12) {
        let Some(block) = pick(random, &blocks) else { break };
        let mut attempt = schedule.clone();
        if let Ok(made) = step(&mut attempt, block, random) {
            blocks.extend(made);
            schedule = attempt;
        }
    }
    schedule
}

#[test]
fn random_schedules_compute_the_same() {
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    let mut executed = 0;
    for case in 0..cases {
        let mut random = Random::new(case);
        let program = parse(KERNELS[(case % KERNELS.len() as u64) as usize]);
        let schedule = random_schedule(&program, &mut random);
        // Threads that another one's values do not reach, loops over blocks inside of others, and the like are refused.
        let Ok(flat) = lower(schedule.program(), &LowerOptions::of(&Target::generic_gpu())) else { continue };
        match emit(&flat, &GpuTarget::generic()) {
            Ok(_) => {}
            Err(CompileError::Unsupported { .. }) => continue,
            Err(error) => panic!("case {case}: {error}\n{}\n{flat}", schedule.trace()),
        }
        executed += 1;
        let call = Call::random(&program, &[], case);
        call.compare(&flat);
        let (found, expected) = (call.interpreted(&flat), call.interpreted(&program));
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.all_close(expected, 1e-3, 1e-3), "case {case}\n{}\n{flat}", schedule.trace());
        }
    }
    assert!(executed * 3 > cases, "too few schedules were executed: {executed} of {cases}");
}
