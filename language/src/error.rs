//! Why a model cannot be read or run.

use std::path::PathBuf;

/// Why a model cannot be read or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened.
    #[error("{}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The bytes are no GGUF file that can be read.
    #[error("not a readable GGUF file: {0}")]
    Format(String),
    /// An entry of the metadata is missing or has the wrong type or value.
    #[error("metadata `{key}`: {reason}")]
    Metadata {
        /// The key.
        key: String,
        /// The problem.
        reason: String,
    },
    /// A tensor is missing, or does not fit the model.
    #[error("tensor `{name}`: {reason}")]
    Tensor {
        /// The tensor.
        name: String,
        /// The problem.
        reason: String,
    },
    /// A token that the vocabulary does not have.
    #[error("token {token} is not in the vocabulary of {count} tokens")]
    Token {
        /// The token.
        token: u32,
        /// The size of the vocabulary.
        count: usize,
    },
    /// More tokens than the model's context holds.
    #[error(
        "{wanted} tokens do not fit into the context of {context}; start a new sequence or shorten the text"
    )]
    Context {
        /// How many tokens there would be.
        wanted: usize,
        /// How many there may be.
        context: usize,
    },
    /// A setting of the sampler that selects nothing.
    #[error("sampling: {0}")]
    Sampling(String),
    /// A kernel failed.
    #[error(transparent)]
    Kernel(#[from] tilewright::Error),
    /// A tensor of ours cannot be made.
    #[error("a tensor cannot be made: {0}")]
    Memory(String),
}

impl Error {
    pub(crate) fn metadata(key: &str, reason: impl Into<String>) -> Self {
        Error::Metadata { key: key.to_owned(), reason: reason.into() }
    }

    pub(crate) fn tensor(name: &str, reason: impl Into<String>) -> Self {
        Error::Tensor { name: name.to_owned(), reason: reason.into() }
    }
}
