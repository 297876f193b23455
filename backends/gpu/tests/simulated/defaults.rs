//! Kernels by their default schedules compute what their definitions say.

use tilewright_core::program::Program;
use tilewright_core::target::Target;
use tilewright_core::tensor::AnyTensor;
use tilewright_gpu::Launch;
use tilewright_ptx_sim::{Module, Options, RemarkKind};
use tilewright_search::schedule_by_default;

use crate::assembler::assemble;
use crate::support::{Call, code_of, lowered, parse};
use crate::texts;

/// Runs a kernel by its default schedule: its results are close to those of the definition, and equal to those of the
/// interpreter on the same flat program.
fn check(program: &Program, dims: &[i64]) {
    let schedule = schedule_by_default(program, Target::generic_gpu());
    let flat = lowered(schedule.program());
    let call = Call::random(program, dims, 5);
    let code = call.compare(&flat);
    assemble(&code.ptx);
    let found = call.simulated(&flat, &code).tensors;
    let expected: Vec<AnyTensor> = call.interpreted(program);
    for (found, expected) in found.iter().zip(&expected) {
        assert!(found.all_close(expected, 1e-4, 1e-5), "{program}\n{}\n{flat}", schedule.program());
    }
}

#[test]
fn products_of_matrices() {
    for (m, n, k) in [(64, 64, 32), (1, 1, 1), (16, 16, 5), (67, 33, 17), (128, 64, 48), (3, 200, 7)] {
        check(&parse(&texts::matmul(m, n, k)), &[]);
    }
}

#[test]
fn rows_of_a_softmax() {
    for (m, n) in [(1, 1), (4, 128), (3, 97), (7, 1024), (2, 63)] {
        check(&parse(&texts::softmax(m, n)), &[]);
    }
}

#[test]
fn elements_of_symbolic_shapes() {
    let program = parse(texts::SYMBOLIC_ADD);
    for dims in [[0, 5], [5, 0], [1, 1], [7, 13], [30, 40]] {
        check(&program, &dims);
    }
}

#[test]
fn sums_of_all_elements_and_of_columns() {
    for len in [1, 32, 97, 4096] {
        check(&parse(&texts::sum(len)), &[]);
        check(&parse(&texts::columns(len)), &[]);
    }
}

#[test]
fn long_reductions_with_few_results_are_divided_among_blocks() {
    check(&parse(&texts::matmul(16, 24, 3000)), &[]);
    for program in [texts::sum(100_003), texts::sum(1 << 18)].map(|text| parse(&text)) {
        check(&program, &[]);
        let schedule = schedule_by_default(&program, Target::generic_gpu());
        let code = code_of(&lowered(schedule.program()));
        let blocks = |launch: &Launch| code.grid(launch, &[]).expect("a small grid").iter().product::<u32>();
        let most = code.launches.iter().map(blocks).max();
        assert!(most >= Some(8), "{}\n{:?}", schedule.program(), code.launches);
    }
}

#[test]
fn a_matrix_is_transposed() {
    for (m, n) in [(8, 8), (33, 65), (1, 7)] {
        check(&parse(&texts::transpose(m, n)), &[]);
    }
}

#[test]
fn a_transposition_accesses_whole_sectors() {
    let program = parse(&texts::transpose(512, 384));
    let schedule = schedule_by_default(&program, Target::generic_gpu());
    let flat = lowered(schedule.program());
    let code = code_of(&flat);
    let module = Module::parse(&code.ptx).unwrap_or_else(|error| panic!("{error}\n{}", code.ptx));
    let execution = Call::random(&program, &[], 5).execute(&flat, &code, &module, &Options::default());
    let [touched, needed] = execution.sectors;
    assert_eq!(touched, needed, "{}", schedule.program());
    let conflicts = execution.remarks.iter().filter(|remark| remark.kind == RemarkKind::BankConflict);
    assert_eq!(conflicts.count(), 0, "{:?}\n{}", execution.remarks, schedule.program());
}

/// The norm of all elements, by which each element is divided: a reduction with a single result, followed by another step.
fn divided_by_norm(dims: &str, index: &str, spatial: &str, len: i64) -> Program {
    parse(&format!(
        "kernel norm(in x: f32[{len}], out y: f32[{len}]) {{
  buffer s: f32[{dims}] global
  for i in 0..1 {{ for k in 0..{len} {{
    block s({spatial}vk: reduce {len} = k) {{
      init {{ s[{index}] = 0.0 }}
      s[{index}] = s[{index}] + x[vk] * x[vk]
    }}
  }} }}
  for j in 0..{len} {{
    block y(vj: spatial {len} = j) {{ y[vj] = x[vj] / sqrt(s[{zero}]) }}
  }}
}}",
        zero = if index.is_empty() { "" } else { "0" }
    ))
}

#[test]
fn a_single_result_that_another_step_uses() {
    for len in [1, 37, 64, 1147, 4096] {
        check(&divided_by_norm("1", "vi", "vi: spatial 1 = i, ", len), &[]);
        check(&divided_by_norm("", "", "", len), &[]);
    }
}
