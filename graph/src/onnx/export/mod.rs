//! From a function to an ONNX graph: the way back of [`import`](super::import).
//!
//! Calls become nodes by the table of operators, whose rows have ONNX's names and attributes. A file is written in operator set
//! [`BASE`], or in the newest one that a node or a type of elements needs.

mod attention;
mod control;
mod node;
mod types;

use std::collections::BTreeMap;

use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Binding, Body, Function, Operation, ValueId};
use crate::onnx::external::ExternalData;
use crate::onnx::schema::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, ValueInfoProto,
};
use crate::onnx::{Model, OnnxError, tensor};

/// The operator set in which files are written: all of its operators are as in the table, and it has scales for blocks.
const BASE: i64 = 21;

/// The versions of the file format that came with operator sets: `(operator set, file format)`.
const FORMATS: &[(i64, i64)] = &[(26, 13), (25, 12), (24, 11), (23, 11), (BASE, 10)];

/// The most bytes that a message of protocol buffers may have.
const MOST_BYTES: usize = i32::MAX as usize;

/// Names of results and metadata: the parts of a file that a function does not hold.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// The names of the results, in order, with the types that stand for those that are not known. Results without an entry have the names of their
    /// values.
    pub outputs: Vec<ValueInfoProto>,
    /// Named strings, for instance a vocabulary.
    pub metadata: BTreeMap<String, String>,
}

impl Labels {
    /// The labels of a model, for a function that takes the place of its graph.
    pub fn of(model: &Model) -> Self {
        let entries = model.proto.metadata_props.iter();
        Labels {
            outputs: model.graph().output.clone(),
            metadata: entries.map(|entry| (entry.key.clone(), entry.value.clone())).collect(),
        }
    }

    /// Names of results.
    pub fn of_outputs(names: &[&str]) -> Self {
        let output = |name: &&str| ValueInfoProto { name: (*name).to_owned(), r#type: None };
        Labels { outputs: names.iter().map(output).collect(), metadata: BTreeMap::new() }
    }
}

impl Model {
    /// The model that runs a function.
    ///
    /// # Errors
    /// When the function has an operation that ONNX has not: requantisation, and calls of programs and of functions.
    pub fn of_function(function: &Function, labels: &Labels) -> Result<Self, OnnxError> {
        let mut exporter = Exporter::new(function, labels);
        let graph = exporter.graph(labels)?;
        let entry = |(key, value): (&String, &String)| StringStringEntryProto {
            key: key.clone(),
            value: value.clone(),
        };
        let format =
            FORMATS.iter().find(|(set, _)| *set <= exporter.version).map_or(10, |(_, format)| *format);
        let mut opset_import = vec![OperatorSetIdProto { domain: String::new(), version: exporter.version }];
        let others =
            exporter.domains.iter().map(|domain| OperatorSetIdProto { domain: domain.clone(), version: 1 });
        opset_import.extend(others);
        let proto = ModelProto {
            ir_version: format,
            producer_name: "tilewright".to_owned(),
            producer_version: env!("CARGO_PKG_VERSION").to_owned(),
            graph: Some(graph),
            opset_import,
            metadata_props: labels.metadata.iter().map(entry).collect(),
            functions: Vec::new(),
        };
        Ok(Model { proto, external: ExternalData::none() })
    }

    /// The bytes of a file with the model.
    ///
    /// # Errors
    /// When they are more than such a file may have, or tensors lie in other files.
    pub fn to_bytes(&self) -> Result<Vec<u8>, OnnxError> {
        let length = self.proto.encoded_len();
        if length > MOST_BYTES {
            return Err(OnnxError::TooLarge { bytes: length, most: MOST_BYTES });
        }
        Ok(self.proto.encode_to_vec())
    }
}

/// Translates one function.
struct Exporter<'f> {
    function: &'f Function,
    /// The names of values that are bound already.
    names: FxHashMap<ValueId, String>,
    /// Names that are given away.
    taken: FxHashSet<String>,
    /// The operator set that the nodes so far need.
    version: i64,
    /// The operator sets besides ONNX's own.
    domains: Vec<String>,
}

impl<'f> Exporter<'f> {
    fn new(function: &'f Function, labels: &Labels) -> Self {
        let mut exporter = Exporter {
            function,
            names: FxHashMap::default(),
            taken: labels.outputs.iter().map(|output| output.name.clone()).collect(),
            version: function.values.iter().map(|value| types::operator_set(&value.ty)).fold(BASE, i64::max),
            domains: Vec::new(),
        };
        for &parameter in &function.body.parameters {
            let name = function.describe(parameter);
            exporter.taken.insert(name.clone());
            exporter.names.insert(parameter, name);
        }
        exporter
    }

