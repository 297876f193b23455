//! A BERT-like sentence encoder: weights and tokenizer from an ordinary model folder, layers from [`crate::kernels`].

use std::error::Error;
use std::path::Path;

use safetensors::SafeTensors;
use tilewright::prelude::*;
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

use crate::kernels;

/// A dense layer. The weight is stored input × output, the transpose of the model file, so that the
/// innermost loop runs along memory.
struct Linear {
    weight: Tensor<f32, 2>,
    bias: Tensor<f32, 1>,
}

struct LayerNorm {
    scale: Tensor<f32, 1>,
    shift: Tensor<f32, 1>,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attention: Linear,
    attention_norm: LayerNorm,
    inner: Linear,
    outer: Linear,
    outer_norm: LayerNorm,
}

/// The model, ready to embed.
pub(crate) struct Model {
    tokenizer: Tokenizer,
    words: Tensor<f32, 2>,
    positions: Tensor<f32, 2>,
    types: Tensor<f32, 2>,
    norm: LayerNorm,
    layers: Vec<Layer>,
    heads: usize,
    hidden: usize,
    epsilon: f32,
}

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

impl Model {
    /// Reads `config.json`, `tokenizer.json` and `model.safetensors` from a folder. Sentences are cut off after
    /// `max_tokens` tokens; the model's authors do so after 256.
    pub(crate) fn load(folder: &Path, max_tokens: usize) -> Result<Self> {
        let read = |name: &str| {
            std::fs::read(folder.join(name))
                .map_err(|error| format!("{}: {error}", folder.join(name).display()))
        };
        let config: serde_json::Value = serde_json::from_slice(&read("config.json")?)?;
        let number = |name: &str| {
            config[name].as_f64().ok_or_else(|| format!("config.json: `{name}` is not a number"))
        };
        let bytes = read("model.safetensors")?;
        let weights = Weights(SafeTensors::deserialize(&bytes)?);
        let mut tokenizer = Tokenizer::from_bytes(read("tokenizer.json")?)?;
        tokenizer.with_padding(Some(PaddingParams::default()));
        tokenizer.with_truncation(Some(TruncationParams { max_length: max_tokens, ..Default::default() }))?;
        let layers = number("num_hidden_layers")? as usize;
        Ok(Model {
            tokenizer,
            words: weights.matrix("embeddings.word_embeddings.weight")?,
            positions: weights.matrix("embeddings.position_embeddings.weight")?,
            types: weights.matrix("embeddings.token_type_embeddings.weight")?,
            norm: weights.norm("embeddings.LayerNorm")?,
            layers: (0..layers).map(|layer| weights.layer(layer)).collect::<Result<_>>()?,
            heads: number("num_attention_heads")? as usize,
            hidden: number("hidden_size")? as usize,
            epsilon: number("layer_norm_eps")? as f32,
        })
    }

    /// One vector of length 1 for each sentence.
    pub(crate) fn embed(&self, sentences: &[&str]) -> Result<Tensor<f32, 2>> {
        let (ids, lengths) = self.tokenize(sentences)?;
        self.embed_tokens(&ids, &lengths)
    }

    /// The numbers of each sentence's tokens, padded to the longest sentence, and how many there are of each.
    pub(crate) fn tokenize(&self, sentences: &[&str]) -> Result<(Tensor<i32, 2>, Tensor<i32, 1>)> {
        let encodings = self.tokenizer.encode_batch(sentences.to_vec(), true)?;
        let tokens = encodings.first().map_or(0, |encoding| encoding.get_ids().len());
        let ids = Tensor::from_fn([sentences.len(), tokens], |[b, s]| encodings[b].get_ids()[s] as i32)?;
        let lengths = Tensor::from_fn([sentences.len()], |[b]| {
            encodings[b].get_attention_mask().iter().sum::<u32>() as i32
        })?;
        Ok((ids, lengths))
    }

    /// One vector of length 1 for each row of tokens, of which the first `lengths` count.
    pub(crate) fn embed_tokens(
        &self,
        ids: &Tensor<i32, 2>,
        lengths: &Tensor<i32, 1>,
    ) -> Result<Tensor<f32, 2>> {
        Ok(encode(self, ids, lengths)?)
    }
}

