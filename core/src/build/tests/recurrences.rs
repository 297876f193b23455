//! Loops that carry values from one iteration to the next: what stays together in order, and what does not.

use super::differential::agrees_with_definition;
use super::*;

fn whole(b: &mut KernelBuilder, name: &str, shape: &[&Value]) -> TensorHandle {
    let shape: Vec<Value> = shape.iter().map(|extent| (*extent).clone()).collect();
    b.input(name, DType::I32, &shape)
}

fn filled(b: &mut KernelBuilder, name: &str, shape: &[&Value]) -> TensorHandle {
    let shape: Vec<Value> = shape.iter().map(|extent| (*extent).clone()).collect();
    b.tensor(name, DType::I32, &shape, Some(Value::typed_int(DType::I32, 0)), at(0))
}

/// The iterators of each block, as text: `y: spatial i, ordered j`.
fn kinds(program: &Program) -> Vec<String> {
    let mut found = Vec::new();
    crate::visit::for_each_stmt(&program.body, &mut |stmt| {
        if let crate::stmt::Stmt::Block(block) = stmt {
            let iters = block.iters.iter().map(|iter| {
                let name = iter.binding.as_var().map(|var| program.variable(var).name.to_string());
                format!("{} {}", iter.kind.text(), name.unwrap_or_default())
            });
            found.push(format!("{}: {}", block.name, iters.collect::<Vec<_>>().join(", ")));
        }
    });
    found
}

/// Builds a definition, checks the iterators of its blocks, and compares what it computes with what was written.
#[track_caller]
fn check(make: &dyn Fn() -> KernelBuilder, expected: &[&str], sizes: &[i64], arguments: &[&[i64]]) {
    let program = build(make());
    assert_eq!(kinds(&program), expected, "{program}");
    let arguments: Vec<Vec<i64>> = arguments.iter().map(|argument| argument.to_vec()).collect();
    for seed in 0..4 {
        assert!(
            agrees_with_definition(make(), &program, sizes, &arguments, seed).is_some(),
            "the definition is wrong"
        );
    }
    let printed = program.to_string();
    let parsed: Program = printed.parse().unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(parsed.to_string(), printed);
}

/// The cumulative sum of each row, with a scalar that carries the sum.
fn cumulative_sum() -> KernelBuilder {
    let mut b = KernelBuilder::new("cumulative_sum");
    let (m, n) = (b.dim("M"), b.dim("N"));
    let x = whole(&mut b, "x", &[&m, &n]);
    let y = filled(&mut b, "y", &[&m, &n]);
    each(&mut b, "i", &m, |b, i| {
        let sum = b.accumulator("sum", Value::typed_int(DType::I32, 0), at(3));
        each(b, "j", &n, |b, j| {
            b.update(sum, UpdateOp::Add, load(b, x, &[&i, &j]), at(5));
            store(b, y, &[&i, &j], UpdateOp::Set, b.read(sum), 6);
        });
    });
    b.output(y);
    b
}

#[test]
fn a_cumulative_sum_is_ordered_along_its_axis_alone() {
    check(
        &cumulative_sum,
        &["sum_init: spatial i", "sum: spatial i, ordered j", "y: spatial i, ordered j"],
        &[2, 3],
        &[&[1, 2, 3, 4, 5, 6]],
    );
}

#[test]
fn a_recurrence_over_elements_is_one_block() {
    let make = || {
        let mut b = KernelBuilder::new("scan");
        let (m, n) = (b.dim("M"), b.dim("N"));
        let x = whole(&mut b, "x", &[&m, &n]);
        let y = filled(&mut b, "y", &[&m, &n]);
        b.for_loop("i", int(1), m.clone(), 1, at(2), |b, i| {
            each(b, "j", &n, |b, j| {
                let before = load(b, y, &[&sub(&i, &int(1)), &j]);
                let value = add(&mul(&before, &Value::typed_int(DType::I32, 2)), &load(b, x, &[&i, &j]));
                store(b, y, &[&i, &j], UpdateOp::Set, value, 5);
            });
        });
        b.output(y);
        b
    };
    check(
        &make,
        &["y_init: spatial d0, spatial d1", "y: ordered i, spatial j"],
        &[3, 2],
        &[&[1, 2, 3, 4, 5, 6]],
    );
}

/// h = w · h + x[t], with all states returned.
fn recurrent_step() -> KernelBuilder {
    let mut b = KernelBuilder::new("recurrent");
    let (t, h) = (b.dim("T"), b.dim("H"));
    let x = whole(&mut b, "x", &[&t, &h]);
    let w = whole(&mut b, "w", &[&h, &h]);
    let state = filled(&mut b, "state", &[&h]);
    let y = filled(&mut b, "y", &[&t, &h]);
    let next = filled(&mut b, "next", &[&h]);
    each(&mut b, "t", &t, |b, t| {
        each(b, "j", &h, |b, j| {
            let sum = b.accumulator("sum", Value::typed_int(DType::I32, 0), at(4));
            each(b, "k", &h, |b, k| {
                let product = mul(&load(b, w, &[&j, &k]), &load(b, state, &[&k]));
                b.update(sum, UpdateOp::Add, product, at(6));
            });
            let value = add(&b.read(sum), &load(b, x, &[&t, &j]));
            store(b, next, &[&j], UpdateOp::Set, value, 8);
        });
        each(b, "j", &h, |b, j| {
            store(b, state, &[&j], UpdateOp::Set, load(b, next, &[&j]), 9);
            store(b, y, &[&t, &j], UpdateOp::Set, load(b, next, &[&j]), 10);
        });
    });
    b.output(y);
    b
}

