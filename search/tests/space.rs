//! The design spaces of the usual kernels: how many, and that random points of them stay legal.

use std::sync::Arc;

use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::{Target, TargetKind};
use tilewright_search::postproc;
use tilewright_search::rule::RuleSet;
use tilewright_search::space::design_spaces;

const MATMUL: &str = r#"
kernel matmul(in a: f32[128, 128], in b: f32[128, 128], out c: f32[128, 128]) {
  for i in 0..128 {
    for j in 0..128 {
      for k in 0..128 {
        block c(vi: spatial 128 = i, vj: spatial 128 = j, vk: reduce 128 = k) {
          init { c[vi, vj] = 0.0f32 }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}
"#;

fn spaces(text: &str) -> (Program, Arc<Target>, Vec<Trace>) {
    let program: Program = text.trim().parse().unwrap_or_else(|error| panic!("{error}"));
    let target = Arc::new(Target::generic_cpu());
    let rules = RuleSet::built_in(TargetKind::Cpu).expect("the built-in rules are in order");
    let spaces = design_spaces(&program, &target, &rules, 1);
    (program, target, spaces)
}

#[test]
fn show() {
    let (program, target, spaces) = spaces(MATMUL);
    for (number, space) in spaces.iter().enumerate() {
        println!("--- space {number}\n{space}");
        let mut rejected = std::collections::BTreeMap::new();
        let mut shown = false;
        for seed in 0..200 {
            let mut schedule = match space.replay_with(&program, &target, seed, |_, _| None) {
                Ok(schedule) => schedule,
                Err(error) => panic!("{error}"),
            };
            match postproc::apply(&mut schedule) {
                Ok(()) => {
                    *rejected.entry("ok").or_insert(0) += 1;
                    if !shown {
                        println!("{}\n{}", schedule.trace(), schedule.program());
                        shown = true;
                    }
                }
                Err(reason) => *rejected.entry(reason.0).or_insert(0) += 1,
            }
        }
        println!("{rejected:?}");
    }
}
