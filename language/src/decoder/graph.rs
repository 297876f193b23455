//! The decoder as graphs of kernels. The cache of keys and values is updated in place.

use tilewright::prelude::*;

use crate::decoder::layer::{multiply_normal, run_layer};
use crate::decoder::{Decoder, kernels};

/// Runs tokens through all layers: their stream, and what is to be added to it. For `is_many`, see [`crate::block::products`].
#[tensor_graph]
pub(super) fn advance(
    decoder: &Decoder,
    is_many: bool,
    x: &Tensor<f32, R, { decoder.config.hidden }>,
    turns: &Tensor<f32, R, { decoder.config.head / 2 }, 2>,
    positions: &Tensor<i32, R>,
    keys: &mut [Tensor<f32, { decoder.config.groups }, { decoder.config.head }, C>],
    values: &mut [Tensor<f32, { decoder.config.groups }, C, { decoder.config.head }>],
) -> (Tensor<f32, R, { decoder.config.hidden }>, Tensor<f32, R, { decoder.config.hidden }>) {
    let config = &decoder.config;
    let (mut stream, mut found) = kernels::begin(x);
    for (layer, (keys, values)) in decoder.layers.iter().zip(keys.iter_mut().zip(values.iter_mut())) {
        found = run_layer(layer, config, is_many, &mut stream, &found, turns, positions, keys, values);
    }
    (stream, found)
}

/// The logits that follow one of the tokens.
#[tensor_graph]
pub(super) fn logits(
    decoder: &Decoder,
    stream: &Tensor<f32, R, { decoder.config.hidden }>,
    found: &Tensor<f32, R, { decoder.config.hidden }>,
    last: &Tensor<i32, 1>,
) -> Tensor<f32, 1, { decoder.vocabulary() }> {
    let (mut stream, found) = kernels::pick(stream, found, last);
    multiply_normal(&decoder.output, &decoder.norm, &decoder.config, false, &mut stream, &found)
}

/// [`advance`] and [`logits`].
#[tensor_graph]
pub(super) fn step(
    decoder: &Decoder,
    is_many: bool,
    x: &Tensor<f32, R, { decoder.config.hidden }>,
    turns: &Tensor<f32, R, { decoder.config.head / 2 }, 2>,
    positions: &Tensor<i32, R>,
    last: &Tensor<i32, 1>,
    keys: &mut [Tensor<f32, { decoder.config.groups }, { decoder.config.head }, C>],
    values: &mut [Tensor<f32, { decoder.config.groups }, C, { decoder.config.head }>],
) -> Tensor<f32, 1, { decoder.vocabulary() }> {
    let (stream, found) = advance(decoder, is_many, x, turns, positions, keys, values);
    logits(decoder, &stream, &found, last)
}
