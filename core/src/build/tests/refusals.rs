//! Definitions that have no schedulable form, and what is said of them.

use super::*;
use crate::expr::UnaryOp;

/// A kernel over `x[N]`, `y[N, N]` and `i`, `j` in `0..N`.
fn over(body: impl FnOnce(&mut KernelBuilder, &Value, TensorHandle, TensorHandle)) -> KernelBuilder {
    let mut b = KernelBuilder::new("broken");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n, &n]);
    let y = zeros(&mut b, "y", &[&n, &n]);
    body(&mut b, &n, x, y);
    b.output(y);
    b
}

#[track_caller]
fn check(b: KernelBuilder, parts: &[&str]) {
    let text = refuse(b);
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
}

#[test]
fn a_race_names_the_loop_and_the_element() {
    let b = over(|b, n, x, y| {
        each(b, "i", n, |b, i| {
            each(b, "j", n, |b, j| {
                each(b, "k", n, |b, k| {
                    store(b, y, &[&i, &j], UpdateOp::Set, load(b, x, &[&i, &k]), 7);
                });
            });
        });
    });
    check(
        b,
        &[
            "kernel `broken` cannot be built",
            "every iteration of `k` writes `y[i, j]`",
            "--> kernel.rs:7:1",
            "use `+=`, or index by `k`",
        ],
    );
}

#[test]
fn a_value_that_only_the_last_iteration_leaves_is_refused() {
    let mut b = KernelBuilder::new("broken");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n]);
    let y = zeros(&mut b, "y", &[&int(1)]);
    let last = b.accumulator("last", Value::float(0.0), at(2));
    each(&mut b, "i", &n, |b, i| b.update(last, UpdateOp::Set, load(b, x, &[&i]), at(4)));
    let value = b.read(last);
    store(&mut b, y, &[&int(0)], UpdateOp::Set, value, 5);
    b.output(y);
    check(b, &["every iteration of `i` assigns `last`, so that only the last one counts"]);
}

#[test]
fn bounds_that_depend_on_data_are_refused() {
    let mut b = KernelBuilder::new("ragged");
    let n = b.dim("N");
    let lengths = b.input("lengths", DType::I64, std::slice::from_ref(&n));
    let x = input(&mut b, "x", &[&n, &n]);
    let y = zeros(&mut b, "y", &[&n]);
    each(&mut b, "i", &n, |b, i| {
        let end = load(b, lengths, &[&i]);
        b.for_loop("j", int(0), end, 1, at(4), |b, j| {
            store(b, y, &[&i], UpdateOp::Add, load(b, x, &[&i, &j]), 5);
        });
    });
    b.output(y);
    check(
        b,
        &["the bounds of loop `j` are not a function of dimensions", "--> kernel.rs:4:1", "into an `if`"],
    );
}

#[test]
fn what_is_never_written_cannot_be_used() {
    let mut b = KernelBuilder::new("broken");
    let n = b.dim("N");
    let t = b.tensor("t", DType::F32, std::slice::from_ref(&n), None, at(2));
    let y = b.tensor("y", DType::F32, std::slice::from_ref(&n), None, at(3));
    each(&mut b, "i", &n, |b, i| {
        store(b, y, &[&i], UpdateOp::Set, load(b, t, &[&i]), 5);
    });
    b.output(y);
    check(
        b,
        &["`t` is used before anything has been written to it", "declared here (kernel.rs:2:1)", "zeros"],
    );
}

#[test]
fn an_output_that_is_never_written_is_refused() {
    let mut b = KernelBuilder::new("broken");
    let n = b.dim("N");
    let y = b.tensor("y", DType::F32, &[n], None, at(3));
    b.output(y);
    check(b, &["`y` is returned, but nothing is ever written to it"]);
}

#[test]
fn an_argument_cannot_be_returned_or_overwritten() {
    let mut b = KernelBuilder::new("broken");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n]);
    each(&mut b, "i", &n, |b, i| store(b, x, &[&i], UpdateOp::Set, Value::float(0.0), 4));
    check(b, &["`x` is an input and cannot be written", "&mut Tensor"]);
    let mut b = KernelBuilder::new("broken");
    let n = b.dim("N");
    let x = b.inout("x", DType::F32, std::slice::from_ref(&n));
    each(&mut b, "i", &n, |b, i| store(b, x, &[&i], UpdateOp::Set, Value::float(0.0), 4));
    b.output(x);
    check(b, &["`x` is an argument and is returned as well"]);
}

#[test]
fn several_errors_are_reported_together() {
    let b = over(|b, n, x, y| {
        each(b, "i", n, |b, i| {
            each(b, "j", n, |b, j| {
                store(b, y, &[&i, &int(0)], UpdateOp::Set, load(b, x, &[&i, &j]), 4);
            });
        });
        each(b, "i", n, |b, i| {
            each(b, "j", n, |b, j| {
                store(b, y, &[&int(0), &j], UpdateOp::Set, load(b, x, &[&i, &j]).unary(UnaryOp::Exp), 5);
            });
        });
    });
    check(b, &["every iteration of `j` writes `y[i, 0]`", "every iteration of `i` writes `y[0, j]`"]);
}

#[test]
fn a_stale_value_without_a_name_is_refused() {
    let mut b = KernelBuilder::new("broken");
    let n = b.dim("N");
    let x = b.inout("x", DType::F32, std::slice::from_ref(&n));
    let y = b.inout("y", DType::F32, std::slice::from_ref(&n));
    each(&mut b, "i", &n, |b, i| {
        let old = load(b, x, &[&i]);
        store(b, x, &[&i], UpdateOp::Set, load(b, y, &[&i]), 4);
        store(b, y, &[&i], UpdateOp::Set, old, 5);
    });
    check(
        b,
        &["a value read from `x` is used after `x` has been overwritten", "overwritten here (kernel.rs:4:1)"],
    );
}

#[test]
fn an_access_that_leaves_for_every_size_is_refused() {
    let mut b = KernelBuilder::new("broken");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n]);
    let y = zeros(&mut b, "y", &[&n]);
    each(&mut b, "i", &n, |b, i| {
        let next = load(b, x, &[&add(&i, &int(1))]);
        store(b, y, &[&i], UpdateOp::Set, next, 4);
    });
    b.output(y);
    check(
        b,
        &[
            "the read of `x` leaves dimension 0 of size N, whatever the sizes are",
            "--> kernel.rs:4:1",
            "put the access into an `if`",
        ],
    );
}

#[test]
fn an_element_before_the_first_is_refused() {
    let b = over(|b, n, x, y| {
        each(b, "i", n, |b, i| {
            each(b, "j", n, |b, j| {
                store(b, y, &[&sub(&i, &int(1)), &j], UpdateOp::Set, load(b, x, &[&i, &j]), 4);
            });
        });
    });
    check(b, &["the write to `y` leaves dimension 0 of size N, whatever the sizes are", "--> kernel.rs:4:1"]);
}
