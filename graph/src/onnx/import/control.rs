//! Control flow.

use rustc_hash::FxHashMap;

use crate::ir::{Body, Loop, Scan, ScanOrder, ScanTensor, Shape, TensorType, Type, ValueId};
use crate::onnx::OnnxError;
use crate::onnx::import::{Importer, Scope, node_error};
use crate::onnx::schema::{GraphProto, NodeProto};
use crate::tensor::ElementType;

type Results = Result<Vec<Option<ValueId>>, OnnxError>;

impl<'m> Importer<'m> {
    fn sub_graph(node: &'m NodeProto, name: &str) -> Result<&'m GraphProto, OnnxError> {
        let attribute = node.attribute.iter().find(|attribute| attribute.name == name);
        let graph = attribute.and_then(|attribute| attribute.g.as_ref());
        graph.ok_or_else(|| node_error(node, format!("attribute `{name}` must be a graph")))
    }

    fn integers(&self, node: &NodeProto, name: &str) -> Vec<i64> {
        let attributes = self.resolve(&node.attribute);
        attributes
            .into_iter()
            .find(|attribute| attribute.name == name)
            .map_or_else(Vec::new, |attribute| attribute.ints)
    }

    /// Translates a sub-graph whose parameters have given types.
    fn import_body(&mut self, graph: &'m GraphProto, parameters: Vec<Type>) -> Result<Body, OnnxError> {
        self.builder.open_body();
        self.scopes.push(Scope { names: FxHashMap::default(), sees_outside: true });
        for (input, ty) in graph.input.iter().zip(parameters) {
            let value = self.builder.parameter(&input.name, ty);
            self.define(&input.name, value);
        }
        let results = self.import_graph(graph, false)?;
        self.scopes.pop();
        self.builder.close_body(results).map_err(|error| super::graph_error(graph, error))
    }

    fn required(&self, node: &NodeProto, inputs: &[Option<ValueId>]) -> Result<Vec<ValueId>, OnnxError> {
        let values: Option<Vec<ValueId>> = inputs.iter().copied().collect();
        values.ok_or_else(|| node_error(node, "an input that is not optional is left out"))
    }

    pub(super) fn import_if(&mut self, node: &'m NodeProto, inputs: &[Option<ValueId>]) -> Results {
        let &[Some(condition)] = inputs else { return Err(node_error(node, "it takes one condition")) };
        let then_body = self.import_body(Self::sub_graph(node, "then_branch")?, Vec::new())?;
        let else_body = self.import_body(Self::sub_graph(node, "else_branch")?, Vec::new())?;
        self.builder.set_origin(Some(super::node_name(node).into()));
        let results = self.builder.conditional(condition, then_body, else_body);
        Ok(results.map_err(|error| node_error(node, error))?.into_iter().map(Some).collect())
    }

    /// The type of a value that changes from one iteration to the next: its shape is not known.
    fn carried_type(&self, value: ValueId) -> Type {
        match self.builder.ty(value) {
            Type::Tensor(tensor) => {
                Type::Tensor(TensorType { element: tensor.element, shape: Shape::Unknown })
            }
            other => other.clone(),
        }
    }

    pub(super) fn import_loop(&mut self, node: &'m NodeProto, inputs: Vec<Option<ValueId>>) -> Results {
        let graph = Self::sub_graph(node, "body")?;
        let carried = self.required(node, inputs.get(2..).unwrap_or_default())?;
        if graph.input.len() != carried.len() + 2 {
            let reason =
                format!("the body takes {} values, the loop carries {}", graph.input.len(), carried.len());
            return Err(node_error(node, reason));
        }
        let own = [Type::fixed(ElementType::I64, &[]), Type::tensor(ElementType::Bool, Shape::Unknown)];
        let types = own.into_iter().chain(carried.iter().map(|&value| self.carried_type(value))).collect();
        let body = self.import_body(graph, types)?;
        self.builder.set_origin(Some(super::node_name(node).into()));
        let given = |place: usize| inputs.get(place).copied().flatten();
        let operation = Loop { trip_count: given(0), condition: given(1), carried, body };
        let results = self.builder.repeat(operation).map_err(|error| node_error(node, error))?;
        Ok(results.into_iter().map(Some).collect())
    }

    pub(super) fn import_scan(&mut self, node: &'m NodeProto, inputs: &[Option<ValueId>]) -> Results {
        if self.versions.onnx < 9 {
            return Err(node_error(
                node,
                "Scan with a batch dimension, as before version 9, is not supported",
            ));
        }
        let graph = Self::sub_graph(node, "body")?;
        let values = self.required(node, inputs)?;
        let attributes = self.resolve(&node.attribute);
        let slices = attributes.iter().find(|attribute| attribute.name == "num_scan_inputs");
        let slices = slices.and_then(|attribute| usize::try_from(attribute.i).ok()).unwrap_or(0);
        let Some(state_count) = values.len().checked_sub(slices) else {
            return Err(node_error(
                node,
                format!("{slices} of {} inputs cannot be cut into slices", values.len()),
            ));
        };
        let Some(output_count) = graph.output.len().checked_sub(state_count) else {
            return Err(node_error(node, "the body gives fewer values than there are states"));
        };
        let orders = |axes: &str, directions: &str, count: usize| -> Vec<ScanOrder> {
            let (axes, directions) = (self.integers(node, axes), self.integers(node, directions));
            let number = |list: &[i64], place: usize| list.get(place).copied().unwrap_or(0);
            let order =
                |place| ScanOrder { axis: number(&axes, place), reverse: number(&directions, place) != 0 };
            (0..count).map(order).collect()
        };
        let input_orders = orders("scan_input_axes", "scan_input_directions", slices);
        let outputs = orders("scan_output_axes", "scan_output_directions", output_count);
        let (states, tensors) = values.split_at(state_count);
        let types = values.iter().map(|&value| self.carried_type(value)).collect();
        let body = self.import_body(graph, types)?;
        self.builder.set_origin(Some(super::node_name(node).into()));
        let inputs =
            tensors.iter().zip(input_orders).map(|(&value, order)| ScanTensor { value, order }).collect();
        let operation = Scan { states: states.to_vec(), inputs, outputs, body };
        let results = self.builder.scan(operation).map_err(|error| node_error(node, error))?;
        Ok(results.into_iter().map(Some).collect())
    }
}
