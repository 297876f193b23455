//! Nodes that are expressed by several calls.

use crate::build::GraphBuilder;
use crate::ir::{Attribute, Attributes, ValueId};
use crate::onnx::import::upgrade::{Node, Refusal, known_extent};
use crate::tensor::{ElementType, HostTensor};

/// A node, and the graph that calls are added to.
pub(super) struct Expansion<'n, 'b> {
    pub(super) node: Node<'n>,
    pub(super) builder: &'b mut GraphBuilder,
}

/// An extent of a new shape.
#[derive(Clone, Copy)]
pub(super) enum Extent {
    /// This many.
    Fixed(i64),
    /// As many as a dimension of a value has.
    Of(ValueId, usize),
}

impl Expansion<'_, '_> {
    /// An input, if it is given.
    pub(super) fn optional(&self, place: usize) -> Option<ValueId> {
        self.node.inputs.get(place).copied().flatten()
    }

    /// An input.
    pub(super) fn input(&self, place: usize) -> Result<ValueId, Refusal> {
        self.optional(place).ok_or_else(|| Refusal(format!("input {place} is missing")))
    }

    /// Refuses inputs that have no translation.
    pub(super) fn refuse_inputs(&self, places: &[(usize, &str)]) -> Result<(), Refusal> {
        match places.iter().find(|(place, _)| self.optional(*place).is_some()) {
            Some((place, name)) => Err(Refusal(format!("input {place} ({name}) is not supported"))),
            None => Ok(()),
        }
    }

    /// An attribute that is an integer, if it is given.
    pub(super) fn int(&mut self, name: &str) -> Result<Option<i64>, Refusal> {
        self.node.int(name)
    }

    /// As [`Node::count`].
    pub(super) fn count(&mut self, name: &str) -> Result<Option<i64>, Refusal> {
        self.node.count(name)
    }

    /// An attribute that is a number, if it is given.
    pub(super) fn float(&mut self, name: &str) -> Result<Option<f32>, Refusal> {
        match self.node.attributes.take(name) {
            None => Ok(None),
            Some(Attribute::Float(value)) => Ok(Some(value)),
            Some(_) => Err(Refusal(format!("attribute {name} must be a number"))),
        }
    }

    /// Adds a call with one result.
    pub(super) fn call(
        &mut self,
        operator: &str,
        inputs: &[ValueId],
        attributes: &[(&str, Attribute)],
    ) -> Result<ValueId, Refusal> {
        Ok(self.call_for(operator, inputs, attributes, 1)?[0])
    }

    /// An attribute that is a word; empty if it is missing.
    pub(super) fn text(&mut self, name: &str) -> Result<String, Refusal> {
        match self.node.attributes.take(name) {
            None => Ok(String::new()),
            Some(Attribute::Text(value)) => Ok(value.to_string()),
            Some(_) => Err(Refusal(format!("attribute {name} must be a word"))),
        }
    }

    /// Whether an output has a name.
    pub(super) fn is_used(&self, output: usize) -> bool {
        self.node.used.get(output) == Some(&true)
    }

    /// Adds a call of an operator with the inputs and the attributes of the node that were not taken, and more attributes.
    pub(super) fn forward(&mut self, operator: &str, more: &[(&str, Attribute)]) -> Result<ValueId, Refusal> {
        let mut attributes = std::mem::replace(&mut self.node.attributes, Attributes::none());
        more.iter().for_each(|(name, value)| attributes.set(name, value.clone()));
        let inputs = std::mem::take(&mut self.node.inputs);
        Ok(self.builder.call_operator(operator, inputs, attributes, 1)?[0])
    }

    /// Adds a call with some number of results.
    pub(super) fn call_for(
        &mut self,
        operator: &str,
        inputs: &[ValueId],
        attributes: &[(&str, Attribute)],
        outputs: usize,
    ) -> Result<Vec<ValueId>, Refusal> {
        let given = |all: Attributes, (name, value): &(&str, Attribute)| all.with(name, value.clone());
        let attributes = attributes.iter().fold(Attributes::none(), given);
        let inputs = inputs.iter().copied().map(Some).collect();
        Ok(self.builder.call_operator(operator, inputs, attributes, outputs)?)
    }

