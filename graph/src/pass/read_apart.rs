//! Each reader of bytes converts them itself.
//!
//! Numbers that are read from bytes take four times their memory. Where several calls use them, each that can join its kernel with a conversion gets
//! one of its own, so that the bytes alone are stored. This comes after all other passes, which would merge equal conversions again.

use crate::fuse::{Uses, joins, reduces};
use crate::ir::{Binding, Body, Function, ValueId};

/// The function with a conversion for each reader that can join it.
pub(super) fn read_apart(function: &Function) -> Function {
    let mut result = function.clone();
    let mut body = std::mem::take(&mut result.body);
    separate(function, &mut result, &mut body);
    result.body = body;
    result
}

fn separate(before: &Function, function: &mut Function, body: &mut Body) {
    let uses = Uses::of(before, body);
    let mut copies: Vec<(usize, Binding)> = Vec::new();
    for place in 0..body.bindings.len() {
        if !uses.reads_bytes(before, &body.bindings[place]) {
            continue;
        }
        let value = body.bindings[place].outputs[0];
        let readers = uses.readers(value);
        let can_join = |reader: &&usize| {
            let reader = &body.bindings[**reader];
            joins(before, reader, value) || reduces(reader, value)
        };
        let mut joining: Vec<usize> = readers.iter().filter(can_join).copied().collect();
        // One reader keeps the conversion that there is.
        if !uses.escapes(value) && joining.len() == readers.len() {
            joining.pop();
        }
        for reader in joining {
            let own = ValueId(function.values.len() as u32);
            function.values.push(function.value(value).clone());
            replace(&mut body.bindings[reader], value, own);
            copies.push((place, Binding { outputs: vec![own], ..body.bindings[place].clone() }));
        }
    }
    for (place, copy) in copies.into_iter().rev() {
        body.bindings.insert(place, copy);
    }
    for binding in &mut body.bindings {
        for inner in binding.operation.bodies_mut() {
            separate(before, function, inner);
        }
    }
}

fn replace(reader: &mut Binding, value: ValueId, by: ValueId) {
    reader.operation.for_each_input_mut(&mut |input| {
        if *input == value {
            *input = by;
        }
    });
}