    /// A name that nothing else has, like the given one.
    fn fresh(&mut self, like: &str) -> String {
        let mut name = like.to_owned();
        let mut number = 1;
        while name.is_empty() || !self.taken.insert(name.clone()) {
            name = format!("{like}_{number}");
            number += 1;
        }
        name
    }

    /// Names a value that is bound now.
    fn bind(&mut self, value: ValueId) -> String {
        if let Some(name) = self.names.get(&value) {
            return name.clone();
        }
        let name = match &self.function.value(value).name {
            Some(name) => self.fresh(&name.clone()),
            None => self.fresh(&format!("value_{}", value.index())),
        };
        self.names.insert(value, name.clone());
        name
    }

    /// The name of a value that is bound.
    fn name(&self, value: ValueId) -> Result<String, OnnxError> {
        let unbound =
            || self.refuse("graph", format!("value `{}` is not bound", self.function.describe(value)));
        self.names.get(&value).cloned().ok_or_else(unbound)
    }

    fn refuse(&self, node: &str, reason: String) -> OnnxError {
        OnnxError::Export { node: node.to_owned(), reason }
    }

    /// The graph of the whole function.
    fn graph(&mut self, labels: &Labels) -> Result<GraphProto, OnnxError> {
        let body = &self.function.body;
        let constants: FxHashSet<ValueId> = body
            .bindings
            .iter()
            .filter(|binding| matches!(binding.operation, Operation::Constant(_)))
            .flat_map(|binding| binding.outputs.iter().copied())
            .collect();
        // A result that a node gives has the name of the output from the start.
        let mut names = Vec::with_capacity(body.results.len());
        for (place, &result) in body.results.iter().enumerate() {
            let name = match labels.outputs.get(place) {
                Some(output) => output.name.clone(),
                None => self.fresh(&self.function.describe(result)),
            };
            if !constants.contains(&result) {
                self.names.entry(result).or_insert_with(|| name.clone());
            }
            names.push(name);
        }
        let mut graph = self.bindings(body)?;
        for (place, (&result, name)) in body.results.iter().zip(&names).enumerate() {
            let own = self.name(result)?;
            if own != *name {
                // Inputs and constants are no outputs of a graph, and neither is a value twice.
                graph.node.push(copy(&own, name));
            }
            let mut output = types::declared(name, &self.function.value(result).ty);
            if !types::has_shape(&output)
                && let Some(given) = labels.outputs.get(place).and_then(|given| given.r#type.clone())
            {
                output.r#type = Some(given);
            }
            graph.output.push(output);
        }
        graph.input =
            body.parameters.iter().map(|&parameter| self.parameter(parameter)).collect::<Result<_, _>>()?;
        graph.name = self.function.name.to_string();
        Ok(graph)
    }

    fn parameter(&self, value: ValueId) -> Result<ValueInfoProto, OnnxError> {
        Ok(types::declared(&self.name(value)?, &self.function.value(value).ty))
    }

    /// The nodes and constants of a body.
    fn bindings(&mut self, body: &'f Body) -> Result<GraphProto, OnnxError> {
        let mut graph = GraphProto::default();
        for binding in &body.bindings {
            self.binding(binding, &mut graph)?;
        }
        Ok(graph)
    }

    fn binding(&mut self, binding: &'f Binding, graph: &mut GraphProto) -> Result<(), OnnxError> {
        if let Operation::Constant(constant) = &binding.operation {
            let name = self.bind(binding.outputs[0]);
            graph.initializer.push(tensor::write_tensor(&name, constant));
            return Ok(());
        }
        let origin = binding.origin.as_deref().unwrap_or_default();
        let mut node = match &binding.operation {
            Operation::Call(call) if call.operator.name == "attention" => {
                self.attention(call, origin, graph)?
            }
            Operation::Call(call) => self.call(call, binding.outputs.len(), origin)?,
            Operation::MatchShape { value, .. } => NodeProto {
                input: vec![self.name(*value)?],
                op_type: "Identity".to_owned(),
                ..NodeProto::default()
            },
            Operation::If { condition, then_body, else_body } => {
                self.conditional(*condition, then_body, else_body)?
            }
            Operation::Loop(operation) => self.repeated(operation)?,
            Operation::Scan(operation) => self.scanned(operation)?,
            other => {
                let reason = format!("ONNX has no form of `{}`; it is made by later passes", other.name());
                return Err(self.refuse(origin, reason));
            }
        };
        node.output = binding.outputs.iter().map(|&output| self.bind(output)).collect();
        node.name = self.fresh(if origin.is_empty() { &node.op_type } else { origin });
        graph.node.push(node);
        Ok(())
    }
}

/// A node that gives a value a second name.
fn copy(value: &str, name: &str) -> NodeProto {
    NodeProto {
        input: vec![value.to_owned()],
        output: vec![name.to_owned()],
        op_type: "Identity".to_owned(),
        ..NodeProto::default()
    }
}
