//! Pipelines whose first stage copies asynchronously: the interpreter finds each wait, group and barrier that is missing.

use tilewright_core::dtype::DType;
use tilewright_core::interp::{InterpError, Interpreter, Options};
use tilewright_core::lower::{LowerError, LowerOptions, lower, lower_to_loops};
use tilewright_core::program::Program;
use tilewright_core::stmt::{Copies, Stmt};
use tilewright_core::target::Target;
use tilewright_core::tensor::AnyTensor;
use tilewright_core::visit::for_each_stmt;

const THREADS: usize = 4;

/// Rows that are copied to shared memory and read in reverse, in a loop of so many iterations.
fn reversed(stages: &str, iterations: &str, value: &str) -> Program {
    let text = format!(
        "kernel k({}in x: f32[{iterations}*4], out y: f32[{iterations}, 4]) {{
  buffer s: f32[{iterations}, 4] shared
  {stages}
  for k in 0..{iterations} {{
    bound thread_x for t in 0..4 {{
      block s(vk: spatial {iterations} = k, vt: spatial 4 = t) {{ s[vk, vt] = {value} }}
    }}
    bound thread_x for u in 0..4 {{
      block y(wk: spatial {iterations} = k, wt: spatial 4 = u) {{ y[wk, wt] = s[wk, 3 - wt] + 1.0 }}
    }}
  }}
}}",
        if iterations == "N" { "N, " } else { "" }
    );
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn annotations(last: usize) -> String {
    format!(
        "@software_pipeline_async_stages [0]
  @software_pipeline_order [0, 1]
  @software_pipeline_stage [0, {last}]"
    )
}

fn options() -> LowerOptions {
    LowerOptions::of(&Target::generic_gpu())
}

fn run(program: &Program, iterations: usize) -> Result<Vec<f64>, InterpError> {
    let dims: Vec<i64> = program.dims().map(|_| iterations as i64).collect();
    let input: Vec<f64> = (0..iterations * THREADS).map(|number| (number * number % 31) as f64).collect();
    let mut results = Vec::new();
    for seed in [None, Some(1), Some(2)] {
        let mut tensors = [
            AnyTensor::from_f64s(DType::F32, &input, &[iterations * THREADS]).unwrap(),
            AnyTensor::zeros(DType::F32, &[iterations, THREADS]).unwrap(),
        ];
        let options = Options { parallel_order_seed: seed };
        Interpreter::new(program)?.run(options, &dims, &[], &mut tensors)?;
        results.push(tensors[1].to_f64_vec());
    }
    assert!(results.iter().all(|result| *result == results[0]), "the order of threads shows\n{program}");
    Ok(results.remove(0))
}

fn count(program: &Program, is_counted: impl Fn(&Stmt) -> bool) -> usize {
    let mut count = 0;
    for_each_stmt(&program.body, &mut |stmt| count += usize::from(is_counted(stmt)));
    count
}

/// The program without the statement of a number among those of a kind.
fn without(program: &Program, number: usize, is_counted: &impl Fn(&Stmt) -> bool) -> Program {
    fn remove(stmt: &mut Stmt, left: &mut usize, is_counted: &impl Fn(&Stmt) -> bool) {
        if is_counted(stmt) {
            if *left == 0 {
                *stmt = Stmt::nothing();
            }
            *left = left.wrapping_sub(1);
            return;
        }
        stmt.children_mut().into_iter().for_each(|child| remove(child, left, is_counted));
    }
    let mut program = program.clone();
    remove(&mut program.body, &mut { number }, is_counted);
    program
}

#[test]
fn copies_arrive_before_they_are_read_with_one_barrier_for_each_step() {
    for last in 1..4 {
        for iterations in [2, 3, 4, 5, 9] {
            for size in [iterations.to_string(), "N".to_owned()] {
                let program = reversed(&annotations(last), &size, "x[vk*4 + vt]");
                let expected = run(&program, iterations).unwrap_or_else(|error| panic!("{error}\n{program}"));
                for lower in [lower_to_loops, lower] {
                    let lowered =
                        lower(&program, &options()).unwrap_or_else(|error| panic!("{error}\n{program}"));
                    let found = run(&lowered, iterations);
                    assert_eq!(found.as_ref(), Ok(&expected), "{program}\n{lowered}");
                    let steps = count(&lowered, |stmt| matches!(stmt, Stmt::Copies(Copies::Wait(_))));
                    let barriers = count(&lowered, |stmt| matches!(stmt, Stmt::Barrier));
                    assert_eq!(steps, barriers, "a barrier for each wait\n{lowered}");
                    let copies =
                        count(&lowered, |stmt| matches!(stmt, Stmt::Store(store) if store.is_async()));
                    assert!(copies > 0, "{lowered}");
                }
            }
        }
    }
}

#[test]
fn each_wait_group_and_barrier_is_needed() {
    type IsCounted = fn(&Stmt) -> bool;
    let kinds: [(&str, IsCounted); 3] = [
        ("wait", |stmt| matches!(stmt, Stmt::Copies(Copies::Wait(_)))),
        ("group", |stmt| matches!(stmt, Stmt::Copies(Copies::Commit))),
        ("barrier", |stmt| matches!(stmt, Stmt::Barrier)),
    ];
    for last in 1..4 {
        let program = reversed(&annotations(last), "9", "x[vk*4 + vt]");
        let lowered = lower(&program, &options()).unwrap();
        for (name, is_counted) in kinds {
            let found = count(&lowered, is_counted);
            assert!(found > last, "{found} of {name}\n{lowered}");
            for number in 0..found {
                let mutant = without(&lowered, number, &is_counted);
                let outcome = run(&mutant, 9);
                let is_noticed = matches!(
                    outcome,
                    Err(InterpError::UnderWay { .. }
                        | InterpError::Race { .. }
                        | InterpError::Undefined { .. })
                );
                assert!(is_noticed, "{name} {number} of {last} stages: {outcome:?}\n{mutant}");
            }
        }
    }
}

#[test]
fn padding_moves_and_other_values_do_not() {
    let padded = "select(vk*4 + vt < 17, x[vk*4 + vt], 0.0)";
    for (value, is_async) in
        [(padded, true), ("x[vk*4 + vt] * 2.0", false), ("select(vk < 3, x[vk*4 + vt], 1.0)", false)]
    {
        let program = reversed(&annotations(2), "5", value);
        let lowered = lower(&program, &options()).unwrap();
        assert_eq!(run(&lowered, 5), run(&program, 5), "{lowered}");
        let stores = count(&lowered, |stmt| matches!(stmt, Stmt::Store(store) if store.is_async()));
        assert_eq!(stores > 0, is_async, "{lowered}");
        let waits = count(&lowered, |stmt| matches!(stmt, Stmt::Copies(_)));
        assert_eq!(waits > 0, is_async, "{lowered}");
    }
}

#[test]
fn copies_are_awaited_in_a_later_stage() {
    let stages = "@software_pipeline_async_stages [0]
  @software_pipeline_order [0, 1]
  @software_pipeline_stage [0, 0]";
    let program = reversed(stages, "5", "x[vk*4 + vt]");
    let Err(LowerError::Pipeline { problem, .. }) = lower(&program, &options()) else {
        panic!("it was lowered\n{program}")
    };
    assert!(problem.contains("give the latter a larger stage"), "{problem}");
    let text = program.to_string().replace("[0]", "0");
    assert!(text.parse::<Program>().is_ok_and(|program| lower(&program, &options()).is_err()));
}
