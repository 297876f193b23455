//! The order of dimensions in which a step computes its results.
//!
//! The table of operators says how each orders its result.

use tilewright_graph::ir::{Binding, Call, Operation, ValueId};
use tilewright_graph::legalise::Order;
use tilewright_graph::operator::{Arguments, ResultOrder};

/// A convolution with fewer output channels keeps the graph's order: its vectors run along a row.
const LEAST_CHANNELS: usize = 8;

/// The order for the results of bindings that become one kernel; `None` is the graph's. `known` gives the shape and order of a
/// value.
pub(super) fn choose_order<'v>(
    bindings: &[&Binding],
    known: &dyn Fn(ValueId) -> Option<(&'v [usize], &'v Order)>,
) -> Option<Order> {
    let calls: Vec<&Call> = bindings
        .iter()
        .filter_map(|binding| match &binding.operation {
            Operation::Call(call) => Some(call),
            _ => None,
        })
        .collect();
    let input = |call: &Call, place: usize| known(call.inputs.get(place).copied().flatten()?);
    // The one that pointwise calls follow: operands of these may come before it.
    let decides = |call: &&&Call| call.operator.result_order != ResultOrder::LargestOperand;
    let first = *calls.iter().find(decides).or(calls.first())?;
    match first.operator.result_order {
        ResultOrder::Channels { weights, filters } => {
            let (weights, _) = input(first, weights)?;
            // Dimension 0 counts the filters of all groups, any other one those of each.
            let groups = if filters == 0 { 1 } else { group(first) };
            let filters = weights.get(filters)? * groups;
            (weights.len() > 2 && filters >= LEAST_CHANNELS).then(|| Order::channels_last(weights.len()))
        }
        ResultOrder::FirstOperand => Some(input(first, 0)?.1.clone()).filter(|order| !order.is_given()),
        ResultOrder::Rows => None,
        ResultOrder::LargestOperand => {
            let operands =
                calls.iter().flat_map(|call| call.inputs.iter().flatten()).filter_map(|&value| known(value));
            let largest =
                operands.max_by_key(|(shape, order)| (shape.iter().product::<usize>(), !order.is_given()))?;
            Some(largest.1.clone()).filter(|order| !order.is_given())
        }
    }
}

/// The attributes of a call, with the defaults of its operator.
fn attributes(call: &Call) -> Arguments<'_> {
    Arguments { operator: call.operator, attributes: &call.attributes, inputs: &[], outputs: 1 }
}

fn group(call: &Call) -> usize {
    usize::try_from(attributes(call).int_or_default("group")).unwrap_or(1)
}

/// The dimensions of the input that a transposition's result has, in order; `None` when they are none.
pub(super) fn permutation(call: &Call, rank: usize) -> Option<Vec<usize>> {
    let Some(perm) = attributes(call).ints("perm") else { return Some((0..rank).rev().collect()) };
    let perm: Vec<usize> = perm.iter().map(|&number| dimension(number, rank)).collect::<Option<_>>()?;
    let mut sorted = perm.clone();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..rank).then_some(perm)
}

/// The dimension that the attribute `axis` names.
pub(super) fn axis(call: &Call, rank: usize) -> Option<usize> {
    dimension(attributes(call).int_or_default("axis"), rank)
}

/// The dimension along which a concatenation joins its inputs.
pub(super) fn concatenated(call: &Call, rank: usize) -> Option<usize> {
    dimension(attributes(call).int("axis")?, rank)
}

/// A dimension by its number, which may be counted from the end.
pub(super) fn dimension(number: i64, rank: usize) -> Option<usize> {
    let number = if number < 0 { number + rank as i64 } else { number };
    usize::try_from(number).ok().filter(|number| *number < rank)
}
