//! Decoders of the `llama` architecture: from tokens to the next token's logits.
//!
//! A layer normalises its input, computes queries, keys and values of several heads, attends to the tokens so far, and adds what it finds;
//! then it normalises again and adds an inner layer with a gate. Weights stay in their blocks; see [`crate::block`].

mod cache;
mod config;
mod kernels;
mod layer;
mod projection;
mod quantised;
mod rope;
mod rows;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use config::Config;

use crate::block::{Products, dequantise};
use crate::error::Error;
use crate::gguf::File;
use crate::tensors;
use cache::Cache;
use layer::Layer;
use projection::Projection;
use rope::Rotation;
use rows::{Rows, Stream};

/// A model that continues texts.
pub struct Decoder {
    config: Config,
    file: Arc<File>,
    layers: Vec<Layer>,
    norm: tilewright::Tensor<f32, 1>,
    output: Projection,
    rotation: Rotation,
}

/// The tokens so far, as the keys and values that a decoder keeps of them.
pub struct Sequence {
    caches: Vec<Cache>,
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
        let caches =
            (0..self.config.layers).map(|_| Cache::new(&self.config, room)).collect::<Result<_, _>>()?;
        Ok(Sequence { caches, length: 0 })
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
        self.make_room(sequence, wanted)?;
        let start = sequence.length;
        let mut last = None;
        for chunk in layer::chunks(tokens) {
            match self.advance(sequence, chunk) {
                Ok(stream) => last = Some(stream),
                Err(error) => {
                    sequence.length = start;
                    return Err(error);
                }
            }
        }
        let last = last.ok_or_else(|| Error::Sampling("no tokens were given to continue".to_owned()))?;
        self.logits(last)
    }

    fn make_room(&self, sequence: &mut Sequence, wanted: usize) -> Result<(), Error> {
        let mut room = sequence.caches.first().map_or(wanted, Cache::room);
        while room < wanted {
            room = next_room(room).min(self.config.context);
        }
        for cache in &mut sequence.caches {
            if cache.room() < room {
                cache.grow(&self.config, room, sequence.length)?;
            }
        }
        Ok(())
    }

    /// Runs tokens through all layers and gives the last one's numbers.
    fn advance(&self, sequence: &mut Sequence, tokens: &[u32]) -> Result<Stream, Error> {
        let rows = layer::padded(tokens.len());
        let embeddings = tensors::from_vec(self.embed(tokens, rows)?, [rows, self.config.hidden])?;
        let mut stream = Stream::new(embeddings)?;
        let turns: Vec<_> =
            (0..tokens.len()).map(|place| self.rotation.at(sequence.length + place)).collect();
        for (layer, cache) in self.layers.iter().zip(&mut sequence.caches) {
            layer.run(&self.config, &mut stream, cache, sequence.length, &turns)?;
        }
        sequence.length += tokens.len();
        stream.row(tokens.len() - 1)
    }

    /// The rows of the table of tokens, and zeros up to a number of rows.
    fn embed(&self, tokens: &[u32], rows: usize) -> Result<Vec<f32>, Error> {
        let table = self.file.tensor(EMBEDDING)?;
        let row = self.config.hidden / table.kind.length() * table.kind.bytes();
        let mut numbers = Vec::with_capacity(rows * self.config.hidden);
        for &token in tokens {
            numbers.extend(dequantise(table.kind, &table.bytes[token as usize * row..][..row]));
        }
        numbers.resize(rows * self.config.hidden, 0.0);
        Ok(numbers)
    }

    fn logits(&self, mut stream: Stream) -> Result<Vec<f32>, Error> {
        let epsilon = self.config.epsilon;
        let normal = Rows::Normal { stream: &mut stream, weights: &self.norm, epsilon };
        Ok(self.output.multiply(normal)?.into_vec())
    }
}
