//! Kernels with every function of floats, and with every integer type.

use tilewright::{Tensor, tensor_kernel};

/// Every function of one operand, in a row for each.
#[tensor_kernel]
pub(crate) fn functions_of_floats(x: &Tensor<f32, N>) -> Tensor<f32, 18, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[0, i]] = x[[i]].exp() + x[[i]].abs().ln();
        y[[1, i]] = x[[i]].tanh() + x[[i]].erf() + x[[i]].sigmoid();
        y[[2, i]] = x[[i]].abs().rsqrt();
        y[[3, i]] = x[[i]].sin();
        y[[4, i]] = (x[[i]] * 1e30).cos();
        y[[5, i]] = x[[i]].tan();
        y[[6, i]] = x[[i]].asin();
        y[[7, i]] = x[[i]].acos();
        y[[8, i]] = x[[i]].atan();
        y[[9, i]] = x[[i]].sinh();
        y[[10, i]] = x[[i]].cosh();
        y[[11, i]] = x[[i]].exp2();
        y[[12, i]] = x[[i]].exp_m1();
        y[[13, i]] = x[[i]].abs().log2();
        y[[14, i]] = x[[i]].abs().log10();
        y[[15, i]] = x[[i]].ln_1p();
        y[[16, i]] = x[[i]].atan2(x[[N - 1 - i]]);
        y[[17, i]] = x[[i]].abs().powf(x[[N - 1 - i]]);
    }
    y
}

/// The same sums, quotients and shifts in every integer type.
#[tensor_kernel]
pub(crate) fn integers_of_all_widths(
    a: &Tensor<i16, N>,
    b: &Tensor<u16, N>,
    c: &Tensor<u32, N>,
    d: &Tensor<u64, N>,
    bias: u32,
) -> (Tensor<i16, N>, Tensor<u16, N>, Tensor<u32, N>, Tensor<u64, N>, Tensor<f64, N>) {
    let mut small = Tensor::zeros();
    let mut unsigned = Tensor::zeros();
    let mut wide = Tensor::zeros();
    let mut wider = Tensor::zeros();
    let mut real = Tensor::zeros();
    for i in 0..N {
        small[[i]] = a[[i]] * 4097 - (b[[i]] as i16);
        unsigned[[i]] = (b[[i]] - 9).max(7) / 3;
        wide[[i]] = if c[[i]] - bias > 5 { (c[[i]] - bias) / 7 } else { c[[i]] << bias };
        wider[[i]] = (d[[i]] - 9).min(d[[i]] * d[[i]] + 100) % 1000 + (a[[i]] as u64 >> 60);
        real[[i]] = (c[[i]] - bias) as f64 + (d[[i]] - 9) as f64;
    }
    (small, unsigned, wide, wider, real)
}

/// The largest and the sum of a column.
#[tensor_kernel]
pub(crate) fn integer_reductions(x: &Tensor<u16, M, N>) -> (Tensor<u16, N>, Tensor<u64, N>) {
    let mut largest = Tensor::full(0);
    let mut sum = Tensor::zeros();
    for j in 0..N {
        for i in 0..M {
            largest[[j]] = largest[[j]].max(x[[i, j]] * 4099);
            sum[[j]] += (x[[i, j]] - 20) as u64;
        }
    }
    (largest, sum)
}