    /// A list of integers as a value.
    pub(super) fn integers(&mut self, integers: &[i64]) -> ValueId {
        self.builder.constant(HostTensor::vector(integers.to_vec()))
    }

    /// The number of dimensions of a value.
    pub(super) fn rank(&self, value: ValueId, name: &str) -> Result<usize, Refusal> {
        let extents = self.builder.ty(value).extents();
        extents.map(<[_]>::len).ok_or_else(|| Refusal(format!("the rank of {name} must be known")))
    }

    /// An extent of a value, where it is a number. One that no tensor has counts as unknown.
    pub(super) fn known(&self, value: ValueId, dimension: usize) -> Option<i64> {
        known_extent(self.builder.ty(value).extents()?.get(dimension)?)
    }

    /// The element type of a value.
    pub(super) fn element(&self, value: ValueId, name: &str) -> Result<ElementType, Refusal> {
        let element = self.builder.ty(value).element();
        element.ok_or_else(|| Refusal(format!("the element type of {name} must be known")))
    }

    /// A number of an element type.
    pub(super) fn number(&mut self, number: f64, element: ElementType) -> Result<ValueId, Refusal> {
        let tensor = HostTensor::scalar(number).cast(element);
        Ok(self.builder.constant(tensor.map_err(|error| Refusal(error.to_string()))?))
    }

    /// An extent as a tensor of one integer.
    pub(super) fn extent(&mut self, extent: Extent) -> Result<ValueId, Refusal> {
        match extent {
            Extent::Fixed(number) => Ok(self.integers(&[number])),
            Extent::Of(value, dimension) => {
                if let Some(number) = self.known(value, dimension) {
                    return Ok(self.integers(&[number]));
                }
                let (shape, place) = (self.call("shape", &[value], &[])?, self.integers(&[dimension as i64]));
                self.call("gather", &[shape, place], &[("axis", Attribute::Int(0))])
            }
        }
    }

    /// A value with another shape. A fixed extent of -1 is what is left.
    pub(super) fn reshape(&mut self, value: ValueId, shape: &[Extent]) -> Result<ValueId, Refusal> {
        let parts = shape.iter().map(|&extent| self.extent(extent)).collect::<Result<Vec<_>, _>>()?;
        let shape = self.call("concat", &parts, &[("axis", Attribute::Int(0))])?;
        self.call("reshape", &[value, shape], &[])
    }

    /// A value with its dimensions in another order.
    pub(super) fn transpose(&mut self, value: ValueId, order: &[i64]) -> Result<ValueId, Refusal> {
        self.call("transpose", &[value], &[("perm", Attribute::Ints(order.to_vec()))])
    }

    /// Two values behind each other along a dimension.
    pub(super) fn concat(&mut self, values: [ValueId; 2], axis: i64) -> Result<ValueId, Refusal> {
        self.call("concat", &values, &[("axis", Attribute::Int(axis))])
    }

    /// A value with a new dimension of extent 1.
    pub(super) fn unsqueeze(&mut self, value: ValueId, axes: &[i64]) -> Result<ValueId, Refusal> {
        let axes = self.integers(axes);
        self.call("unsqueeze", &[value, axes], &[])
    }

    /// The part of a value between two places of a dimension.
    pub(super) fn slice(
        &mut self,
        value: ValueId,
        axis: i64,
        start: Extent,
        end: Extent,
    ) -> Result<ValueId, Refusal> {
        let (start, end, axis) = (self.extent(start)?, self.extent(end)?, self.integers(&[axis]));
        self.call("slice", &[value, start, end, axis], &[])
    }

    /// The integers from 0 on, below an extent, along the dimension before `after` others.
    pub(super) fn places(&mut self, extent: Extent, after: usize) -> Result<ValueId, Refusal> {
        let (zero, one) = (
            self.builder.constant(HostTensor::scalar(0i64)),
            self.builder.constant(HostTensor::scalar(1i64)),
        );
        let end = self.extent(extent)?;
        let scalar = self.integers(&[]);
        let end = self.call("reshape", &[end, scalar], &[])?;
        let places = self.call("range", &[zero, end, one], &[])?;
        let axes: Vec<i64> = (1..=after as i64).collect();
        if axes.is_empty() { Ok(places) } else { self.unsqueeze(places, &axes) }
    }
}