#[test]
fn a_step_of_a_recurrent_network_keeps_its_reduction() {
    let program = build(recurrent_step());
    let kinds = kinds(&program);
    assert!(kinds.contains(&"sum: ordered t, spatial j, reduce k".to_owned()), "{kinds:?}\n{program}");
    let arguments = [vec![1, 2, 3, 4, 5, 6], vec![1, -1, 2, 0]];
    for seed in 0..4 {
        assert!(agrees_with_definition(recurrent_step(), &program, &[3, 2], &arguments, seed).is_some());
    }
}

#[test]
fn what_only_stands_beside_a_recurrence_is_a_loop_of_its_own() {
    let make = || {
        let mut b = KernelBuilder::new("beside");
        let n = b.dim("N");
        let x = whole(&mut b, "x", &[&n]);
        let (y, z) = (filled(&mut b, "y", &[&n]), filled(&mut b, "z", &[&n]));
        let product = b.accumulator("product", Value::typed_int(DType::I32, 1), at(1));
        each(&mut b, "i", &n, |b, i| {
            let twice = b.tensor("twice", DType::I32, &[], Some(Value::typed_int(DType::I32, 0)), at(2));
            let value = mul(&load(b, x, &[&i]), &load(b, x, &[&i]));
            b.store(twice, &[], UpdateOp::Set, value, at(3));
            b.update(product, UpdateOp::Mul, load(b, x, &[&i]), at(4));
            store(b, y, &[&i], UpdateOp::Set, b.read(product), 5);
            store(b, z, &[&i], UpdateOp::Set, b.load(twice, &[]), 6);
        });
        b.output(y);
        b.output(z);
        b
    };
    check(
        &make,
        &["product_init: ", "z: spatial i", "product: ordered i", "y: ordered i"],
        &[4],
        &[&[1, 2, 3, 4]],
    );
}

#[test]
fn an_update_in_place_is_executed_in_order() {
    let make = || {
        let mut b = KernelBuilder::new("relax");
        let n = b.dim("N");
        let x = b.inout("x", DType::I32, std::slice::from_ref(&n));
        b.for_loop("i", int(1), sub(&n, &int(1)), 1, at(2), |b, i| {
            let (left, right) = (load(b, x, &[&sub(&i, &int(1))]), load(b, x, &[&add(&i, &int(1))]));
            store(b, x, &[&i], UpdateOp::Set, sub(&left, &right), 3);
        });
        b
    };
    check(&make, &["x: ordered i"], &[6], &[&[1, 2, 3, 4, 5, 6]]);
}

#[test]
fn a_recurrence_may_run_through_several_statements() {
    let make = || {
        let mut b = KernelBuilder::new("two");
        let n = b.dim("N");
        let x = whole(&mut b, "x", &[&n]);
        let (y, z) = (filled(&mut b, "y", &[&n]), filled(&mut b, "z", &[&n]));
        b.for_loop("i", int(1), n.clone(), 1, at(3), |b, i| {
            let before = load(b, z, &[&sub(&i, &int(1))]);
            store(b, y, &[&i], UpdateOp::Set, before, 4);
            let value = add(&load(b, y, &[&i]), &load(b, x, &[&i]));
            store(b, z, &[&i], UpdateOp::Set, value, 5);
        });
        b.output(z);
        b
    };
    let program = build(make());
    assert!(kinds(&program).contains(&"z: ordered i".to_owned()), "{program}");
    assert!(agrees_with_definition(make(), &program, &[5], &[vec![1, 2, 3, 4, 5]], 0).is_some());
}

/// Adds `v[i]` to the element that `ids[i]` chooses.
fn scatter_add(op: UpdateOp) -> KernelBuilder {
    let mut b = KernelBuilder::new("scatter");
    let (n, d, bins) = (b.dim("N"), b.dim("D"), b.dim("BINS"));
    let ids = whole(&mut b, "ids", &[&n]);
    let v = whole(&mut b, "v", &[&n, &d]);
    let h = filled(&mut b, "h", &[&bins, &d]);
    each(&mut b, "i", &n, |b, i| {
        each(b, "j", &d, |b, j| {
            let place = load(b, ids, &[&i]).cast(DType::I64);
            store(b, h, &[&place, &j], op, load(b, v, &[&i, &j]), 5);
        });
    });
    b.output(h);
    b
}

#[test]
fn a_scatter_is_ordered_where_the_indices_are_data() {
    for op in [UpdateOp::Add, UpdateOp::Set, UpdateOp::Max] {
        check(
            &|| scatter_add(op),
            &["h_init: spatial d0, spatial d1", "h: ordered i, spatial j"],
            &[4, 2, 3],
            &[&[2, 0, 2, 1], &[1, 2, 3, 4, 5, 6, 7, 8]],
        );
    }
}

