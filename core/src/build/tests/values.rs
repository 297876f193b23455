//! The usual kernels compute what plain Rust loops do, on odd sizes.

use super::kernels;
use super::*;
use crate::build::bounds::check_in_bounds;
use crate::expr::{Constant, UnaryOp};
use crate::ids::VarId;
use crate::interp;
use crate::program::Access;
use crate::tensor::AnyTensor;

/// Numbers that are not all alike.
fn data(len: usize, seed: usize) -> Vec<f64> {
    (0..len).map(|at| ((at * 37 + seed * 11) % 19) as f64 / 8.0 - 1.0).collect()
}

/// Runs a program for given sizes; inputs and inouts in order. Gives back inouts and outputs in order.
#[track_caller]
fn run(program: &Program, sizes: &[i64], scalars: &[f64], inputs: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let named: Vec<(VarId, i64)> = program.dims().map(|(var, _)| var).zip(sizes.iter().copied()).collect();
    let bound = program.bind_dims(&named);
    let checked = check_in_bounds(&bound).unwrap_or_else(|errors| panic!("{errors}\n{bound}"));
    if let Err(errors) = verify(&checked, Level::Blocks) {
        panic!("{}", errors.render(&checked));
    }
    let mut inputs = inputs.iter();
    let mut buffers = Vec::new();
    for (id, access) in checked.buffer_params() {
        let buffer = checked.buffer(id);
        let shape: Vec<usize> =
            buffer.shape.iter().map(|extent| extent.as_constant().expect("bound") as usize).collect();
        let len = shape.iter().product();
        let values = match access {
            Access::Output => vec![0.0; len],
            _ => inputs.next().expect("one per argument").clone(),
        };
        buffers.push(AnyTensor::from_f64s(buffer.dtype, &values, &shape).expect("the shape fits"));
    }
    let scalars: Vec<Constant> = scalars.iter().map(|value| Constant::float(*value)).collect();
    interp::run(&checked, &[], &scalars, &mut buffers).unwrap_or_else(|error| panic!("{error}\n{checked}"));
    let written = checked.buffer_params().zip(&buffers).filter(|((_, access), _)| *access != Access::Input);
    written.map(|(_, buffer)| buffer.to_f64_vec()).collect()
}

#[track_caller]
fn close(actual: &[f64], expected: &[f32]) {
    assert_eq!(actual.len(), expected.len());
    for (at, (a, b)) in actual.iter().zip(expected).enumerate() {
        assert!((a - f64::from(*b)).abs() <= 1e-5 * (1.0 + a.abs()), "element {at}: {a} instead of {b}");
    }
}

fn singles(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}

#[test]
fn matrix_products() {
    for [m, n, k] in [[1, 1, 1], [3, 5, 7], [2, 3, 0], [0, 3, 2], [11, 2, 13]] {
        let (a, b) = (data(m * k, 1), data(k * n, 2));
        let (x, y) = (singles(&a), singles(&b));
        let mut c = vec![0.0f32; m * n];
        for i in 0..m {
            for j in 0..n {
                for l in 0..k {
                    c[i * n + j] += x[i * k + l] * y[l * n + j];
                }
            }
        }
        let sizes = [m as i64, n as i64, k as i64];
        close(&run(&kernels::matmul(), &sizes, &[], &[a.clone(), b.clone()])[0], &c);
        close(&run(&kernels::matmul_accumulator(), &sizes, &[], &[a.clone(), b.clone()])[0], &c);
        let old = data(m * n, 3);
        let scaled: Vec<f32> = c.iter().zip(singles(&old)).map(|(c, old)| old * 0.5 + c).collect();
        close(&run(&kernels::gemm_in_place(), &sizes, &[0.5], &[a, b, old])[0], &scaled);
    }
}

#[test]
fn softmax_of_rows() {
    for [m, n] in [[1, 1], [3, 7], [5, 2], [0, 4]] {
        let x = data(m * n, 1);
        let mut y = Vec::new();
        for row in singles(&x).chunks(n) {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = row.iter().map(|v| (v - largest).exp()).sum();
            y.extend(row.iter().map(|v| (v - largest).exp() / sum));
        }
        close(&run(&kernels::softmax(), &[m as i64, n as i64], &[], &[x])[0], &y);
    }
}