/// One vector of length 1 for each row of tokens, of which the first `lengths` count.
#[tensor_graph]
pub(crate) fn encode(
    model: &Model,
    ids: &Tensor<i32, B, S>,
    lengths: &Tensor<i32, B>,
) -> Tensor<f32, B, { model.hidden }> {
    let embedded = kernels::embed(ids, &model.words, &model.positions, &model.types);
    let rows = embedded.reshape([B * S, model.hidden]);
    let mut x = kernels::layer_norm(&rows, &model.norm.scale, &model.norm.shift, model.epsilon);
    for layer in &model.layers {
        x = encode_layer(model, layer, &x, lengths);
    }
    kernels::mean_pool(&x.reshape([B, S, model.hidden]), lengths)
}

/// One layer: every token attends to the others of its sentence, and is then transformed alone.
#[tensor_graph]
fn encode_layer(
    model: &Model,
    layer: &Layer,
    x: &Tensor<f32, R, H>,
    lengths: &Tensor<i32, B>,
) -> Tensor<f32, R, H> {
    let width = model.hidden / model.heads;
    let query = kernels::linear(x, &layer.query.weight, &layer.query.bias);
    let key = kernels::linear(x, &layer.key.weight, &layer.key.bias);
    let value = kernels::linear(x, &layer.value.weight, &layer.value.bias);
    let query = query.reshape([B, R / B, model.heads, width]);
    let key = key.reshape([B, R / B, model.heads, width]);
    let value = value.reshape([B, R / B, model.heads, width]);

    let weights = kernels::attention_weights(&query, &key, lengths, 1.0 / (width as f32).sqrt());
    let context = kernels::attend(&weights, &value).reshape([R, H]);
    let attended = kernels::linear(&context, &layer.attention.weight, &layer.attention.bias);
    let norm = &layer.attention_norm;
    let x = kernels::add_layer_norm(x, &attended, &norm.scale, &norm.shift, model.epsilon);

    let inner = kernels::linear_gelu(&x, &layer.inner.weight, &layer.inner.bias);
    let outer = kernels::linear(&inner, &layer.outer.weight, &layer.outer.bias);
    let norm = &layer.outer_norm;
    kernels::add_layer_norm(&x, &outer, &norm.scale, &norm.shift, model.epsilon)
}

/// The tensors of a model file, by name.
struct Weights<'a>(SafeTensors<'a>);

impl Weights<'_> {
    /// The elements and the shape of a tensor of type `f32`.
    fn elements(&self, name: &str) -> Result<(Vec<f32>, Vec<usize>)> {
        let view = self.0.tensor(name).map_err(|error| format!("model.safetensors: `{name}`: {error}"))?;
        if view.dtype() != safetensors::Dtype::F32 {
            return Err(
                format!("model.safetensors: `{name}` has type {:?}, expected F32", view.dtype()).into()
            );
        }
        let values = view
            .data()
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        Ok((values.collect(), view.shape().to_vec()))
    }

    fn matrix(&self, name: &str) -> Result<Tensor<f32, 2>> {
        let (elements, shape) = self.elements(name)?;
        let [rows, columns] = shape[..] else {
            return Err(
                format!("model.safetensors: `{name}` has {} dimensions, expected 2", shape.len()).into()
            );
        };
        Ok(Tensor::from_slice(&elements, [rows, columns])?)
    }

    fn vector(&self, name: &str) -> Result<Tensor<f32, 1>> {
        let (elements, _) = self.elements(name)?;
        Ok(Tensor::from_slice(&elements, [elements.len()])?)
    }

    fn linear(&self, name: &str) -> Result<Linear> {
        let stored = self.matrix(&format!("{name}.weight"))?;
        let [outputs, inputs] = stored.shape();
        Ok(Linear {
            weight: Tensor::from_fn([inputs, outputs], |[k, n]| stored[[n, k]])?,
            bias: self.vector(&format!("{name}.bias"))?,
        })
    }

    fn norm(&self, name: &str) -> Result<LayerNorm> {
        Ok(LayerNorm {
            scale: self.vector(&format!("{name}.weight"))?,
            shift: self.vector(&format!("{name}.bias"))?,
        })
    }

    fn layer(&self, number: usize) -> Result<Layer> {
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        Ok(Layer {
            query: self.linear(&name("attention.self.query"))?,
            key: self.linear(&name("attention.self.key"))?,
            value: self.linear(&name("attention.self.value"))?,
            attention: self.linear(&name("attention.output.dense"))?,
            attention_norm: self.norm(&name("attention.output.LayerNorm"))?,
            inner: self.linear(&name("intermediate.dense"))?,
            outer: self.linear(&name("output.dense"))?,
            outer_norm: self.norm(&name("output.LayerNorm"))?,
        })
    }
}
