//! The functions that a user calls.

use tilewright::{Tensor, tensor_kernel};

use super::kernels::{axpy, conv2d, embedding, layer_norm, masks, matmul};

fn matrix<const M: usize, const N: usize>() -> Tensor<f32, 2> {
    Tensor::from_fn([M, N], |[i, j]| (i * N + j) as f32 * 0.5 - 1.0).expect("it fits into memory")
}

#[test]
fn a_call_gives_what_the_reference_gives() {
    let (a, b) = (matrix::<3, 4>(), matrix::<4, 2>());
    let expected = matmul::reference(&a, &b).expect("the shapes fit");
    assert_eq!(expected.as_slice()[0], -1.0 * -1.0 + -0.5 * 0.0 + 0.0 * 1.0 + 0.5 * 2.0);
    assert_eq!(matmul(&a, &b).expect("the shapes fit"), expected);
}

#[test]
fn results_of_the_callers_are_overwritten() {
    let (a, b) = (matrix::<3, 4>(), matrix::<4, 2>());
    let mut c = Tensor::full([3, 2], 9.0f32).expect("it fits into memory");
    matmul::call_into(&a, &b, &mut c).expect("the shapes fit");
    assert_eq!(c, matmul::reference(&a, &b).expect("the shapes fit"));
    let mut wrong = Tensor::full([2, 2], 9.0f32).expect("it fits into memory");
    let error = matmul::call_into(&a, &b, &mut wrong).expect_err("M is 3");
    assert_eq!(
        error.to_string(),
        "kernel `matmul`, argument `c`: dimension 0 (`M`) is 2, expected 3 because M = 3"
    );
}

#[test]
fn arguments_are_updated_in_place() {
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2]).expect("it fits");
    let mut y = Tensor::from_slice(&[10.0f32, 20.0], [2]).expect("it fits");
    axpy(&x, &mut y, 2.0).expect("the shapes fit");
    assert_eq!(y.as_slice(), [12.0, 24.0]);
    axpy::reference(&x, &mut y, 2.0).expect("the shapes fit");
    assert_eq!(y.as_slice(), [14.0, 28.0]);
}

#[test]
fn several_results_come_as_a_tuple() {
    let x = matrix::<2, 4>();
    let (gain, bias) = (Tensor::full([4], 1.0f32), Tensor::zeros([4]));
    let (gain, bias) = (gain.expect("it fits"), bias.expect("it fits"));
    let (y, mean, variance) = layer_norm(&x, &gain, &bias).expect("the shapes fit");
    assert_eq!(y.shape(), [2, 4]);
    assert_eq!(mean.as_slice(), [-0.25, 1.75]);
    assert_eq!(variance.as_slice(), [0.3125, 0.3125]);
}

#[test]
fn truth_values_come_and_go() {
    let a = Tensor::from_slice(&[0.0f32, 0.9, 0.9], [3]).expect("it fits");
    let b = Tensor::from_slice(&[true, false, true], [3]).expect("it fits");
    let (mask, count) = masks(&a, &b).expect("the shapes fit");
    assert_eq!(mask.as_slice(), [true, true, false]);
    assert_eq!(count.as_slice(), [2]);
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let error = matmul(&matrix::<3, 4>(), &matrix::<5, 2>()).expect_err("K differs");
    assert_eq!(
        error.to_string(),
        "kernel `matmul`, argument `b`: dimension 0 (`K`) is 5, expected 4 as in `a`"
    );
    let x = Tensor::zeros([2, 2, 1]).expect("it fits");
    let w = Tensor::zeros([3, 3, 1, 1]).expect("it fits");
    let bias = Tensor::zeros([1]).expect("it fits");
    let error = conv2d(&x, &w, &bias, 1, 0, 1).expect_err("the window is larger than the image");
    assert!(
        error.to_string().contains("is negative or too large for H = 2, W = 2, CI = 1, KH = 3"),
        "{error}"
    );
    let error = conv2d(&x, &w, &bias, 0, 1, 1).expect_err("the stride is zero");
    assert!(error.to_string().contains("argument `y`: dimension 0"), "{error}");
}

#[test]
fn indices_that_are_data_are_checked() {
    let table = matrix::<4, 2>();
    for (id, expected) in
        [(4, "index [4, 0] is outside the tensor `table` of shape [4, 2]"), (-1, "-1 as usize")]
    {
        let ids = Tensor::from_slice(&[0, id], [2]).expect("it fits");
        let error = embedding::reference(&table, &ids).expect_err("there is no such row");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_negative_index_is_an_error_of_the_definition() {
    #[tensor_kernel]
    fn previous(x: &Tensor<f32, N>) -> Tensor<f32, N> {
        let mut y = Tensor::zeros();
        for i in 0..N {
            y[[i]] = x[[i - 1]];
        }
        y
    }
    let x = Tensor::zeros([3]).expect("it fits");
    let error = previous::reference(&x).expect_err("there is none before the first");
    assert_eq!(
        error.to_string(),
        "`-` of 0 and 1 is -1, which is no usize; test the order first, as in `if i >= k { … i - k … }`"
    );
}

#[test]
fn what_cannot_be_built_is_told_at_the_users_line() {
    #[tensor_kernel]
    fn overwritten(x: &Tensor<f32, N>) -> Tensor<f32, N> {
        let mut y = Tensor::zeros();
        for i in 0..N {
            for j in 0..N {
                y[[i]] = x[[j]];
            }
        }
        y
    }
    let error = overwritten::kernel().program().expect_err("only the last element counts").to_string();
    let line = line!() - 6;
    assert!(error.contains(&format!("calls.rs:{line}:24")), "line {line} is missing in\n{error}");
}

#[test]
fn a_definition_can_stand_in_a_function() {
    /// Documented.
    #[tensor_kernel]
    pub(crate) fn fill(n: usize, value: f32) -> Tensor<f32, n> {
        let mut y = Tensor::zeros();
        for i in 0..n {
            y[[i]] = value;
        }
        y
    }
    assert_eq!(fill::reference(3, 2.5).expect("it fits into memory").as_slice(), [2.5; 3]);
    assert!(fill(usize::MAX, 0.0).is_err());
}

#[test]
fn kernels_are_found_by_linking() {
    let names: Vec<_> = tilewright::kernels().iter().map(|kernel| kernel.name()).collect();
    for name in ["matmul", "conv2d", "fill"] {
        assert!(names.contains(&name), "`{name}` is missing among {names:?}");
    }
    let mut sorted: Vec<_> = tilewright::kernels();
    sorted.sort_by_key(|kernel| kernel.definition().map(|definition| (definition.module, definition.name)));
    assert_eq!(names, sorted.iter().map(|kernel| kernel.name()).collect::<Vec<_>>());
    assert_eq!(matmul::kernel().path(), "definition::kernels::matmul");
    let definition = matmul::kernel().definition().expect("it is written in Rust");
    assert!(definition.location.to_string().contains("kernels.rs:"));
}

#[test]
fn every_definition_that_cannot_be_built_is_found() {
    let errors = tilewright::check_all().expect_err("two kernels of these tests are wrong").to_string();
    for kernel in ["previous", "overwritten"] {
        assert!(errors.contains(&format!("kernel `{kernel}` cannot be built")), "{kernel}: {errors}");
    }
    assert_eq!(errors.matches("cannot be built").count(), 2, "{errors}");
}
