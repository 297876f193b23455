//! Products of bytes: random candidates give exactly what the definition gives.

#[path = "../../benches/operators/bytes.rs"]
mod kernels;
#[path = "../../benches/operators/quantised.rs"]
mod quantised;

use std::sync::Arc;

use tilewright::prelude::*;
use tilewright_core::device::Device;
use tilewright_core::program::Buffer;
use tilewright_core::tensor::AnyTensor;
use tilewright_cpu::CpuDevice;

use crate::candidates::{Case, able_machine, check, machine, reads_constants_in_calls};

/// Convolution with a border of sevens from channels first to channels last: a picture in front of a network of bytes.
#[tensor_kernel]
fn conv2d_of_planes(
    x: &Tensor<u8, CI, H, W>,
    w: &Tensor<i8, CO, CI, KH, KW>,
) -> Tensor<i32, { (H + 2 - KH) / 2 + 1 }, { (W + 2 - KW) / 2 + 1 }, CO> {
    let mut padded: Tensor<u8, { H + 2 }, { W + 2 }, CI> = Tensor::zeros();
    for h in 0..H + 2 {
        for v in 0..W + 2 {
            for c in 0..CI {
                let is_inside = h >= 1 && h < H + 1 && v >= 1 && v < W + 1;
                padded[[h, v, c]] = if is_inside { x[[c, h - 1, v - 1]] } else { 7 };
            }
        }
    }
    let mut y = Tensor::zeros();
    for h in 0..(H + 2 - KH) / 2 + 1 {
        for v in 0..(W + 2 - KW) / 2 + 1 {
            for co in 0..CO {
                for kh in 0..KH {
                    for kw in 0..KW {
                        for ci in 0..CI {
                            y[[h, v, co]] +=
                                padded[[h * 2 + kh, v * 2 + kw, ci]] as i32 * w[[co, ci, kh, kw]] as i32;
                        }
                    }
                }
            }
        }
    }
    y
}

/// Convolution of unsigned bytes with weights of unsigned bytes.
#[tensor_kernel]
fn conv2d_u8u8(
    x: &Tensor<u8, H, W, CI>,
    #[constant] w: &Tensor<u8, CO, KH, KW, CI>,
) -> Tensor<i32, { H + 1 - KH }, { W + 1 - KW }, CO> {
    let mut y = Tensor::zeros();
    for h in 0..H + 1 - KH {
        for v in 0..W + 1 - KW {
            for co in 0..CO {
                for kh in 0..KH {
                    for kw in 0..KW {
                        for ci in 0..CI {
                            y[[h, v, co]] += x[[h + kh, v + kw, ci]] as i32 * w[[co, kh, kw, ci]] as i32;
                        }
                    }
                }
            }
        }
    }
    y
}

