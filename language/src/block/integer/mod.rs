//! Matrices of quantised blocks for products of integers: rows are quantised to 8 bits, by blocks of 32, before they are multiplied.

pub(super) mod kernels;
mod many;
mod pack;

use half::f16;
use tilewright::prelude::*;

use crate::block::pack::LANES;

/// The fields of blocks; see `kernels`.
pub(crate) enum Planes {
    Q4_0 { quants: Tensor<u8, 5>, scales: Tensor<f16, 3> },
    Q4_1 { quants: Tensor<u8, 5>, scales: Tensor<f16, 3>, minima: Tensor<f16, 3> },
    Q8_0 { quants: Tensor<u8, 5>, scales: Tensor<f16, 3> },
    Q4K(Box<Q4K>),
    Q6K { quants: Tensor<u8, 6>, factors: Tensor<i8, 4>, scales: Tensor<f16, 3> },
}

pub(crate) struct Q4K {
    quants: Tensor<u8, 6>,
    factors: Tensor<u8, 4>,
    least: Tensor<u8, 4>,
    scales: Tensor<f16, 3>,
    minima: Tensor<f16, 3>,
}

impl Planes {
    /// How many panels of rows there are.
    fn panels(&self) -> usize {
        match self {
            Planes::Q4_0 { scales, .. } | Planes::Q4_1 { scales, .. } | Planes::Q8_0 { scales, .. } => {
                scales.dim(0)
            }
            Planes::Q4K(planes) => planes.scales.dim(0),
            Planes::Q6K { scales, .. } => scales.dim(0),
        }
    }
}

/// `x · Wᵀ`, in panels, with quantised rows `x`; see [`kernels::quantise_rows`] for these, and [`crate::block::products`] for `is_many`.
#[tensor_graph]
pub(crate) fn product(
    planes: &Planes,
    is_many: bool,
    x: &Tensor<i8, R, K>,
    steps: &Tensor<f32, R, B>,
    sums: &Tensor<i32, R, B, 2>,
) -> Tensor<f32, R, { planes.panels() }, { LANES }> {
    if is_many { product_of_bytes(planes, x, steps, sums) } else { product_of_blocks(planes, x, steps, sums) }
}

/// `x · Wᵀ` with blocks that become bytes in registers.
#[tensor_graph]
fn product_of_blocks(
    planes: &Planes,
    x: &Tensor<i8, R, K>,
    steps: &Tensor<f32, R, B>,
    sums: &Tensor<i32, R, B, 2>,
) -> Tensor<f32, R, { planes.panels() }, { LANES }> {
    match planes {
        Planes::Q4_0 { quants, scales } => kernels::product_q4_0(x, steps, sums, quants, scales),
        Planes::Q4_1 { quants, scales, minima } => {
            kernels::product_q4_1(x, steps, sums, quants, scales, minima)
        }
        Planes::Q8_0 { quants, scales } => kernels::product_q8_0(x, steps, sums, quants, scales),
        Planes::Q4K(planes) => {
            let Q4K { quants, factors, least, scales, minima } = &**planes;
            kernels::product_q4_k(x, steps, sums, quants, factors, least, scales, minima)
        }
        Planes::Q6K { quants, factors, scales } => {
            kernels::product_q6_k(x, steps, sums, quants, factors, scales)
        }
    }
}

/// `x · Wᵀ` with the whole matrix as bytes, which memory holds for as long as the product takes.
#[tensor_graph]
fn product_of_bytes(
    planes: &Planes,
    x: &Tensor<i8, R, K>,
    steps: &Tensor<f32, R, B>,
    sums: &Tensor<i32, R, B, 2>,
) -> Tensor<f32, R, { planes.panels() }, { LANES }> {
    match planes {
        Planes::Q4_0 { quants, scales } => {
            let [panels, blocks, groups, lanes, group] = quants.shape();
            let bytes = many::halves(quants).reshape([panels, blocks, 2 * groups, lanes, group]);
            let (own, lowest) = many::offset_scales(scales, 8.0);
            many::product_bytes(x, steps, sums, &bytes, &own, &lowest)
        }
        Planes::Q4_1 { quants, scales, minima } => {
            let [panels, blocks, groups, lanes, group] = quants.shape();
            let bytes = many::halves(quants).reshape([panels, blocks, 2 * groups, lanes, group]);
            let (own, lowest) = many::plain_scales(scales, minima);
            many::product_bytes(x, steps, sums, &bytes, &own, &lowest)
        }
        Planes::Q8_0 { quants, scales } => {
            let (own, lowest) = many::offset_scales(scales, 128.0);
            many::product_bytes(x, steps, sums, quants, &own, &lowest)
        }
        Planes::Q4K(planes) => {
            let Q4K { quants, factors, least, scales, minima } = &**planes;
            let [panels, blocks, parts, groups, lanes, group] = quants.shape();
            let quants = TensorView::from(quants).reshape([panels, blocks * parts, groups, lanes, group]);
            let bytes = many::halves(quants).reshape([panels, blocks * parts, 2 * groups, lanes, group]);
            let (own, lowest) = many::part_scales(factors, least, scales, minima);
            let own = own.reshape([panels, blocks * parts, lanes]);
            let lowest = lowest.reshape([panels, blocks * parts, lanes]);
            many::product_bytes(x, steps, sums, &bytes, &own, &lowest)
        }
        Planes::Q6K { quants, factors, scales } => {
            let [panels, blocks, parts, groups, lanes, group] = quants.shape();
            let pairs = blocks * parts / 2;
            let bytes = TensorView::from(quants).reshape([panels, pairs, 2, groups, lanes, group]);
            let (own, lowest) = many::offset_part_scales(factors, scales, 32.0);
            let own = own.reshape([panels, pairs, 2, lanes]);
            let lowest = lowest.reshape([panels, pairs, 2, lanes]);
            many::product_half_blocks(x, steps, sums, bytes, &own, &lowest)
        }
    }
}

/// The program that a product with blocks of 4 bits runs.
#[cfg(test)]
pub(super) fn explained_q4_1(dims: &[(&str, i64)]) -> String {
    tilewright::explain(kernels::product_q4_1::kernel(), dims).unwrap().flat.to_string()
}
