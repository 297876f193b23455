//! From an ONNX graph to a function.
//!
//! Nodes become calls to operators of the table, in the form of their newest version ([`upgrade`]); control flow becomes
//! bodies; functions of the model are expanded where they are called. Types that a file declares for inputs are taken over;
//! for all other values they are hints: types are deduced, and where the file says something else, both are reported.

mod attention;
mod attribute;
mod control;
mod expansion;
mod fused;
mod known;
mod loss;
mod meaning;
mod quantised;
mod types;
mod upgrade;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::build::{BuildError, GraphBuilder};
use crate::ir::{Function, ValueId};
use crate::onnx::schema::{AttributeProto, FunctionProto, GraphProto, NodeProto};
use crate::onnx::{Model, OnnxError, tensor};

/// The versions of ONNX's own operator set that are supported.
pub const OPERATOR_SET_VERSIONS: (i64, i64) = (7, 27);

/// How deep sub-graphs and functions may be nested.
const DEPTH: usize = 64;

/// How many nodes functions may be expanded to, so that functions that call one another many times end.
const EXPANDED_NODES: usize = 1 << 20;

/// How many elements a tensor may have of which a file lists only some.
const SPARSE_ELEMENTS: usize = 1 << 28;

/// A graph that was imported, and what the file says that is not so.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The function. Its parameters and results have the file's names.
    pub function: Function,
    /// The names of the results.
    pub outputs: Vec<String>,
    /// Where declared types differ from deduced ones.
    pub warnings: Vec<String>,
}

impl Model {
    /// Translates the model's graph.
    ///
    /// # Errors
    /// When operators are unknown, all of which are named; or when the graph is not well-formed.
    pub fn import(&self) -> Result<Imported, OnnxError> {
        let versions = Versions::of(&self.proto.opset_import)?;
        known::check(&self.proto, &versions)?;
        let functions = self.proto.functions.iter();
        let functions = functions
            .map(|function| (function_key(&function.domain, &function.name, &function.overload), function));
        let mut importer = Importer {
            model: self,
            functions: functions.collect(),
            builder: GraphBuilder::new("main"),
            scopes: vec![Scope { names: FxHashMap::default(), sees_outside: false }],
            versions,
            arguments: Vec::new(),
            depth: 0,
            expanded: 0,
            warnings: Vec::new(),
        };
        let graph = self.graph();
        let results = importer.import_graph(graph, true)?;
        let outputs = graph.output.iter().map(|output| output.name.clone()).collect();
        let function = importer.builder.finish(results).map_err(|error| graph_error(graph, error))?;
        Ok(Imported { function, outputs, warnings: importer.warnings })
    }
}

fn graph_error(graph: &GraphProto, error: impl ToString) -> OnnxError {
    OnnxError::Graph { graph: graph.name.clone(), reason: error.to_string() }
}

/// The key of a function: domain, name, and overload.
type FunctionKey<'m> = (&'m str, &'m str, &'m str);

fn function_key<'m>(domain: &'m str, name: &'m str, overload: &'m str) -> FunctionKey<'m> {
    (plain_domain(domain), name, overload)
}

/// The name of an operator set; `ai.onnx` is another name of ONNX's own.
fn plain_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// The version of ONNX's own operator set.
#[derive(Clone, Copy, Debug)]
struct Versions {
    onnx: i64,
}

impl Versions {
    /// Reads the versions that a model or function states. Sets that are not ONNX's own have one version here.
    fn of(imports: &[crate::onnx::schema::OperatorSetIdProto]) -> Result<Self, OnnxError> {
        let own = imports.iter().find(|import| plain_domain(&import.domain).is_empty());
        // A file that names no set uses none, but perhaps in functions of its own.
        let onnx = own.map_or(OPERATOR_SET_VERSIONS.1, |import| import.version);
        if !(OPERATOR_SET_VERSIONS.0..=OPERATOR_SET_VERSIONS.1).contains(&onnx) {
            let domain = "ai.onnx".to_owned();
            return Err(OnnxError::OperatorSet { domain, version: onnx, supported: OPERATOR_SET_VERSIONS });
        }
        Ok(Versions { onnx })
    }
}

