//! Decoders of the `llama` architecture: from tokens to the next token's logits.
//!
//! A layer normalises its input, computes queries, keys and values of several heads, attends to the tokens so far, and adds what it finds;
//! then it normalises again and adds an inner layer with a gate. Weights stay in their blocks; see [`crate::block`]. All of this is a graph of
//! kernels, which updates the cache of keys and values.

mod cache;
mod config;
mod graph;
mod kernels;
mod layer;
mod projection;
mod quantised;
mod rope;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use config::Config;

use tilewright::graph::KernelGraph;
use tilewright::prelude::*;

use crate::block::{Products, dequantise, is_many};
use crate::error::Error;
use crate::gguf::File;
use crate::tensors;
use cache::Cache;
use graph::{advance, logits, step};
use layer::Layer;
use projection::Projection;
use rope::Rotation;

/// A model that continues texts.
pub struct Decoder {
    config: Config,
    file: Arc<File>,
    layers: Vec<Layer>,
    norm: Tensor<f32, 1>,
    output: Projection,
    rotation: Rotation,
}

/// The tokens so far, as the keys and values that a decoder keeps of them.
pub struct Sequence {
    cache: Cache,
    length: usize,
}

impl Sequence {
    /// How many tokens it has.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// How many tokens a new sequence has room for.
const FIRST_ROOM: usize = 64;
/// The sizes of a full sequence's next room are multiples of this.
const ROOM_STEP: usize = 64;

/// The room that follows a full one: a quarter more. Attention reads the whole room, and each size needs kernels of its own.
fn next_room(room: usize) -> usize {
    (room + room / 4).next_multiple_of(ROOM_STEP)
}

/// The table of tokens, which may be the output's matrix, too.
const EMBEDDING: &str = "token_embd.weight";

impl Decoder {
    /// Reads the weights of a file, for products of floats.
    ///
    /// # Errors
    /// When the architecture is another one, or a tensor is missing or has another shape.
    pub fn of(file: &Arc<File>) -> Result<Self, Error> {
        Self::with_products(file, Products::default())
    }

    /// Reads the weights of a file, for products of a kind.
    ///
    /// # Errors
    /// As [`Decoder::of`].
    pub fn with_products(file: &Arc<File>, products: Products) -> Result<Self, Error> {
        let config = Config::of(file)?;
        let embedding = file.tensor(EMBEDDING)?;
        if embedding.shape.len() != 2 || embedding.shape[1] != config.hidden {
            let reason = format!("has shape {:?}; rows of {} are expected", embedding.shape, config.hidden);
            return Err(Error::tensor(EMBEDDING, reason));
        }
        let tokens = embedding.shape[0];
        let name = if file.find("output.weight").is_some() { "output.weight" } else { EMBEDDING };
        let output = Projection::read(file, &[(name.to_owned(), tokens)], config.hidden, products)?;
        let layers = (0..config.layers)
            .map(|layer| Layer::read(file, &config, layer, products))
            .collect::<Result<_, _>>()?;
        let rotation = Rotation::of(&config, file)?;
        let norm = layer::vector(file, "output_norm.weight", config.hidden)?;
        Ok(Decoder { config, file: Arc::clone(file), layers, norm, output, rotation })
    }

    /// The sizes of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How many tokens the vocabulary has.
    pub fn vocabulary(&self) -> usize {
        self.output.width()
    }

    /// A sequence without tokens.
    ///
    /// # Errors
    /// When its memory cannot be had.
    pub fn sequence(&self) -> Result<Sequence, Error> {
        let room = FIRST_ROOM.min(self.config.context);
        Ok(Sequence { cache: Cache::new(&self.config, room)?, length: 0 })
    }

    /// Appends tokens to a sequence and gives the logits of the token that follows them, one for each token of the vocabulary.
    ///
    /// # Errors
    /// When there are no tokens, one is not in the vocabulary, or the context is full; the sequence then is what it was.
    pub fn extend(&self, sequence: &mut Sequence, tokens: &[u32]) -> Result<Vec<f32>, Error> {
        let wanted = sequence.length + tokens.len();
        if wanted > self.config.context {
            return Err(Error::Context { wanted, context: self.config.context });
        }
        let count = self.vocabulary();
        if let Some(&token) = tokens.iter().find(|&&token| token as usize >= count) {
            return Err(Error::Token { token, count });
        }
        self.make_room(sequence, tokens)?;
        let start = sequence.length;
        let mut last = None;
        for chunk in layer::chunks(tokens) {
            match self.advance(sequence, chunk) {
                Ok(rows) => last = Some((rows, chunk.len() - 1)),
                Err(error) => {
                    sequence.length = start;
                    return Err(error);
                }
            }
        }
        let ((stream, found), row) =
            last.ok_or_else(|| Error::Sampling("no tokens were given to continue".to_owned()))?;
        let last = tensors::from_vec(vec![row as i32], [1])?;
        Ok(logits(self, &stream, &found, &last)?.into_vec())
    }

