//! Reading a file without the elements of its large tensors.
//!
//! A model's file is mostly weights. Read as a whole, it would lie in memory beside the tensors that are made of it. Here a large tensor keeps the place
//! of its elements in the file instead, from which they are read when the tensor is made.

use std::fs::File;
use std::io::{BufReader, Error, Read, Result, Seek};
use std::path::Path;

use prost::encoding::{WireType, encode_key, encode_varint};

/// Elements that take fewer bytes than this stay where they are.
const LARGE: u64 = 1 << 16;

/// The value of `data_location` of a tensor whose elements lie in the model's own file. ONNX has 0 and 1.
pub(super) const OWN_FILE: i32 = -1;

/// The keys of `external_data` that say where they lie.
pub(super) const OFFSET: &str = "own_offset";
pub(super) const LENGTH: &str = "own_length";

/// How deep messages may be nested; deeper ones are copied as they are.
const DEPTH: usize = 64;

/// The messages of [`schema`](crate::onnx::schema) that lead to tensors.
#[derive(Clone, Copy, PartialEq)]
enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
}

impl Message {
    /// The message that a field holds, if it leads to tensors.
    fn child(self, field: u64) -> Option<Self> {
        Some(match (self, field) {
            (Message::Model, 7) | (Message::Attribute, 6) => Message::Graph,
            (Message::Graph, 1) => Message::Node,
            (Message::Graph, 5) | (Message::Attribute, 5) => Message::Tensor,
            (Message::Node, 5) => Message::Attribute,
            _ => return None,
        })
    }
}

/// The fields of a tensor.
const RAW_DATA: u64 = 9;
const EXTERNAL_DATA: u32 = 13;
const DATA_LOCATION: u32 = 14;

/// The bytes of a model's file, with places in it for the elements of large tensors. A file that is no sequence of messages is read as a whole:
/// decoding it will say what is wrong.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut source = Source { reader: BufReader::new(file), position: 0 };
    let mut thin = Vec::new();
    match source.message(length, Message::Model, 0, &mut thin) {
        Ok(()) => Ok(thin),
        Err(_) => std::fs::read(path),
    }
}

struct Source<R> {
    reader: BufReader<R>,
    position: u64,
}

impl<R: Read + Seek> Source<R> {
    /// Copies the fields of a message that ends at some position.
    fn message(&mut self, end: u64, message: Message, depth: usize, to: &mut Vec<u8>) -> Result<()> {
        while self.position < end {
            let key = self.varint()?;
            let field = key >> 3;
            match key & 7 {
                0 => {
                    let value = self.varint()?;
                    encode_varint(key, to);
                    encode_varint(value, to);
                }
                1 => self.copy(key, 8, end, to)?,
                5 => self.copy(key, 4, end, to)?,
                2 => {
                    let length = self.varint()?;
                    if length > end.saturating_sub(self.position) {
                        return Err(Error::other("a field is longer than its message"));
                    }
                    match message.child(field).filter(|_| depth < DEPTH) {
                        Some(child) => {
                            let mut inner = Vec::new();
                            self.message(self.position + length, child, depth + 1, &mut inner)?;
                            encode_varint(key, to);
                            encode_varint(inner.len() as u64, to);
                            to.extend(inner);
                        }
                        None if message == Message::Tensor && field == RAW_DATA && length >= LARGE => {
                            self.leave_out(length, to)?;
                        }
                        None => {
                            encode_varint(key, to);
                            encode_varint(length, to);
                            self.bytes(length, to)?;
                        }
                    }
                }
                _ => return Err(Error::other("a field has no known form")),
            }
        }
        if self.position == end { Ok(()) } else { Err(Error::other("a field is longer than its message")) }
    }

    /// Skips elements, and writes where they are.
    fn leave_out(&mut self, length: u64, to: &mut Vec<u8>) -> Result<()> {
        encode_key(DATA_LOCATION, WireType::Varint, to);
        encode_varint(OWN_FILE as u64, to);
        for (name, number) in [(OFFSET, self.position), (LENGTH, length)] {
            let mut entry = Vec::new();
            for (tag, text) in [(1, name), (2, &*number.to_string())] {
                encode_key(tag, WireType::LengthDelimited, &mut entry);
                encode_varint(text.len() as u64, &mut entry);
                entry.extend(text.as_bytes());
            }
            encode_key(EXTERNAL_DATA, WireType::LengthDelimited, to);
            encode_varint(entry.len() as u64, to);
            to.extend(entry);
        }
        self.reader.seek_relative(i64::try_from(length).map_err(Error::other)?)?;
        self.position += length;
        Ok(())
    }

