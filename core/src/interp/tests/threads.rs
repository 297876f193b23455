//! Threads of a block and barriers.

use super::{parse, tensor, zeros};
use crate::dtype::DType;
use crate::interp::{InterpError, Interpreter, Options};
use crate::tensor::AnyTensor;

/// Runs a kernel from four numbers to four numbers, with threads in several orders.
fn run(body: &str) -> Result<Vec<f64>, InterpError> {
    let text = format!(
        "kernel k(in x: f32[4], out y: f32[4]) {{
  buffer s: f32[4] shared
  buffer r: f32[1] local
  alloc s {{
    {body}
  }}
}}"
    );
    let program = parse(&text);
    let mut results = Vec::new();
    for seed in [None, Some(1), Some(2), Some(3)] {
        let mut tensors: Vec<AnyTensor> =
            vec![tensor(DType::F32, &[1.0, 2.0, 3.0, 4.0]), zeros(DType::F32, &[4])];
        Interpreter::new(&program)?.run(Options { parallel_order_seed: seed }, &[], &[], &mut tensors)?;
        results.push(tensors[1].to_f64_vec());
    }
    assert!(results.iter().all(|result| *result == results[0]), "the order of threads shows: {results:?}");
    Ok(results.remove(0))
}

#[test]
fn threads_see_what_others_stored_before_a_barrier() {
    let body = "bound thread_x for t in 0..4 { s[t] = x[t] barrier() y[t] = s[3 - t] }";
    assert_eq!(run(body), Ok(vec![4.0, 3.0, 2.0, 1.0]));
}

#[test]
fn a_missing_barrier_is_a_race() {
    let read_too_early = "bound thread_x for t in 0..4 { s[t] = 0.0 barrier() s[t] = x[t] y[t] = s[3 - t] }";
    let written_too_early = "bound thread_x for t in 0..4 {
        s[t] = x[t] barrier() y[t] = s[3 - t] s[t] = 0.0 barrier() y[t] = y[t] + s[t] }";
    let written_twice = "bound thread_x for t in 0..4 { s[0] = x[t] barrier() y[t] = s[0] }";
    for body in [read_too_early, written_too_early, written_twice] {
        assert!(matches!(run(body), Err(InterpError::Race { .. })), "{body}: {:?}", run(body));
    }
    let read_before_any_store = "bound thread_x for t in 0..4 { s[t] = x[t] y[t] = s[3 - t] barrier() }";
    assert!(matches!(
        run(read_before_any_store),
        Err(InterpError::Undefined { .. } | InterpError::Race { .. })
    ));
}

#[test]
fn all_threads_may_load_one_element_and_one_of_them_may_store_it_later() {
    let body = "bound thread_x for t in 0..4 {
        if t < 1 { s[0] = x[3] } barrier() y[t] = s[0] barrier() if t < 1 { s[0] = 0.0 } }";
    assert_eq!(run(body), Ok(vec![4.0; 4]));
    let without = body.replace("y[t] = s[0] barrier()", "y[t] = s[0]");
    assert!(matches!(run(&without), Err(InterpError::Race { .. })), "the last store races with the loads");
}

#[test]
fn each_thread_has_its_own_local_memory_and_loops() {
    let body = "bound thread_y for u in 0..2 { bound thread_x for t in 0..2 { alloc r {
        r[0] = 0.0
        for k in 0..4 {
          if k % 2 < 1 { s[u*2 + t] = x[k] + r[0] }
          barrier()
          r[0] = r[0] + s[3 - u*2 - t]
          barrier()
        }
        y[u*2 + t] = r[0]
      } } }";
    // Every thread does the same: s = 1, r = 1; then r = 2; s = 3 + 2, r = 7; then r = 12.
    assert_eq!(run(body), Ok(vec![12.0; 4]));
}

#[test]
fn a_barrier_that_not_all_threads_come_to_is_an_error() {
    let body = "bound thread_x for t in 0..4 { y[t] = x[t] if t < 2 { barrier() } }";
    assert_eq!(run(body), Err(InterpError::DivergentBarrier));
    let other = "bound thread_x for t in 0..4 { y[t] = x[t] if t < 2 { barrier() } else { barrier() } }";
    assert_eq!(run(other), Err(InterpError::DivergentBarrier));
    assert!(matches!(run("for t in 0..4 { y[t] = x[t] barrier() }"), Err(InterpError::Malformed(_))));
}

#[test]
fn asynchronous_stores_arrive_where_their_thread_waits() {
    let body = "bound thread_x for t in 0..4 {
        async s[t] = x[t] commit_copies() wait_copies(0) barrier() y[t] = s[3 - t] }";
    assert_eq!(run(body), Ok(vec![4.0, 3.0, 2.0, 1.0]));
    for (missing, present) in
        [("wait_copies(0)", ""), ("commit_copies()", ""), ("wait_copies(0)", "wait_copies(1)")]
    {
        let without = body.replace(missing, present);
        assert!(matches!(run(&without), Err(InterpError::UnderWay { .. })), "{without}: {:?}", run(&without));
    }
    let before_the_wait = body.replace("wait_copies(0) barrier()", "barrier() wait_copies(0)");
    assert!(matches!(
        run(&before_the_wait),
        Err(InterpError::UnderWay { .. } | InterpError::Race { action: "load" | "arrival", .. })
    ));
    // Its own elements a thread sees without a barrier.
    let own = "bound thread_x for t in 0..4 { async s[t] = x[t] commit_copies() wait_copies(0) y[t] = s[t] barrier() }";
    assert_eq!(run(own), Ok(vec![1.0, 2.0, 3.0, 4.0]));
    let overwritten = "bound thread_x for t in 0..4 {
        async s[t] = x[t] commit_copies() s[t] = 0.0 wait_copies(0) barrier() y[t] = s[3 - t] }";
    assert!(matches!(run(overwritten), Err(InterpError::UnderWay { action: "store", .. })));
}

#[test]
fn a_wait_leaves_the_last_groups_under_way() {
    let body = |left: u32| {
        format!(
            "bound thread_x for t in 0..2 {{
        async s[t] = x[t] commit_copies() async s[t + 2] = x[t + 2] commit_copies()
        wait_copies({left}) barrier()
        y[t] = s[1 - t] wait_copies(0) barrier() y[t + 2] = s[3 - t] }}"
        )
    };
    assert_eq!(run(&body(1)), Ok(vec![2.0, 1.0, 4.0, 3.0]));
    assert_eq!(run(&body(0)), Ok(vec![2.0, 1.0, 4.0, 3.0]));
    assert!(matches!(run(&body(2)), Err(InterpError::UnderWay { .. })));
}
