//! Tensors of which deduction knows all elements become constants: the shape of a tensor with fixed extents, and what is
//! computed from it.

use crate::build::BuildError;
use crate::ir::{Operation, ValueId};
use crate::pass::{Rewriter, Rule};
use crate::symbolic::SymInt;
use crate::tensor::HostTensor;

/// Replaces calls by their known elements.
pub(super) struct FoldShapes;

impl Rule for FoldShapes {
    fn rewrite(
        &mut self,
        graph: &mut Rewriter<'_>,
        operation: &Operation,
        outputs: usize,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let Operation::Call(call) = operation else { return Ok(None) };
        if outputs != 1 {
            return Ok(None);
        }
        let values = graph.add_call(call.clone(), outputs)?;
        Ok(Some(match known(graph, values[0]) {
            Some(tensor) => vec![graph.add_constant(tensor)],
            None => values,
        }))
    }
}

/// The tensor of which all elements are constants.
fn known(graph: &Rewriter<'_>, value: ValueId) -> Option<HostTensor> {
    let info = graph.builder.value(value);
    let numbers: Vec<i64> = info.contents.as_ref()?.iter().map(SymInt::as_constant).collect::<Option<_>>()?;
    let extent = |extent: &SymInt| usize::try_from(extent.as_constant()?).ok();
    let shape: Vec<usize> = info.ty.extents()?.iter().map(extent).collect::<Option<_>>()?;
    HostTensor::new(&shape, numbers).ok()?.cast(info.ty.element()?).ok()
}
