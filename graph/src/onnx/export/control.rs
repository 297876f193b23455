//! Control flow as nodes with graphs inside.

use crate::ir::{Body, Loop, Scan, ScanOrder, ValueId};
use crate::onnx::OnnxError;
use crate::onnx::export::{Exporter, copy, types};
use crate::onnx::schema::{AttributeProto, GraphProto, NodeProto, attribute_type as kind};

impl<'f> Exporter<'f> {
    pub(super) fn conditional(
        &mut self,
        condition: ValueId,
        then_body: &'f Body,
        else_body: &'f Body,
    ) -> Result<NodeProto, OnnxError> {
        let attribute =
            vec![graph("then_branch", self.inner(then_body)?), graph("else_branch", self.inner(else_body)?)];
        let input = vec![self.name(condition)?];
        Ok(NodeProto { input, attribute, op_type: "If".to_owned(), ..NodeProto::default() })
    }

    pub(super) fn repeated(&mut self, operation: &'f Loop) -> Result<NodeProto, OnnxError> {
        let optional = |exporter: &Self, value: Option<ValueId>| {
            value.map_or_else(|| Ok(String::new()), |value| exporter.name(value))
        };
        let mut input = vec![optional(self, operation.trip_count)?, optional(self, operation.condition)?];
        for &value in &operation.carried {
            input.push(self.name(value)?);
        }
        let attribute = vec![graph("body", self.inner(&operation.body)?)];
        Ok(NodeProto { input, attribute, op_type: "Loop".to_owned(), ..NodeProto::default() })
    }

    pub(super) fn scanned(&mut self, operation: &'f Scan) -> Result<NodeProto, OnnxError> {
        let values = operation.states.iter().copied().chain(operation.inputs.iter().map(|input| input.value));
        let input = values.map(|value| self.name(value)).collect::<Result<_, _>>()?;
        let orders: Vec<ScanOrder> = operation.inputs.iter().map(|input| input.order).collect();
        let axes = |orders: &[ScanOrder]| orders.iter().map(|order| order.axis).collect();
        let directions = |orders: &[ScanOrder]| orders.iter().map(|order| i64::from(order.reverse)).collect();
        let attribute = vec![
            graph("body", self.inner(&operation.body)?),
            AttributeProto {
                name: "num_scan_inputs".to_owned(),
                i: operation.inputs.len() as i64,
                r#type: kind::INT,
                ..AttributeProto::default()
            },
            integers("scan_input_axes", axes(&orders)),
            integers("scan_input_directions", directions(&orders)),
            integers("scan_output_axes", axes(&operation.outputs)),
            integers("scan_output_directions", directions(&operation.outputs)),
        ];
        Ok(NodeProto { input, attribute, op_type: "Scan".to_owned(), ..NodeProto::default() })
    }

    /// A body as a graph. Its results are outputs of nodes inside, each named once.
    fn inner(&mut self, body: &'f Body) -> Result<GraphProto, OnnxError> {
        let input = body
            .parameters
            .iter()
            .map(|&parameter| {
                let name = self.bind(parameter);
                types::declared_inside(&name, &self.function.value(parameter).ty)
            })
            .collect();
        let mut graph = self.bindings(body)?;
        for &result in &body.results {
            let own = self.name(result)?;
            let by_node = graph.node.iter().any(|node| node.output.contains(&own));
            let named = graph.output.iter().any(|output| output.name == own);
            let name = if by_node && !named {
                own
            } else {
                let name = self.fresh(&format!("{own}_result"));
                graph.node.push(copy(&own, &name));
                name
            };
            graph.output.push(types::declared_inside(&name, &self.function.value(result).ty));
        }
        graph.input = input;
        graph.name = self.fresh("body");
        Ok(graph)
    }
}

fn graph(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto { name: name.to_owned(), g: Some(graph), r#type: kind::GRAPH, ..AttributeProto::default() }
}

fn integers(name: &str, ints: Vec<i64>) -> AttributeProto {
    AttributeProto { name: name.to_owned(), ints, r#type: kind::INTS, ..AttributeProto::default() }
}
