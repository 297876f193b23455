//! Bindings of which nobody uses a value are removed, in bodies too. Values from outside that a body reads are used.

use crate::ir::{Body, Function};

/// The function without unused bindings.
pub(super) fn remove_unused(function: &Function) -> Function {
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
