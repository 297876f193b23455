//! Definitions, from the attribute to the reference.

use tilewright::{Tensor, tensor_kernel};

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

#[test]
fn matmul_runs() {
    let a = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    let b = Tensor::from_slice(&[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0], [3, 2]).unwrap();
    let c = matmul::reference(&a, &b).unwrap();
    assert_eq!(c.as_slice(), [4.0, 5.0, 10.0, 11.0]);
    let c = matmul(&a, &b).unwrap();
    assert_eq!(c.as_slice(), [4.0, 5.0, 10.0, 11.0]);
}
