//! The usual kernels.

use super::*;
use crate::expr::UnaryOp;

pub(super) fn matmul() -> Program {
    let mut b = KernelBuilder::new("matmul");
    let (m, n, k) = (b.dim("M"), b.dim("N"), b.dim("K"));
    let a = input(&mut b, "a", &[&m, &k]);
    let w = input(&mut b, "b", &[&k, &n]);
    let c = zeros(&mut b, "c", &[&m, &n]);
    each(&mut b, "i", &m, |b, i| {
        each(b, "j", &n, |b, j| {
            each(b, "k", &k, |b, k| {
                let product = mul(&load(b, a, &[&i, &k]), &load(b, w, &[&k, &j]));
                store(b, c, &[&i, &j], UpdateOp::Add, product, 6);
            });
        });
    });
    b.output(c);
    build(b)
}

/// A sum into the only element of a tensor.
pub(super) fn dot_into_one_element() -> Program {
    let mut b = KernelBuilder::new("dot");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n]);
    let y = zeros(&mut b, "y", &[&int(1)]);
    each(&mut b, "i", &n, |b, i| {
        let square = mul(&load(b, x, &[&i]), &load(b, x, &[&i]));
        store(b, y, &[&int(0)], UpdateOp::Add, square, 5);
    });
    b.output(y);
    build(b)
}

/// With an accumulator that is only copied.
pub(super) fn matmul_accumulator() -> Program {
    let mut b = KernelBuilder::new("matmul");
    let (m, n, k) = (b.dim("M"), b.dim("N"), b.dim("K"));
    let a = input(&mut b, "a", &[&m, &k]);
    let w = input(&mut b, "b", &[&k, &n]);
    let c = zeros(&mut b, "c", &[&m, &n]);
    each(&mut b, "i", &m, |b, i| {
        each(b, "j", &n, |b, j| {
            let sum = b.accumulator("sum", Value::float(0.0), at(4));
            each(b, "k", &k, |b, k| {
                let product = mul(&load(b, a, &[&i, &k]), &load(b, w, &[&k, &j]));
                b.update(sum, UpdateOp::Add, product, at(6));
            });
            store(b, c, &[&i, &j], UpdateOp::Set, b.read(sum), 8);
        });
    });
    b.output(c);
    build(b)
}

pub(super) fn softmax() -> Program {
    let mut b = KernelBuilder::new("softmax");
    let (m, n) = (b.dim("M"), b.dim("N"));
    let x = input(&mut b, "x", &[&m, &n]);
    let y = zeros(&mut b, "y", &[&m, &n]);
    each(&mut b, "i", &m, |b, i| {
        let largest = b.accumulator("largest", Value::typed_float(DType::F32, f64::NEG_INFINITY), at(4));
        each(b, "j", &n, |b, j| b.update(largest, UpdateOp::Max, load(b, x, &[&i, &j]), at(6)));
        let sum = b.accumulator("sum", Value::float(0.0), at(8));
        each(b, "j", &n, |b, j| {
            let e = sub(&load(b, x, &[&i, &j]), &b.read(largest)).unary(UnaryOp::Exp);
            let e = b.bind("e", e, at(10));
            store(b, y, &[&i, &j], UpdateOp::Set, e.clone(), 11);
            b.update(sum, UpdateOp::Add, e, at(12));
        });
        each(b, "j", &n, |b, j| {
            let quotient = div(&load(b, y, &[&i, &j]), &b.read(sum));
            store(b, y, &[&i, &j], UpdateOp::Set, quotient, 15);
        });
    });
    b.output(y);
    build(b)
}

