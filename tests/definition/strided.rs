//! Calls with views that are not dense: equal to calls with copies of them, in machine code and in the reference.

use tilewright::kernel::Kernel;
use tilewright::prelude::*;
use tilewright_core::device::BufferArgument;
use tilewright_core::dtype::DType;
use tilewright_core::index::Index;
use tilewright_core::interp;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::tensor::AnyTensor;
use tilewright_core::verify::{Level, verify};

use crate::kernels::{matmul, softmax};

/// Copies that are chosen by data.
#[tensor_kernel]
fn pick(table: &Tensor<f32, V, D>, ids: &Tensor<i32, N>) -> Tensor<f32, N, D> {
    let mut rows = Tensor::zeros();
    for n in 0..N {
        for d in 0..D {
            rows[[n, d]] = table[[ids[[n]] as usize, d]];
        }
    }
    rows
}

/// y += m ? x : -x, where a mask says so.
#[tensor_kernel]
fn add_masked(y: &mut Tensor<i32, M, N>, x: &Tensor<i32, M, N>, mask: &Tensor<bool, M, N>) {
    for i in 0..M {
        for j in 0..N {
            y[[i, j]] += if mask[[i, j]] { x[[i, j]] } else { -x[[i, j]] };
        }
    }
}

/// x·w + b, with a weight that stays.
#[tensor_kernel]
fn layer(
    x: &Tensor<f32, N, K>,
    #[constant] w: &Tensor<f32, K, M>,
    b: &Tensor<f32, N, M>,
) -> Tensor<f32, N, M> {
    let mut y = Tensor::zeros();
    for n in 0..N {
        for m in 0..M {
            let mut sum = 0.0;
            for k in 0..K {
                sum += x[[n, k]] * w[[k, m]];
            }
            y[[n, m]] = sum + b[[n, m]];
        }
    }
    y
}

/// A matrix of small whole numbers, whose sums of products are exact.
fn matrix(rows: usize, columns: usize) -> Tensor<f32, 2> {
    Tensor::from_fn([rows, columns], |[i, j]| ((i * 7 + j * 3) % 11) as f32 - 5.0).unwrap()
}

fn copy<T: Element, const RANK: usize>(view: &TensorView<'_, T, RANK>) -> Tensor<T, RANK> {
    view.to_tensor().unwrap()
}

/// Views of all kinds with a shape.
fn views(storage: &Tensor<f32, 2>, shape: [usize; 2]) -> Vec<TensorView<'_, f32, 2>> {
    let [rows, columns] = shape;
    let slice = storage.as_slice();
    let part = |offset: usize, strides| TensorView::with_strides(&slice[offset..], shape, strides).unwrap();
    vec![
        part(0, [columns, 1]),
        part(3, [columns + 5, 1]),
        part(0, [1, rows]),
        part(1, [1, rows + 2]),
        part(2, [2 * columns + 1, 2]),
        part(0, [0, 1]),
        part(5, [3, 0]),
        part(1, [1, 1]),
        part(0, [0, 0]),
    ]
}

#[test]
fn products_of_strided_views_are_those_of_copies() {
    let storage = matrix(64, 64);
    let shapes = [[1, 1, 1], [7, 5, 3], [13, 17, 11], [16, 33, 8], [1, 19, 23]];
    for (number, [m, n, k]) in shapes.into_iter().enumerate() {
        let (left, right) = (views(&storage, [m, k]), views(&storage, [k, n]));
        for (position, a) in left.iter().enumerate() {
            let b = &right[(4 * position + number) % right.len()];
            let expected = matmul::reference(&copy(a), &copy(b)).unwrap();
            let title = || format!("{m} {n} {k}: {:?} {:?}", a.strides(), b.strides());
            assert_eq!(matmul::reference(a, b).unwrap(), expected, "{}", title());
            assert_eq!(matmul(a, b).unwrap(), expected, "{}", title());
        }
    }
}