#[test]
fn data_that_choose_elements_may_be_computed() {
    let make = || {
        let mut b = KernelBuilder::new("chosen");
        let (m, n) = (b.dim("M"), b.dim("N"));
        let unused = whole(&mut b, "unused", &[&m]);
        let ids = whole(&mut b, "ids", &[&n]);
        let shifted = filled(&mut b, "shifted", &[&n]);
        let (h, total) = (filled(&mut b, "h", &[&m]), filled(&mut b, "total", &[&m]));
        each(&mut b, "i", &n, |b, i| {
            store(
                b,
                shifted,
                &[&i],
                UpdateOp::Set,
                add(&load(b, ids, &[&i]), &load(b, unused, &[&int(0)])),
                2,
            );
        });
        each(&mut b, "i", &n, |b, i| {
            let place = load(b, shifted, &[&i]).cast(DType::I64);
            store(b, h, &[&place], UpdateOp::Add, load(b, ids, &[&i]), 3);
            let place = load(b, ids, &[&i]).cast(DType::I64);
            store(b, total, &[&place], UpdateOp::Add, load(b, shifted, &[&i]), 4);
        });
        b.output(h);
        b.output(total);
        b
    };
    let program = build(make());
    let arguments = [vec![1, 5, 5, 5], vec![2, 0, 1, 2, 0]];
    assert!(agrees_with_definition(make(), &program, &[4, 5], &arguments, 0).is_some(), "{program}");
}

#[test]
fn indices_that_repeat_are_written_in_order() {
    let make = || {
        let mut b = KernelBuilder::new("diagonals");
        let n = b.dim("N");
        let x = whole(&mut b, "x", &[&n, &n]);
        let y = filled(&mut b, "y", &[&add(&n, &n)]);
        each(&mut b, "i", &n, |b, i| {
            each(b, "j", &n, |b, j| {
                store(b, y, &[&add(&i, &j)], UpdateOp::Set, load(b, x, &[&i, &j]), 5);
            });
        });
        b.output(y);
        b
    };
    check(&make, &["y_init: spatial d0", "y: ordered i, ordered j"], &[3], &[&[1, 2, 3, 4, 5, 6, 7, 8, 9]]);
}

#[test]
fn an_element_that_is_assigned_on_a_condition_keeps_the_last_value() {
    let make = || {
        let mut b = KernelBuilder::new("last");
        let n = b.dim("N");
        let x = whole(&mut b, "x", &[&n]);
        let y = filled(&mut b, "y", &[&int(1)]);
        each(&mut b, "i", &n, |b, i| {
            let value = load(b, x, &[&i]);
            let positive = value.binary(BinaryOp::Ge, Value::typed_int(DType::I32, 0));
            b.if_else(positive, at(3), |b| store(b, y, &[&int(0)], UpdateOp::Set, value, 4), |_| {});
        });
        b.output(y);
        b
    };
    check(&make, &["y_init: spatial d0", "y: ordered i"], &[5], &[&[1, -2, 3, -4, -5]]);
}

#[test]
fn a_scalar_that_is_set_anew_in_each_iteration_belongs_to_it() {
    let make = || {
        let mut b = KernelBuilder::new("reset");
        let (m, n) = (b.dim("M"), b.dim("N"));
        let x = whole(&mut b, "x", &[&m, &n]);
        let y = filled(&mut b, "y", &[&m]);
        let sum = b.accumulator("sum", Value::typed_int(DType::I32, 7), at(1));
        each(&mut b, "i", &m, |b, i| {
            store(b, y, &[&i], UpdateOp::Set, b.read(sum), 2);
            b.update(sum, UpdateOp::Set, Value::typed_int(DType::I32, 1), at(3));
            each(b, "j", &n, |b, j| b.update(sum, UpdateOp::Mul, load(b, x, &[&i, &j]), at(4)));
        });
        b.output(y);
        b
    };
    let program = build(make());
    for sizes in [[3, 2], [1, 1], [2, 0]] {
        let arguments = [(1..=sizes[0] * sizes[1]).collect::<Vec<i64>>()];
        assert!(agrees_with_definition(make(), &program, &sizes, &arguments, 1).is_some(), "{program}");
    }
}

#[test]
fn no_iteration_leaves_the_initial_values() {
    let program = build(cumulative_sum());
    for sizes in [[0, 3], [2, 0], [1, 1]] {
        let arguments = [(0..sizes[0] * sizes[1]).collect::<Vec<i64>>()];
        assert!(agrees_with_definition(cumulative_sum(), &program, &sizes, &arguments, 3).is_some());
    }
    let program = build(recurrent_step());
    for sizes in [[0, 2], [2, 0], [1, 1]] {
        let arguments =
            [(0..sizes[0] * sizes[1]).collect::<Vec<i64>>(), (0..sizes[1] * sizes[1]).collect::<Vec<i64>>()];
        assert!(agrees_with_definition(recurrent_step(), &program, &sizes, &arguments, 3).is_some());
    }
}
