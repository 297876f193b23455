//! Why a model cannot be quantised.

use tilewright_graph::build::BuildError;

/// Why a model cannot be quantised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are no samples.
    #[error(
        "there are no calibration samples; give at least one set of inputs like those that the model will see"
    )]
    NoSamples,
    /// A sample does not fit the model, or a node fails.
    #[error("sample {sample}: {source}")]
    Run {
        /// The number of the sample, from 0 on.
        sample: usize,
        /// Why.
        source: Box<tilewright_session::Error>,
    },
    /// A number that is to be quantised is infinite or not a number.
    #[error(
        "sample {sample}: `{value}`, an input of node `{node}`, holds {number}; leave the sample out, or keep the node in floats"
    )]
    NotFinite {
        /// The number of the sample, from 0 on.
        sample: usize,
        /// The value.
        value: String,
        /// The node that reads it.
        node: String,
        /// The number.
        number: f32,
    },
    /// A node that is to stay in floats does not exist.
    #[error("node `{node}` is no product of this model; its products are {known}")]
    UnknownNode {
        /// The name.
        node: String,
        /// The names that are known.
        known: String,
    },
    /// There is nothing to quantise.
    #[error("no product can be quantised:{0}")]
    NoProducts(String),
    /// The graph cannot be rebuilt.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The graph cannot be made ready to run.
    #[error(transparent)]
    Session(Box<tilewright_session::Error>),
}
