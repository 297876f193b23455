//! Long reductions to few results: every thread has a part of its own.

use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::interp::{Interpreter, Options};
use tilewright_core::program::Program;
use tilewright_core::stmt::LoopKind;
use tilewright_core::target::{RunContext, Target};
use tilewright_core::tensor::AnyTensor;
use tilewright_search::schedule_by_default;

const THREADS: usize = 3;

/// Products of whole numbers, so that sums are exact in every order.
fn dot(results: i64, length: i64) -> Program {
    let text = format!(
        "kernel dot(in a: i32[{results}, {length}], in b: i32[{length}], out c: i32[{results}]) {{
  for i in 0..{results} {{
    for k in 0..{length} {{
      block c(vi: spatial {results} = i, vk: reduce {length} = k) {{
        init {{ c[vi] = 0i32 }}
        c[vi] = c[vi] + a[vi, vk] * b[vk]
      }}
    }}
  }}
}}
"
    );
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The iterations of parallel loops around the block that multiplies.
fn parts(scheduled: &Program) -> Option<i64> {
    let all = blocks(&scheduled.body);
    let partial = all.into_iter().find(|block| *block.name == *"c_partial")?;
    let path = loops_around(&scheduled.body, partial.id)?;
    let parallel = path.iter().find(|node| node.kind == LoopKind::Parallel)?;
    parallel.extent.as_constant()
}

#[test]
fn a_long_reduction_has_a_few_parts_for_each_thread() {
    let context = RunContext::from(Target::generic_cpu()).with_threads(THREADS);
    for (results, length) in [(1, 100_000), (1, 100_003), (2, 65_537)] {
        let program = dot(results, length);
        let scheduled = schedule_by_default(&program, context.clone()).program().clone();
        let parts = parts(&scheduled).unwrap_or_else(|| panic!("{results} × {length}:\n{scheduled}"));
        assert!(parts <= results * 4 * THREADS as i64, "{results} × {length}: {parts} parts\n{scheduled}");
        let tensor = |len: i64, seed: i64| -> Vec<i32> {
            (0..len).map(|i| ((i * 37 + seed) % 15 - 7) as i32).collect()
        };
        let shape = [results as usize, length as usize];
        let arguments = vec![
            AnyTensor::from_slice(&tensor(results * length, 1), &shape).expect("it fits"),
            AnyTensor::from_slice(&tensor(length, 5), &shape[1..]).expect("it fits"),
            AnyTensor::from_slice(&vec![0_i32; shape[0]], &shape[..1]).expect("it fits"),
        ];
        let run = |program: &Program| {
            let mut buffers = arguments.clone();
            let interpreter = Interpreter::new(program).expect("a whole program");
            interpreter.run(Options::default(), &[], &[], &mut buffers).expect("all places exist");
            buffers.pop().expect("the result")
        };
        assert_eq!(run(&scheduled).to_f64_vec(), run(&program).to_f64_vec(), "{results} × {length}");
    }
}

#[test]
fn a_short_reduction_stays_whole() {
    let context = RunContext::from(Target::generic_cpu()).with_threads(THREADS);
    let scheduled = schedule_by_default(&dot(1, 1000), context).program().clone();
    assert_eq!(parts(&scheduled), None, "{scheduled}");
}
