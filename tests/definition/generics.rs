//! Generic kernels: one definition, a kernel for each element type; and tensors without dimensions.

use tilewright::prelude::*;

#[tensor_fn]
fn positive_part<T: Number>(x: T) -> T {
    x.max(0)
}

/// a + 2 b
#[tensor_kernel]
fn add_twice<T: Element>(a: &Tensor<T, N>, b: &Tensor<T, N>) -> Tensor<T, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]] + 2 * b[[i]];
    }
    c
}

#[tensor_kernel]
fn product<T>(a: &Tensor<T, M, K>, b: &Tensor<T, K, N>) -> Tensor<T, M, N>
where
    T: Number,
{
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

#[tensor_kernel]
fn greatest<T: Number>(x: &Tensor<T, N>) -> Tensor<T> {
    let mut y = Tensor::zeros();
    let mut best = T::MIN;
    for i in 0..N {
        best = best.max(x[[i]]);
    }
    y[[]] = best;
    y
}

#[tensor_kernel]
fn softmax<T: Float>(x: &Tensor<T, M, N>) -> Tensor<T, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        let mut largest = T::NEG_INFINITY;
        for j in 0..N {
            largest = largest.max(x[[i, j]]);
        }
        let mut sum = 0.0;
        for j in 0..N {
            sum += (x[[i, j]] - largest).exp();
        }
        for j in 0..N {
            y[[i, j]] = (x[[i, j]] - largest).exp() / sum;
        }
    }
    y
}

#[tensor_kernel]
fn convert<T: Element, U: Element>(x: &Tensor<T, N>) -> Tensor<U, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = x[[i]] as U;
    }
    y
}

#[tensor_kernel]
fn masked<T: Bits>(x: &Tensor<T, N>, mask: T) -> Tensor<T, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = !(x[[i]] & mask);
    }
    y
}

#[tensor_kernel]
fn rectified<T: Number>(x: &mut Tensor<T, N>, shift: T) {
    for i in 0..N {
        x[[i]] = positive_part(x[[i]] + -shift);
    }
}

#[tensor_kernel]
fn picked<T: Element>(x: &Tensor<T, V>, at: &Tensor<T, N>) -> Tensor<T, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = x[[at[[i]] as usize]];
    }
    y
}

#[tensor_kernel]
fn scaled(x: &Tensor<f32, N>, factor: &Tensor<f32>) -> (Tensor<f32, N>, Tensor<f32>) {
    let mut y = Tensor::zeros();
    let mut total = Tensor::zeros();
    for i in 0..N {
        y[[i]] = x[[i]] * factor[[]];
        total[[]] += x[[i]];
    }
    (y, total)
}

/// Without any loop.
#[tensor_kernel]
fn doubled(x: &mut Tensor<f64>) -> Tensor<f64> {
    let mut y = Tensor::zeros();
    y[[]] = x[[]] * 2.0;
    x[[]] = x[[]] + 1.0;
    y
}

const LENGTHS: [usize; 5] = [0, 1, 7, 64, 131];

fn values<T: Element>(length: usize, salt: usize) -> Tensor<T, 1> {
    Tensor::from_fn([length], |[i]| T::from_f64(((i * 7 + salt) % 11) as f64)).expect("it fits")
}

fn arithmetic<T: Number>() {
    for length in LENGTHS {
        let (a, b) = (values::<T>(length, 1), values::<T>(length, 5));
        let sum = add_twice(&a, &b).expect("it runs");
        assert_eq!(sum, add_twice::reference(&a, &b).expect("it runs"), "{}", T::DTYPE);
        for i in 0..length {
            assert_eq!(sum[[i]].to_f64(), a[[i]].to_f64() + 2.0 * b[[i]].to_f64(), "{}", T::DTYPE);
        }
        let mut rectify = a.clone();
        let mut expected = a.clone();
        rectified(&mut rectify, T::from_f64(3.0)).expect("it runs");
        rectified::reference(&mut expected, T::from_f64(3.0)).expect("it runs");
        assert_eq!(rectify, expected, "{}", T::DTYPE);
        let most = greatest(&a).expect("it runs");
        assert_eq!(most, greatest::reference(&a).expect("it runs"), "{}", T::DTYPE);
        let known = (0..length).map(|i| a[[i]].to_f64()).fold(T::MIN.to_f64(), f64::max);
        assert_eq!(most[[]].to_f64(), known, "{}", T::DTYPE);
    }
    let a = Tensor::from_fn([5, 7], |[i, k]| T::from_f64(((i + k) % 3) as f64)).expect("it fits");
    let b = Tensor::from_fn([7, 3], |[k, j]| T::from_f64(((k + 2 * j) % 4) as f64)).expect("it fits");
    let c = product::<T>(&a, &b).expect("it runs");
    assert_eq!(c, product::reference(&a, &b).expect("it runs"), "{}", T::DTYPE);
}