    /// Copies a field of `length` bytes.
    fn copy(&mut self, key: u64, length: u64, end: u64, to: &mut Vec<u8>) -> Result<()> {
        if length > end.saturating_sub(self.position) {
            return Err(Error::other("a field is longer than its message"));
        }
        encode_varint(key, to);
        self.bytes(length, to)
    }

    fn bytes(&mut self, length: u64, to: &mut Vec<u8>) -> Result<()> {
        let read = (&mut self.reader).take(length).read_to_end(to)?;
        self.position += read as u64;
        if read as u64 == length { Ok(()) } else { Err(Error::other("the file ends early")) }
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for place in 0..10 {
            let mut byte = [0];
            self.reader.read_exact(&mut byte)?;
            self.position += 1;
            value |= u64::from(byte[0] & 0x7f).checked_shl(7 * place).unwrap_or(0);
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::other("a number has too many bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::schema::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, data_type};
    use crate::tensor::HostTensor;
    use prost::Message as _;

    fn tensor(name: &str, length: usize) -> TensorProto {
        TensorProto {
            name: name.to_owned(),
            dims: vec![length as i64],
            data_type: data_type::FLOAT,
            raw_data: (0..length).flat_map(|place| (place as f32).to_le_bytes()).collect::<Vec<u8>>().into(),
            ..TensorProto::default()
        }
    }

    /// A small and a large weight, a constant of a node, and one of a graph inside of a node.
    fn model() -> ModelProto {
        let constant = |tensor| AttributeProto {
            name: "value".to_owned(),
            t: Some(tensor),
            ..AttributeProto::default()
        };
        let inner = GraphProto { initializer: vec![tensor("inner", 40_000)], ..GraphProto::default() };
        let branch = AttributeProto { name: "body".to_owned(), g: Some(inner), ..AttributeProto::default() };
        let node =
            NodeProto { attribute: vec![constant(tensor("node", 30_000)), branch], ..NodeProto::default() };
        let graph = GraphProto {
            node: vec![node],
            initializer: vec![tensor("small", 3), tensor("large", 50_000)],
            ..GraphProto::default()
        };
        ModelProto {
            ir_version: 8,
            producer_name: "test".to_owned(),
            graph: Some(graph),
            ..ModelProto::default()
        }
    }

    #[test]
    fn large_tensors_are_read_from_their_places() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        let whole = model();
        std::fs::write(&path, whole.encode_to_vec()).unwrap();
        let thin = read(&path).unwrap();
        assert!(thin.len() < 1000, "{} bytes", thin.len());
        let model = crate::onnx::Model::read(&path).unwrap();
        let graph = model.graph();
        let inner = graph.node[0].attribute[1].g.as_ref().unwrap();
        let of_node = graph.node[0].attribute[0].t.as_ref().unwrap();
        for (proto, length) in [
            (&graph.initializer[0], 3),
            (&graph.initializer[1], 50_000),
            (of_node, 30_000),
            (&inner.initializer[0], 40_000),
        ] {
            let expected: Vec<f32> = (0..length).map(|place| place as f32).collect();
            assert_eq!(model.tensor(proto).unwrap(), HostTensor::vector(expected), "{}", proto.name);
        }
        assert_eq!(model.files().unwrap(), []);
        // Elements leave memory and come back.
        let large = model.tensor(&graph.initializer[1]).unwrap();
        let absent = large.without_memory().expect("it is in the file");
        assert!(large.absent().is_none() && absent.absent().is_some(), "one is in memory");
        assert!(model.tensor(&graph.initializer[0]).unwrap().without_memory().is_none(), "it is small");
        assert_eq!(absent.absent().unwrap().load().unwrap().bytes(), large.bytes().unwrap());
        assert_eq!((absent.load(), &absent), (Ok(()), &large));
        // A tensor that is overwritten stays in memory: the file does not have its elements.
        let mut changed = large.without_memory().unwrap();
        changed.load().unwrap();
        assert!(changed.overwrite(&vec![0; 200_000]) && changed.without_memory().is_none());
        let absent = large.without_memory().unwrap();
        // A file that has become shorter is an error that names the tensor.
        std::fs::write(&path, &whole.encode_to_vec()[..1000]).unwrap();
        let error = model.tensor(&graph.initializer[1]).unwrap_err().to_string();
        assert!(error.contains("large"), "{error}");
        let error = absent.load().unwrap_err().to_string();
        assert!(error.contains("model.onnx") && error.contains("has changed"), "{error}");
    }

    #[test]
    fn files_that_are_no_messages_are_read_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        let whole = model().encode_to_vec();
        for bytes in [&whole[..whole.len() - 1], &whole[..700], &[0xff; 30], &[0x0b, 0x0c], b""] {
            std::fs::write(&path, bytes).unwrap();
            let read = read(&path).unwrap();
            assert!(read == bytes || ModelProto::decode(&read[..]) == ModelProto::decode(bytes));
        }
    }
}
