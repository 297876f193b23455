//! Loads from tables by bytes: random candidates give exactly what the definition gives, whatever instructions the machine has.

use std::sync::Arc;

use tilewright::prelude::*;
use tilewright_core::device::Device;
use tilewright_core::program::Buffer;
use tilewright_core::tensor::AnyTensor;
use tilewright_cpu::CpuDevice;

use crate::candidates::{Case, check};

/// Functions of bytes.
#[tensor_kernel]
fn functions(
    x: &Tensor<i8, M, N>,
    bytes: &Tensor<u8, 256>,
    signed: &Tensor<i8, 260>,
    words: &Tensor<i32, 257>,
    numbers: &Tensor<f32, 256>,
) -> (Tensor<u8, M, N>, Tensor<i8, M, N>, Tensor<f32, M, N>) {
    let mut a = Tensor::zeros();
    let mut b = Tensor::zeros();
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            let place = x[[i, j]] as u8 as usize;
            a[[i, j]] = bytes[[place]];
            b[[i, j]] = signed[[bytes[[place]] as usize]];
            c[[i, j]] = if i > j { numbers[[place]] } else { words[[place]] as f32 };
        }
    }
    (a, b, c)
}

/// A product of bytes, of which a byte of each sum names the result.
#[tensor_kernel]
fn product(a: &Tensor<u8, M, K>, b: &Tensor<i8, K, N>, table: &Tensor<i8, 256>) -> Tensor<i8, M, N> {
    let mut sums: Tensor<i32, M, N> = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                sums[[i, j]] += a[[i, k]] as i32 * b[[k, j]] as i32;
            }
        }
    }
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            y[[i, j]] = table[[(sums[[i, j]] >> 4) as u8 as usize]];
        }
    }
    y
}

fn cases() -> Vec<Case> {
    vec![
        Case::new("functions", functions::kernel(), &[4, 64]),
        Case::new("functions of tails", functions::kernel(), &[3, 37]),
        Case::new("functions of one", functions::kernel(), &[1, 1]),
        Case::new("product", product::kernel(), &[8, 32, 48]),
        Case::new("product of tails", product::kernel(), &[7, 13, 19]),
        Case::new("product of one column", product::kernel(), &[5, 9, 1]),
    ]
}

fn argument(number: usize, buffer: &Buffer, shape: &[usize]) -> AnyTensor {
    AnyTensor::random(buffer.dtype, shape, number as u64).expect("a small shape")
}

fn agree(found: &[AnyTensor], expected: &[AnyTensor]) -> bool {
    found.iter().zip(expected).all(|(found, expected)| found.bytes() == expected.bytes())
}

#[test]
fn random_candidates_look_up_the_same() {
    for removed in ["", "-avx512vbmi", "-avx512f", "-avx2"] {
        let backend = match removed {
            "" => CpuDevice::host(),
            removed => CpuDevice::without_features(removed),
        };
        let backend = backend.expect("known features");
        let target = Arc::new(backend.target().clone());
        for case in cases() {
            check(&case, &target, Some(&backend), &argument, &agree);
        }
    }
}
