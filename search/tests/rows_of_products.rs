//! Chained products are computed together for a few rows, and give what they give one after the other.

use tilewright_core::interp;
use tilewright_core::lower::lower_kernel;
use tilewright_core::program::Program;
use tilewright_core::target::{CpuTarget, RunContext, TargetKind};
use tilewright_core::tensor::AnyTensor;
use tilewright_search::candidate::{Generator, Statistics};
use tilewright_search::space::generate_design_spaces;
use tilewright_search::spec::SearchSpec;

/// Attention of `rows` queries to `columns` keys, with the index of queries last in all intermediates.
fn attention(rows: usize, columns: usize, depth: usize, width: usize) -> String {
    format!(
        "kernel attention(in q: f32[2, {rows}, {depth}], in k: f32[2, {columns}, {depth}], in v: f32[2, {columns}, {width}], in mask: f32[{rows}, {columns}], out o: f32[2, {rows}, {width}]) {{
  buffer turned: f32[2, {depth}, {rows}] global
  buffer hidden: f32[{columns}, {rows}] global
  buffer s: f32[2, {columns}, {rows}] global
  buffer most: f32[2, {rows}] global
  buffer e: f32[2, {columns}, {rows}] global
  buffer total: f32[2, {rows}] global
  buffer x: f32[2, {width}, {rows}] global
  for h in 0..2 {{ for d in 0..{depth} {{ for r in 0..{rows} {{
    block turned(vh: spatial 2 = h, vd: spatial {depth} = d, vr: spatial {rows} = r) {{ turned[vh, vd, vr] = q[vh, vr, vd] * 0.5f32 }}
  }} }} }}
  for h in 0..2 {{ for c in 0..{columns} {{ for r in 0..{rows} {{ for d in 0..{depth} {{
    block s(vh: spatial 2 = h, vc: spatial {columns} = c, vr: spatial {rows} = r, vd: reduce {depth} = d) {{
      init {{ s[vh, vc, vr] = 0.0f32 }}
      s[vh, vc, vr] = s[vh, vc, vr] + k[vh, vc, vd] * turned[vh, vd, vr]
    }}
  }} }} }} }}
  for c in 0..{columns} {{ for r in 0..{rows} {{
    block hidden(vc: spatial {columns} = c, vr: spatial {rows} = r) {{ hidden[vc, vr] = mask[vr, vc] }}
  }} }}
  for h in 0..2 {{ for c in 0..{columns} {{ for r in 0..{rows} {{
    block most(vh: spatial 2 = h, vc: reduce {columns} = c, vr: spatial {rows} = r) {{
      init {{ most[vh, vr] = f32::NEG_INFINITY }}
      most[vh, vr] = max(most[vh, vr], s[vh, vc, vr] + hidden[vc, vr])
    }}
  }} }} }}
  for h in 0..2 {{ for c in 0..{columns} {{ for r in 0..{rows} {{
    block e(vh: spatial 2 = h, vc: spatial {columns} = c, vr: spatial {rows} = r) {{
      e[vh, vc, vr] = exp(s[vh, vc, vr] + hidden[vc, vr] - most[vh, vr])
    }}
  }} }} }}
  for h in 0..2 {{ for c in 0..{columns} {{ for r in 0..{rows} {{
    block total(vh: spatial 2 = h, vc: reduce {columns} = c, vr: spatial {rows} = r) {{
      init {{ total[vh, vr] = 0.0f32 }}
      total[vh, vr] = total[vh, vr] + e[vh, vc, vr]
    }}
  }} }} }}
  for h in 0..2 {{ for w in 0..{width} {{ for r in 0..{rows} {{ for c in 0..{columns} {{
    block x(vh: spatial 2 = h, vw: spatial {width} = w, vr: spatial {rows} = r, vc: reduce {columns} = c) {{
      init {{ x[vh, vw, vr] = 0.0f32 }}
      x[vh, vw, vr] = x[vh, vw, vr] + v[vh, vc, vw] * e[vh, vc, vr]
    }}
  }} }} }} }}
  for h in 0..2 {{ for r in 0..{rows} {{ for w in 0..{width} {{
    block o(vh: spatial 2 = h, vr: spatial {rows} = r, vw: spatial {width} = w) {{ o[vh, vr, vw] = x[vh, vw, vr] / total[vh, vr] }}
  }} }} }}
}}
"
    )
}

/// The results of a program for inputs whose elements differ.
fn results(program: &Program) -> Vec<f64> {
    let mut tensors: Vec<AnyTensor> = program
        .buffer_params()
        .enumerate()
        .map(|(parameter, (buffer, _))| {
            let buffer = program.buffer(buffer);
            let shape: Vec<usize> =
                buffer.shape.iter().map(|extent| extent.as_constant().unwrap() as usize).collect();
            let number = |place: usize| ((place * 37 + parameter * 11) % 61) as f64 / 20.0 - 1.5;
            let numbers: Vec<f64> = (0..shape.iter().product()).map(number).collect();
            AnyTensor::from_f64s(buffer.dtype, &numbers, &shape).unwrap()
        })
        .collect();
    interp::run(program, &[], &[], &mut tensors).unwrap_or_else(|error| panic!("{error}\n{program}"));
    tensors.last().unwrap().to_f64_vec()
}

#[test]
fn steps_of_a_few_rows_stand_in_one_loop() {
    for [rows, columns, depth, width] in [[20, 9, 5, 6], [16, 3, 4, 8], [7, 11, 3, 5]] {
        let program: Program =
            attention(rows, columns, depth, width).parse().unwrap_or_else(|error| panic!("{error}"));
        let context = RunContext::from(CpuTarget::generic());
        let spec = SearchSpec::built_in(TargetKind::Cpu).unwrap();
        let spaces = generate_design_spaces(&program, context.clone(), &spec.rules, 0);
        let joined =
            spaces.spaces.iter().zip(&spaces.rules).filter(|(_, rules)| rules.contains(&"rows_of_products"));
        let joined: Vec<_> = joined.map(|(space, _)| space).collect();
        assert!(!joined.is_empty(), "{rows} queries");
        let expected = results(&program);
        let generator = Generator::new(program.clone(), context.clone(), spec);
        let mut made = 0;
        for seed in 0..12 {
            let space = joined[seed as usize % joined.len()];
            let Some(candidate) = generator.generate(0, space, seed, |_, _| None, &mut Statistics::default())
            else {
                continue;
            };
            made += 1;
            // All but the mask, which has no heads, is computed in one loop nest.
            let nests = candidate
                .program
                .to_string()
                .lines()
                .filter(|line| line.starts_with("  ") && line.contains("for ") && !line.starts_with("   "))
                .count();
            assert!(nests <= 2, "{}", candidate.program);
            let flat = lower_kernel(&candidate.program, &context.target).unwrap().main;
            for (found, expected) in results(&flat).into_iter().zip(&expected) {
                assert!(
                    (found - expected).abs() <= 1e-5 * (1.0 + expected.abs()),
                    "{found} and {expected}\n{}",
                    candidate.trace
                );
            }
        }
        assert!(made > 3, "{made} of 12 candidates are legal");
    }
}
