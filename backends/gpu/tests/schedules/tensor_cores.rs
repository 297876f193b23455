//! Products on tensor cores, of every size and as convolutions: points of the design spaces that the search makes.

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::{GpuTarget, RunContext, Target};
use tilewright_core::tensor::AnyTensor;
use tilewright_gpu::intrinsics::with_intrinsics;
use tilewright_search::candidate::Candidate;
use tilewright_search::schedule_by_default;

use crate::assembler::assemble;
use crate::points::draw_points;
use crate::support::{Call, parse};

/// How many points of each kernel are executed; `TILEWRIGHT_CASES` asks for more.
const CASES: usize = 6;

/// The types of factors and of sums that tensor cores multiply, with a zero.
const KINDS: [[&str; 3]; 4] =
    [["f16", "f32", "0.0"], ["bf16", "f32", "0.0"], ["i8", "i32", "0i32"], ["u8", "i32", "0i32"]];

/// Factors that may be rounded to `tf32`.
const FLOATS: [&str; 3] = ["f32", "f32", "0.0"];

/// The product of matrices, or of several; the second one may have its columns as rows.
pub(crate) fn product([factor, sum, zero]: [&str; 3], sizes: [i64; 4], is_transposed: bool) -> Program {
    product_of([factor, factor], [sum, zero], sizes, is_transposed)
}

/// The same of factors of two types.
fn product_of(
    [left, right]: [&str; 2],
    [sum, zero]: [&str; 2],
    [b, m, n, k]: [i64; 4],
    is_transposed: bool,
) -> Program {
    let (accuracy, as_sum) =
        if left == sum { (" accuracy 0.001", String::new()) } else { ("", format!(" as {sum}")) };
    let (second, place) =
        if is_transposed { (format!("{n}, {k}"), "vj, vk") } else { (format!("{k}, {n}"), "vk, vj") };
    parse(&format!(
        "kernel product(in x: {left}[{b}, {m}, {k}], in y: {right}[{b}, {second}], out z: {sum}[{b}, {m}, {n}]){accuracy} {{
  for b in 0..{b} {{ for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block z(vb: spatial {b} = b, vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ z[vb, vi, vj] = {zero} }}
      z[vb, vi, vj] = z[vb, vi, vj] + x[vb, vi, vk]{as_sum} * y[vb, {place}]{as_sum}
    }}
  }} }} }} }}
}}"
    ))
}

/// A product of `f16` with a bias and a lower bound.
fn dense([m, n, k]: [i64; 3]) -> Program {
    parse(&format!(
        "kernel dense(in x: f16[{m}, {k}], in w: f16[{n}, {k}], in b: f32[{n}], out y: f32[{m}, {n}]) {{
  buffer s: f32[{m}, {n}] global
  for i in 0..{m} {{ for j in 0..{n} {{ for k in 0..{k} {{
    block s(vi: spatial {m} = i, vj: spatial {n} = j, vk: reduce {k} = k) {{
      init {{ s[vi, vj] = 0.0 }}
      s[vi, vj] = s[vi, vj] + x[vi, vk] as f32 * w[vj, vk] as f32
    }}
  }} }} }}
  for i in 0..{m} {{ for j in 0..{n} {{
    block y(vi: spatial {m} = i, vj: spatial {n} = j) {{ y[vi, vj] = max(s[vi, vj] + b[vj], 0.0) }}
  }} }}
}}"
    ))
}

/// A convolution of images with padding and a stride, and a lower bound of the results.
fn convolution(factor: &str, [n, h, w, ci, co]: [i64; 5], stride: i64) -> Program {
    let (sum, zero) = if factor == "i8" { ("i32", "0i32") } else { ("f32", "0.0") };
    let none = if factor == "i8" { "0i8" } else { "0.0f16" };
    let (hp, wp) = (h + 2, w + 2);
    let (ho, wo) = ((h - 1) / stride + 1, (w - 1) / stride + 1);
    parse(&format!(
        "kernel conv(in x: {factor}[{n}, {h}, {w}, {ci}], in f: {factor}[3, 3, {ci}, {co}], out y: {sum}[{n}, {ho}, {wo}, {co}]) {{
  buffer p: {factor}[{n}, {hp}, {wp}, {ci}] global
  buffer s: {sum}[{n}, {ho}, {wo}, {co}] global
  for n in 0..{n} {{ for i in 0..{hp} {{ for j in 0..{wp} {{ for c in 0..{ci} {{
    block p(vn: spatial {n} = n, vi: spatial {hp} = i, vj: spatial {wp} = j, vc: spatial {ci} = c) {{
      p[vn, vi, vj, vc] = select((vi >= 1) & (vi <= {h}) & (vj >= 1) & (vj <= {w}), x[vn, vi - 1, vj - 1, vc], {none})
    }}
  }} }} }} }}
  for n in 0..{n} {{ for i in 0..{ho} {{ for j in 0..{wo} {{ for o in 0..{co} {{ for a in 0..3 {{ for b in 0..3 {{ for c in 0..{ci} {{
    block s(vn: spatial {n} = n, vi: spatial {ho} = i, vj: spatial {wo} = j, vo: spatial {co} = o, va: reduce 3 = a, vb: reduce 3 = b, vc: reduce {ci} = c) {{
      init {{ s[vn, vi, vj, vo] = {zero} }}
      s[vn, vi, vj, vo] = s[vn, vi, vj, vo] + p[vn, {stride}*vi + va, {stride}*vj + vb, vc] as {sum} * f[va, vb, vc, vo] as {sum}
    }}
  }} }} }} }} }} }} }}
  for n in 0..{n} {{ for i in 0..{ho} {{ for j in 0..{wo} {{ for o in 0..{co} {{
    block y(vn: spatial {n} = n, vi: spatial {ho} = i, vj: spatial {wo} = j, vo: spatial {co} = o) {{
      y[vn, vi, vj, vo] = max(s[vn, vi, vj, vo], {zero})
    }}
  }} }} }} }}
}}"
    ))
}

