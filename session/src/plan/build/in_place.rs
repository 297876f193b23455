//! Results in the memory of tensors that nobody needs afterwards.

use std::sync::Arc;

use super::{At, DraftAction, Operand, Planner};
use crate::kernels::Instance;

impl Planner<'_> {
    /// Has kernels write results over tensors that they read last, where their programs allow it. `results` are those of the graph.
    pub(super) fn update_in_place(&mut self, results: &mut [Operand]) {
        // The buffers that have become others.
        let mut moved: Vec<usize> = (0..self.buffers.len()).collect();
        for step in 0..self.drafts.len() {
            let draft = &mut self.drafts[step];
            draft.inputs.iter_mut().for_each(|operand| operand.follow(&moved));
            for output in 0..draft.outputs.len() {
                if let Some((from, to)) = self.update(step, output) {
                    moved[from] = to;
                }
            }
        }
        results.iter_mut().for_each(|result| result.follow(&moved));
    }

    /// Has a step write a result over one of its inputs, and gives the buffer of the result and the one that takes its place.
    fn update(&mut self, step: usize, output: usize) -> Option<(usize, usize)> {
        let draft = &self.drafts[step];
        let DraftAction::Kernel(Instance { program, dims, bounds }) = &draft.action else { return None };
        if draft.is_given {
            return None;
        }
        let Operand { at: At::Buffer(from), part: None, .. } = draft.outputs[output] else { return None };
        let fits = |operand: &Operand| {
            let At::Buffer(own) = operand.at else { return None };
            let lifetime = &self.buffers[own];
            let is_last = lifetime.death == step && lifetime.size == self.buffers[from].size;
            let readers = draft.inputs.iter().chain(&draft.outputs);
            let is_alone = readers.filter(|other| other.is_in(own)).count() == 1;
            (is_last && is_alone && operand.part.is_none()).then_some(own)
        };
        let buffer = |place| Some(program.buffer_params().nth(place)?.0);
        let candidates = draft.inputs.iter().enumerate();
        let (input, to, program) = candidates
            .filter_map(|(place, operand)| Some((place, fits(operand)?)))
            .find_map(|(place, own)| {
                let updating = program.in_place(buffer(place)?, buffer(draft.inputs.len() + output)?)?;
                Some((place, own, updating))
            })?;
        let action = DraftAction::Kernel(Instance {
            program: Arc::new(program),
            dims: dims.clone(),
            bounds: bounds.clone(),
        });
        let draft = &mut self.drafts[step];
        draft.action = action;
        draft.inputs.remove(input);
        draft.outputs[output].at = At::Buffer(to);
        self.buffers[to].death = self.buffers[from].death;
        self.buffers[from].size = 0;
        Some((from, to))
    }
}

impl Operand {
    /// Goes where its buffer has moved.
    fn follow(&mut self, moved: &[usize]) {
        if let At::Buffer(buffer) = &mut self.at {
            *buffer = moved[*buffer];
        }
    }

    /// Whether it lies in a buffer.
    fn is_in(&self, buffer: usize) -> bool {
        matches!(self.at, At::Buffer(own) if own == buffer)
    }
}
