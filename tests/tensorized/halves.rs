//! Products of `bf16`: random candidates are within the rounding errors of sums in any order.

#[path = "../../benches/operators/halves.rs"]
mod kernels;

use tilewright_core::dtype::DType;
use tilewright_core::program::Buffer;
use tilewright_core::tensor::{AnyTensor, Random};
use tilewright_cpu::CpuDevice;

use crate::candidates::{Case, able_machine, check};

/// Cases with the number of products in a sum.
fn cases() -> Vec<(Case, usize)> {
    use kernels::*;
    let (matmul, rounded) = (matmul_bf16::kernel(), matmul_bf16_rounded::kernel());
    let weighted = weighted_bf16::kernel();
    let (linear, conv) = (linear_bf16::kernel(), conv2d_nhwc_bf16::kernel());
    vec![
        (Case::new("matmul", matmul, &[8, 32, 48]), 32),
        (Case::new("matmul of tails", matmul, &[7, 13, 19]), 13),
        (Case::new("matmul of ones", matmul, &[1, 1, 1]), 1),
        (Case::new("matmul of one row", matmul, &[1, 37, 31]), 37),
        (Case::new("matmul of a long odd sum", matmul, &[3, 301, 5]), 301),
        (Case::new("weights", weighted, &[12, 24, 32]), 24),
        (Case::new("weights of tails", weighted, &[5, 11, 17]), 11),
        (Case::new("rounded matmul", rounded, &[12, 24, 32]), 24),
        (Case::new("rounded matmul of tails", rounded, &[5, 11, 17]), 11),
        (Case::new("linear", linear, &[6, 16, 32]), 16),
        (Case::new("linear of tails", linear, &[3, 29, 23]), 29),
        (Case::new("conv", conv, &[2, 6, 5, 8, 3, 2, 16]), 48),
        (Case::new("conv of three channels", conv, &[1, 5, 6, 3, 2, 3, 10]), 18),
    ]
}

/// Numbers of different sizes, of which many cancel each other, and none of whose products is denormal; or their
/// magnitudes.
fn argument(number: usize, buffer: &Buffer, shape: &[usize], are_magnitudes: bool) -> AnyTensor {
    let mut random = Random::new(number as u64);
    let mut last = 1.0;
    let mut value = || {
        let scale = 2f64.powi(random.below(41) as i32 - 20);
        last = if random.below(4) == 0 { -last } else { random.unit() * scale };
        if are_magnitudes { last.abs() } else { last }
    };
    let values: Vec<f64> = (0..shape.iter().product()).map(|_| value()).collect();
    AnyTensor::from_f64s(buffer.dtype, &values, shape).expect("a small shape")
}

/// The largest difference of two results of sums of a number of products, relative to the sum of the products' magnitudes: each is as far
/// from the exact sum as its additions round, and a result that is rounded again may become one of two neighbours.
fn bound(products: usize, dtype: DType) -> f64 {
    let sums = 2.0 * 1.01 * products as f64 * f64::from(f32::EPSILON) / 2.0;
    if dtype == DType::BF16 { sums + half::bf16::EPSILON.to_f64() } else { sums }
}

#[test]
fn random_candidates_are_as_exact_as_sums_in_any_order() {
    let host = CpuDevice::host().expect("no override");
    for (case, products) in cases() {
        let magnitudes =
            case.expected(&|number, buffer, shape| argument(number, buffer, shape, true))[2].to_f64_vec();
        let agree = |found: &[AnyTensor], expected: &[AnyTensor]| {
            let bound = bound(products, found[2].dtype());
            let results = found[2].to_f64_vec().into_iter().zip(expected[2].to_f64_vec());
            results
                .zip(&magnitudes)
                .all(|((found, expected), magnitude)| (found - expected).abs() <= bound * magnitude)
        };
        let own = |number: usize, buffer: &Buffer, shape: &[usize]| argument(number, buffer, shape, false);
        let tensorized = check(&case, &able_machine(), Some(&host), &own, &agree);
        assert_eq!(tensorized > 0, !case.name.contains("of ones"), "{}: {tensorized} tensorized", case.name);
    }
}
