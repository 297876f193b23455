//! A gate that is divided by its upper bound is multiplied by the reciprocal.
//!
//! Exporters write hard sigmoids as `clip(x + 3, 0, 6) / 6`, and hard swishes as `x · clip(x + 3, 0, 6) / 6`. A vector of quotients takes
//! some sixteen cycles, a vector of products half of one. The result differs by a unit in the last place at most; other quotients stay, because those of
//! multiples, such as indices, are exact.

use crate::build::BuildError;
use crate::ir::{Call, ValueId};
use crate::pass::{CallRule, Rewriter};
use crate::tensor::{ElementType, HostTensor};

/// Replaces quotients of gates.
pub(super) struct ScaleGates;

impl CallRule for ScaleGates {
    fn rewrite_call(
        &mut self,
        graph: &mut Rewriter<'_>,
        call: &Call,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let Some((value, reciprocal)) = quotient(graph, call) else { return Ok(None) };
        let reciprocal = graph.add_constant(reciprocal);
        graph.add_plain_call("mul", &[value, reciprocal]).map(|product| Some(vec![product]))
    }
}

/// The dividend and the reciprocal of the divisor, where a gate is divided by its upper bound.
fn quotient(graph: &Rewriter<'_>, call: &Call) -> Option<(ValueId, HostTensor)> {
    let &[Some(value), Some(divisor)] = &call.inputs[..] else { return None };
    let is_wide = matches!(graph.builder.ty(value).element()?, ElementType::F32 | ElementType::F64);
    if call.operator.name != "div" || !is_wide {
        return None;
    }
    let bound = graph.number(divisor)?;
    let is_gate = |value: ValueId| {
        let Some(gate) = graph.call(value).filter(|gate| gate.operator.name == "clip") else { return false };
        let limit = |place: usize| graph.number(gate.inputs.get(place).copied().flatten()?);
        limit(1) == Some(0.0) && limit(2) == Some(bound)
    };
    let inner = graph.call(value)?;
    let is_gated =
        inner.operator.name == "mul" && inner.inputs.iter().flatten().any(|&factor| is_gate(factor));
    if !(is_gate(value) || is_gated) || bound <= 0.0 {
        return None;
    }
    // The same shape, so that the result has the quotient's.
    let divisor = graph.constant(divisor)?;
    let reciprocal = HostTensor::full(divisor.shape(), 1.0 / bound).ok()?.cast(divisor.element()).ok()?;
    Some((value, reciprocal))
}