    /// A step of the decoder as data, for a session: `rows` tokens at once, of which it gives the logits that follow the one at `last`. Each cache is an
    /// input, and, with what the step stores in it, an output. Dimensions are `R`, the number of tokens, and `C`, for how many the caches have
    /// room. `is_many` chooses products for more than a few tokens at once, which turn matrices into numbers first.
    ///
    /// | input | is |
    /// |---|---|
    /// | `x` | the [embeddings](Decoder::embeddings) of the tokens |
    /// | `turns` | the [sines and cosines](Decoder::turns) of their positions |
    /// | `positions` | their positions |
    /// | `last` | the row whose logits are wanted |
    /// | `keys_0`, … | keys by group, number of the head, and token, of each layer |
    /// | `values_0`, … | values by group, token, and number of the head |
    ///
    /// # Errors
    /// When the copies of the weights do not fit into memory.
    pub fn graph(&self, is_many: bool) -> Result<KernelGraph, Error> {
        Ok(step::graph(self, is_many, self.config.layers, self.config.layers)?)
    }

    /// Makes room for tokens, and for the rows up to a whole number that are computed beside them.
    fn make_room(&self, sequence: &mut Sequence, tokens: &[u32]) -> Result<(), Error> {
        let mut wanted = 0;
        let mut start = sequence.length;
        for chunk in layer::chunks(tokens) {
            wanted = wanted.max(start + layer::padded(chunk.len()));
            start += chunk.len();
        }
        let mut room = sequence.cache.room();
        while room < wanted {
            room = next_room(room).min(layer::most_rows(self.config.context));
        }
        if sequence.cache.room() < room {
            sequence.cache.grow(&self.config, room, sequence.length)?;
        }
        Ok(())
    }

    /// Runs tokens through all layers, and gives their stream and what is to be added to it.
    fn advance(
        &self,
        sequence: &mut Sequence,
        tokens: &[u32],
    ) -> Result<(Tensor<f32, 2>, Tensor<f32, 2>), Error> {
        let rows = layer::padded(tokens.len());
        let mut embeddings = self.embeddings(tokens)?;
        embeddings.resize(rows * self.config.hidden, 0.0);
        let embeddings = tensors::from_vec(embeddings, [rows, self.config.hidden])?;
        // Rows behind the tokens are stored where the next tokens will be, which overwrite them.
        let places = sequence.length..sequence.length + rows;
        let pairs = self.config.head / 2;
        let turns = tensors::from_vec(self.turns(places.clone()), [rows, pairs, 2])?;
        let positions = tensors::from_vec(places.map(|place| place as i32).collect(), [rows])?;
        let Cache { keys, values, .. } = &mut sequence.cache;
        let found = advance(self, is_many(rows), &embeddings, &turns, &positions, keys, values)?;
        sequence.length += tokens.len();
        Ok(found)
    }

    /// The rows of the table of tokens, one after the other.
    ///
    /// # Errors
    /// When a token is not in the vocabulary.
    pub fn embeddings(&self, tokens: &[u32]) -> Result<Vec<f32>, Error> {
        let table = self.file.tensor(EMBEDDING)?;
        let row = self.config.hidden / table.kind.length() * table.kind.bytes();
        let count = table.shape[0];
        let mut numbers = Vec::with_capacity(tokens.len().next_power_of_two() * self.config.hidden);
        for &token in tokens {
            let start = token as usize * row;
            let bytes = table.bytes.get(start..start + row).ok_or(Error::Token { token, count })?;
            numbers.extend(dequantise(table.kind, bytes));
        }
        Ok(numbers)
    }

    /// The sine and the cosine of the angle by which each pair of numbers of a head is turned, for positions one after the other.
    pub fn turns(&self, positions: std::ops::Range<usize>) -> Vec<f32> {
        self.rotation.turns(self.config.head / 2, positions)
    }
}