fn context() -> RunContext {
    RunContext::from(Target::from(with_intrinsics(GpuTarget::generic())))
}

fn assert_equal(program: &Program, found: &[AnyTensor], expected: &[AnyTensor], trace: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.bytes(), expected.bytes(), "{trace}\n{program}");
    }
}

/// Executes points of the design spaces of a program in which tensor cores compute a part.
fn check_points(program: &Program) {
    let context = context();
    let call = Call::of_small_integers(program);
    let expected = call.interpreted(program);
    let mut is_first = true;
    let has_tensor_cores = |space: &Trace| space.to_string().contains("auto_tensorize");
    let check = |Candidate { program: scheduled, trace, .. }: &Candidate| {
        let flat = lower(scheduled, &LowerOptions::of(&context.target));
        let flat = flat.unwrap_or_else(|error| panic!("{error}\n{trace}\n{scheduled}"));
        let code = call.compare(&flat);
        assert!(code.ptx.contains("mma.sync"), "{trace}\n{}", code.ptx);
        if std::mem::take(&mut is_first) {
            assemble(&code.ptx);
        }
        assert_equal(scheduled, &call.interpreted(&flat), &expected, &trace.to_string());
    };
    draw_points(program, &context, has_tensor_cores, CASES, 3, check);
}

/// Checks that tensor cores compute a program by its default schedule, whose kernels the assembler accepts without spilled registers.
fn check_default(program: &Program) {
    let context = context();
    let schedule = schedule_by_default(program, context.clone());
    let flat = lower(schedule.program(), &LowerOptions::of(&context.target)).expect("it can be lowered");
    let call = Call::of_small_integers(program);
    let code = call.compare(&flat);
    assert!(code.ptx.contains("mma.sync"), "{}", schedule.program());
    assert_equal(
        schedule.program(),
        &call.interpreted(&flat),
        &call.interpreted(program),
        &schedule.trace().to_string(),
    );
    assemble(&code.ptx);
}

#[test]
fn products_of_odd_sizes() {
    for (kind, sizes) in
        KINDS.into_iter().zip([[1, 37, 29, 17], [2, 16, 9, 31], [1, 67, 5, 33], [3, 9, 7, 21]])
    {
        for is_transposed in [false, true] {
            check_points(&product(kind, sizes, is_transposed));
        }
    }
}

#[test]
fn products_of_sizes_that_tiles_divide() {
    check_points(&product(KINDS[0], [1, 64, 48, 64], false));
    check_points(&product(KINDS[2], [2, 32, 64, 64], true));
}

#[test]
fn products_with_an_epilogue() {
    for sizes in [[64, 32, 48], [33, 17, 19], [5, 130, 64]] {
        check_points(&dense(sizes));
    }
}

#[test]
fn convolutions_as_products() {
    check_points(&convolution("f16", [1, 8, 8, 16, 16], 1));
    check_points(&convolution("f16", [2, 7, 5, 3, 9], 1));
}

#[test]
fn convolutions_with_a_stride() {
    check_points(&convolution("f16", [1, 16, 16, 16, 16], 2));
    check_points(&convolution("f16", [2, 9, 7, 5, 11], 3));
    check_default(&convolution("f16", [1, 28, 28, 32, 64], 2));
}

#[test]
fn factors_that_accuracy_lets_round() {
    for is_transposed in [false, true] {
        check_points(&product(FLOATS, [1, 64, 48, 64], is_transposed));
        check_points(&product(FLOATS, [2, 37, 19, 21], is_transposed));
        check_default(&product(FLOATS, [1, 256, 192, 128], is_transposed));
    }
}

#[test]
fn bytes_of_different_signs() {
    for factors in [["u8", "i8"], ["i8", "u8"]] {
        check_points(&product_of(factors, ["i32", "0i32"], [1, 64, 48, 64], true));
        check_points(&product_of(factors, ["i32", "0i32"], [2, 37, 19, 21], false));
    }
}

#[test]
fn default_schedules_of_products() {
    for kind in KINDS {
        check_default(&product(kind, [1, 256, 256, 128], kind[0] == "i8"));
    }
    check_default(&product(KINDS[1], [1, 201, 163, 117], true));
    check_default(&product(KINDS[2], [3, 129, 67, 95], false));
    check_default(&dense([192, 160, 128]));
}

#[test]
fn default_schedules_of_convolutions() {
    check_default(&convolution("f16", [1, 14, 14, 32, 32], 1));
    check_default(&convolution("i8", [1, 27, 25, 40, 72], 1));
}
