//! Loads from tables by bytes, and floats that become bytes: random candidates give exactly what the definition gives, whatever instructions the
//! machine has.

use std::sync::Arc;

use tilewright::prelude::*;
use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
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

/// Floats as bytes: rounded and not, with zero points and without.
#[tensor_kernel]
fn bytes_of_floats(
    x: &Tensor<f32, M, N>,
) -> (Tensor<u8, M, N>, Tensor<i8, M, N>, Tensor<u8, M, N>, Tensor<i8, M, N>, Tensor<i8, M, N>) {
    let mut a = Tensor::zeros();
    let mut b = Tensor::zeros();
    let mut c = Tensor::zeros();
    let mut d = Tensor::zeros();
    let mut e = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            a[[i, j]] = (x[[i, j]].round_ties_even() + 118.0) as u8;
            b[[i, j]] = (x[[i, j]].round_ties_even() - 7.0) as i8;
            c[[i, j]] = x[[i, j]].round_ties_even() as u8;
            d[[i, j]] = x[[i, j]] as i8;
            e[[i, j]] = (x[[i, j]] + 0.5) as i8;
        }
    }
    (a, b, c, d, e)
}

fn cases() -> Vec<Case> {
    vec![
        Case::new("functions", functions::kernel(), &[4, 64]),
        Case::new("functions of tails", functions::kernel(), &[3, 37]),
        Case::new("functions of one", functions::kernel(), &[1, 1]),
        Case::new("bytes of floats", bytes_of_floats::kernel(), &[4, 64]),
        Case::new("bytes of floats of tails", bytes_of_floats::kernel(), &[3, 37]),
        Case::new("product", product::kernel(), &[8, 32, 48]),
        Case::new("product of tails", product::kernel(), &[7, 13, 19]),
        Case::new("product of one column", product::kernel(), &[5, 9, 1]),
    ]
}

/// Random elements; floats are halves, far outside of the range of bytes too, and some are no numbers.
fn argument(number: usize, buffer: &Buffer, shape: &[usize]) -> AnyTensor {
    let mut tensor = AnyTensor::random(buffer.dtype, shape, number as u64).expect("a small shape");
    if buffer.dtype == DType::F32 {
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e9, -3e9, 2_147_483_648.0, 1e30, -0.4];
        for (place, element) in tensor.bytes_mut().chunks_exact_mut(4).enumerate() {
            let halves = ((place * 37 % 1301) as f32 - 650.0) * 0.5;
            let value = if place % 5 == 0 { special[place / 5 % special.len()] } else { halves };
            element.copy_from_slice(&value.to_le_bytes());
        }
    }
    tensor
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