#[test]
fn every_argument_that_is_read_can_be_strided() {
    let storage = matrix(40, 40);
    let (table, ids) = (matrix(9, 12), Tensor::from_fn([14], |[n]| (n * 5 % 9) as i32).unwrap());
    let columns = TensorView::from(&table).slice_along(1, 4..11).unwrap();
    let every_other = TensorView::from(&ids).step_along(0, 2).unwrap();
    let expected = pick::reference(&copy(&columns), &copy(&every_other)).unwrap();
    assert_eq!(pick(columns, every_other).unwrap(), expected);
    assert_eq!(pick::reference(columns, every_other).unwrap(), expected);
    let outside = Tensor::from_slice(&[0, 9, 1, 1], [4]).unwrap();
    let error = pick(columns, TensorView::from(&outside).step_along(0, 1).unwrap()).unwrap_err();
    assert!(error.to_string().contains("`table`"), "{error}");

    let mask = Tensor::from_fn([6, 8], |[i, j]| (i + j) % 3 == 0).unwrap();
    let x = Tensor::from_fn([8, 6], |[i, j]| (i * j) as i32 - 9).unwrap();
    let turned = TensorView::from(&x).permute([1, 0]).unwrap();
    let row = TensorView::from(&mask).slice(2..3).unwrap().repeat_along(0, 6).unwrap();
    let mut expected = Tensor::full([6, 8], 3).unwrap();
    add_masked::reference(&mut expected, &copy(&turned), &copy(&row)).unwrap();
    let mut y = Tensor::full([6, 8], 3).unwrap();
    add_masked(&mut y, turned, row).unwrap();
    assert_eq!(y, expected);

    let [x, w, b] = [[10, 7], [7, 18], [10, 18]].map(|shape| views(&storage, shape)[2]);
    for _ in 0..3 {
        let expected = layer::reference(&copy(&x), &copy(&w), &copy(&b)).unwrap();
        assert_eq!(layer(x, w, b).unwrap(), expected);
        let mut into = Tensor::zeros([10, 18]).unwrap();
        layer::call_into(x, w, b, &mut into).unwrap();
        assert_eq!(into, expected);
    }
    for shape in [[3, 16], [5, 131], [1, 1]] {
        let storage = matrix(shape[1], shape[0] + 3);
        let turned = TensorView::from(&storage).permute([1, 0]).unwrap().slice(1..1 + shape[0]).unwrap();
        let (found, expected) = (softmax(turned).unwrap(), softmax::reference(&copy(&turned)).unwrap());
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-6, "{found} {expected}");
        }
    }
}

#[test]
fn lengths_of_strided_views_can_change() {
    let storage = matrix(50, 50);
    for length in 1..40 {
        let part =
            TensorView::from(&storage).slice_along(1, 2..2 + length).unwrap().slice(0..length).unwrap();
        let turned = part.permute([1, 0]).unwrap();
        let expected = matmul::reference(&copy(&part), &copy(&turned)).unwrap();
        assert_eq!(matmul(part, turned).unwrap(), expected, "{length}");
    }
    let nothing = TensorView::from(&storage).slice_along(1, 7..7).unwrap();
    let expected = Tensor::zeros([50, 50]).unwrap();
    assert_eq!(matmul(nothing, nothing.permute([1, 0]).unwrap()).unwrap(), expected);
}

/// The program of a kernel whose first tensor has strides, at a size.
fn strided_program(kernel: &Kernel, dims: &[i64], strides: &[i64]) -> Program {
    let program = kernel.program().unwrap();
    let sizes: Vec<_> = program.dims().map(|(var, _)| var).zip(dims.iter().copied()).collect();
    let mut bound = program.bind_dims(&sizes);
    let (first, _) = bound.buffer_params().next().unwrap();
    bound.set_strides(first, strides.iter().map(|stride| Index::constant(*stride)).collect());
    bound
}

#[test]
fn programs_with_strides_print_parse_and_mean_the_same_on_every_level() {
    for (dims, strides) in
        [([3i64, 5, 4], [1, 3]), ([3, 5, 4], [9, 2]), ([2, 6, 7], [0, 1]), ([1, 1, 1], [5, 5])]
    {
        let [m, k, n] = dims;
        let program = strided_program(matmul::kernel(), &dims, &strides);
        verify(&program, Level::Blocks).unwrap_or_else(|errors| panic!("{}", errors.render(&program)));
        let text = program.to_string();
        assert!(text.contains(&format!("strides [{}, {}]", strides[0], strides[1])), "{text}");
        let parsed: Program = text.parse().unwrap();
        assert_eq!(parsed.to_string(), text);
        assert_eq!(parsed.stable_hash(), program.stable_hash());
        assert_ne!(program.stable_hash(), strided_program(matmul::kernel(), &dims, &[77, 1]).stable_hash());
        let len = ((m - 1) * strides[0] + (k - 1) * strides[1] + 1) as usize;
        let a = AnyTensor::from_f64s(DType::F32, &(0..len).map(|i| i as f64).collect::<Vec<_>>(), &[len])
            .unwrap();
        let b = AnyTensor::from(&matrix(k as usize, n as usize));
        let c = AnyTensor::zeros(a.dtype(), &[m as usize, n as usize]).unwrap();
        let flat = lower(&program, &LowerOptions::default()).unwrap();
        let mut results = Vec::new();
        for level in [&program, &flat] {
            let mut tensors = [a.clone(), b.clone(), c.clone()];
            interp::run(level, &[], &[], &mut tensors).unwrap_or_else(|error| panic!("{error}\n{level}"));
            results.push(tensors[2].to_f64_vec());
        }
        assert_eq!(results[0], results[1]);
        let mut short = [AnyTensor::zeros(a.dtype(), &[len + 1]).unwrap(), b, c];
        let error = interp::run(&program, &[], &[], &mut short).unwrap_err().to_string();
        assert!(error.contains("with strides"), "{error}");
    }
}

