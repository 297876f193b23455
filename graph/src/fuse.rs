//! Which calls become one kernel.
//!
//! A group is one call, or a call and the pointwise calls that follow it: a convolution, its bias and its activation; a chain
//! of arithmetic, which may end in a reduction that reads each of its elements once. Values inside a group are used by its own
//! calls alone, so that only its last value is ever stored. A value that several pointwise calls use (as in `x · sigmoid(x)`) is
//! followed until all of its uses have met in one call.

use std::collections::BTreeSet;

use crate::ir::{Body, Function, Operation, ValueId};
use crate::legalise;
use crate::operator::{Operator, is_pointwise, is_reduction};

/// Bindings of one body that are computed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their places in the body, in order. It runs when the last of them would.
    pub bindings: Vec<usize>,
    /// The values that are used outside.
    pub outputs: Vec<ValueId>,
}

/// How many pointwise calls may lie between a value and the call in which its uses meet.
const MOST_BETWEEN: usize = 16;

/// The groups of a body, in the order in which they run. Each binding is in one of them.
pub fn groups(function: &Function, body: &Body) -> Vec<Group> {
    let uses = Uses::of(function, body);
    let mut taken = vec![false; body.bindings.len()];
    let mut groups = Vec::new();
    for (first, binding) in body.bindings.iter().enumerate() {
        if taken[first] {
            continue;
        }
        let mut bindings = BTreeSet::from([first]);
        let mut outputs = binding.outputs.clone();
        if can_start(&binding.operation, &binding.outputs) {
            let mut is_chain = is_call(&binding.operation, is_pointwise);
            loop {
                if let Some((more, last)) = uses.meeting(function, body, outputs[0], &taken) {
                    bindings.extend(more);
                    outputs = body.bindings[last].outputs.clone();
                } else if let Some(last) = uses.reduction(body, outputs[0], &taken).filter(|_| is_chain) {
                    bindings.insert(last);
                    outputs = body.bindings[last].outputs.clone();
                    is_chain = false;
                } else {
                    break;
                }
            }
        }
        bindings.iter().for_each(|&place| taken[place] = true);
        groups.push(Group { bindings: bindings.into_iter().collect(), outputs });
    }
    groups.sort_by_key(|group| *group.bindings.last().expect("a group has a binding"));
    groups
}

/// Whether other calls may join the one that gives these outputs.
fn can_start(operation: &Operation, outputs: &[ValueId]) -> bool {
    // A transposition numbers dimensions anew, and its readers take them in the order in which they lie.
    matches!(operation, Operation::Call(call) if legalise::has_form(call) && call.operator.name != "transpose")
        && outputs.len() == 1
}

/// Whether an operation calls an operator of a kind that has a kernel form.
fn is_call(operation: &Operation, is_of_kind: fn(&Operator) -> bool) -> bool {
    matches!(operation, Operation::Call(call) if is_of_kind(call.operator) && legalise::has_form(call))
}

/// Who uses each value.
struct Uses {
    /// The bindings of the body that read a value, in order.
    readers: Vec<Vec<usize>>,
    /// Whether a value is a result, or read inside of a body of control flow.
    escapes: Vec<bool>,
}

impl Uses {
    fn of(function: &Function, body: &Body) -> Self {
        let mut uses = Uses {
            readers: vec![Vec::new(); function.values.len()],
            escapes: vec![false; function.values.len()],
        };
        for (place, binding) in body.bindings.iter().enumerate() {
            binding.operation.for_each_input(&mut |value| {
                let readers = &mut uses.readers[value.index()];
                if readers.last() != Some(&place) {
                    readers.push(place);
                }
            });
            for inner in binding.operation.bodies() {
                inner.for_each_use(&mut |value| uses.escapes[value.index()] = true);
            }
        }
        body.results.iter().for_each(|result| uses.escapes[result.index()] = true);
        uses
    }

    /// The reduction that alone uses a value, as what it reduces.
    fn reduction(&self, body: &Body, value: ValueId, taken: &[bool]) -> Option<usize> {
        let &[place] = &self.readers[value.index()][..] else { return None };
        let operation = &body.bindings[place].operation;
        let mut uses = 0;
        operation.for_each_input(&mut |input| uses += usize::from(input == value));
        let Operation::Call(call) = operation else { return None };
        let reduces = is_call(operation, is_reduction) && call.inputs.first() == Some(&Some(value));
        (reduces && uses == 1 && !self.escapes[value.index()] && !taken[place]).then_some(place)
    }

