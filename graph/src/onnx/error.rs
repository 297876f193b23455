//! Why an ONNX file cannot be used.

use std::fmt;
use std::path::PathBuf;

/// Why an ONNX file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The bytes are no ONNX model.
    #[error("the bytes are no ONNX model: {0}")]
    Decode(#[from] prost::DecodeError),
    /// The model has no graph.
    #[error("the file holds no graph")]
    NoGraph,
    /// A tensor cannot be read.
    #[error("tensor `{tensor}`: {reason}")]
    Tensor {
        /// The tensor's name.
        tensor: String,
        /// Why.
        reason: String,
    },
    /// A tensor's data lie where they must not.
    #[error("tensor `{tensor}` names the file `{location}`: {reason}")]
    ExternalData {
        /// The tensor's name.
        tensor: String,
        /// The file as the model names it.
        location: String,
        /// Why it is refused.
        reason: String,
    },
    /// An operator set has a version that is not supported.
    #[error("operator set `{domain}` has version {version}; versions {} to {} are supported", supported.0, supported.1)]
    OperatorSet {
        /// The set's name.
        domain: String,
        /// The model's version.
        version: i64,
        /// The first and the last version that are supported.
        supported: (i64, i64),
    },
    /// Operators that are not known, all of them.
    #[error("{}", MissingOperators(.0))]
    MissingOperators(Vec<MissingOperator>),
    /// A node cannot be translated.
    #[error("node `{node}` ({operator}): {reason}")]
    Node {
        /// The node's name, or the name of its first output.
        node: String,
        /// Its operator.
        operator: String,
        /// Why.
        reason: String,
    },
    /// A call has no form in ONNX.
    #[error("`{node}` cannot be written to an ONNX file: {reason}")]
    Export {
        /// The node that the call comes from.
        node: String,
        /// Why.
        reason: String,
    },
    /// A model has more bytes than a file may have.
    #[error("the model has {bytes} bytes, and an ONNX file without external data at most {most}")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// The graph as a whole is not well-formed.
    #[error("graph `{graph}`: {reason}")]
    Graph {
        /// The graph's name.
        graph: String,
        /// Why.
        reason: String,
    },
}

/// An operator that is not known, with all nodes that call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingOperator {
    /// The operator set; empty for ONNX's own.
    pub domain: String,
    /// The operator.
    pub operator: String,
    /// The version of the operator set.
    pub version: i64,
    /// The nodes that call it.
    pub nodes: Vec<String>,
}

struct MissingOperators<'a>(&'a [MissingOperator]);

impl fmt::Display for MissingOperators<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 4;
        write!(f, "the model calls {} operators that are not known:", self.0.len())?;
        for missing in self.0 {
            let domain = if missing.domain.is_empty() { "ai.onnx" } else { &missing.domain };
            write!(f, "\n  {domain}.{} (version {}) in ", missing.operator, missing.version)?;
            let shown = missing.nodes.iter().take(SHOWN).map(|node| format!("`{node}`")).collect::<Vec<_>>();
            f.write_str(&shown.join(", "))?;
            if missing.nodes.len() > SHOWN {
                write!(f, " and {} more nodes", missing.nodes.len() - SHOWN)?;
            }
        }
        Ok(())
    }
}
