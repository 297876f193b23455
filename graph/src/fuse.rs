//! Which calls become one kernel.
//!
//! A group is one call, or a call and the pointwise calls that follow it: a convolution, its bias and its activation; a chain
//! of arithmetic, which may end in a reduction that reads each of its elements once. A chain in front of a product of floats, which alone reads
//! it, belongs to the product's group. Values inside a group are used by its own
//! calls alone, so that only its last value is ever stored. A value that several pointwise calls use (as in `x · sigmoid(x)`) is
//! followed until all of its uses have met in one call. A conversion of bytes joins the pointwise call that reads it, wherever that is.

use std::collections::BTreeSet;

use crate::ir::{Binding, Body, Call, Function, Operation, ValueId};
use crate::legalise;
use crate::operator::{Operator, ResultOrder, is_pointwise, is_product, is_reduction};
use crate::tensor::ElementType;

/// Bindings of one body that are computed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their places in the body, in order. It runs when the last of them would.
    pub bindings: Vec<usize>,
    /// The values that are used outside.
    pub outputs: Vec<ValueId>,
}

impl Group {
    /// The chain in front of the group's product and the rest, as groups of their own; `None` where no chain is in front of a product.
    pub fn before_product(&self, body: &Body) -> Option<[Group; 2]> {
        let is_multiplied = |place: &usize| is_call(&body.bindings[*place].operation, is_product);
        let product = self.bindings.iter().copied().find(is_multiplied)?;
        let Operation::Call(call) = &body.bindings[product].operation else { return None };
        let factor = call.inputs.first().copied().flatten()?;
        let mut needed = BTreeSet::from([factor]);
        let mut chain = Vec::new();
        for &place in self.bindings.iter().rev() {
            let binding = &body.bindings[place];
            if binding.outputs.iter().any(|output| needed.contains(output)) {
                binding.operation.for_each_input(&mut |input| {
                    needed.insert(input);
                });
                chain.push(place);
            }
        }
        if chain.is_empty() {
            return None;
        }
        chain.reverse();
        let rest = self.bindings.iter().copied().filter(|place| !chain.contains(place)).collect();
        let rest = Group { bindings: rest, outputs: self.outputs.clone() };
        Some([Group { bindings: chain, outputs: vec![factor] }, rest])
    }
}

/// How many pointwise calls may lie between a value and the call in which its uses meet.
const MOST_BETWEEN: usize = 16;