/// Channel-last, padded by one on each side.
pub(super) fn conv2d() -> Program {
    let mut b = KernelBuilder::new("conv2d");
    let (h, w, ci, co) = (b.dim("H"), b.dim("W"), b.dim("CI"), b.dim("CO"));
    let x = input(&mut b, "x", &[&h, &w, &ci]);
    let f = input(&mut b, "f", &[&int(3), &int(3), &ci, &co]);
    let bias = input(&mut b, "bias", &[&co]);
    let y = zeros(&mut b, "y", &[&h, &w, &co]);
    each(&mut b, "oh", &h, |b, oh| {
        each(b, "ow", &w, |b, ow| {
            each(b, "o", &co, |b, o| {
                let sum = b.accumulator("sum", load(b, bias, &[&o]), at(4));
                each(b, "kh", &int(3), |b, kh| {
                    each(b, "kw", &int(3), |b, kw| {
                        let ih = b.bind("ih", add(&oh, &kh), at(5));
                        let iw = b.bind("iw", add(&ow, &kw), at(6));
                        let inside = |v: &Value, extent: &Value| {
                            both(&compare(v, BinaryOp::Ge, &int(1)), &compare(v, BinaryOp::Le, extent))
                        };
                        let inside = both(&inside(&ih, &h), &inside(&iw, &w));
                        each(b, "c", &ci, |b, c| {
                            b.if_else(
                                inside,
                                at(8),
                                |b| {
                                    let pixel = load(b, x, &[&sub(&ih, &int(1)), &sub(&iw, &int(1)), &c]);
                                    let product = mul(&pixel, &load(b, f, &[&kh, &kw, &c, &o]));
                                    b.update(sum, UpdateOp::Add, product, at(9));
                                },
                                |_| {},
                            );
                        });
                    });
                });
                let relu = b.read(sum).binary(BinaryOp::Max, Value::float(0.0));
                store(b, y, &[&oh, &ow, &o], UpdateOp::Set, relu, 12);
            });
        });
    });
    b.output(y);
    build(b)
}

pub(super) fn layer_norm() -> Program {
    let mut b = KernelBuilder::new("layer_norm");
    let (m, n) = (b.dim("M"), b.dim("N"));
    let epsilon = b.scalar("epsilon", DType::F32);
    let x = input(&mut b, "x", &[&m, &n]);
    let gain = input(&mut b, "gain", &[&n]);
    let y = zeros(&mut b, "y", &[&m, &n]);
    each(&mut b, "i", &m, |b, i| {
        let sum = b.accumulator("sum", Value::float(0.0), at(4));
        let squares = b.accumulator("squares", Value::float(0.0), at(5));
        each(b, "j", &n, |b, j| {
            let v = b.bind("v", load(b, x, &[&i, &j]), at(6));
            b.update(sum, UpdateOp::Add, v.clone(), at(7));
            b.update(squares, UpdateOp::Set, v.mul_add(v.clone(), b.read(squares)), at(8));
        });
        let count = n.cast(DType::F32);
        let mean = b.bind("mean", div(&b.read(sum), &count), at(10));
        let variance = sub(&div(&b.read(squares), &count), &mul(&mean, &mean));
        let scale = b.bind("scale", add(&variance, &epsilon).unary(UnaryOp::Rsqrt), at(11));
        each(b, "j", &n, |b, j| {
            let centred = sub(&load(b, x, &[&i, &j]), &mean);
            let value = mul(&mul(&centred, &scale), &load(b, gain, &[&j]));
            store(b, y, &[&i, &j], UpdateOp::Set, value, 13);
        });
    });
    b.output(y);
    build(b)
}

/// Rows of a table chosen by `ids`.
pub(super) fn gather() -> Program {
    let mut b = KernelBuilder::new("gather");
    let (rows, n, width) = (b.dim("ROWS"), b.dim("N"), b.dim("WIDTH"));
    let table = input(&mut b, "table", &[&rows, &width]);
    let ids = b.input("ids", DType::I32, std::slice::from_ref(&n));
    let y = zeros(&mut b, "y", &[&n, &width]);
    each(&mut b, "i", &n, |b, i| {
        let row = b.bind("row", load(b, ids, &[&i]).cast(DType::I64), at(4));
        each(b, "j", &width, |b, j| {
            store(b, y, &[&i, &j], UpdateOp::Set, load(b, table, &[&row, &j]), 5);
        });
    });
    b.output(y);
    build(b)
}

