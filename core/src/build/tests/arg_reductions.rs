//! Places of maxima and minima.

use super::differential::agrees_with_definition;
use super::*;

/// `if x[i, j] OP best { … }` over each row; the place is that of the row.
fn places(op: BinaryOp, new_is_left: bool, best_first: bool) -> KernelBuilder {
    let mut b = KernelBuilder::new("places");
    let (m, n) = (b.dim("M"), b.dim("N"));
    let x = b.input("x", DType::I32, &[m.clone(), n.clone()]);
    let w = b.input("w", DType::I32, std::slice::from_ref(&n));
    let fill = Value::typed_int(DType::I32, -1);
    let at_out = b.tensor("at_out", DType::I32, std::slice::from_ref(&m), Some(fill.clone()), at(1));
    let best_out = b.tensor("best_out", DType::I32, std::slice::from_ref(&m), Some(fill.clone()), at(1));
    let beside = b.tensor("beside", DType::I32, std::slice::from_ref(&m), Some(fill), at(1));
    each(&mut b, "i", &m, |b, i| {
        let best = b.accumulator("best", Value::typed_int(DType::I32, 0), at(2));
        let place = b.accumulator("place", Value::typed_int(DType::I32, 7), at(3));
        each(b, "j", &n, |b, j| {
            let value = load(b, x, &[&i, &j]);
            let condition = match new_is_left {
                true => value.binary(op, b.read(best)),
                false => b.read(best).binary(op, value.clone()),
            };
            b.if_else(
                condition,
                at(4),
                |b| {
                    if best_first {
                        b.update(best, UpdateOp::Set, value.clone(), at(5));
                    }
                    b.update(place, UpdateOp::Set, j.cast(DType::I32), at(6));
                    store(b, beside, &[&i], UpdateOp::Set, load(b, w, &[&j]), 7);
                    if !best_first {
                        b.update(best, UpdateOp::Set, value.clone(), at(8));
                    }
                },
                |_| {},
            );
        });
        store(b, at_out, &[&i], UpdateOp::Set, b.read(place), 9);
        store(b, best_out, &[&i], UpdateOp::Set, b.read(best), 10);
    });
    b.output(at_out);
    b.output(best_out);
    b.output(beside);
    b
}

fn has_order(program: &Program) -> bool {
    program.to_string().contains(": ordered ")
}

#[test]
fn the_place_of_an_extremum_has_no_order() {
    let rows = [vec![1, 4, -2, 4, 0, -1, -1, -5, -5, -3, 0, 0, 0, 0, 0], vec![10, 11, 12, 13, 14]];
    for op in [BinaryOp::Gt, BinaryOp::Ge, BinaryOp::Lt, BinaryOp::Le] {
        for (new_is_left, best_first) in [(true, true), (true, false), (false, true), (false, false)] {
            let make = || places(op, new_is_left, best_first);
            let program = build(make());
            assert!(!has_order(&program), "{op:?} {new_is_left} {best_first}\n{program}");
            for sizes in [[3, 5], [1, 1], [2, 0], [5, 3]] {
                let arguments = [
                    rows[0][..(sizes[0] * sizes[1]) as usize].to_vec(),
                    rows[1][..sizes[1] as usize].to_vec(),
                ];
                for seed in 0..2 {
                    let ran = agrees_with_definition(make(), &program, &sizes, &arguments, seed);
                    assert!(ran.is_some(), "{op:?} {new_is_left} {best_first} {sizes:?}\n{program}");
                }
            }
        }
    }
}

#[test]
fn the_place_may_have_two_coordinates() {
    let make = || {
        let mut b = KernelBuilder::new("of_all");
        let (m, n) = (b.dim("M"), b.dim("N"));
        let x = b.input("x", DType::I32, &[m.clone(), n.clone()]);
        let y = b.tensor("y", DType::I32, &[int(2)], Some(Value::typed_int(DType::I32, -1)), at(1));
        let best = b.accumulator("best", Value::typed_int(DType::I32, -100), at(2));
        each(&mut b, "i", &m, |b, i| {
            each(b, "j", &n, |b, j| {
                let value = load(b, x, &[&i, &j]);
                let condition = value.binary(BinaryOp::Gt, b.read(best));
                b.if_else(
                    condition,
                    at(4),
                    |b| {
                        b.update(best, UpdateOp::Set, value, at(5));
                        store(b, y, &[&int(0)], UpdateOp::Set, i.cast(DType::I32), 6);
                    },
                    |_| {},
                );
            });
        });
        b.output(y);
        b
    };
    let program = build(make());
    assert!(!has_order(&program), "{program}");
    let arguments = [vec![1, 2, 3, 4, 9, 5, 9, 9, 0, -1, 3, 8]];
    for sizes in [[3, 4], [4, 3], [12, 1], [1, 12]] {
        assert!(agrees_with_definition(make(), &program, &sizes, &arguments, 1).is_some());
    }
}

#[test]
fn a_running_maximum_stays_in_order() {
    let make = || {
        let mut b = KernelBuilder::new("running");
        let n = b.dim("N");
        let x = b.input("x", DType::I32, std::slice::from_ref(&n));
        let y =
            b.tensor("y", DType::I32, std::slice::from_ref(&n), Some(Value::typed_int(DType::I32, 0)), at(1));
        let best = b.accumulator("best", Value::typed_int(DType::I32, 0), at(2));
        let place = b.accumulator("place", Value::typed_int(DType::I32, 0), at(3));
        each(&mut b, "i", &n, |b, i| {
            let value = load(b, x, &[&i]);
            let condition = value.binary(BinaryOp::Gt, b.read(best));
            b.if_else(
                condition,
                at(4),
                |b| {
                    b.update(best, UpdateOp::Set, value, at(5));
                    b.update(place, UpdateOp::Set, i.cast(DType::I32), at(6));
                },
                |_| {},
            );
            store(b, y, &[&i], UpdateOp::Set, b.read(place), 7);
        });
        b.output(y);
        b
    };
    let program = build(make());
    assert!(has_order(&program), "{program}");
    assert!(agrees_with_definition(make(), &program, &[6], &[vec![1, 5, 2, 5, 7, 3]], 0).is_some());
}
