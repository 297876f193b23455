//! Tensors of which deduction knows all elements become constants: the shape of a tensor with fixed extents, and what is
//! computed from it.

use crate::build::BuildError;
use crate::ir::{Call, ValueId};
use crate::pass::{CallRule, Rewriter};
use crate::symbolic::SymInt;
use crate::tensor::HostTensor;

/// Replaces calls by their known elements.
pub(super) struct FoldShapes;

impl CallRule for FoldShapes {
    fn rewrite_call(
        &mut self,
        graph: &mut Rewriter<'_>,
        call: &Call,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let values = graph.add_call(call.clone(), 1)?;
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
