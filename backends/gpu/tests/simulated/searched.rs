//! Points of the design spaces: what they compute does not depend on the decisions.

use std::collections::BTreeMap;

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::{Rng, Step};
use tilewright_core::target::{GpuTarget, RunContext, Target, TargetKind};
use tilewright_core::tensor::AnyTensor;
use tilewright_gpu::emit;
use tilewright_search::candidate::{Candidate, Generator, Statistics};
use tilewright_search::space::design_spaces;
use tilewright_search::spec::SearchSpec;

use crate::assembler::assemble;
use crate::support::{Call, parse};

/// How many points of each kernel are drawn; `TILEWRIGHT_CASES` asks for more.
const CASES: usize = 12;

fn cases() -> usize {
    std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES)
}

/// The product of matrices, or of several.
fn matmul(dtype: &str, [b, m, n, k]: [i64; 4]) -> Program {
    let cast = if dtype == "f32" { "" } else { " as f32" };
    parse(&format!(
        "kernel matmul(in x: {dtype}[{b}, {m}, {k}], in y: {dtype}[{b}, {k}, {n}], out z: f32[{b}, {m}, {n}]) {{
  for b in 0..{b} {{ for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block z(vb: spatial {b} = b, vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ z[vb, vi, vj] = 0.0 }}
      z[vb, vi, vj] = z[vb, vi, vj] + x[vb, vi, vk]{cast} * y[vb, vk, vj]{cast}
    }}
  }} }} }} }}
}}"
    ))
}

/// A product with a bias and a lower bound.
fn dense(m: i64, n: i64, k: i64) -> Program {
    parse(&format!(
        "kernel dense(in x: f32[{m}, {k}], in w: f32[{n}, {k}], in b: f32[{n}], out y: f32[{m}, {n}]) {{
  buffer s: f32[{m}, {n}] global
  for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block s(vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ s[vi, vj] = 0.0 }}
      s[vi, vj] = s[vi, vj] + x[vi, vk] * w[vj, vk]
    }}
  }} }} }}
  for i in 0..{m} {{ for j in 0..{n} {{
    block y(vi: spatial {m} = i, vj: spatial {n} = j) {{ y[vi, vj] = max(s[vi, vj] + b[vj], 0.0) }}
  }} }}
}}"
    ))
}

/// A convolution of rows, with padding.
fn convolution(h: i64, w: i64, ci: i64, co: i64) -> Program {
    let (hp, wp) = (h + 2, w + 2);
    parse(&format!(
        "kernel conv(in x: f32[{h}, {w}, {ci}], in f: f32[3, 3, {ci}, {co}], out y: f32[{h}, {w}, {co}]) {{
  buffer p: f32[{hp}, {wp}, {ci}] global
  for i in 0..{hp} {{ for j in 0..{wp} {{ for c in 0..{ci} {{
    block p(vi: spatial {hp} = i, vj: spatial {wp} = j, vc: spatial {ci} = c) {{
      p[vi, vj, vc] = select((vi >= 1) & (vi <= {h}) & (vj >= 1) & (vj <= {w}), x[vi - 1, vj - 1, vc], 0.0)
    }}
  }} }} }}
  for i in 0..{h} {{ for j in 0..{w} {{ for o in 0..{co} {{ for a in 0..3 {{ for b in 0..3 {{ for c in 0..{ci} {{
    block y(vi: spatial {h} = i, vj: spatial {w} = j, vo: spatial {co} = o, va: reduce 3 = a, vb: reduce 3 = b, vc: reduce {ci} = c) {{
      init {{ y[vi, vj, vo] = 0.0 }}
      y[vi, vj, vo] = y[vi, vj, vo] + p[vi + va, vj + vb, vc] * f[va, vb, vc, vo]
    }}
  }} }} }} }} }} }}
}}"
    ))
}

/// A convolution of each channel on its own.
fn depthwise(h: i64, w: i64, c: i64) -> Program {
    let (ho, wo) = (h - 2, w - 2);
    parse(&format!(
        "kernel depthwise(in x: f32[{h}, {w}, {c}], in f: f32[3, 3, {c}], out y: f32[{ho}, {wo}, {c}]) {{
  for i in 0..{ho} {{ for j in 0..{wo} {{ for o in 0..{c} {{ for a in 0..3 {{ for b in 0..3 {{
    block y(vi: spatial {ho} = i, vj: spatial {wo} = j, vo: spatial {c} = o, va: reduce 3 = a, vb: reduce 3 = b) {{
      init {{ y[vi, vj, vo] = 0.0 }}
      y[vi, vj, vo] = y[vi, vj, vo] + x[vi + va, vj + vb, vo] * f[va, vb, vo]
    }}
  }} }} }} }} }}
}}"
    ))
}

/// Each row over the root of the sum of its squares.
fn norms(m: i64, n: i64) -> Program {
    parse(&format!(
        "kernel norms(in x: f32[{m}, {n}], out y: f32[{m}, {n}]) {{
  buffer s: f32[{m}] global
  for i in 0..{m} {{ for k in 0..{n} {{
    block s(vi: spatial {m} = i, vk: reduce {n} = k) {{
      init {{ s[vi] = 0.0 }}
      s[vi] = s[vi] + x[vi, vk] * x[vi, vk]
    }}
  }} }}
  for i in 0..{m} {{ for j in 0..{n} {{
    block y(vi: spatial {m} = i, vj: spatial {n} = j) {{ y[vi, vj] = x[vi, vj] / sqrt(s[vi]) }}
  }} }}
}}"
    ))
}

