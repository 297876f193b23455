//! Calls of tensor programs.

use std::sync::Arc;

use smallvec::SmallVec;
use tilewright_core::ids::VarId;
use tilewright_core::program::Program;
use tilewright_graph::interpret::{dims_of, result_shapes};
use tilewright_graph::ir::{Binding, ValueId};
use tilewright_graph::legalise::Order;
use tilewright_graph::symbolic::SymInt;

use super::{Draft, DraftAction, Planner, name};
use crate::kernels::Instance;
use crate::prepare::Computed;

impl Planner<'_> {
    /// A call of a tensor program, which takes its tensors in the graph's order.
    pub(super) fn program(
        &mut self,
        program: &Arc<Program>,
        inputs: &[ValueId],
        binding: &Binding,
    ) -> Option<()> {
        let arguments = inputs;
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
        let bounds = self.graph.buckets.bounds(&self.extents_of_dims(program, arguments));
        let instance = Instance { program: Arc::clone(program), dims, bounds };
        let (action, name) = (DraftAction::Kernel(instance), name([binding]));
        self.drafts.push(Draft { action, inputs, outputs, name, is_given: true });
        Some(())
    }

    /// The dimensions of a program as the graph knows them: the extents of inputs where they occur.
    fn extents_of_dims(&self, program: &Program, inputs: &[ValueId]) -> Vec<SymInt> {
        let parameters: Vec<_> = program.buffer_params().map(|(id, _)| program.buffer(id)).collect();
        let of = |var: VarId| {
            parameters.iter().zip(inputs).find_map(|(buffer, &input)| {
                let axis = buffer.shape.iter().position(|extent| extent.as_var() == Some(var))?;
                self.function.value(input).ty.extents()?.get(axis).cloned()
            })
        };
        // One that no input shows has no buckets: a number says so.
        program.dims().map(|(var, _)| of(var).unwrap_or_else(|| 1.into())).collect()
    }
}
