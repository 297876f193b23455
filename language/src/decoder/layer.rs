//! One layer of a decoder.

use tilewright::Tensor;

use crate::block::{Products, dequantise};
use crate::decoder::cache::Cache;
use crate::decoder::config::Config;
use crate::decoder::kernels;
use crate::decoder::projection::Projection;
use crate::decoder::rope::rotate;
use crate::decoder::rows::{Rows, Stream};
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

    /// Adds what the layer finds to a stream, whose rows are the tokens from a position on; `turns` has the angles of each. Rows beyond these
    /// tokens are computed and mean nothing.
    pub(super) fn run(
        &self,
        config: &Config,
        stream: &mut Stream,
        cache: &mut Cache,
        start: usize,
        turns: &[Vec<(f32, f32)>],
    ) -> Result<(), Error> {
        let epsilon = config.epsilon;
        let normal = Rows::Normal { stream: &mut *stream, weights: &self.attention_norm, epsilon };
        let projected = self.attention.multiply(normal)?;
        let context = attend(config, &projected, cache, start, turns)?;
        stream.found = self.attended.multiply(Rows::Plain(context))?;
        let normal = Rows::Normal { stream: &mut *stream, weights: &self.inner_norm, epsilon };
        let both = self.inner.multiply(normal)?;
        stream.found = self.outer.multiply(Rows::Gated(both))?;
        Ok(())
    }
}

/// The attention of each token to the tokens so far. `projected` has queries, keys and values.
fn attend(
    config: &Config,
    projected: &Tensor<f32, 2>,
    cache: &mut Cache,
    start: usize,
    turns: &[Vec<(f32, f32)>],
) -> Result<Tensor<f32, 2>, Error> {
    let [rows, width] = projected.shape();
    let (own, shared) = (config.heads * config.head, config.groups * config.head);
    // The products of queries and keys are scaled once, in the queries.
    let scale = 1.0 / (config.head as f32).sqrt();
    let mut queries = vec![0.0; rows * own];
    for (row, angles) in turns.iter().enumerate() {
        let numbers = &projected.as_slice()[row * width..][..own + 2 * shared];
        let (query, rest) = numbers.split_at(own);
        let (keys, values) = rest.split_at(shared);
        let target = &mut queries[row * own..][..own];
        target.copy_from_slice(query);
        target.chunks_exact_mut(config.head).for_each(|head| rotate(head, angles));
        target.iter_mut().for_each(|number| *number *= scale);
        let mut keys = keys.to_vec();
        keys.chunks_exact_mut(config.head).for_each(|head| rotate(head, angles));
        cache.store(start + row, &keys, values);
    }
    let last = turns.len().saturating_sub(1);
    let positions = (0..rows).map(|row| (start + row.min(last)) as i32).collect();
    let positions = tensors::from_vec(positions, [rows])?;
    let sharing = config.heads / config.groups;
    let queries = tensors::from_vec(queries, [rows, config.groups, sharing, config.head])?;
    let context = kernels::attend(&queries, &cache.keys, &cache.values, &positions)?;
    tensors::reshape(context, [rows, own])
}
