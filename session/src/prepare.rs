//! From a group of calls and the shapes of its inputs to a program.

use rustc_hash::FxHashMap;
use tilewright_graph::fuse::Group;
use tilewright_graph::ir::{Body, Operation, ValueId};
use tilewright_graph::legalise::{Fusion, Legalised, Signature, Unsupported, legalise};
use tilewright_graph::tensor::{ElementType, HostTensor};

/// The properties of a value when a group is prepared.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<usize>,
    /// Its elements, when they are the same in each run of this shape.
    pub(crate) contents: Option<HostTensor>,
    /// Whether kernels may keep what they compute from it alone.
    pub(crate) constant: bool,
}

/// A program for a group.
pub(crate) struct Prepared {
    pub(crate) legalised: Legalised,
    /// The results, in order.
    pub(crate) outputs: Vec<(ElementType, Vec<usize>)>,
}

/// The values that a group reads and does not compute itself, each once, in order.
pub(crate) fn inputs(body: &Body, group: &Group) -> Vec<ValueId> {
    let own =
        |value: &ValueId| group.bindings.iter().any(|&place| body.bindings[place].outputs.contains(value));
    let mut inputs = Vec::new();
    for &place in &group.bindings {
        body.bindings[place].operation.for_each_input(&mut |value| {
            if !own(&value) && !inputs.contains(&value) {
                inputs.push(value);
            }
        });
    }
    inputs
}

/// Makes the program of a group for inputs of fixed shapes.
///
/// # Errors
/// When it has no kernel form: then its calls are tried one by one, or evaluated.
pub(crate) fn prepare(
    body: &Body,
    group: &Group,
    known: &dyn Fn(ValueId) -> Option<Known>,
) -> Result<Prepared, Unsupported> {
    let form = |reason: &str| Unsupported::Form(reason.to_owned());
    let mut signatures = FxHashMap::default();
    for value in inputs(body, group) {
        let Known { element, shape, contents, constant } =
            known(value).ok_or_else(|| form("an input has no known shape"))?;
        if shape.contains(&0) {
            return Err(form("an input has no elements"));
        }
        let extents = shape.iter().map(|&extent| extent.into()).collect();
        signatures.insert(value, Signature { element, extents, contents, constant });
    }
    let mut calls = Vec::new();
    for &place in &group.bindings {
        let binding = &body.bindings[place];
        match &binding.operation {
            Operation::Call(call) => calls.push((call, &binding.outputs[..])),
            _ => return Err(form("only calls of operators become kernels")),
        }
    }
    let fusion = Fusion { calls, inputs: signatures, outputs: group.outputs.clone(), dims: Vec::new() };
    let legalised = legalise(&fusion)?;
    let mut outputs = Vec::new();
    for output in &legalised.outputs {
        let extent = |extent: &tilewright_graph::symbolic::SymInt| {
            extent.as_constant().and_then(|extent| usize::try_from(extent).ok())
        };
        let shape: Option<Vec<usize>> = output.extents.iter().map(extent).collect();
        let shape =
            shape.filter(|shape| !shape.contains(&0)).ok_or_else(|| form("a result has no elements"))?;
        outputs.push((output.element, shape));
    }
    Ok(Prepared { legalised, outputs })
}
