//! Which operators are known, asked of all nodes before anything is translated.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::onnx::error::{MissingOperator, OnnxError};
use crate::onnx::import::{
    FunctionKey, Versions, function_key, meaning, node_name, plain_domain, quantised, upgrade,
};
use crate::onnx::schema::{GraphProto, ModelProto, NodeProto};
use crate::operator;

/// Operators that the importer translates itself.
const CONTROL: [&str; 4] = ["Constant", "If", "Loop", "Scan"];

/// Names all operators that are not known, with the nodes that call them.
pub(super) fn check(model: &ModelProto, versions: &Versions) -> Result<(), OnnxError> {
    let mut search =
        Search { functions: FxHashSet::default(), missing: BTreeMap::new(), version: versions.onnx };
    search.functions = model
        .functions
        .iter()
        .map(|function| function_key(&function.domain, &function.name, &function.overload))
        .collect();
    if let Some(graph) = &model.graph {
        search.visit_graph(graph);
    }
    for function in &model.functions {
        search.version = Versions::of(&function.opset_import)?.onnx;
        search.visit_nodes(&function.node);
    }
    if search.missing.is_empty() {
        return Ok(());
    }
    let missing = search.missing.into_iter().map(|((domain, operator, version), nodes)| MissingOperator {
        domain: domain.to_owned(),
        operator: operator.to_owned(),
        version,
        nodes,
    });
    Err(OnnxError::MissingOperators(missing.collect()))
}

struct Search<'m> {
    functions: FxHashSet<FunctionKey<'m>>,
    missing: BTreeMap<(&'m str, &'m str, i64), Vec<String>>,
    version: i64,
}

impl<'m> Search<'m> {
    fn visit_graph(&mut self, graph: &'m GraphProto) {
        self.visit_nodes(&graph.node);
    }

    fn visit_nodes(&mut self, nodes: &'m [NodeProto]) {
        for node in nodes {
            if !self.knows(node) {
                let key = (plain_domain(&node.domain), &node.op_type[..], self.version);
                self.missing.entry(key).or_default().push(node_name(node).to_owned());
            }
            node.attribute
                .iter()
                .filter_map(|attribute| attribute.g.as_ref())
                .for_each(|graph| self.visit_graph(graph));
        }
    }

    fn knows(&self, node: &NodeProto) -> bool {
        let domain = plain_domain(&node.domain);
        let own = domain.is_empty()
            && (CONTROL.contains(&&node.op_type[..]) || upgrade::renamed(&node.op_type).is_some());
        own || quantised::is_known(domain, &node.op_type)
            || meaning::find(domain, &node.op_type).is_some()
            || operator::find_onnx(domain, &node.op_type).is_some()
            || self.functions.contains(&function_key(domain, &node.op_type, &node.overload))
    }
}