/// A drawn point, where it is legal.
fn draw(
    generator: &Generator,
    spaces: &[tilewright_core::schedule::Trace],
    rng: &mut Rng,
    statistics: &mut Statistics,
) -> Option<Candidate> {
    let space = rng.below(spaces.len());
    let (is_aligned, seed) = (rng.below(4) > 0, rng.next_u64());
    let mut own = Rng::new(seed);
    let decide = |_: usize, step: &Step| if is_aligned { generator.align(step, &mut own) } else { None };
    generator.generate(space, &spaces[space], seed, decide, statistics)
}

/// Draws points of a program's spaces and compares their kernels in the simulator with the interpreter bit by bit, and with the
/// definition.
pub(crate) fn check(program: &Program) {
    check_on(program, &GpuTarget::generic(), &Call::random(program, &[], 5), |_| true);
}

/// As [`check`] for a target and the arguments of a call, for the points that are `wanted`.
fn check_on(program: &Program, gpu: &GpuTarget, call: &Call, wanted: fn(&Candidate) -> bool) {
    let context = RunContext::from(Target::from(gpu.clone()));
    let spec = SearchSpec::built_in(TargetKind::Gpu).expect("a GPU can be searched");
    let spaces = design_spaces(program, &context, &spec.rules, 1);
    let generator = Generator::new(program.clone(), context.clone(), spec);
    let expected: Vec<AnyTensor> = call.interpreted(program);
    let mut rng = Rng::new(7);
    let mut statistics = Statistics::default();
    let (mut executed, mut refused) = (0, BTreeMap::<String, usize>::new());
    let cases = cases();
    for _ in 0..30 * cases {
        if executed >= cases {
            break;
        }
        let drawn = draw(&generator, &spaces, &mut rng, &mut statistics);
        let Some(candidate) = drawn.filter(wanted) else { continue };
        let flat = match lower(&candidate.program, &LowerOptions::of(&context.target)) {
            Ok(flat) => flat,
            Err(error) => {
                *refused.entry(error.to_string()).or_default() += 1;
                continue;
            }
        };
        if let Err(error) = emit(&flat, &GpuTarget::generic()) {
            *refused.entry(error.to_string()).or_default() += 1;
            continue;
        }
        executed += 1;
        call.compare(&flat);
        let found = call.interpreted(&flat);
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                found.all_close(expected, 1e-3, 1e-3),
                "{}\n{}\n{flat}",
                candidate.trace,
                candidate.program
            );
        }
    }
    let all = refused.values().sum::<usize>();
    println!("{}: {} spaces, {executed} executed, {statistics:?}, {refused:?}", program.name, spaces.len());
    assert!(executed >= cases, "{}: {executed} executed, {statistics:?} {refused:?}", program.name);
    assert!(all <= executed / 2, "many legal points cannot be compiled: {refused:?}");
}

#[test]
fn points_of_products() {
    for sizes in [[1, 64, 64, 32], [1, 37, 29, 17], [3, 16, 24, 12], [1, 1, 65, 40], [1, 1, 1, 1]] {
        check(&matmul("f32", sizes));
    }
    check(&matmul("f16", [2, 33, 48, 24]));
}

/// Whether tensor cores compute a part of a program.
fn is_tensorized(candidate: &Candidate) -> bool {
    candidate.trace.to_string().contains("tensorize")
}

#[test]
fn points_of_products_on_tensor_cores() {
    let gpu = tilewright_gpu::intrinsics::with_intrinsics(GpuTarget::generic());
    for (dtype, sizes) in [("f16", [1, 64, 32, 48]), ("bf16", [2, 32, 48, 32]), ("bf16", [1, 48, 24, 64])] {
        let program = matmul(dtype, sizes);
        check_on(&program, &gpu, &Call::of_small_integers(&program), is_tensorized);
    }
}

#[test]
fn points_of_products_with_an_epilogue() {
    check(&dense(48, 40, 36));
    check(&dense(17, 31, 13));
}

#[test]
fn points_of_convolutions() {
    check(&convolution(8, 8, 6, 16));
    check(&convolution(7, 5, 3, 9));
    check(&depthwise(10, 9, 12));
}

#[test]
fn points_of_norms() {
    check(&norms(6, 96));
    check(&norms(1, 131));
}

/// The way from a definition to an accepted kernel: a search by the draft model finds a schedule with tiles in shared memory and in
/// registers.
#[test]
fn a_large_product_gets_tiles_in_shared_memory_and_registers() {
    let program = matmul("f32", [1, 1024, 1024, 1024]);
    let gpu = GpuTarget::a100();
    let schedule = tilewright_search::schedule_by_default(&program, Target::from(gpu.clone()));
    let flat = lower(schedule.program(), &LowerOptions::of(schedule.target())).expect("it can be lowered");
    let code = emit(&flat, &gpu).expect("it can be emitted");
    let [launch] = &code.launches[..] else { panic!("{} kernels", code.launches.len()) };
    println!("{}", schedule.trace());
    println!("{launch:?}");
    for report in tilewright_search::gpu::features::report(schedule.program(), &gpu) {
        println!("{report}");
        assert!(report.coalescing > 0.9 && report.resident_blocks >= 1, "{report}");
    }
    assert!(launch.shared_bytes > 0, "{}", schedule.program());
    assert!(code.ptx.matches("fma.rn.f32").count() >= 16, "{}", code.ptx);
    assemble(&code.ptx);
}
