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
fn a_scatter_is_refused() {
    let b = over(|b, n, x, y| {
        each(b, "i", n, |b, i| {
            each(b, "j", n, |b, j| {
                store(b, y, &[&i, &add(&i, &j)], UpdateOp::Add, load(b, x, &[&i, &j]), 5);
            });
        });
    });
    let text = refuse_or_text(b);
    assert!(text.is_none(), "y[i, i + j] determines i and j: {text:?}");
    let b = over(|b, n, x, y| {
        each(b, "i", n, |b, i| {
            each(b, "j", n, |b, j| {
                store(b, y, &[&int(0), &add(&i, &j)], UpdateOp::Add, load(b, x, &[&i, &j]), 5);
            });
        });
    });
    check(
        b,
        &["different iterations of `i` and `j` may write the same element `y[0, i + j]`", "gather form"],
    );
}

fn refuse_or_text(b: KernelBuilder) -> Option<String> {
    b.finish().err().map(|errors| errors.to_string())
}

#[test]
fn a_histogram_is_refused() {
    let mut b = KernelBuilder::new("histogram");
    let (n, bins) = (b.dim("N"), b.dim("BINS"));
    let ids = b.input("ids", DType::I32, std::slice::from_ref(&n));
    let h = zeros(&mut b, "h", &[&bins]);
    each(&mut b, "i", &n, |b, i| {
        let bin = b.bind("bin", load(b, ids, &[&i]).cast(DType::I64), at(4));
        store(b, h, &[&bin], UpdateOp::Add, Value::float(1.0), 5);
    });
    b.output(h);
    check(b, &["`h[ids[i]]` that is written is chosen by data", "--> kernel.rs:5:1", "gather form"]);
}

#[test]
fn a_divided_index_is_no_place_to_write() {
    let b = over(|b, n, x, y| {
        each(b, "i", n, |b, i| {
            each(b, "j", n, |b, j| {
                store(b, y, &[&div(&i, &int(2)), &j], UpdateOp::Add, load(b, x, &[&i, &j]), 5);
            });
        });
    });
    check(
        b,
        &["`y[(i / 2), j]` that is written is not an affine function", "one loop variable per dimension"],
    );
}

#[test]
fn a_recurrence_is_refused() {
    let b = over(|b, n, x, y| {
        each(b, "i", n, |b, i| {
            b.for_loop("j", int(1), n.clone(), 1, at(4), |b, j| {
                let before = load(b, y, &[&i, &sub(&j, &int(1))]);
                let value = add(&before, &load(b, x, &[&i, &j]));
                store(b, y, &[&i, &j], UpdateOp::Set, value, 5);
            });
        });
    });
    check(b, &["`y[i, j]` is computed from `y[i, j - 1]`", "--> kernel.rs:5:1", "no parallel form"]);
}

#[test]
fn a_recurrence_through_two_statements_names_both() {
    let mut b = KernelBuilder::new("broken");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n]);
    let (y, z) = (zeros(&mut b, "y", &[&n]), zeros(&mut b, "z", &[&n]));
    b.for_loop("i", int(1), n.clone(), 1, at(3), |b, i| {
        let before = load(b, z, &[&sub(&i, &int(1))]);
        store(b, y, &[&i], UpdateOp::Set, before, 4);
        let value = add(&load(b, y, &[&i]), &load(b, x, &[&i]));
        store(b, z, &[&i], UpdateOp::Set, value, 5);
    });
    b.output(z);
    check(
        b,
        &[
            "`z[i - 1]` is read in an iteration of `i` after an earlier one may have written `z[i]`",
            "--> kernel.rs:4:1",
            "written here (kernel.rs:5:1)",
        ],
    );
}

#[test]
fn a_running_sum_is_refused() {
    let mut b = KernelBuilder::new("broken");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n]);
    let y = zeros(&mut b, "y", &[&n]);
    let sum = b.accumulator("sum", Value::float(0.0), at(2));
    each(&mut b, "i", &n, |b, i| {
        b.update(sum, UpdateOp::Add, load(b, x, &[&i]), at(4));
        store(b, y, &[&i], UpdateOp::Set, b.read(sum), 5);
    });
    b.output(y);
    check(
        b,
        &[
            "`sum` is written in an iteration of `i` after an earlier one has read `sum`",
            "read here (kernel.rs:5:1)",
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
fn a_recurrence_in_a_scalar_is_refused() {
    let mut b = KernelBuilder::new("broken");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n]);
    let y = zeros(&mut b, "y", &[&int(1)]);
    let horner = b.accumulator("horner", Value::float(0.0), at(2));
    each(&mut b, "i", &n, |b, i| {
        let next = add(&mul(&b.read(horner), &Value::float(2.0)), &load(b, x, &[&i]));
        b.update(horner, UpdateOp::Set, next, at(4));
    });
    let value = b.read(horner);
    store(&mut b, y, &[&int(0)], UpdateOp::Set, value, 5);
    b.output(y);
    check(b, &["each iteration of `i` computes `horner` from the previous iteration's"]);
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