fn cases() -> Vec<Case> {
    use kernels::*;
    use quantised::*;
    vec![
        Case::new("matmul u8·i8", matmul_u8i8::kernel(), &[8, 32, 48]),
        Case::new("matmul u8·i8 of tails", matmul_u8i8::kernel(), &[7, 13, 19]),
        Case::new("matmul u8·i8 of ones", matmul_u8i8::kernel(), &[1, 1, 1]),
        Case::new("one row", matmul_u8i8::kernel(), &[1, 37, 31]),
        Case::new("matmul i8·i8", matmul_i8i8::kernel(), &[12, 24, 32]),
        Case::new("matmul i8·i8 of tails", matmul_i8i8::kernel(), &[5, 11, 17]),
        Case::new("matmul u8·u8", matmul_u8u8::kernel(), &[12, 24, 32]),
        Case::new("matmul u8·u8 of tails", matmul_u8u8::kernel(), &[5, 11, 17]),
        Case::new("matmul i8·u8", matmul_i8u8::kernel(), &[12, 24, 32]),
        Case::new("matmul i8·u8 of tails", matmul_i8u8::kernel(), &[5, 11, 17]),
        Case::new("weights u8·i8", weighted_u8i8::kernel(), &[12, 24, 32]),
        Case::new("weights u8·i8 of tails", weighted_u8i8::kernel(), &[7, 13, 19]),
        Case::new("weights i8·i8", weighted_i8i8::kernel(), &[12, 24, 32]),
        Case::new("weights i8·i8 of tails", weighted_i8i8::kernel(), &[5, 11, 17]),
        Case::new("linear", linear_u8i8::kernel(), &[6, 16, 32]),
        Case::new("linear of tails", linear_u8i8::kernel(), &[3, 29, 23]),
        Case::new("batch", batch_matmul_u8i8::kernel(), &[3, 4, 12, 16]),
        Case::new("conv channels last", conv2d_nhwc_u8i8::kernel(), &[2, 6, 5, 8, 3, 2, 16, 1, 0]),
        Case::new("conv of stride two", conv2d_nhwc_u8i8::kernel(), &[1, 7, 6, 4, 3, 3, 19, 2, 1]),
        Case::new("conv channels first", conv2d_nchw_u8i8::kernel(), &[1, 8, 6, 7, 16, 3, 3]),
        Case::new("conv of three channels", conv2d_nhwc_u8i8::kernel(), &[1, 5, 5, 3, 3, 3, 10, 1, 1]),
        Case::new("conv of eight channels", conv2d_nhwc_u8i8::kernel(), &[1, 7, 6, 8, 3, 3, 19, 1, 1]),
        Case::new("weighted conv", weighted_conv2d_u8i8::kernel(), &[1, 7, 6, 8, 3, 3, 19, 1, 1]),
        Case::new("weighted conv i8·i8", weighted_conv2d_i8i8::kernel(), &[1, 6, 7, 12, 3, 3, 16, 2, 1]),
        Case::new("requantised conv", requantised_conv2d_u8i8::kernel(), &[1, 7, 6, 8, 3, 3, 19, 1, 1]),
        Case::new(
            "requantised conv of one tap",
            requantised_conv2d_u8i8::kernel(),
            &[2, 5, 5, 16, 1, 1, 33, 1, 0],
        ),
        Case::new("conv of planes", conv2d_of_planes::kernel(), &[3, 7, 9, 16, 3, 3]),
        Case::new("conv of many planes", conv2d_of_planes::kernel(), &[6, 5, 4, 19, 3, 2]),
    ]
}

/// Sizes of which tiles of AMX are not much larger.
fn tiled_cases() -> Vec<Case> {
    use kernels::*;
    vec![
        Case::new("matmul u8·i8", matmul_u8i8::kernel(), &[32, 128, 32]),
        Case::new("matmul u8·i8 of one tile's depth", matmul_u8i8::kernel(), &[16, 64, 48]),
        Case::new("matmul u8·i8 of tails", matmul_u8i8::kernel(), &[29, 100, 15]),
        Case::new("matmul i8·i8", matmul_i8i8::kernel(), &[16, 192, 16]),
        Case::new("linear of tails", linear_u8i8::kernel(), &[16, 48, 30]),
        Case::new("conv", conv2d_nhwc_u8i8::kernel(), &[1, 4, 17, 64, 2, 2, 16, 1, 0]),
        Case::new(
            "conv of stride two with tails",
            conv2d_nhwc_u8i8::kernel(),
            &[1, 4, 30, 60, 3, 3, 15, 2, 1],
        ),
        // Weights of several tiles are laid out in the order in which the loops read them.
        Case::new(
            "weighted conv with padding",
            quantised::weighted_conv2d_u8i8::kernel(),
            &[1, 1, 16, 128, 1, 3, 32, 1, 1],
        ),
    ]
}