#[test]
fn one_definition_computes_every_number() {
    arithmetic::<f16>();
    arithmetic::<bf16>();
    arithmetic::<f32>();
    arithmetic::<f64>();
    arithmetic::<i8>();
    arithmetic::<u8>();
    arithmetic::<i16>();
    arithmetic::<u16>();
    arithmetic::<i32>();
    arithmetic::<u32>();
    arithmetic::<i64>();
    arithmetic::<u64>();
}

fn close<T: Float>(bound: f64) {
    let x = Tensor::from_fn([3, 13], |[i, j]| T::from_f64((i * j % 5) as f64 * 0.5)).expect("it fits");
    let (y, reference) = (softmax(&x).expect("it runs"), softmax::reference(&x).expect("it runs"));
    for i in 0..3 {
        let sum: f64 = (0..13).map(|j| y[[i, j]].to_f64()).sum();
        assert!((sum - 1.0).abs() < 13.0 * bound, "{}: {sum}", T::DTYPE);
        for j in 0..13 {
            let difference = (y[[i, j]].to_f64() - reference[[i, j]].to_f64()).abs();
            assert!(difference <= bound, "{}: {difference}", T::DTYPE);
        }
    }
}

#[test]
fn floats_have_functions_and_constants() {
    close::<f16>(2e-3);
    close::<bf16>(2e-2);
    close::<f32>(1e-6);
    close::<f64>(1e-14);
}

fn conversions<T: Element, U: Number>() {
    let x = values::<T>(37, 3);
    let y: Tensor<U, 1> = convert(&x).expect("it runs");
    assert_eq!(y, convert::reference(&x).expect("it runs"), "{} to {}", T::DTYPE, U::DTYPE);
    assert!(y.as_slice().iter().any(|value| *value != U::default()));
}

#[test]
fn two_parameters_make_every_conversion() {
    conversions::<f32, i8>();
    conversions::<u8, f64>();
    conversions::<bool, i64>();
    conversions::<f64, bf16>();
    conversions::<i32, i32>();
    conversions::<bool, f16>();
}

#[test]
fn bits_are_those_of_integers_and_bool() {
    let x = values::<u8>(9, 2);
    assert_eq!(masked(&x, 6).expect("it runs"), masked::reference(&x, 6).expect("it runs"));
    assert_eq!(masked(&x, 6).expect("it runs")[[0]], !(2 & 6));
    let x = Tensor::from_slice(&[true, false], [2]).expect("it fits");
    assert_eq!(masked(&x, true).expect("it runs").as_slice(), [false, true]);
}

#[test]
fn elements_of_a_parameter_are_indices() {
    let (table, at) = (values::<i32>(5, 0), Tensor::from_slice(&[4, 0, 2], [3]).expect("it fits"));
    assert_eq!(picked(&table, &at).expect("it runs"), picked::reference(&table, &at).expect("it runs"));
    let outside = Tensor::from_slice(&[5], [1]).expect("it fits");
    assert!(picked(&table, &outside).is_err() && picked::reference(&table, &outside).is_err());
    let negative = Tensor::from_slice(&[-1], [1]).expect("it fits");
    assert!(picked(&table, &negative).is_err() && picked::reference(&table, &negative).is_err());
}

#[test]
fn each_type_is_a_kernel_of_its_own() {
    assert_eq!(product::kernel::<f32>().name(), "product_f32");
    assert!(std::ptr::eq(product::kernel::<f32>(), product::kernel::<f32>()));
    assert!(!std::ptr::eq(product::kernel::<f32>(), product::kernel::<i8>()));
    let names: Vec<_> = tilewright::kernels().iter().map(|kernel| kernel.name().to_owned()).collect();
    let of = |start: &str| names.iter().filter(|name| name.starts_with(start)).count();
    assert_eq!((of("add_twice_"), of("softmax_"), of("masked_")), (12, 4, 9), "{names:?}");
    convert::kernel::<u64, u16>();
    assert!(tilewright::kernel("convert_u64_u16").is_ok(), "it is found once it is used");
    let instances = tilewright::kernels().into_iter().filter(|kernel| kernel.path().contains("::generics::"));
    for kernel in instances {
        assert!(kernel.program().is_ok(), "{}: {:?}", kernel.name(), kernel.program().err());
    }
}

#[test]
fn tensors_without_dimensions_hold_one_number() {
    let factor = Tensor::full([], 3.0f32).expect("it fits");
    for length in LENGTHS {
        let x = values::<f32>(length, 4);
        let (y, total) = scaled(&x, &factor).expect("it runs");
        let (expected, sum) = scaled::reference(&x, &factor).expect("it runs");
        assert_eq!((y, total), (expected, sum));
    }
    let (mut x, mut z) = (Tensor::full([], 4.0).expect("it fits"), Tensor::full([], 4.0).expect("it fits"));
    assert_eq!(doubled(&mut x).expect("it runs"), doubled::reference(&mut z).expect("it runs"));
    assert_eq!((x[[]], z[[]]), (5.0, 5.0));
}