#[test]
fn layer_norm_of_rows() {
    for [m, n] in [[1, 1], [3, 7], [2, 13]] {
        let (x, gain) = (data(m * n, 1), data(n, 2));
        let mut y = Vec::new();
        for row in singles(&x).chunks(n) {
            let mean = row.iter().sum::<f32>() / n as f32;
            let variance = row.iter().map(|v| v * v).sum::<f32>() / n as f32 - mean * mean;
            y.extend(row.iter().zip(singles(&gain)).map(|(v, g)| (v - mean) / (variance + 0.1).sqrt() * g));
        }
        close(&run(&kernels::layer_norm(), &[m as i64, n as i64], &[0.1], &[x, gain])[0], &y);
    }
}

#[test]
fn padded_convolution() {
    for [h, w, ci, co] in [[1, 1, 1, 1], [5, 3, 2, 3], [2, 7, 3, 1]] {
        let (x, f, bias) = (data(h * w * ci, 1), data(9 * ci * co, 2), data(co, 3));
        let (xs, fs, bs) = (singles(&x), singles(&f), singles(&bias));
        let mut y = Vec::new();
        for oh in 0..h {
            for ow in 0..w {
                for o in 0..co {
                    let mut sum = bs[o];
                    for kh in 0..3 {
                        for kw in 0..3 {
                            let inside = oh + kh >= 1 && oh + kh <= h && ow + kw >= 1 && ow + kw <= w;
                            for c in (0..ci).filter(|_| inside) {
                                let pixel = xs[((oh + kh - 1) * w + ow + kw - 1) * ci + c];
                                sum += pixel * fs[((kh * 3 + kw) * ci + c) * co + o];
                            }
                        }
                    }
                    y.push(sum.max(0.0));
                }
            }
        }
        let sizes = [h, w, ci, co].map(|size| size as i64);
        close(&run(&kernels::conv2d(), &sizes, &[], &[x, f, bias])[0], &y);
    }
}

#[test]
fn transposed_convolution() {
    for [n, k] in [[1, 1], [4, 3], [3, 5]] {
        let (x, f) = (data(n, 1), data(k, 2));
        let mut y = vec![0.0f32; 2 * n + k];
        for (i, x) in singles(&x).iter().enumerate() {
            for (t, f) in singles(&f).iter().enumerate() {
                y[2 * i + t] += x * f;
            }
        }
        close(&run(&kernels::transposed_conv(), &[n as i64, k as i64], &[], &[x, f])[0], &y);
    }
}

#[test]
fn triangles() {
    for n in [1, 2, 7] {
        let x = data(n, 1);
        let sums: Vec<f32> = (0..n).map(|i| singles(&x)[..=i].iter().sum()).collect();
        close(&run(&kernels::causal(), &[n as i64], &[], &[x])[0], &sums);
        let x = data(n * n, 2);
        let upper: Vec<f32> =
            singles(&x).iter().enumerate().map(|(at, v)| if at % n >= at / n { *v } else { 0.0 }).collect();
        close(&run(&kernels::upper_triangle(), &[n as i64], &[], &[x])[0], &upper);
    }
}

#[test]
fn moves_of_elements() {
    let (p, q) = (data(3, 1), data(5, 2));
    let joined = singles(&[p.clone(), q.clone()].concat());
    close(&run(&kernels::concat(), &[3, 5], &[], &[p.clone(), q.clone()])[0], &joined);
    close(&run(&kernels::concat(), &[0, 5], &[], &[Vec::new(), q.clone()])[0], &singles(&q));
    let table = data(4 * 3, 3);
    let rows = run(&kernels::gather(), &[4, 2, 3], &[], &[table.clone(), vec![3.0, 1.0]]);
    close(&rows[0], &singles(&[&table[9..12], &table[3..6]].concat()));
    let swapped = run(&kernels::swap(), &[5], &[], &[q.clone(), data(5, 9)]);
    close(&swapped[0], &singles(&data(5, 9)));
    close(&swapped[1], &singles(&q));
    let strided = run(&kernels::strided_write(), &[2], &[], &[vec![1.0, 2.0]]);
    close(&strided[0], &[7.0, 7.0, 7.0, 7.0, 1.0, 7.0, 2.0, 7.0]);
}