/// Products of bytes that are both signed or both unsigned.
fn cases_of_equal_signs() -> Vec<Case> {
    use kernels::*;
    vec![
        Case::new("matmul i8·i8", matmul_i8i8::kernel(), &[12, 24, 32]),
        Case::new("matmul i8·i8 of tails", matmul_i8i8::kernel(), &[5, 11, 17]),
        Case::new("matmul i8·i8 of one row", matmul_i8i8::kernel(), &[1, 37, 31]),
        Case::new("matmul i8·i8 of one column", matmul_i8i8::kernel(), &[37, 31, 1]),
        Case::new("matmul u8·u8", matmul_u8u8::kernel(), &[12, 24, 32]),
        Case::new("matmul u8·u8 of tails", matmul_u8u8::kernel(), &[5, 11, 17]),
        Case::new("weights i8·i8", weighted_i8i8::kernel(), &[12, 24, 32]),
        Case::new("weights i8·i8 of tails", weighted_i8i8::kernel(), &[7, 13, 19]),
        // Lanes along rows and columns would take the fewest instructions, and no layout has them.
        Case::new("conv u8·u8 of half a vector more channels", conv2d_u8u8::kernel(), &[17, 17, 4, 24, 2, 2]),
    ]
}

/// Many extreme values.
fn argument(number: usize, buffer: &Buffer, shape: &[usize]) -> AnyTensor {
    let mut tensor = AnyTensor::random(buffer.dtype, shape, number as u64).expect("a small shape");
    if buffer.dtype.bytes() == 1 {
        for (number, byte) in tensor.bytes_mut().iter_mut().enumerate().filter(|(number, _)| number % 3 > 0) {
            *byte = [0x80, 0x7F, 0xFF, 0x80, 0x81][number % 5];
        }
    }
    tensor
}

/// Flat programs have other shapes.
fn agree(found: &[AnyTensor], expected: &[AnyTensor]) -> bool {
    found.iter().zip(expected).all(|(found, expected)| found.bytes() == expected.bytes())
}

#[test]
fn random_candidates_in_tiles_are_exact() {
    let host = CpuDevice::host().expect("no override");
    for case in tiled_cases() {
        let target = machine(["tdpbusd", "tdpbssd"].map(Into::into).into());
        let tensorized = check(&case, &target, Some(&host), &argument, &agree);
        assert!(tensorized > 0, "{} is never tensorized", case.name);
    }
}

#[test]
fn random_candidates_are_exact() {
    let host = CpuDevice::host().expect("no override");
    for case in cases() {
        let tensorized = check(&case, &able_machine(), Some(&host), &argument, &agree);
        assert_eq!(tensorized > 0, !case.name.contains("of ones"), "{}: {tensorized} tensorized", case.name);
    }
}

#[test]
fn weights_are_laid_out_before_calls() {
    for sizes in [[12, 24, 32], [5, 11, 17]] {
        let case = Case::new("weights u8·i8", kernels::weighted_u8i8::kernel(), &sizes);
        let found = reads_constants_in_calls(&case, &able_machine());
        assert!(!found.is_empty() && !found.contains(&true), "{found:?}");
    }
}

#[test]
fn bytes_of_equal_signs_are_multiplied_with_an_offset() {
    let host = CpuDevice::host().expect("no override");
    let names = able_machine().intrinsics().to_vec().into_iter();
    let target = machine(names.filter(|name| name.contains("offset")).collect());
    for case in cases_of_equal_signs() {
        let tensorized = check(&case, &target, Some(&host), &argument, &agree);
        assert!(tensorized > 0, "{} is never tensorized", case.name);
    }
}

#[test]
fn older_machines_compute_the_same() {
    for removed in ["-avx512vnni", "-avx512f", "-avx512f,-avxvnni"] {
        let backend = CpuDevice::without_features(removed).expect("known features");
        let target = Arc::new(backend.target().clone());
        for case in cases_of_equal_signs() {
            let tensorized = check(&case, &target, Some(&backend), &argument, &agree);
            let can = target.intrinsics().iter().any(|name| name.contains("offset") || name.contains("ssd"));
            assert!(can || tensorized == 0, "{}, {removed}: {tensorized} tensorized", case.name);
        }
    }
}
