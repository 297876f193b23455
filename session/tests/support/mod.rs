//! Parts of graphs that tests of sessions are made of.

use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Attribute, Attributes, ValueId};
use tilewright_graph::tensor::HostTensor;

/// Numbers that repeat after 61 elements, and that differ by the seed.
pub(crate) fn numbers(shape: &[usize], seed: usize) -> HostTensor {
    let number = |place: usize| ((place * 37 + seed * 11) % 61) as f32 / 20.0 - 1.5;
    HostTensor::new(shape, (0..shape.iter().product()).map(number).collect()).unwrap()
}

/// Adds a call with one result, and gives that.
pub(crate) fn call(
    graph: &mut GraphBuilder,
    name: &str,
    inputs: &[ValueId],
    attributes: &[(&str, Attribute)],
) -> ValueId {
    let attributes =
        attributes.iter().fold(Attributes::none(), |all, (name, value)| all.with(name, value.clone()));
    graph.call(name, inputs, attributes).unwrap()
}