pub(super) fn concat() -> Program {
    let mut b = KernelBuilder::new("concat");
    let (m, n) = (b.dim("M"), b.dim("N"));
    let p = input(&mut b, "p", &[&m]);
    let q = input(&mut b, "q", &[&n]);
    let y = zeros(&mut b, "y", &[&add(&m, &n)]);
    each(&mut b, "i", &m, |b, i| store(b, y, &[&i], UpdateOp::Set, load(b, p, &[&i]), 4));
    each(&mut b, "i", &n, |b, i| store(b, y, &[&add(&m, &i)], UpdateOp::Set, load(b, q, &[&i]), 5));
    b.output(y);
    build(b)
}

/// `y[i] = Σ_{j <= i} x[j]`
pub(super) fn causal() -> Program {
    let mut b = KernelBuilder::new("causal");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n]);
    let y = zeros(&mut b, "y", &[&n]);
    each(&mut b, "i", &n, |b, i| {
        b.for_loop("j", int(0), add(&i, &int(1)), 1, at(4), |b, j| {
            store(b, y, &[&i], UpdateOp::Add, load(b, x, &[&j]), 5);
        });
    });
    b.output(y);
    build(b)
}

/// Upper triangle: the inner loop starts at the outer one.
pub(super) fn upper_triangle() -> Program {
    let mut b = KernelBuilder::new("upper");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n, &n]);
    let y = zeros(&mut b, "y", &[&n, &n]);
    each(&mut b, "i", &n, |b, i| {
        b.for_loop("j", i.clone(), n.clone(), 1, at(4), |b, j| {
            store(b, y, &[&i, &j], UpdateOp::Set, load(b, x, &[&i, &j]), 5);
        });
    });
    b.output(y);
    build(b)
}

/// Transposed convolution with stride 2 in gather form.
pub(super) fn transposed_conv() -> Program {
    let mut b = KernelBuilder::new("transposed");
    let (n, k) = (b.dim("N"), b.dim("K"));
    let x = input(&mut b, "x", &[&n]);
    let f = input(&mut b, "f", &[&k]);
    let length = add(&mul(&int(2), &n), &k);
    let y = zeros(&mut b, "y", &[&length]);
    each(&mut b, "o", &length, |b, o| {
        each(b, "t", &k, |b, t| {
            let at_least = compare(&o, BinaryOp::Ge, &t);
            let offset = b.bind("offset", sub(&o, &t), at(5));
            let even = compare(&offset.binary(BinaryOp::Rem, int(2)), BinaryOp::Eq, &int(0));
            let half = div(&offset, &int(2));
            let inside = compare(&half, BinaryOp::Lt, &n);
            b.if_else(
                both(&both(&at_least, &even), &inside),
                at(6),
                |b| {
                    let product = mul(&load(b, x, &[&half]), &load(b, f, &[&t]));
                    store(b, y, &[&o], UpdateOp::Add, product, 7);
                },
                |_| {},
            );
        });
    });
    b.output(y);
    build(b)
}

pub(super) fn relu_in_place() -> Program {
    let mut b = KernelBuilder::new("relu");
    let n = b.dim("N");
    let x = b.inout("x", DType::F32, std::slice::from_ref(&n));
    each(&mut b, "i", &n, |b, i| {
        let negative = compare(&load(b, x, &[&i]), BinaryOp::Lt, &Value::float(0.0));
        b.if_else(negative, at(3), |b| store(b, x, &[&i], UpdateOp::Set, Value::float(0.0), 3), |_| {});
    });
    build(b)
}

