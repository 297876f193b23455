//! ONNX files.
//!
//! [`Model::of_function`] is the way back: the file of a function.
//!
//! [`Model::read`] decodes a file; nothing in it is trusted. Memory is bounded by a small multiple of the file's size:
//! the elements of large tensors are read when these are made, other payloads share the bytes that were read, and a tensor is made only after the number of its elements was found to fit its shape.

mod error;
mod export;
mod external;
mod files;
mod import;
pub mod schema;
mod tensor;
mod thin;

use std::path::Path;

use bytes::Bytes;
use prost::Message;

pub use error::{MissingOperator, OnnxError};
pub use export::Labels;
pub use external::ExternalData;
pub use import::{Imported, OPERATOR_SET_VERSIONS};
use schema::{GraphProto, ModelProto, TensorProto};

use crate::tensor::HostTensor;

/// A decoded file, with the place to which its external data are relative.
#[derive(Clone, Debug)]
pub struct Model {
    proto: ModelProto,
    external: ExternalData,
}

impl Model {
    /// Reads a file. Tensor data in other files are looked for in its folder.
    ///
    /// # Errors
    /// When it cannot be read or is no model.
    pub fn read(path: &Path) -> Result<Self, OnnxError> {
        let bytes = thin::read(path).map_err(|source| OnnxError::File { path: path.to_owned(), source })?;
        Self::decode(bytes.into(), ExternalData::beside(path)?)
    }

    /// Decodes the bytes of a file. Tensor data in other files are refused.
    ///
    /// # Errors
    /// When they are no model.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, OnnxError> {
        Self::decode(bytes, ExternalData::none())
    }

    fn decode(bytes: Bytes, external: ExternalData) -> Result<Self, OnnxError> {
        let proto = ModelProto::decode(bytes)?;
        if proto.graph.is_none() {
            return Err(OnnxError::NoGraph);
        }
        Ok(Model { proto, external })
    }

    /// The decoded message.
    pub fn proto(&self) -> &ModelProto {
        &self.proto
    }

    /// The graph that running the model executes.
    pub fn graph(&self) -> &GraphProto {
        self.proto.graph.as_ref().expect("decoding refuses files without a graph")
    }

    /// The value of an entry of the file's metadata, for instance a vocabulary.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        let entry = self.proto.metadata_props.iter().find(|entry| entry.key == key);
        entry.map(|entry| &entry.value[..])
    }

    /// A tensor of the file.
    ///
    /// # Errors
    /// When its type is not supported or its data do not fit its shape.
    pub fn tensor(&self, proto: &TensorProto) -> Result<HostTensor, OnnxError> {
        tensor::read_tensor(proto, &self.external)
    }
}

/// Reads a file that holds one tensor, as ONNX's own tests do.
///
/// # Errors
/// As [`Model::tensor`].
pub fn decode_tensor(bytes: Bytes) -> Result<HostTensor, OnnxError> {
    tensor::read_tensor(&TensorProto::decode(bytes)?, &ExternalData::none())
}
