//! Frequencies that TVM's tests of sampling (`tests/python/s_tir/schedule/test_tir_schedule_sampling.py`) expect of many draws.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tilewright_core::schedule::{Schedule, Trace};
use tilewright_core::target::Target;

const DRAWS: usize = 1000;

const ELEMENTWISE: &str = "kernel twice(in a: f32[128, 257, 1470], out b: f32[128, 257, 1470]) {
  for i in 0..128 { for j in 0..257 { for k in 0..1470 {
    block b(vi: spatial 128 = i, vj: spatial 257 = j, vk: spatial 1470 = k) { b[vi, vj, vk] = a[vi, vj, vk] * 2.0f32 }
  } } }
}";

fn elementwise(seed: u64) -> Schedule {
    Schedule::new(ELEMENTWISE.parse().unwrap(), Arc::new(Target::generic_cpu()), seed)
}

/// Draws from candidates, and checks that each comes as often as its probability says, within 7 %.
#[track_caller]
fn check_rates(candidates: &[i64], probabilities: &[f64]) {
    let mut schedule = elementwise(42);
    let mut counts = BTreeMap::new();
    for _ in 0..DRAWS {
        let drawn = schedule.sample_categorical(candidates, probabilities).unwrap();
        *counts.entry(schedule.int(drawn).unwrap()).or_insert(0) += 1;
    }
    for (candidate, probability) in candidates.iter().zip(probabilities) {
        let rate = f64::from(counts.remove(candidate).unwrap_or(0)) / DRAWS as f64;
        assert!((rate - probability).abs() <= 0.07, "{candidate}: {rate} instead of {probability}");
    }
    assert!(counts.is_empty(), "no candidates: {counts:?}");
}

#[test]
fn candidates_come_as_often_as_their_probabilities_say() {
    check_rates(&[5, 2, 7, 1], &[0.15, 0.55, 0.05, 0.25]);
    check_rates(&[4, 9], &[0.3, 0.7]);
}

#[test]
fn what_was_drawn_stays_in_copies_and_in_the_trace() {
    let mut schedule = elementwise(42);
    let draw = |schedule: &mut Schedule| {
        let drawn = schedule.sample_categorical(&[1, 2, 3, 4], &[0.1, 0.2, 0.3, 0.4]).unwrap();
        (drawn, schedule.int(drawn).unwrap())
    };
    let drawn: Vec<_> = (0..100).map(|_| draw(&mut schedule)).collect();
    let written: Trace = schedule.trace().to_string().parse().unwrap();
    let replayed = written.replay(&ELEMENTWISE.parse().unwrap(), Arc::new(Target::generic_cpu()), 7).unwrap();
    let copy = schedule.clone();
    for (variable, value) in drawn {
        assert_eq!(copy.int(variable).unwrap(), value);
    }
    assert_eq!(replayed.trace(), schedule.trace());
}

#[test]
fn factors_multiply_to_the_extent_and_every_divisor_comes() {
    let mut schedule = elementwise(42);
    let block = schedule.get_block("b").unwrap();
    let loops = schedule.get_loops(block).unwrap();
    for (target, extent) in loops.into_iter().zip([128, 257, 1470]) {
        let mut found = BTreeSet::new();
        for _ in 0..DRAWS {
            let mut fork = schedule.fork();
            let drawn = fork.sample_perfect_tile(target, 4, i64::MAX).unwrap();
            let factors: Vec<i64> = drawn.into_iter().map(|factor| fork.int(factor).unwrap()).collect();
            assert_eq!(factors.iter().product::<i64>(), extent, "{factors:?}");
            assert!(factors.iter().all(|factor| *factor >= 1), "{factors:?}");
            found.extend(factors);
        }
        let divisors: BTreeSet<i64> = (1..=extent).filter(|divisor| extent % divisor == 0).collect();
        assert_eq!(found, divisors, "of {extent}");
        for _ in 0..DRAWS {
            let mut fork = schedule.fork();
            let drawn = fork.sample_perfect_tile(target, 3, 16).unwrap();
            assert!(fork.int(drawn[2]).unwrap() <= 16, "of {extent}");
        }
    }
}
