//! Calls of tensor programs.

use std::sync::Arc;

use smallvec::SmallVec;
use tilewright_core::program::Program;
use tilewright_graph::interpret::{dims_of, result_shapes};
use tilewright_graph::ir::{Binding, ValueId};
use tilewright_graph::legalise::Order;

use super::{Draft, DraftAction, Planner, name};
use crate::prepare::Computed;

impl Planner<'_> {
    /// A call of a tensor program, which takes its tensors in the graph's order.
    pub(super) fn program(
        &mut self,
        program: &Arc<Program>,
        inputs: &[ValueId],
        binding: &Binding,
    ) -> Option<()> {
        for &input in inputs {
            self.copied(input)?;
        }
        let inputs: SmallVec<[_; 4]> =
            inputs.iter().map(|&value| self.copied_operand(value)).collect::<Option<_>>()?;
        let shapes: Vec<&[usize]> = inputs.iter().map(|input| &input.shape[..]).collect();
        let dims = dims_of(program, &shapes)?;
        let results = result_shapes(program, &dims, inputs.len())?;
        let mut outputs = SmallVec::new();
        for (&output, shape) in binding.outputs.iter().zip(results) {
            let element = self.function.value(output).ty.element()?;
            outputs.push(self.result(output, Computed { element, order: Order::given(shape.len()), shape })?);
        }
        let (action, name) = (DraftAction::Kernel((Arc::clone(program), dims)), name([binding]));
        self.drafts.push(Draft { action, inputs, outputs, name, is_given: true });
        Some(())
    }
}
