//! The files beside a model that its tensors lie in.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::onnx::schema::{AttributeProto, GraphProto, NodeProto, TensorProto};
use crate::onnx::{Model, OnnxError};

/// How deep graphs may be nested inside of nodes.
const DEPTH: usize = 64;

/// The value of `data_location` of a tensor in another file.
const EXTERNAL: i32 = 1;

impl Model {
    /// The files that hold tensors of the model, as paths relative to its folder, with where they are.
    ///
    /// # Errors
    /// When one is missing or lies outside of the folder.
    pub fn files(&self) -> Result<Vec<(PathBuf, PathBuf)>, OnnxError> {
        let mut locations = BTreeSet::new();
        let mut note = |tensor: &TensorProto| {
            if tensor.data_location == EXTERNAL {
                let entry = tensor.external_data.iter().find(|entry| entry.key == "location");
                locations.insert((entry.map_or("", |entry| &entry.value).to_owned(), tensor.name.clone()));
            }
        };
        visit_graph(self.graph(), 0, &mut note);
        self.proto().functions.iter().for_each(|function| visit_nodes(&function.node, 0, &mut note));
        let mut files: Vec<(PathBuf, PathBuf)> = Vec::new();
        for (location, tensor) in locations {
            let path = self.external.resolve(&location).map_err(|reason| OnnxError::ExternalData {
                tensor,
                location: location.clone(),
                reason,
            })?;
            files.push((location.into(), path));
        }
        files.dedup_by(|later, earlier| later.0 == earlier.0);
        Ok(files)
    }
}

fn visit_graph(graph: &GraphProto, depth: usize, visit: &mut dyn FnMut(&TensorProto)) {
    graph.initializer.iter().for_each(&mut *visit);
    let sparse = graph.sparse_initializer.iter();
    sparse.flat_map(|sparse| sparse.values.iter().chain(&sparse.indices)).for_each(&mut *visit);
    visit_nodes(&graph.node, depth, visit);
}

fn visit_nodes(nodes: &[NodeProto], depth: usize, visit: &mut dyn FnMut(&TensorProto)) {
    for AttributeProto { t, g, sparse_tensor, .. } in nodes.iter().flat_map(|node| &node.attribute) {
        t.iter().for_each(&mut *visit);
        let sparse = sparse_tensor.iter();
        sparse.flat_map(|sparse| sparse.values.iter().chain(&sparse.indices)).for_each(&mut *visit);
        if let Some(graph) = g.as_ref().filter(|_| depth < DEPTH) {
            visit_graph(graph, depth + 1, visit);
        }
    }
}
