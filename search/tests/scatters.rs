//! Updates of elements that data choose: spread over threads where their order makes no difference.

use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::dtype::DType;
use tilewright_core::interp::{Interpreter, Options};
use tilewright_core::program::Program;
use tilewright_core::stmt::LoopKind;
use tilewright_core::target::{RunContext, Target};
use tilewright_core::tensor::AnyTensor;
use tilewright_search::schedule_by_default;

/// Elements of `h` that are updated by `update` with elements of `x`, in rows of two.
fn scatter(updates: i64, bins: i64, dtype: &str, update: &str) -> Program {
    let text = format!(
        "kernel scatter(in ids: i32[{updates}], in x: {dtype}[{updates}, 2], inout h: {dtype}[{bins}, 2]) {{
  for i in 0..{updates} {{
    for d in 0..2 {{
      block h(vi: ordered {updates} = i, vd: spatial 2 = d) {{
        h[bounded(ids[vi] as i64, 0..{bins}), vd] = {update}
      }}
    }}
  }}
}}
"
    );
    let element = format!("h[bounded(ids[vi] as i64, 0..{bins}), vd]");
    text.replace("ELEMENT", &element).parse().unwrap_or_else(|error| panic!("{error}"))
}

/// The default schedule, and whether its updates are spread over threads.
fn scheduled(program: &Program) -> (Program, bool) {
    let context = RunContext::from(Target::generic_cpu());
    assert_eq!(context.threads(), 4);
    let scheduled = schedule_by_default(program, context).program().clone();
    let is_spread = blocks(&scheduled.body).into_iter().any(|block| {
        let path = loops_around(&scheduled.body, block.id).expect("it is in the program");
        *block.name == *"h_private" && path.iter().any(|node| node.kind == LoopKind::Parallel)
    });
    (scheduled, is_spread)
}

#[test]
fn integers_are_updated_on_several_threads_with_the_same_result() {
    for update in ["ELEMENT + x[vi, vd]", "max(x[vi, vd], ELEMENT)", "ELEMENT * x[vi, vd]"] {
        // A prime number of updates: parts of them end early.
        let (updates, bins) = (20_011, 37);
        let program = scatter(updates, bins, "i32", update);
        let (scheduled, is_spread) = scheduled(&program);
        assert!(is_spread, "{scheduled}");
        let ids: Vec<i32> = (0..updates).map(|i| (i * i % bins) as i32).collect();
        let arguments = vec![
            AnyTensor::from_slice(&ids, &[ids.len()]).expect("it fits"),
            AnyTensor::random(DType::I32, &[ids.len(), 2], 1).expect("it fits"),
            AnyTensor::random(DType::I32, &[bins as usize, 2], 2).expect("it fits"),
        ];
        let run = |program: &Program| {
            let mut buffers = arguments.clone();
            let interpreter = Interpreter::new(program).expect("a whole program");
            interpreter.run(Options::default(), &[], &[], &mut buffers).expect("all places exist");
            buffers.pop()
        };
        assert_eq!(run(&scheduled), run(&program), "{update}");
    }
}

#[test]
fn other_updates_stay_in_order() {
    for (updates, bins, dtype, update, why) in [
        (100_003, 37, "f32", "ELEMENT + x[vi, vd]", "sums of floats depend on their order"),
        (100_003, 37, "i32", "ELEMENT * 2i32 + x[vi, vd]", "it is no sum"),
        (1_003, 37, "i32", "ELEMENT + x[vi, vd]", "there are few updates"),
        (100_003, 100_003, "i32", "ELEMENT + x[vi, vd]", "copies would take longer"),
    ] {
        let (scheduled, is_spread) = scheduled(&scatter(updates, bins, dtype, update));
        assert!(!is_spread, "{why}:\n{scheduled}");
    }
}