/// Sum and largest element of each row, in one loop.
pub(super) fn several_outputs() -> Program {
    let mut b = KernelBuilder::new("rows");
    let (m, n) = (b.dim("M"), b.dim("N"));
    let x = input(&mut b, "x", &[&m, &n]);
    let sums = zeros(&mut b, "sums", &[&m]);
    let lowest = Value::float(f64::NEG_INFINITY);
    let largest = b.tensor("largest", DType::F32, std::slice::from_ref(&m), Some(lowest), at(2));
    each(&mut b, "i", &m, |b, i| {
        each(b, "j", &n, |b, j| {
            let v = load(b, x, &[&i, &j]);
            store(b, sums, &[&i], UpdateOp::Add, v.clone(), 4);
            store(b, largest, &[&i], UpdateOp::Max, v, 5);
        });
    });
    b.output(largest);
    b.output(sums);
    build(b)
}

/// `let t = x[[i]]; x[[i]] = y[[i]]; y[[i]] = t;`
pub(super) fn swap() -> Program {
    let mut b = KernelBuilder::new("swap");
    let n = b.dim("N");
    let x = b.inout("x", DType::F32, std::slice::from_ref(&n));
    let y = b.inout("y", DType::F32, std::slice::from_ref(&n));
    each(&mut b, "i", &n, |b, i| {
        let t = b.bind("t", load(b, x, &[&i]), at(3));
        store(b, x, &[&i], UpdateOp::Set, load(b, y, &[&i]), 4);
        store(b, y, &[&i], UpdateOp::Set, t, 5);
    });
    build(b)
}

/// `c = beta * c + a * b`, in place.
pub(super) fn gemm_in_place() -> Program {
    let mut b = KernelBuilder::new("gemm");
    let (m, n, k) = (b.dim("M"), b.dim("N"), b.dim("K"));
    let beta = b.scalar("beta", DType::F32);
    let a = input(&mut b, "a", &[&m, &k]);
    let w = input(&mut b, "b", &[&k, &n]);
    let c = b.inout("c", DType::F32, &[m.clone(), n.clone()]);
    each(&mut b, "i", &m, |b, i| {
        each(b, "j", &n, |b, j| {
            store(b, c, &[&i, &j], UpdateOp::Mul, beta.clone(), 4);
            each(b, "k", &k, |b, k| {
                let product = mul(&load(b, a, &[&i, &k]), &load(b, w, &[&k, &j]));
                store(b, c, &[&i, &j], UpdateOp::Add, product, 6);
            });
        });
    });
    build(b)
}

/// Every second element from the fifth on, the others untouched.
pub(super) fn strided_write() -> Program {
    let mut b = KernelBuilder::new("strided");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n]);
    let length = add(&mul(&int(2), &n), &int(4));
    let y = b.tensor("y", DType::F32, std::slice::from_ref(&length), Some(Value::float(7.0)), at(2));
    each(&mut b, "i", &n, |b, i| {
        let place = add(&mul(&int(2), &i), &int(4));
        store(b, y, &[&place], UpdateOp::Set, load(b, x, &[&i]), 4);
    });
    b.output(y);
    build(b)
}

/// `y[i] = Σ` over two loops, one after the other, onto one accumulator that is scaled in between.
pub(super) fn two_reductions() -> Program {
    let mut b = KernelBuilder::new("two");
    let (m, n) = (b.dim("M"), b.dim("N"));
    let x = input(&mut b, "x", &[&m, &n]);
    let y = zeros(&mut b, "y", &[&m]);
    each(&mut b, "i", &m, |b, i| {
        let sum = b.accumulator("sum", Value::float(1.0), at(3));
        each(b, "j", &n, |b, j| b.update(sum, UpdateOp::Add, load(b, x, &[&i, &j]), at(4)));
        b.update(sum, UpdateOp::Mul, Value::float(0.5), at(5));
        b.for_loop("j", int(0), n.clone(), 2, at(6), |b, j| {
            b.update(sum, UpdateOp::Add, load(b, x, &[&i, &j]), at(7));
        });
        store(b, y, &[&i], UpdateOp::Set, b.read(sum), 8);
    });
    b.output(y);
    build(b)
}