/// The groups of a body, in the order in which they run. Each binding is in one of them.
pub fn groups(function: &Function, body: &Body) -> Vec<Group> {
    let uses = Uses::of(function, body);
    let mut taken = vec![false; body.bindings.len()];
    let mut groups = Vec::new();
    let is_operand = |place: &usize| uses.is_operand(function, body, *place);
    let (operands, others): (Vec<usize>, Vec<usize>) = (0..body.bindings.len()).partition(is_operand);
    // A conversion for one pointwise call joins that call's group, and starts a group only if no group has taken the call.
    for first in others.into_iter().chain(operands.iter().copied()) {
        if taken[first] {
            continue;
        }
        let binding = &body.bindings[first];
        let mut bindings = BTreeSet::from([first]);
        let mut outputs = binding.outputs.clone();
        if can_start(&binding.operation, &binding.outputs) {
            // Parts are written where a concatenation has them, so that arithmetic on it is a chain in front of a product.
            let is_joined =
                matches!(&binding.operation, Operation::Call(call) if call.operator.name == "concat");
            let mut is_chain = is_call(&binding.operation, is_pointwise);
            let mut is_factor = is_chain;
            loop {
                let last = if let Some((more, last)) = uses.meeting(function, body, outputs[0], &taken) {
                    is_factor |= is_joined && bindings.len() == 1;
                    bindings.extend(more);
                    last
                } else if let Some(last) = uses.reduction(body, outputs[0], &taken).filter(|_| is_chain) {
                    (is_chain, is_factor) = (false, false);
                    last
                } else if let Some(last) =
                    uses.product(function, body, outputs[0], &taken).filter(|_| is_factor)
                {
                    (is_chain, is_factor) = (false, false);
                    last
                } else {
                    break;
                };
                bindings.insert(last);
                outputs = body.bindings[last].outputs.clone();
            }
        }
        let is_read = |place: &&usize| {
            let readers = uses.readers(body.bindings[**place].outputs[0]);
            !taken[**place] && readers.iter().all(|reader| bindings.contains(reader))
        };
        let own: Vec<usize> = operands.iter().filter(is_read).copied().collect();
        bindings.extend(own);
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

/// Whether a binding computes each element from one element of a value, so that it can join what gives that.
pub(crate) fn joins(function: &Function, reader: &Binding, value: ValueId) -> bool {
    let [output] = reader.outputs[..] else { return false };
    let extents = function.value(value).ty.extents();
    extents.is_some()
        && function.value(output).ty.extents() == extents
        && is_call(&reader.operation, is_pointwise)
}

/// Whether a binding reduces a value, which it reads once.
pub(crate) fn reduces(reader: &Binding, value: ValueId) -> bool {
    is_call(&reader.operation, is_reduction) && reads_first(reader, value)
}

/// Whether a binding reads a value once, as its first operand.
fn reads_first(reader: &Binding, value: ValueId) -> bool {
    let Operation::Call(call) = &reader.operation else { return false };
    let mut uses = 0;
    reader.operation.for_each_input(&mut |input| uses += usize::from(input == value));
    call.inputs.first() == Some(&Some(value)) && uses == 1
}

/// Whether a binding multiplies a value of floats, which it reads once, as its first factor.
fn multiplies(function: &Function, reader: &Binding, value: ValueId) -> bool {
    let Operation::Call(call) = &reader.operation else { return false };
    let element = function.value(value).ty.element().and_then(ElementType::dtype);
    is_call(&reader.operation, is_product)
        && reads_first(reader, value)
        && element.is_some_and(|element| element.is_float())
        && !shares_windows(function, call)
}

/// Whether several windows of a convolution read one element, and many products in each of them. Schedules then compute the element several times, or
/// keep tiles that overlap: separate kernels were faster.
fn shares_windows(function: &Function, call: &Call) -> bool {
    let ResultOrder::Channels { weights, .. } = call.operator.result_order else { return false };
    let weights = call.inputs.get(weights).copied().flatten();
    match weights.and_then(|weights| function.value(weights).ty.extents()) {
        // A convolution of one channel in each group has few products for each element.
        Some([_, channels, taps @ ..]) => !channels.is(1) && taps.iter().any(|taps| !taps.is(1)),
        _ => true,
    }
}

/// Who uses each value.
pub(crate) struct Uses {
    /// The bindings of the body that read a value, in order.
    readers: Vec<Vec<usize>>,
    /// Whether a value is a result, or read inside of a body of control flow.
    escapes: Vec<bool>,
    /// Whether a value is a constant of the body.
    constant: Vec<bool>,
}

impl Uses {
    pub(crate) fn of(function: &Function, body: &Body) -> Self {
        let mut uses = Uses {
            readers: vec![Vec::new(); function.values.len()],
            escapes: vec![false; function.values.len()],
            constant: vec![false; function.values.len()],
        };
        for (place, binding) in body.bindings.iter().enumerate() {
            if matches!(binding.operation, Operation::Constant(_)) {
                binding.outputs.iter().for_each(|output| uses.constant[output.index()] = true);
            }
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

    /// Whether a binding reads bytes as numbers, in each call.
    pub(crate) fn reads_bytes(&self, function: &Function, binding: &Binding) -> bool {
        let Operation::Call(call) = &binding.operation else { return false };
        let is_byte = |value: ValueId| {
            !self.constant[value.index()]
                && matches!(function.value(value).ty.element(), Some(ElementType::U8 | ElementType::I8))
        };
        call.operator.name == "dequantize_linear"
            && call.inputs.first().copied().flatten().is_some_and(is_byte)
            && legalise::has_form(call)
    }

    /// The bindings of the body that read a value, in order.
    pub(crate) fn readers(&self, value: ValueId) -> &[usize] {
        &self.readers[value.index()]
    }

    /// Whether a value is a result, or read inside of a body of control flow.
    pub(crate) fn escapes(&self, value: ValueId) -> bool {
        self.escapes[value.index()]
    }

    /// Whether a binding converts bytes for a single pointwise call.
    fn is_operand(&self, function: &Function, body: &Body, place: usize) -> bool {
        let binding = &body.bindings[place];
        self.reads_bytes(function, binding)
            && !self.escapes(binding.outputs[0])
            && matches!(self.readers(binding.outputs[0]), &[reader]
                if joins(function, &body.bindings[reader], binding.outputs[0]))
    }

    /// The reduction that alone uses a value, as what it reduces.
    fn reduction(&self, body: &Body, value: ValueId, taken: &[bool]) -> Option<usize> {
        self.only_reader(value, taken).filter(|&place| reduces(&body.bindings[place], value))
    }

    /// The product of floats that alone uses a value, as its first factor.
    fn product(&self, function: &Function, body: &Body, value: ValueId, taken: &[bool]) -> Option<usize> {
        self.only_reader(value, taken).filter(|&place| multiplies(function, &body.bindings[place], value))
    }

    /// The binding that alone uses a value, unless a group has taken it.
    fn only_reader(&self, value: ValueId, taken: &[bool]) -> Option<usize> {
        match self.readers(value) {
            &[place] if !self.escapes(value) && !taken[place] => Some(place),
            _ => None,
        }
    }

    /// The pointwise calls through which all uses of a value meet, and the one in which they do.
    pub(crate) fn meeting(
        &self,
        function: &Function,
        body: &Body,
        value: ValueId,
        taken: &[bool],
    ) -> Option<(BTreeSet<usize>, usize)> {
        let can_join = |place: usize| !taken[place] && joins(function, &body.bindings[place], value);
        let mut region = BTreeSet::new();
        let mut open = BTreeSet::new();
        let reach = |from: ValueId, region: &mut BTreeSet<usize>, open: &mut BTreeSet<usize>| {
            let readers = self.readers(from);
            if self.escapes(from) || readers.is_empty() || !readers.iter().all(|&place| can_join(place)) {
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
    use crate::tensor::{ElementType, HostTensor};

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
    fn a_chain_joins_the_product_of_its_result() {
        let found = grouped(|graph, x, y| {
            let product = call(graph, "mul", &[x, y]);
            let kept = call(graph, "relu", &[product]);
            let sums = call(graph, "matmul", &[kept, y]);
            vec![call(graph, "relu", &[sums])]
        });
        assert_eq!(found, [vec![0, 1, 2, 3]]);
        let found = grouped(|graph, x, y| {
            let kept = call(graph, "relu", &[x]);
            let square = call(graph, "matmul", &[kept, kept]);
            let other = call(graph, "neg", &[y]);
            vec![call(graph, "matmul", &[square, other])]
        });
        assert_eq!(found, [vec![0], vec![1], vec![2], vec![3]], "both factors, and the second one");
        let found = grouped(|graph, x, y| {
            let kept = call(graph, "relu", &[x]);
            vec![call(graph, "matmul", &[kept, y]), call(graph, "exp", &[kept])]
        });
        assert_eq!(found, [vec![0], vec![1], vec![2]], "others read the value");
    }

    #[test]
    fn a_group_is_parted_before_its_product() {
        let mut graph = GraphBuilder::new("main");
        let ty = Type::fixed(ElementType::F32, &[4, 4]);
        let (x, y) = (graph.parameter("x", ty.clone()), graph.parameter("y", ty));
        let bytes = graph.parameter("bytes", Type::fixed(ElementType::U8, &[4, 4]));
        let scale = graph.constant(HostTensor::scalar(0.5f32));
        let kept = call(&mut graph, "relu", &[x]);
        let beside = call(&mut graph, "dequantize_linear", &[bytes, scale]);
        let sums = call(&mut graph, "matmul", &[kept, y]);
        let result = call(&mut graph, "add", &[sums, beside]);
        let function = graph.finish(vec![result]).unwrap();
        let groups = groups(&function, &function.body);
        let [chain, rest] = groups.last().unwrap().before_product(&function.body).unwrap();
        assert_eq!((chain.bindings, chain.outputs), (vec![1], vec![kept]));
        assert_eq!((&rest.bindings[..], &rest.outputs[..]), (&[2, 3, 4][..], &[result][..]));
        assert_eq!(rest.before_product(&function.body), None);
    }

    #[test]
    fn conversions_of_bytes_join_what_reads_them() {
        let mut graph = GraphBuilder::new("main");
        let x = graph.parameter("x", Type::fixed(ElementType::F32, &[4, 4]));
        let bytes = graph.parameter("bytes", Type::fixed(ElementType::U8, &[4, 4]));
        let scale = graph.constant(HostTensor::scalar(0.5f32));
        let beside = call(&mut graph, "dequantize_linear", &[bytes, scale]);
        let reduced = call(&mut graph, "dequantize_linear", &[bytes, scale]);
        let shared = call(&mut graph, "dequantize_linear", &[bytes, scale]);
        let product = call(&mut graph, "matmul", &[x, x]);
        let sum = call(&mut graph, "add", &[product, beside]);
        let largest = call(&mut graph, "reduce_max", &[reduced]);
        let others = [call(&mut graph, "softmax", &[shared]), call(&mut graph, "relu", &[shared])];
        let function = graph.finish([&[sum, largest], &others[..]].concat()).unwrap();
        let found: Vec<Vec<usize>> =
            groups(&function, &function.body).into_iter().map(|group| group.bindings).collect();
        assert_eq!(found, [vec![0], vec![3], vec![1, 4, 5], vec![2, 6], vec![7], vec![8]]);
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
