//! Bindings of which nobody uses a value are removed, in bodies too. Values from outside that a body reads are used. Of other calls, the
//! last outputs are left out if nobody uses them: a normalisation without its statistics has a kernel form.

use crate::ir::{Binding, Body, Function, Operation};

/// The function without bindings of which nobody uses a value. Values keep their numbers.
pub fn remove_unused(function: &Function) -> Function {
    let mut function = function.clone();
    let mut used = vec![false; function.values.len()];
    mark_results(&function.body, &mut used);
    sweep(&mut function.body, &mut used);
    function
}

fn mark_results(body: &Body, used: &mut [bool]) {
    body.results.iter().for_each(|result| used[result.index()] = true);
}

/// Goes from the last binding to the first: when one is reached, all of its uses are known.
fn sweep(body: &mut Body, used: &mut [bool]) {
    let mut kept = Vec::with_capacity(body.bindings.len());
    for mut binding in std::mem::take(&mut body.bindings).into_iter().rev() {
        if !binding.outputs.iter().any(|output| used[output.index()]) {
            continue;
        }
        leave_out_outputs(&mut binding, used);
        for inner in binding.operation.bodies_mut() {
            mark_results(inner, used);
            sweep(inner, used);
        }
        binding.operation.for_each_input(&mut |input| used[input.index()] = true);
        kept.push(binding);
    }
    kept.reverse();
    body.bindings = kept;
}

/// Leaves out the last outputs that nobody uses, where an operator may do without them. The number of outputs has no other meaning than this
/// where it is bounded; `split` cuts into as many parts as it has outputs.
fn leave_out_outputs(binding: &mut Binding, used: &[bool]) {
    let Operation::Call(call) = &binding.operation else { return };
    let arity = call.operator.outputs;
    if arity.most == usize::MAX {
        return;
    }
    let last = binding.outputs.iter().rposition(|output| used[output.index()]).unwrap_or(0);
    binding.outputs.truncate((last + 1).max(arity.least));
}
