//! The kernels that a graph calls at given sizes.

use super::call::dims;
use super::extent::Extent;
use super::{GraphError, GraphStep, KernelCall, KernelGraph};
use crate::error::Error;
use crate::kernel::Kernel;

/// A kernel at the dimensions of its calls in a graph.
#[derive(Clone, Debug)]
pub struct GraphKernel {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// Its dimensions and `usize` arguments, in the order of its definition.
    pub dims: Vec<i64>,
    /// How often a run of the graph calls it with them.
    pub calls: usize,
}

impl GraphKernel {
    /// The dimensions and `usize` arguments by name.
    pub fn named_dims(&self) -> Vec<(&'static str, i64)> {
        self.kernel.dims().into_iter().zip(self.dims.iter().copied()).collect()
    }
}

impl KernelGraph {
    /// The kernels of a run with given sizes of the graph's dimensions, each once for each of its shapes, in the order of their first calls.
    ///
    /// # Errors
    /// [`GraphError::Size`] when a dimension has no size, or an extent none.
    pub fn kernels(&self, sizes: &[(&str, i64)]) -> Result<Vec<GraphKernel>, Error> {
        let mut found: Vec<GraphKernel> = Vec::new();
        for step in &self.steps {
            let GraphStep::Call(call) = step else { continue };
            let dims = self.dims_of(call, sizes)?;
            let same =
                |known: &&mut GraphKernel| std::ptr::eq(known.kernel, call.kernel) && known.dims == dims;
            match found.iter_mut().find(same) {
                Some(known) => known.calls += 1,
                None => found.push(GraphKernel { kernel: call.kernel, dims, calls: 1 }),
            }
        }
        Ok(found)
    }

    /// The dimensions of a call.
    fn dims_of(&self, call: &KernelCall, sizes: &[(&str, i64)]) -> Result<Vec<i64>, Error> {
        let definition = call.kernel.definition().expect("generated code names kernels that it defines");
        let shapes = call.inputs.iter().map(|&input| self.values[input].shape.iter());
        let extents = dims(definition, shapes, call.sizes.iter());
        let size = |extent: Option<&Extent>| {
            let extent = extent.expect("each dimension of a definition is an extent of an argument");
            let known = |name: &str| sizes.iter().find(|(own, _)| *own == name).map(|(_, size)| *size);
            extent.evaluate(&known).filter(|size| *size >= 0).ok_or_else(|| {
                let given = sizes.iter().map(|(name, size)| format!("{name} = {size}")).collect::<Vec<_>>();
                let (graph, given) = (self.name.clone(), given.join(", "));
                GraphError::Size { graph, extent: extent.to_string(), given }.into()
            })
        };
        extents.into_iter().map(size).collect()
    }
}
