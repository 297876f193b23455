//! One layer of a decoder.

use tilewright::prelude::*;

use crate::block::{Products, dequantise};
use crate::decoder::config::Config;
use crate::decoder::projection::{Projection, multiply, multiply_integers};
use crate::decoder::{kernels, quantised};
use crate::error::Error;
use crate::gguf::File;
use crate::tensors;

/// How many tokens are computed at once, while there are as many: integers of matrices are turned into bytes or numbers once for all of them.
const ROWS: [usize; 4] = [512, 256, 128, 64];

/// Parts of tokens that are computed at once.
pub(super) fn chunks(tokens: &[u32]) -> impl Iterator<Item = &[u32]> {
    let mut rest = tokens;
    std::iter::from_fn(move || {
        let size = ROWS.into_iter().find(|&rows| rows <= rest.len()).unwrap_or(rest.len());
        let (chunk, others) = rest.split_at(size);
        rest = others;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// The most room that a cache needs for a context: rows that are computed beside tokens are stored, too.
pub(super) fn most_rows(context: usize) -> usize {
    context + ROWS[ROWS.len() - 1]
}

/// How many rows are computed for a number of tokens: few numbers occur, so that kernels for them are made once.
pub(super) fn padded(tokens: usize) -> usize {
    tokens.next_power_of_two()
}

/// The weights of a layer.
pub(super) struct Layer {
    attention_norm: Tensor<f32, 1>,
    /// Queries, keys and values.
    attention: Projection,
    attended: Projection,
    inner_norm: Tensor<f32, 1>,
    /// The gate, and what passes it.
    inner: Projection,
    outer: Projection,
}

/// A vector of a file, as floats.
pub(super) fn vector(file: &File, name: &str, length: usize) -> Result<Tensor<f32, 1>, Error> {
    let stored = file.tensor(name)?;
    if stored.shape != [length] {
        return Err(Error::tensor(name, format!("has shape {:?}; [{length}] is expected", stored.shape)));
    }
    tensors::from_vec(dequantise(stored.kind, stored.bytes), [length])
}

impl Layer {
    pub(super) fn read(
        file: &File,
        config: &Config,
        layer: usize,
        products: Products,
    ) -> Result<Self, Error> {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        let (own, shared) = (config.heads * config.head, config.groups * config.head);
        let read = |parts: &[(&str, usize)], columns: usize| {
            let names: Vec<_> = parts.iter().map(|&(part, rows)| (name(part), rows)).collect();
            Projection::read(file, &names, columns, products)
        };
        Ok(Layer {
            attention_norm: vector(file, &name("attn_norm"), config.hidden)?,
            attention: read(&[("attn_q", own), ("attn_k", shared), ("attn_v", shared)], config.hidden)?,
            attended: read(&[("attn_output", config.hidden)], own)?,
            inner_norm: vector(file, &name("ffn_norm"), config.hidden)?,
            inner: read(&[("ffn_gate", config.inner), ("ffn_up", config.inner)], config.hidden)?,
            outer: read(&[("ffn_down", config.hidden)], config.inner)?,
        })
    }
}

/// One layer, for the tokens at `positions`, whose angles are `turns`: stores their keys and values, adds to `stream` what has been `found` so
/// far, and gives what is to be added next. For `is_many`, see [`crate::block::products`].
#[tensor_graph]
pub(super) fn run_layer(
    layer: &Layer,
    config: &Config,
    is_many: bool,
    stream: &mut Tensor<f32, R, { config.hidden }>,
    found: &Tensor<f32, R, { config.hidden }>,
    turns: &Tensor<f32, R, { config.head / 2 }, 2>,
    positions: &Tensor<i32, R>,
    keys: &mut Tensor<f32, { config.groups }, { config.head }, C>,
    values: &mut Tensor<f32, { config.groups }, C, { config.head }>,
) -> Tensor<f32, R, { config.hidden }> {
    let (groups, head) = (config.groups, config.head);
    let sharing = config.heads / groups;
    let projected = multiply_normal(&layer.attention, &layer.attention_norm, config, is_many, stream, found);
    let projected = projected.reshape([R, config.heads + 2 * groups, head / 2, 2]);
    kernels::store(keys, values, &projected, turns, positions);
    // The products of queries and keys are scaled once, in the queries.
    let scale = 1.0 / (head as f32).sqrt();
    let queries = kernels::turn_queries(&projected, turns, groups, sharing, scale);
    let queries = queries.reshape([R, groups, sharing, head]);
    let context = kernels::attend(&queries, keys, values, positions);
    let context = context.reshape([R, config.heads * head]);
    let found = multiply(&layer.attended, is_many, &context);
    let both = multiply_normal(&layer.inner, &layer.inner_norm, config, is_many, stream, &found);
    multiply_gated(&layer.outer, is_many, &both)
}

/// The products with the sums of a stream, divided by the root of their mean square, times weights. Adds to the stream what has been found.
#[tensor_graph]
pub(super) fn multiply_normal(
    projection: &Projection,
    weights: &Tensor<f32, { config.hidden }>,
    config: &Config,
    is_many: bool,
    stream: &mut Tensor<f32, R, { config.hidden }>,
    found: &Tensor<f32, R, { config.hidden }>,
) -> Tensor<f32, R, { projection.width() }> {
    if projection.is_integer() {
        let weights = weights.reshape([config.hidden / 32, 32]);
        let (x, steps, sums) = quantised::normalise(stream, found, weights, config.epsilon);
        multiply_integers(projection, is_many, &x, &steps, &sums)
    } else {
        let x = kernels::normalise(stream, found, weights, config.epsilon);
        multiply(projection, is_many, &x)
    }
}

/// The products with the numbers that pass a gate, which stands before them in each row.
#[tensor_graph]
fn multiply_gated(
    projection: &Projection,
    is_many: bool,
    both: &Tensor<f32, R, W>,
) -> Tensor<f32, R, { projection.width() }> {
    if projection.is_integer() {
        let (x, steps, sums) = quantised::gate(both.reshape([R, 2, W / 64, 32]));
        multiply_integers(projection, is_many, &x, &steps, &sums)
    } else {
        let x = kernels::gate(both.reshape([R, 2, W / 2]));
        multiply(projection, is_many, &x)
    }
}
