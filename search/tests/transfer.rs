//! Records of one kernel serve its variants: an epilogue, another batch.

use std::sync::Arc;

use tilewright_core::analysis::scope::blocks;
use tilewright_core::annotation::VECTORIZE;
use tilewright_core::interp;
use tilewright_core::program::Program;
use tilewright_core::schedule::Rng;
use tilewright_core::stmt::Block;
use tilewright_core::target::Target;
use tilewright_core::target::TargetKind;
use tilewright_core::tensor::AnyTensor;
use tilewright_search::candidate::{Candidate, Generator, Statistics};
use tilewright_search::default_schedule::default_candidate;
use tilewright_search::space::design_spaces;
use tilewright_search::spec::SearchSpec;
use tilewright_search::strategy::SearchSpace;
use tilewright_search::transfer::anchored;

/// A padded convolution, with bias and ReLU or without.
fn convolution(batch: i64, has_epilogue: bool) -> Program {
    let (result, parameters, last) = match has_epilogue {
        false => ("out y", "", String::new()),
        true => (
            "out z",
            ", in bias: f32[16]",
            format!(
                r#"
  for n in 0..{batch} {{
    for h in 0..12 {{
      for v in 0..12 {{
        for co in 0..16 {{
          block z(vn: spatial {batch} = n, vh: spatial 12 = h, vv: spatial 12 = v, vco: spatial 16 = co) {{
            z[vn, vh, vv, vco] = max(y[vn, vh, vv, vco] + bias[vco], 0.0)
          }}
        }}
      }}
    }}
  }}"#
            ),
        ),
    };
    let intermediate =
        if has_epilogue { format!("buffer y: f32[{batch}, 12, 12, 16] global") } else { String::new() };
    let text = format!(
        r#"
kernel conv2d(in x: f32[{batch}, 12, 12, 8], in w: f32[3, 3, 8, 16]{parameters}, {result}: f32[{batch}, 12, 12, 16]) {{
  buffer padded: f32[{batch}, 14, 14, 8] global
  {intermediate}
  for n in 0..{batch} {{
    for h in 0..14 {{
      for v in 0..14 {{
        for c in 0..8 {{
          block padded(vn: spatial {batch} = n, vh: spatial 14 = h, vv: spatial 14 = v, vc: spatial 8 = c) {{
            padded[vn, vh, vv, vc] = select((vh >= 1) & (vh <= 12) & ((vv >= 1) & (vv <= 12)), x[vn, vh - 1, vv - 1, vc], 0.0)
          }}
        }}
      }}
    }}
  }}
  for n in 0..{batch} {{
    for h in 0..12 {{
      for v in 0..12 {{
        for co in 0..16 {{
          for kh in 0..3 {{
            for kw in 0..3 {{
              for ci in 0..8 {{
                block y(
                  vn: spatial {batch} = n,
                  vh: spatial 12 = h,
                  vv: spatial 12 = v,
                  vco: spatial 16 = co,
                  vkh: reduce 3 = kh,
                  vkw: reduce 3 = kw,
                  vci: reduce 8 = ci,
                ) {{
                  init {{ y[vn, vh, vv, vco] = 0.0f32 }}
                  y[vn, vh, vv, vco] = y[vn, vh, vv, vco] + padded[vn, vh + vkh, vv + vkw, vci] * w[vkh, vkw, vci, vco]
                }}
              }}
            }}
          }}
        }}
      }}
    }}
  }}{last}
}}
"#
    );
    text.trim().parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Small integers, so that every order of additions gives the same sum.
fn arguments(program: &Program) -> Vec<AnyTensor> {
    let parameters = program.buffer_params().map(|(buffer, _)| program.buffer(buffer));
    parameters
        .enumerate()
        .map(|(number, buffer)| {
            let shape: Vec<usize> = buffer
                .shape
                .iter()
                .map(|extent| extent.as_constant().and_then(|extent| usize::try_from(extent).ok()))
                .map(|extent| extent.expect("constant extents"))
                .collect();
            let count: usize = shape.iter().product();
            let values: Vec<f64> =
                (0..count).map(|flat| ((flat * 7 + number * 3) % 11) as f64 - 5.0).collect();
            AnyTensor::from_f64s(buffer.dtype, &values, &shape).expect("a small tensor")
        })
        .collect()
}

fn results(program: &Program) -> Vec<Vec<f64>> {
    let mut tensors = arguments(program);
    interp::run(program, &[], &[], &mut tensors).unwrap_or_else(|error| panic!("{error}\n{program}"));
    tensors.iter().map(AnyTensor::to_f64_vec).collect()
}

/// Tunes nothing: the default schedule of one program is the anchor for the other.
fn assert_served(from: &Program, to: &Program) {
    let target = Arc::new(Target::generic_cpu());
    let built_in = SearchSpec::built_in(TargetKind::Cpu).expect("a CPU can be searched");
    let anchor = default_candidate(from, &target, &built_in).expect("some candidate is legal");
    let traces = anchored(&anchor.trace, to, &target, &built_in, 1);
    assert!(!traces.is_empty(), "nothing of the anchor applies\n{}", anchor.trace);
    let generator = Generator::new(to.clone(), target.clone(), built_in.clone());
    let space = SearchSpace::new(generator, design_spaces(to, &target, &built_in.rules, 1), 1);
    let mut refusals = Statistics::default();
    let made: Vec<Candidate> = traces.iter().filter_map(|trace| space.replay(trace, &mut refusals)).collect();
    assert!(!made.is_empty(), "{refusals:?}\n{}", traces[0]);
    let expected = results(to);
    for candidate in &made {
        assert_eq!(results(&candidate.program), expected, "{}", candidate.trace);
    }
    let prior = |candidate: &Candidate| candidate.features.prior();
    let best = made.iter().map(prior).fold(0.0, f32::max);
    let mut drawn: Vec<f32> = (0..60)
        .filter_map(|seed| space.draw(&mut Rng::stream(3, seed), &mut Statistics::default()))
        .map(|candidate| prior(&candidate))
        .collect();
    drawn.sort_by(f32::total_cmp);
    let median = drawn[drawn.len() / 2];
    assert!(best > median, "the anchored candidate has {best}, the median random one {median}");
}

#[test]
fn a_convolution_serves_the_one_with_an_epilogue() {
    assert_served(&convolution(1, false), &convolution(1, true));
}

#[test]
fn a_convolution_with_an_epilogue_serves_the_one_without() {
    assert_served(&convolution(1, true), &convolution(1, false));
}

#[test]
fn one_image_serves_eight() {
    assert_served(&convolution(1, false), &convolution(8, false));
    assert_served(&convolution(8, true), &convolution(1, true));
}

#[test]
fn what_has_nothing_in_common_gives_nothing() {
    let text = r#"
kernel scale(in x: f32[64, 32], out c: f32[64, 32]) {
  for i in 0..64 {
    for j in 0..32 {
      block c(vi: spatial 64 = i, vj: spatial 32 = j) {
        c[vi, vj] = x[vi, vj] * 2.0
      }
    }
  }
}
"#;
    let other: Program = text.trim().parse().unwrap_or_else(|error| panic!("{error}"));
    let target = Arc::new(Target::generic_cpu());
    let built_in = SearchSpec::built_in(TargetKind::Cpu).expect("a CPU can be searched");
    let anchor =
        default_candidate(&convolution(1, false), &target, &built_in).expect("some candidate is legal");
    assert!(anchored(&anchor.trace, &other, &target, &built_in, 1).is_empty());
}

#[test]
fn a_nest_whose_epilogue_had_the_notes_gets_its_own() {
    let target = Arc::new(Target::generic_cpu());
    let built_in = SearchSpec::built_in(TargetKind::Cpu).expect("a CPU can be searched");
    let space_of = |program: Program| {
        let spaces = design_spaces(&program, &target, &built_in.rules, 1);
        SearchSpace::new(Generator::new(program, target.clone(), built_in.clone()), spaces, 1)
    };
    let (from, plain) = (space_of(convolution(1, true)), convolution(1, false));
    let to = space_of(plain.clone());
    let has_annotations = |program: &Program, name: &str| {
        let named = |block: &&Arc<Block>| &*block.name == name;
        blocks(&program.body).into_iter().find(named).is_some_and(|block| VECTORIZE.is_in(&block.annotations))
    };
    let mut fused = 0;
    for seed in 0..40 {
        let Some(anchor) = from.draw(&mut Rng::stream(5, seed), &mut Statistics::default()) else { continue };
        if has_annotations(&anchor.program, "y") || !has_annotations(&anchor.program, "z") {
            continue;
        }
        for trace in anchored(&anchor.trace, &plain, &target, &built_in, 1) {
            let Some(made) = to.replay(&trace, &mut Statistics::default()) else { continue };
            assert!(has_annotations(&made.program, "y"), "seed {seed}\n{trace}");
            fused += 1;
        }
    }
    assert!(fused > 0, "no candidate had its epilogue in the nest of the convolution");
}
