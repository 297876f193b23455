//! Whatever is the same in each iteration of a loop moves in front of it.
//!
//! Exporters carry weights through a loop because a body sees nothing else there. A carried value that the body gives back
//! unchanged is the value from outside; a call whose inputs all come from outside gives the same each time, so that it is computed
//! once, and constants reach the passes and the kernels that make use of them.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Binding, Body, Call, Function, Loop, Operation, Scan, ValueId};

/// Calls that can fail although all types are known: a loop without iterations must not run them.
const PARTIAL: [&str; 12] = [
    "gather",
    "gather_elements",
    "gather_nd",
    "scatter",
    "scatter_elements",
    "scatter_nd",
    "tensor_scatter",
    "one_hot",
    "compress",
    "range",
    "div",
    "mod",
];

/// The function with all invariant bindings in front of the loops.
pub(super) fn hoist_from_loops(function: &Function) -> Function {
    let mut function = function.clone();
    let mut body = std::mem::take(&mut function.body);
    Hoist { function: &function, replaced: FxHashMap::default() }.body(&mut body);
    function.body = body;
    function
}

struct Hoist<'f> {
    /// Its body is the one that is being changed.
    function: &'f Function,
    /// Values that another one takes the place of.
    replaced: FxHashMap<ValueId, ValueId>,
}

impl Hoist<'_> {
    fn body(&mut self, body: &mut Body) {
        let mut bindings = Vec::with_capacity(body.bindings.len());
        for mut binding in std::mem::take(&mut body.bindings) {
            binding.operation.for_each_input_mut(&mut |input| *input = self.current(*input));
            self.remove_unchanged(&mut binding);
            binding.operation.bodies_mut().into_iter().for_each(|inner| self.body(inner));
            if let Operation::Loop(Loop { body: inner, .. }) | Operation::Scan(Scan { body: inner, .. }) =
                &mut binding.operation
            {
                bindings.extend(self.take_invariant(inner));
            }
            bindings.push(binding);
        }
        body.bindings = bindings;
        body.results.iter_mut().for_each(|result| *result = self.current(*result));
    }

    fn current(&self, value: ValueId) -> ValueId {
        self.replaced.get(&value).copied().unwrap_or(value)
    }

    /// Removes what a loop carries and never changes: its parameter and its output are the value from outside.
    fn remove_unchanged(&mut self, binding: &mut Binding) {
        // The parameters and the results that are carried come behind as many others.
        let (carried, body, parameters, results) = match &mut binding.operation {
            Operation::Loop(Loop { carried, body, .. }) => (carried, body, 2, 1),
            Operation::Scan(Scan { states, body, .. }) => (states, body, 0, 0),
            _ => return,
        };
        let mut place = 0;
        while place < carried.len() {
            let (parameter, result) = (body.parameters[parameters + place], body.results[results + place]);
            if result != parameter && result != carried[place] {
                place += 1;
                continue;
            }
            let value = carried.remove(place);
            body.parameters.remove(parameters + place);
            body.results.remove(results + place);
            self.replaced.insert(parameter, value);
            self.replaced.insert(binding.outputs.remove(place), value);
        }
    }

    /// Takes the bindings out of the body of a loop that read nothing of it.
    fn take_invariant(&self, body: &mut Body) -> Vec<Binding> {
        let mut bound: FxHashSet<ValueId> = body.parameters.iter().copied().collect();
        let (mut invariant, mut kept) = (Vec::new(), Vec::with_capacity(body.bindings.len()));
        for binding in std::mem::take(&mut body.bindings) {
            let mut is_invariant = match &binding.operation {
                Operation::Constant(_) => true,
                Operation::Call(call) => self.is_total(call, &binding.outputs),
                _ => false,
            };
            binding.operation.for_each_input(&mut |input| is_invariant &= !bound.contains(&input));
            if is_invariant {
                invariant.push(binding);
            } else {
                bound.extend(binding.outputs.iter().copied());
                kept.push(binding);
            }
        }
        body.bindings = kept;
        invariant
    }

    /// Whether a call succeeds whatever its inputs hold, and gives the same each time.
    fn is_total(&self, call: &Call, outputs: &[ValueId]) -> bool {
        let is_known = |value: &ValueId| self.function.value(*value).ty.extents().is_some();
        !PARTIAL.contains(&call.operator.name)
            && !call.operator.draws
            && call.inputs.iter().flatten().all(is_known)
            && outputs.iter().all(is_known)
    }
}
