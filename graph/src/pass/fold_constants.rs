//! Calls whose inputs are all known are computed when the graph is built.

use crate::build::BuildError;
use crate::ir::{Operation, ValueId};
use crate::operator::{Arguments, Value};
use crate::pass::{Rewriter, Rule};

/// Computes calls of constants.
pub(super) struct FoldConstants;

/// How much larger than its inputs a result may be that is kept as a constant, in bytes.
const GROWTH: usize = 1 << 16;

/// Operators whose results are no larger than their inputs, although only the data decide how large they are.
const SELECTIONS: [&str; 3] = ["non_zero", "compress", "unique"];

impl Rule for FoldConstants {
    fn rewrite(
        &mut self,
        graph: &mut Rewriter<'_>,
        operation: &Operation,
        outputs: usize,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let Operation::Call(call) = operation else { return Ok(None) };
        if call.operator.draws {
            return Ok(None);
        }
        let mut bytes = 0;
        let mut inputs = Vec::with_capacity(call.inputs.len());
        for input in &call.inputs {
            inputs.push(match input {
                None => None,
                Some(value) => match graph.constant(*value) {
                    None => return Ok(None),
                    Some(tensor) => {
                        bytes += tensor.byte_count();
                        Some(Value::Tensor(tensor.clone()))
                    }
                },
            });
        }
        if inputs.is_empty() {
            return Ok(None);
        }
        // A short file may ask for a tensor that fills the memory.
        let is_selection = SELECTIONS.contains(&call.operator.name);
        if !is_selection && !graph.is_small(call, outputs, bytes + GROWTH) {
            return Ok(None);
        }
        let arguments =
            Arguments { operator: call.operator, attributes: &call.attributes, inputs: &inputs, outputs };
        // A call that fails stays, so that the failure is reported if and when it runs.
        let Ok(results) = (call.operator.evaluate)(&arguments) else { return Ok(None) };
        let tensors: Option<Vec<_>> = results.iter().take(outputs).map(Value::as_tensor).collect();
        let Some(tensors) = tensors.filter(|tensors| tensors.len() == outputs) else { return Ok(None) };
        if tensors.iter().map(|tensor| tensor.byte_count()).sum::<usize>() > bytes + GROWTH {
            return Ok(None);
        }
        Ok(Some(tensors.into_iter().map(|tensor| graph.add_constant(tensor.clone())).collect()))
    }
}
