//! Calls of kernels: right results for every shape, and an error that says what and where for every bad argument.

use std::sync::Barrier;

use tilewright::prelude::*;
use tilewright::{Error, explain};

/// C = A·B
#[tensor_kernel]
pub fn matmul(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
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

/// y += alpha · x
#[tensor_kernel]
fn axpy(alpha: f32, x: &Tensor<f32, N>, y: &mut Tensor<f32, N>) {
    for i in 0..N {
        y[[i]] += alpha * x[[i]];
    }
}

/// Rows of a table.
#[tensor_kernel]
fn gather(table: &Tensor<f32, V, D>, ids: &Tensor<i32, N>) -> Tensor<f32, N, D> {
    let mut rows = Tensor::zeros();
    for i in 0..N {
        for d in 0..D {
            rows[[i, d]] = table[[ids[[i]] as usize, d]];
        }
    }
    rows
}

/// The line of the index in `gather`.
const GATHERS: u32 = line!() - 7;

/// Every `stride`-th element.
#[tensor_kernel]
fn strided(x: &Tensor<f32, N>, stride: usize) -> Tensor<f32, { N / stride }> {
    let mut y = Tensor::zeros();
    for i in 0..N / stride {
        y[[i]] = x[[i * stride]];
    }
    y
}

/// Reads one element further than there are.
#[tensor_kernel]
fn too_far(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = x[[i + 1]];
    }
    y
}

/// Only called by the test of threads.
#[tensor_kernel]
fn doubled(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = x[[i]] + x[[i]];
    }
    y
}

fn numbers<const RANK: usize>(shape: [usize; RANK]) -> Tensor<f32, RANK> {
    let mut state = 1u32;
    Tensor::from_fn(shape, |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as f32 / 65536.0 - 0.5
    })
    .expect("a small tensor")
}

fn assert_close<const RANK: usize>(found: &Tensor<f32, RANK>, expected: &Tensor<f32, RANK>, what: &str) {
    assert_eq!(found.shape(), expected.shape(), "{what}");
    for (position, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = (found - expected).abs() <= 1e-5 * (1.0 + expected.abs());
        assert!(close, "{what}: element {position} is {found}, expected {expected}");
    }
}

#[test]
fn every_shape_gives_what_the_definition_says() {
    for (m, n, k) in [(1, 1, 1), (2, 3, 4), (17, 13, 19), (64, 48, 32), (1, 100, 7), (61, 1, 5)] {
        let (a, b) = (numbers([m, k]), numbers([k, n]));
        let what = format!("{m}×{n}×{k}");
        assert_close(&matmul(&a, &b).expect(&what), &matmul::reference(&a, &b).expect(&what), &what);
    }
}

#[test]
fn empty_dimensions_are_shapes_like_others() {
    for (m, n, k) in [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (0, 5, 0)] {
        let (a, b) = (numbers([m, k]), numbers([k, n]));
        let c = matmul(&a, &b).unwrap_or_else(|error| panic!("{m}×{n}×{k}: {error}"));
        assert_eq!(c.shape(), [m, n]);
        assert!(c.iter().all(|&element| element == 0.0), "a sum of nothing is 0: {c}");
    }
    let mut nothing = numbers([0]);
    axpy(2.0, &numbers([0]), &mut nothing).expect("nothing to do");
}

#[test]
fn scalars_and_in_place_arguments_work() {
    let (x, mut y) = (numbers([37]), numbers([37]));
    let expected = Tensor::from_fn([37], |[i]| y[[i]] + 0.5 * x[[i]]).expect("a small tensor");
    axpy(0.5, &x, &mut y).expect("the arguments fit");
    assert_close(&y, &expected, "axpy");
}

#[test]
fn results_can_be_the_callers() {
    let (a, b) = (numbers([5, 6]), numbers([6, 7]));
    let mut c = numbers([5, 7]);
    matmul::call_into(&a, &b, &mut c).expect("the arguments fit");
    assert_close(&c, &matmul::reference(&a, &b).expect("the arguments fit"), "call_into");
    let error = matmul::call_into(&a, &b, &mut numbers([7, 5])).expect_err("transposed").to_string();
    assert!(error.contains("`c`: dimension 0 (`M`) is 7, expected 5"), "{error}");
}

#[test]
fn a_wrong_dimension_is_named() {
    let error = matmul(&numbers([2, 3]), &numbers([4, 5])).expect_err("3 is not 4").to_string();
    assert_eq!(error, "kernel `matmul`, argument `b`: dimension 0 (`K`) is 4, expected 3 as in `a`");
}