    /// The pointwise calls through which all uses of a value meet, and the one in which they do.
    fn meeting(
        &self,
        function: &Function,
        body: &Body,
        value: ValueId,
        taken: &[bool],
    ) -> Option<(BTreeSet<usize>, usize)> {
        let extents = function.value(value).ty.extents()?;
        let joins = |place: usize| {
            let binding = &body.bindings[place];
            let [output] = binding.outputs[..] else { return false };
            let same = function.value(output).ty.extents() == Some(extents);
            !taken[place] && same && is_call(&binding.operation, is_pointwise)
        };
        let mut region = BTreeSet::new();
        let mut open = BTreeSet::new();
        let reach = |from: ValueId, region: &mut BTreeSet<usize>, open: &mut BTreeSet<usize>| {
            let readers = &self.readers[from.index()];
            if self.escapes[from.index()] || readers.is_empty() || !readers.iter().all(|&place| joins(place))
            {
                return None;
            }
            open.extend(readers.iter().filter(|place| region.insert(**place)));
            Some(())
        };
        reach(value, &mut region, &mut open)?;
        // The earliest open call is followed first: calls that come after it may read what it gives.
        while open.len() > 1 && region.len() <= MOST_BETWEEN {
            let next = open.pop_first()?;
            reach(body.bindings[next].outputs[0], &mut region, &mut open)?;
        }
        let last = open.pop_first().filter(|_| open.is_empty())?;
        Some((region, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::GraphBuilder;
    use crate::ir::{Attributes, Type};
    use crate::tensor::ElementType;

    /// The groups of a graph that `build` makes of two tensors of one shape.
    fn grouped(build: impl Fn(&mut GraphBuilder, ValueId, ValueId) -> Vec<ValueId>) -> Vec<Vec<usize>> {
        let mut graph = GraphBuilder::new("main");
        let ty = Type::fixed(ElementType::F32, &[4, 4]);
        let (x, y) = (graph.parameter("x", ty.clone()), graph.parameter("y", ty));
        let results = build(&mut graph, x, y);
        let function = graph.finish(results).unwrap();
        groups(&function, &function.body).into_iter().map(|group| group.bindings).collect()
    }

    fn call(graph: &mut GraphBuilder, name: &str, inputs: &[ValueId]) -> ValueId {
        graph.call(name, inputs, Attributes::none()).unwrap()
    }

    #[test]
    fn a_product_takes_what_follows_it() {
        let found = grouped(|graph, x, y| {
            let product = call(graph, "matmul", &[x, y]);
            let sum = call(graph, "add", &[product, y]);
            let gate = call(graph, "sigmoid", &[sum]);
            let gated = call(graph, "mul", &[sum, gate]);
            let next = call(graph, "matmul", &[gated, y]);
            vec![call(graph, "relu", &[next])]
        });
        assert_eq!(found, [vec![0, 1, 2, 3], vec![4, 5]]);
    }

    #[test]
    fn a_value_that_is_used_elsewhere_ends_a_group() {
        let found = grouped(|graph, x, y| {
            let product = call(graph, "matmul", &[x, y]);
            let sum = call(graph, "add", &[product, y]);
            let other = call(graph, "matmul", &[sum, y]);
            vec![call(graph, "relu", &[sum]), other]
        });
        assert_eq!(found, [vec![0, 1], vec![2], vec![3]]);
        let found = grouped(|graph, x, y| {
            let sum = call(graph, "add", &[x, y]);
            vec![sum, call(graph, "relu", &[sum])]
        });
        assert_eq!(found, [vec![0], vec![1]], "a result is used outside");
    }

    #[test]
    fn arithmetic_joins_the_reduction_of_its_result() {
        let found = grouped(|graph, x, y| {
            let product = call(graph, "mul", &[x, y]);
            let magnitude = call(graph, "abs", &[product]);
            let sum = call(graph, "reduce_sum", &[magnitude]);
            vec![call(graph, "sqrt", &[sum])]
        });
        assert_eq!(found, [vec![0, 1, 2, 3]]);
        let found = grouped(|graph, x, y| {
            let product = call(graph, "matmul", &[x, y]);
            let square = call(graph, "mul", &[product, product]);
            vec![call(graph, "reduce_sum", &[square])]
        });
        assert_eq!(found, [vec![0, 1], vec![2]], "a product is not computed in another loop");
        let found = grouped(|graph, x, y| {
            let sum = call(graph, "add", &[x, y]);
            let largest = call(graph, "reduce_max", &[sum]);
            vec![call(graph, "sub", &[sum, largest])]
        });
        assert_eq!(found, [vec![0], vec![1], vec![2]], "others read the sum");
        let found = grouped(|graph, x, y| {
            let sum = call(graph, "add", &[x, y]);
            let largest = call(graph, "reduce_max", &[sum]);
            vec![call(graph, "reduce_max", &[largest])]
        });
        assert_eq!(found, [vec![0, 1], vec![2]], "one reduction ends the chain");
    }

    #[test]
    fn other_shapes_do_not_join() {
        let found = grouped(|graph, x, y| {
            let largest = call(graph, "reduce_max", &[x]);
            vec![call(graph, "sub", &[y, largest])]
        });
        assert_eq!(found, [vec![0], vec![1]]);
    }
}
