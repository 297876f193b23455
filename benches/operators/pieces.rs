//! Products of matrices of `f32` whose accuracy allows forming them from `bf16` pieces: in 3, 6 and 9 products, on
//! machines with instructions for those.

use tilewright::{Tensor, tensor_kernel};

/// Defines a product of matrices for each element of a batch, of a name and an accuracy.
macro_rules! product {
    ($($(#[doc = $what:literal])* $name:ident: $accuracy:literal),*) => {$(
        $(#[doc = $what])*
        #[tensor_kernel(accuracy = $accuracy)]
        pub fn $name(a: &Tensor<f32, B, N, K>, b: &Tensor<f32, B, K, M>) -> Tensor<f32, B, N, M> {
            let mut c = Tensor::zeros();
            for n in 0..B {
                for i in 0..N {
                    for j in 0..M {
                        for k in 0..K {
                            c[[n, i, j]] += a[[n, i, k]] * b[[n, k, j]];
                        }
                    }
                }
            }
            c
        }
    )*};
}

product! {
    /// Each product may be off by 10⁻⁴ of itself.
    batch_matmul_3: 1e-4,
    /// Each product may be off by as much as rounding it costs in `f32`.
    batch_matmul_6: 6e-8,
    /// Products are exact, but numbers at the ends of the range may be lost.
    batch_matmul_9: 0
}