#[test]
fn reductions_in_sequence_and_side_by_side() {
    let x = data(3 * 5, 4);
    let rows: Vec<Vec<f32>> = singles(&x).chunks(5).map(<[f32]>::to_vec).collect();
    let two: Vec<f32> = rows
        .iter()
        .map(|row| (1.0 + row.iter().sum::<f32>()) * 0.5 + row.iter().step_by(2).sum::<f32>())
        .collect();
    close(&run(&kernels::two_reductions(), &[3, 5], &[], std::slice::from_ref(&x))[0], &two);
    let both = run(&kernels::several_outputs(), &[3, 5], &[], &[x]);
    let largest: Vec<f32> = rows.iter().map(|row| row.iter().copied().fold(f32::MIN, f32::max)).collect();
    let sums: Vec<f32> = rows.iter().map(|row| row.iter().sum()).collect();
    close(&both[0], &largest);
    close(&both[1], &sums);
    let x = data(7, 5);
    let relu: Vec<f32> = singles(&x).iter().map(|v| v.max(0.0)).collect();
    close(&run(&kernels::relu_in_place(), &[7], &[], &[x])[0], &relu);
}

/// One output element computed from literals alone: their types, powers and conversions.
#[test]
fn scalars_without_types_get_those_of_rust() {
    let mut b = KernelBuilder::new("literals");
    let y = b.tensor("y", DType::F32, &[int(6)], Some(Value::float(0.0)), at(1));
    let count = b.accumulator("count", int(3), at(2));
    let third = b.accumulator("third", div(&Value::float(1.0), &Value::float(3.0)), at(3));
    let cells = [
        div(&Value::float(1.0), &Value::float(4.0)),
        div(&int(7), &int(2)).cast(DType::F32),
        b.read(count).cast(DType::F32),
        Value::float(-1.5).powi(3),
        Value::float(2.0).powi(-2),
        sub(&b.read(third), &Value::float(0.25)).unary(UnaryOp::Neg),
    ];
    for (position, cell) in cells.into_iter().enumerate() {
        store(&mut b, y, &[&int(position as i64)], UpdateOp::Set, cell, 4);
    }
    b.output(y);
    let expected = [0.25, 3.0, 3.0, -3.375, 0.25, 0.25f32 - 1.0f32 / 3.0];
    close(&run(&build(b), &[], &[], &[])[0], &expected);
}

/// Quantised: bytes in, sums in `i32`, logic over all of them.
#[test]
fn integers_and_bools() {
    let mut b = KernelBuilder::new("integers");
    let n = b.dim("N");
    let x = b.input("x", DType::I8, std::slice::from_ref(&n));
    let sum = b.tensor("sum", DType::I32, &[int(1)], Some(Value::typed_int(DType::I32, 0)), at(1));
    let all = b.tensor("all", DType::Bool, &[int(1)], Some(Value::bool(true)), at(2));
    let any = b.accumulator("any", Value::bool(false), at(3));
    each(&mut b, "i", &n, |b, i| {
        let v = b.bind("v", load(b, x, &[&i]).cast(DType::I32), at(5));
        store(b, sum, &[&int(0)], UpdateOp::Add, mul(&v, &v), 6);
        let small = compare(&v, BinaryOp::Lt, &int(100));
        let both = both(&load(b, all, &[&int(0)]), &small);
        store(b, all, &[&int(0)], UpdateOp::Set, both, 7);
        let found = compare(&load(b, x, &[&i]), BinaryOp::Eq, &int(-7));
        let found = b.read(any).binary(BinaryOp::Or, found);
        b.update(any, UpdateOp::Set, found, at(8));
    });
    let found = b.tensor("found", DType::Bool, &[int(1)], Some(Value::bool(false)), at(9));
    let value = b.read(any);
    store(&mut b, found, &[&int(0)], UpdateOp::Set, value, 10);
    [sum, all, found].into_iter().for_each(|output| b.output(output));
    let program = build(b);
    let results = run(&program, &[3], &[], &[vec![100.0, -7.0, 3.0]]);
    assert_eq!(results, vec![vec![10058.0], vec![0.0], vec![1.0]], "{program}");
    let results = run(&program, &[2], &[], &[vec![99.0, 5.0]]);
    assert_eq!(results, vec![vec![9826.0], vec![1.0], vec![0.0]], "{program}");
    let results = run(&program, &[0], &[], &[Vec::new()]);
    assert_eq!(results, vec![vec![0.0], vec![1.0], vec![0.0]], "{program}");
}