#[test]
fn views_are_read_and_written_by_their_strides() {
    let mut elements = numbers([12]);
    let transposed = TensorView::with_strides(elements.as_slice(), [3, 4], [1, 3]).expect("it fits");
    let (b, copied) = (numbers([4, 2]), transposed.to_tensor().expect("a small tensor"));
    let expected = matmul::reference(&copied, &b).expect("the arguments fit");
    assert_close(&matmul(transposed, &b).expect("it is only read"), &expected, "transposed");
    for strides in [[4, 1], [1, 4], [3, 2]] {
        let before = elements.as_slice().to_vec();
        let mut part =
            TensorViewMut::with_strides(elements.as_mut_slice(), [3, 2], strides).expect("it fits");
        matmul::call_into(&copied, &b, &mut part).expect("its elements lie apart");
        assert_close(&part.as_view().to_tensor().expect("a small tensor"), &expected, "a part");
        let own: Vec<usize> =
            (0..6).map(|number| number / 2 * strides[0] + number % 2 * strides[1]).collect();
        for place in (0..12).filter(|place| !own.contains(place)) {
            assert_eq!(elements.as_slice()[place], before[place], "{strides:?}: what lies between stays");
        }
    }
}

#[test]
fn an_index_from_data_out_of_bounds_is_an_error() {
    let table = numbers([10, 4]);
    let ids = |ids: &[i32]| Tensor::from_slice(ids, [ids.len()]).expect("a small tensor");
    let rows = gather(&table, &ids(&[9, 0, 3])).expect("all in bounds");
    assert_eq!(rows[[0, 1]], table[[9, 1]]);
    for bad in [10, -1, i32::MAX, i32::MIN] {
        let error = gather(&table, &ids(&[0, bad, 3])).expect_err("out of bounds");
        assert!(matches!(error, Error::Call(_)), "{bad}: {error:?}");
        let line = GATHERS;
        let expected = format!(
            "an index read from data is {bad}, outside 0..10 of tensor `table` at tests/calls.rs:{line}:"
        );
        assert!(error.to_string().starts_with(&expected), "{bad}: {error}");
    }
    gather(&numbers([0, 4]), &ids(&[0])).expect_err("an empty table has no row 0");
}

#[test]
fn sizes_are_part_of_the_shape() {
    let x = numbers([12]);
    for stride in [1, 2, 5] {
        let y = strided(&x, stride).expect("the arguments fit");
        assert_close(
            &y,
            &strided::reference(&x, stride).expect("the arguments fit"),
            &format!("stride {stride}"),
        );
    }
    let error = strided(&x, 0).expect_err("nothing can be divided by 0").to_string();
    assert!(error.contains("`N / stride`") && error.contains("stride = 0"), "{error}");
    strided(&x, usize::MAX).expect_err("no dimension is that large");
}

#[test]
fn a_definition_that_leaves_its_tensors_is_refused_with_its_place() {
    let error = too_far(&numbers([4])).expect_err("there is no x[4]").to_string();
    assert!(error.contains("too_far") && error.contains("`x`") && error.contains("calls.rs:"), "{error}");
}

#[test]
fn dimensions_that_no_tensor_can_have_are_refused() {
    let kernel = matmul::kernel();
    for dims in [[1 << 40, 1 << 40, 1 << 40], [i64::MAX, 2, 2], [-1, 2, 2]] {
        let error = kernel.program_for(&dims).expect_err("no memory is that large");
        assert!(matches!(error, Error::Shape(_) | Error::Call(_)), "{dims:?}: {error:?}");
        kernel.run(&dims, &[], &mut []).expect_err("as above");
    }
    let error = kernel.run(&[1, 2], &[], &mut []).expect_err("K is missing").to_string();
    assert_eq!(error, "3 dimensions expected, 2 given");
    kernel.run(&[1, 2, 3], &[], &mut []).expect_err("there are no tensors");
    kernel.run(&[], &[], &mut []).expect_err("there are no dimensions");
}

#[test]
fn dimensions_are_explained_by_name() {
    let wrong = |dims: &[(&str, i64)]| explain(matmul::kernel(), dims).expect_err("wrong names").to_string();
    assert!(wrong(&[("M", 1), ("N", 1)]).contains("`K` is missing"));
    assert!(wrong(&[("M", 1), ("N", 1), ("K", 1), ("Q", 1)]).contains("`Q` is none of them"));
    assert!(wrong(&[("M", 1), ("N", 1), ("K", 1), ("K", 2)]).contains("`K` is given twice"));
    let text = explain(matmul::kernel(), &[("K", 3), ("M", 1), ("N", 2)]).expect("all are given").to_string();
    for part in ["kernel matmul for K=3, M=1, N=2: the default schedule", "trace v1", "machine code"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn kernels_are_found_by_name() {
    let found = tilewright::kernel("matmul").expect("it is defined above");
    assert!(std::ptr::eq(found, matmul::kernel()));
    assert!(std::ptr::eq(tilewright::kernel("calls::matmul").expect("by path as well"), found));
    let error = tilewright::kernel("matmull").expect_err("a typing mistake").to_string();
    assert!(error.contains("no kernel is named `matmull`") && error.contains("calls::matmul"), "{error}");
    let names: Vec<_> = tilewright::kernels().iter().map(|kernel| kernel.name()).collect();
    assert!(names.is_sorted(), "{names:?}");
}

#[test]
fn first_calls_from_many_threads_agree() {
    const THREADS: usize = 8;
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                for length in 1..24 {
                    let x = numbers([length + thread % 2]);
                    let y = doubled(&x).expect("the arguments fit");
                    assert!(x.iter().zip(&y).all(|(x, y)| 2.0 * x == *y), "{length} on thread {thread}");
                }
            });
        }
    });
}
