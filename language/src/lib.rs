//! Language models from GGUF files, on Tilewright's kernels.
//!
//! A [`gguf::File`] is mapped into memory; a [`Tokenizer`] turns a text into tokens; a [`Decoder`] computes from tokens the logits of the next
//! one, and a [`Sampler`] chooses it. Weights stay in the blocks of a few bits in which the file has them: products turn them into
//! numbers in registers.
//!
//! | module | holds |
//! |---|---|
//! | [`gguf`] | files: metadata and tensors, without trusting them |
//! | [`block`] | block types, and products with matrices of blocks |
//! | `tokenizer` | byte-pair encoding |
//! | `decoder` | the layers, and the cache of keys and values |
//! | `sampler` | the choice of the next token |

pub mod block;
mod decoder;
mod error;
pub mod gguf;
mod sampler;
mod tensors;
mod tokenizer;

pub use decoder::{Config, Decoder, Sequence};
pub use error::Error;
pub use sampler::{Sampler, Sampling};
pub use tokenizer::Tokenizer;
