//! Schedules of one shape for others, on machines with few registers and with many.

use tilewright_core::program::Program;
use tilewright_core::schedule::Rng;
use tilewright_core::target::{CpuTarget, RunContext, TargetKind};
use tilewright_search::candidate::{Generator, Statistics};
use tilewright_search::fit::fit;
use tilewright_search::space::design_spaces;
use tilewright_search::spec::SearchSpec;
use tilewright_search::strategy::SearchSpace;

fn product(m: i64, n: i64, k: i64) -> Program {
    let text = format!(
        r"
kernel product(in a: f32[{m}, {k}], in b: f32[{k}, {n}], out c: f32[{m}, {n}]) {{
  for i in 0..{m} {{
    for j in 0..{n} {{
      for r in 0..{k} {{
        block c(vi: spatial {m} = i, vj: spatial {n} = j, vr: reduce {k} = r) {{
          init {{ c[vi, vj] = 0.0f32 }}
          c[vi, vj] = c[vi, vj] + a[vi, vr] * b[vr, vj]
        }}
      }}
    }}
  }}
}}
"
    );
    text.trim().parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn what_suits_one_shape_is_made_to_suit_another() {
    let spec = SearchSpec::built_in(TargetKind::Cpu).expect("a CPU can be searched");
    for vector_registers in [16, 32] {
        let context =
            RunContext::from(CpuTarget { vector_bits: 256, vector_registers, ..CpuTarget::generic() });
        let generator = |program: &Program| Generator::new(program.clone(), &context, spec.clone());
        let from = product(32, 64, 48);
        let space = SearchSpace::new(generator(&from), design_spaces(&from, &context, &spec.rules, 1), 1);
        for (m, n, k) in [(30, 72, 40), (31, 61, 47), (64, 128, 96)] {
            let to = generator(&product(m, n, k));
            for seed in 0..30 {
                let drawn = space.draw(&mut Rng::stream(7, seed), &mut Statistics::default());
                let Some(drawn) = drawn else { continue };
                let mut refusals = Statistics::default();
                let fitted = fit(&to, &drawn.trace, &mut refusals);
                assert!(fitted.is_some(), "{m}×{n}×{k}, seed {seed}: {refusals:?}\n{}", drawn.trace);
            }
        }
    }
}