/// Names of values that are visible in a graph or function.
struct Scope {
    names: FxHashMap<String, Option<ValueId>>,
    /// Whether names outside are visible as well: in sub-graphs, not in functions.
    sees_outside: bool,
}

/// Translates one model.
struct Importer<'m> {
    model: &'m Model,
    functions: FxHashMap<FunctionKey<'m>, &'m FunctionProto>,
    builder: GraphBuilder,
    scopes: Vec<Scope>,
    versions: Versions,
    /// The attributes of the calls of functions that are being expanded, the innermost last.
    arguments: Vec<Vec<AttributeProto>>,
    depth: usize,
    expanded: usize,
    warnings: Vec<String>,
}

impl<'m> Importer<'m> {
    /// Translates a graph into the innermost open body, and gives its results. The parameters of sub-graphs are made
    /// before, since their types come from the node.
    fn import_graph(
        &mut self,
        graph: &'m GraphProto,
        makes_parameters: bool,
    ) -> Result<Vec<ValueId>, OnnxError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(graph_error(graph, format!("sub-graphs are nested more than {DEPTH} deep")));
        }
        for initializer in &graph.initializer {
            let tensor = self.model.tensor(initializer)?;
            self.define_constant(&initializer.name, tensor);
        }
        for sparse in &graph.sparse_initializer {
            let tensor = tensor::read_sparse_tensor(sparse, &self.model.external, SPARSE_ELEMENTS)?;
            let name = sparse.values.as_ref().map_or("", |values| &values.name[..]);
            self.define_constant(name, tensor);
        }
        if makes_parameters {
            for input in &graph.input {
                // Up to version 3 of the format, initializers are listed as inputs.
                if self.scope().names.contains_key(&input.name) {
                    continue;
                }
                let ty = types::declared(input).map_err(|reason| graph_error(graph, reason))?;
                let value = self.builder.parameter(&input.name, ty);
                self.define(&input.name, value);
            }
        }
        for node in &graph.node {
            self.import_node(node)?;
        }
        self.builder.set_origin(None);
        self.compare_declared(graph);
        let results = graph
            .output
            .iter()
            .map(|output| self.lookup(&output.name).map_err(|reason| graph_error(graph, reason)));
        let results = results.collect::<Result<Vec<_>, _>>()?;
        self.depth -= 1;
        Ok(results)
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("there is always a scope")
    }

    fn define(&mut self, name: &str, value: ValueId) {
        self.scope().names.insert(name.to_owned(), Some(value));
    }

    fn define_constant(&mut self, name: &str, tensor: crate::tensor::HostTensor) {
        let value = self.builder.constant(tensor);
        self.builder.set_name(value, name);
        self.define(name, value);
    }

    /// The value of a name.
    fn lookup(&self, name: &str) -> Result<ValueId, String> {
        for scope in self.scopes.iter().rev() {
            match scope.names.get(name) {
                Some(Some(value)) => return Ok(*value),
                Some(None) => return Err(format!("`{name}` is an input that is left out here")),
                None if !scope.sees_outside => break,
                None => {}
            }
        }
        Err(format!("`{name}` is used before anything gives it: it is missing, or the graph has a cycle"))
    }

    /// Compares what the file declares with what was deduced. Neither is an error: the run decides.
    fn compare_declared(&mut self, graph: &GraphProto) {
        for info in graph.value_info.iter().chain(&graph.output) {
            let Ok(value) = self.lookup(&info.name) else { continue };
            if let Some(conflict) = types::conflict(info, self.builder.ty(value)) {
                tracing::warn!(value = info.name, "{conflict}");
                self.warnings.push(format!("`{}`: {conflict}", info.name));
            }
        }
    }

    fn import_node(&mut self, node: &'m NodeProto) -> Result<(), OnnxError> {
        let name = node_name(node);
        self.builder.set_origin(Some(Arc::from(name)));
        self.expanded += usize::from(!self.arguments.is_empty());
        if self.expanded > EXPANDED_NODES {
            return Err(node_error(node, format!("functions expand to more than {EXPANDED_NODES} nodes")));
        }
        let inputs = node.input.iter().map(|input| match &input[..] {
            "" => Ok(None),
            name => match self.lookup_optional(name) {
                Ok(value) => Ok(value),
                Err(reason) => Err(node_error(node, reason)),
            },
        });
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let domain = plain_domain(&node.domain);
        let key = function_key(domain, &node.op_type, &node.overload);
        let results = match (domain, &node.op_type[..]) {
            _ if self.functions.contains_key(&key) => {
                let function = self.functions[&key];
                self.expand_function(node, function, inputs)?
            }
            ("", "If") => self.import_if(node, &inputs)?,
            ("", "Loop") => self.import_loop(node, inputs)?,
            ("", "Scan") => self.import_scan(node, &inputs)?,
            _ => self.import_call(node, inputs)?,
        };
        for (name, value) in node.output.iter().zip(results) {
            if !name.is_empty() {
                if let Some(value) = value {
                    self.builder.set_name(value, name);
                }
                self.scope().names.insert(name.clone(), value);
            }
        }
        Ok(())
    }

    /// As [`Importer::lookup`]; an input of a function that its caller leaves out is `None`.
    fn lookup_optional(&self, name: &str) -> Result<Option<ValueId>, String> {
        match self.scopes.last().and_then(|scope| scope.names.get(name)) {
            Some(None) => Ok(None),
            _ => self.lookup(name).map(Some),
        }
    }

    fn import_call(
        &mut self,
        node: &'m NodeProto,
        inputs: Vec<Option<ValueId>>,
    ) -> Result<Vec<Option<ValueId>>, OnnxError> {
        let attributes = self.attributes(node)?;
        let call = upgrade::Node {
            domain: plain_domain(&node.domain),
            operator: &node.op_type,
            version: self.versions.onnx,
            inputs,
            attributes,
            used: node.output.iter().map(|name| !name.is_empty()).collect(),
        };
        let results = call.translate(&mut self.builder).map_err(|error| node_error(node, error))?;
        Ok(results.into_iter().map(Some).collect())
    }

    /// Expands a function of the model where it is called.
    fn expand_function(
        &mut self,
        node: &'m NodeProto,
        function: &'m FunctionProto,
        inputs: Vec<Option<ValueId>>,
    ) -> Result<Vec<Option<ValueId>>, OnnxError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(node_error(node, format!("functions are nested more than {DEPTH} deep")));
        }
        let mut arguments = self.resolve(&node.attribute);
        let given =
            |arguments: &[AttributeProto], name: &str| arguments.iter().any(|argument| argument.name == name);
        for default in &function.attribute_proto {
            if !given(&arguments, &default.name) {
                arguments.push(default.clone());
            }
        }
        let outer = std::mem::replace(&mut self.versions, Versions::of(&function.opset_import)?);
        self.arguments.push(arguments);
        let padded = inputs.into_iter().chain(std::iter::repeat(None));
        let names = function.input.iter().cloned().zip(padded).collect();
        self.scopes.push(Scope { names, sees_outside: false });
        for inner in &function.node {
            self.import_node(inner)?;
        }
        let results = function
            .output
            .iter()
            .map(|name| self.lookup_optional(name).map_err(|reason| node_error(node, reason)));
        let results = results.collect::<Result<Vec<_>, _>>()?;
        self.scopes.pop();
        self.arguments.pop();
        self.versions = outer;
        self.depth -= 1;
        Ok(results)
    }
}

/// A node's name for messages: its own, or that of its first output.
fn node_name(node: &NodeProto) -> &str {
    if node.name.is_empty() { node.output.first().map_or("", |output| output) } else { &node.name }
}

fn node_error(node: &NodeProto, reason: impl ToString) -> OnnxError {
    OnnxError::Node {
        node: node_name(node).to_owned(),
        operator: node.op_type.clone(),
        reason: reason.to_string(),
    }
}

impl From<BuildError> for upgrade::Refusal {
    fn from(error: BuildError) -> Self {
        upgrade::Refusal(error.to_string())
    }
}
