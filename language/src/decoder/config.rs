//! The sizes of a model, from the metadata of its file.

use crate::error::Error;
use crate::gguf::{File, Value};

/// The sizes of a model of the `llama` architecture.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How many layers there are.
    pub layers: usize,
    /// How many numbers stand for a token between layers.
    pub hidden: usize,
    /// How many heads look back at earlier tokens.
    pub heads: usize,
    /// How many heads of keys and values there are; each serves as many heads as fit.
    pub groups: usize,
    /// How many numbers a head has.
    pub head: usize,
    /// How many numbers the inner layer has.
    pub inner: usize,
    /// The number that is added to a mean square before its root is taken.
    pub epsilon: f32,
    /// The base of the angles by which positions turn queries and keys.
    pub rope_base: f64,
    /// How many numbers of a head are turned.
    pub rope_dims: usize,
    /// How many tokens the model was made for.
    pub context: usize,
}

impl Config {
    /// Reads the sizes of a file.
    ///
    /// # Errors
    /// When the architecture is another one, or a size is missing or contradicts others.
    pub fn of(file: &File) -> Result<Self, Error> {
        let architecture =
            file.entry("general.architecture", "a text", |value| value.as_text().map(str::to_owned))?;
        if architecture != "llama" {
            return Err(Error::metadata(
                "general.architecture",
                format!("is `{architecture}`; only `llama` is computed"),
            ));
        }
        let size = |key: &str| file.entry(&format!("llama.{key}"), "a size above zero", size_of);
        let optional = |key: &str| file.optional_entry(&format!("llama.{key}"), "a size above zero", size_of);
        let float = |key: &str| file.optional_entry(&format!("llama.{key}"), "a number", Value::as_f64);
        let scaling = file.optional_entry("llama.rope.scaling.type", "a text", |value| {
            value.as_text().map(str::to_owned)
        })?;
        if let Some(scaling) = scaling.filter(|scaling| scaling != "none") {
            return Err(Error::metadata(
                "llama.rope.scaling.type",
                format!("is `{scaling}`; only `none` is computed"),
            ));
        }
        let (hidden, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let head = match optional("attention.key_length")? {
            Some(head) => head,
            None if hidden.is_multiple_of(heads) => hidden / heads,
            None => {
                return Err(Error::metadata(
                    "llama.attention.head_count",
                    format!("{heads} heads do not share {hidden} numbers evenly"),
                ));
            }
        };
        let epsilon = float("attention.layer_norm_rms_epsilon")?.unwrap_or(1e-5) as f32;
        let rope_base = float("rope.freq_base")?.unwrap_or(10_000.0);
        let config = Config {
            layers: size("block_count")?,
            hidden,
            heads,
            groups: optional("attention.head_count_kv")?.unwrap_or(heads),
            head,
            inner: size("feed_forward_length")?,
            epsilon,
            rope_base,
            rope_dims: optional("rope.dimension_count")?.unwrap_or(head),
            context: size("context_length")?,
        };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), Error> {
        if !self.heads.is_multiple_of(self.groups) {
            return Err(Error::metadata(
                "llama.attention.head_count_kv",
                format!("{} heads do not share {} evenly", self.heads, self.groups),
            ));
        }
        if !self.head.is_multiple_of(2) {
            let reason = format!("is {}; an even number is expected, whose pairs are turned", self.head);
            return Err(Error::metadata("llama.attention.key_length", reason));
        }
        if self.rope_dims > self.head || !self.rope_dims.is_multiple_of(2) {
            return Err(Error::metadata(
                "llama.rope.dimension_count",
                format!("is {}; an even number up to {} is expected", self.rope_dims, self.head),
            ));
        }
        if !(self.epsilon.is_finite() && self.epsilon >= 0.0) {
            return Err(Error::metadata(
                "llama.attention.layer_norm_rms_epsilon",
                format!("is {}; a number that is not negative is expected", self.epsilon),
            ));
        }
        if !(self.rope_base.is_finite() && self.rope_base > 0.0) {
            return Err(Error::metadata(
                "llama.rope.freq_base",
                format!("is {}; a number above zero is expected", self.rope_base),
            ));
        }
        Ok(())
    }
}

/// Sizes are bounded, so that products of a few of them fit into 64 bits.
fn size_of(value: &Value) -> Option<usize> {
    value.as_u64().filter(|size| (1..1 << 24).contains(size)).map(|size| size as usize)
}
