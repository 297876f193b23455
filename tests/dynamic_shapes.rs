//! A kernel that meets many shapes does not compile for ever: further ones share a version with symbolic dimensions.

use tilewright::prelude::*;
use tilewright::{Kernel, Source, explain};

/// How many shapes get code of their own in these tests.
const OWN: usize = 3;

/// The sums of rows.
#[tensor_kernel]
fn row_sums(x: &Tensor<f32, M, N>) -> Tensor<f32, M> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            y[[i]] += x[[i, j]];
        }
    }
    y
}

/// C = A·B
#[tensor_kernel]
fn product(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] * b[[k, j]];
            }
        }
    }
    c
}

/// x·wᵀ with a weight that stays the same.
#[tensor_kernel]
fn dense(x: &Tensor<f32, M, K>, #[constant] w: &Tensor<f32, N, K>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                y[[i, j]] += x[[i, k]] * w[[j, k]];
            }
        }
    }
    y
}

/// The means of windows of `size` elements, `stride` apart.
#[tensor_kernel]
fn pooled(x: &Tensor<f32, C, N>, size: usize, stride: usize) -> Tensor<f32, C, { (N - size) / stride + 1 }> {
    let mut y = Tensor::zeros();
    for c in 0..C {
        for i in 0..(N - size) / stride + 1 {
            for k in 0..size {
                y[[c, i]] += x[[c, i * stride + k]];
            }
        }
    }
    y
}

/// Small integers: every order of additions gives the same sum.
fn numbers(shape: [usize; 2]) -> Tensor<f32, 2> {
    Tensor::from_fn(shape, |[i, j]| ((3 * i + 5 * j) % 7) as f32 - 3.0).unwrap()
}

fn assert_source(kernel: &Kernel, dims: &[(&str, i64)], number: usize) {
    let explanation = explain(kernel, dims).unwrap();
    let expected = if number < OWN { Source::Default } else { Source::Symbolic };
    assert_eq!(explanation.source, expected, "{dims:?} {:?}", explanation.notes);
}

#[test]
fn shapes_beyond_the_limit_share_one_version() {
    tilewright::set_specialized_shapes(OWN);
    let shapes = [[4, 5], [1, 1], [16, 2], [7, 9], [31, 64], [1, 1000], [3, 0], [2, 2]];
    for (number, [m, n]) in shapes.into_iter().enumerate() {
        let x = numbers([m, n]);
        assert_eq!(row_sums(&x).unwrap(), row_sums::reference(&x).unwrap(), "{m}×{n}");
        assert_source(row_sums::kernel(), &[("M", m as i64), ("N", n as i64)], number);
    }
}

#[test]
fn tiles_of_symbolic_dimensions_have_guarded_ends() {
    tilewright::set_specialized_shapes(OWN);
    let mut shapes = vec![[2, 3, 4], [5, 6, 7], [8, 8, 8], [100, 90, 80]];
    shapes.extend((1..30).map(|round| [(round * 37) % 71, (round * 53) % 67 + 1, (round * 29) % 73]));
    shapes.extend([[5, 7, 0], [0, 7, 3], [5, 0, 3], [33, 70, 0], [0, 0, 0], [1, 1, 0]]);
    for (number, [m, n, k]) in shapes.into_iter().enumerate() {
        let (a, b) = (numbers([m, k]), numbers([k, n]));
        assert_eq!(product(&a, &b).unwrap(), product::reference(&a, &b).unwrap(), "{m}×{n}×{k}");
        assert_source(product::kernel(), &[("M", m as i64), ("N", n as i64), ("K", k as i64)], number);
    }
}

#[test]
fn constants_are_read_where_they_are_when_sizes_are_symbolic() {
    tilewright::set_specialized_shapes(OWN);
    let shapes = [[8, 16, 32], [2, 3, 4], [32, 32, 32], [5, 6, 7], [16, 8, 24], [0, 4, 4], [33, 70, 5]];
    for (number, [m, n, k]) in shapes.into_iter().enumerate() {
        let (x, w) = (numbers([m, k]), numbers([n, k]));
        for _ in 0..2 {
            assert_eq!(dense(&x, &w).unwrap(), dense::reference(&x, &w).unwrap(), "{m}×{n}×{k}");
        }
        let dims = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
        assert_source(dense::kernel(), &dims, number);
        assert!(number < OWN || explain(dense::kernel(), &dims).unwrap().prologue.is_none());
    }
}

#[test]
fn parameters_stay_known_when_the_code_is_made() {
    tilewright::set_specialized_shapes(OWN);
    for n in [8, 9, 10, 17, 33, 100] {
        for (size, stride) in [(3, 1), (2, 2), (5, 3)] {
            let x = numbers([3, n]);
            let expected = pooled::reference(&x, size, stride).unwrap();
            assert_eq!(pooled(&x, size, stride).unwrap(), expected, "{n}, {size}, {stride}");
        }
    }
}