/// The same with strides of the result as well.
fn with_strided_result(mut program: Program, strides: [i64; 2]) -> Program {
    let (output, _) = program.buffer_params().nth(2).unwrap();
    program.set_strides(output, strides.map(Index::constant).into());
    program
}

#[test]
fn results_can_be_parts_of_tensors_on_every_level() {
    let (m, k, n) = (3i64, 5i64, 4i64);
    let (a, b) = (matrix(m as usize, k as usize), matrix(k as usize, n as usize));
    let expected = matmul::reference(&a, &b).unwrap();
    for strides in [[n, 1], [n + 3, 1], [1, m], [1, m + 2], [2 * n, 2], [50, 7]] {
        let program = with_strided_result(strided_program(matmul::kernel(), &[m, k, n], &[k, 1]), strides);
        verify(&program, Level::Blocks).unwrap_or_else(|errors| panic!("{}", errors.render(&program)));
        let text = program.to_string();
        assert_eq!(text.parse::<Program>().unwrap().to_string(), text);
        let len = ((m - 1) * strides[0] + (n - 1) * strides[1] + 1) as usize;
        let mut wanted = vec![-1.0; len];
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            wanted[(i * strides[0] + j * strides[1]) as usize] = expected[[i as usize, j as usize]].into();
        }
        let row = AnyTensor::from(&a).to_f64_vec();
        let own = AnyTensor::from_f64s(DType::F32, &row, &[row.len()]).unwrap();
        let flat = lower(&program, &LowerOptions::default()).unwrap();
        for level in [&program, &flat] {
            let c = AnyTensor::from_f64s(DType::F32, &vec![-1.0; len], &[len]).unwrap();
            let mut tensors = [own.clone(), AnyTensor::from(&b), c];
            interp::run(level, &[], &[], &mut tensors).unwrap_or_else(|error| panic!("{error}\n{level}"));
            assert_eq!(tensors[2].to_f64_vec(), wanted, "{strides:?}\n{level}");
        }
    }
}

#[test]
fn strides_where_there_can_be_none_are_errors() {
    let program = with_strided_result(strided_program(matmul::kernel(), &[2, 2, 2], &[1, 2]), [1, 1]);
    let errors = verify(&program, Level::Blocks).unwrap_err();
    assert!(errors.render(&program).contains("elements that are written would lie on each other"));
    let mut tensors = [&[4][..], &[2, 2], &[3]].map(|shape| AnyTensor::zeros(DType::F32, shape).unwrap());
    let error = interp::run(&program, &[], &[], &mut tensors).unwrap_err().to_string();
    assert!(error.contains("strides [1, 1] that keep its elements apart"), "{error}");

    let (mut c, strides) = ([0u8; 16], [1, 1]);
    let bytes = [0u8; 16];
    let mut buffers =
        [BufferArgument::Read(&bytes), BufferArgument::Read(&bytes), BufferArgument::Write(&mut c)];
    let mut refused = |strides: &[Option<&[usize]>]| {
        matmul::kernel().run_strided(&[2, 2, 2], strides, &[], &mut buffers).unwrap_err().to_string()
    };
    assert!(refused(&[None, None, Some(&strides)]).contains("do not keep its elements apart"));
    assert!(refused(&[Some(&strides[..1]), None, None]).contains("`a` has 2 dimensions, and 1 strides"));
    assert!(refused(&[None, None, None, Some(&strides)]).contains("tensors"));
}
