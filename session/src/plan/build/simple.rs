//! Bindings that need no step.

use tilewright_graph::fuse::Group;
use tilewright_graph::ir::{Binding, Body, Call, Operation, ValueId};
use tilewright_graph::legalise::Order;
use tilewright_graph::operator::{Arguments, Value};
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::HostTensor;

use super::view::View;
use super::{Planner, State};
use crate::plan::order::{concatenated, permutation};
use crate::prepare::inputs;

/// How many elements a tensor may have that is computed while a plan is made.
const MOST_KNOWN: usize = 1 << 12;

impl Planner<'_> {
    /// Handles bindings that need no step: constants, known values, other shapes of the same elements.
    pub(super) fn simple(&mut self, binding: &Binding) -> Option<bool> {
        if let Operation::Constant(tensor) = &binding.operation {
            self.constant(binding.outputs[0], tensor);
            return Some(true);
        }
        if let Operation::If { condition, then_body, else_body } = &binding.operation {
            return self.branch(*condition, then_body, else_body, &binding.outputs).map(|()| true);
        }
        let Operation::Call(call) = &binding.operation else { return None };
        if self.measured(call, binding)
            || self.known_outputs(binding)
            || self.computed(call, binding)
            || self.without_elements(call, binding)
            || self.joined_with_nothing(call, binding)
            || self.transposed(call, binding)
            || self.viewed(binding)
        {
            return Some(true);
        }
        Some(self.reshaped(call, binding))
    }

    /// The steps of the branch that a condition takes, which must be known.
    fn branch(
        &mut self,
        condition: ValueId,
        then_body: &Body,
        else_body: &Body,
        outputs: &[ValueId],
    ) -> Option<()> {
        let &[truth] = self.values.get(&condition)?.contents.as_ref()?.as_slice::<bool>()? else {
            return None;
        };
        let body = if truth { then_body } else { else_body };
        self.body(body)?;
        for (&output, result) in outputs.iter().zip(&body.results) {
            let state = self.values.get(result)?.clone();
            self.sizes.bind(&self.function.value(output).ty, &state.shape);
            self.values.insert(output, state);
        }
        Some(())
    }

    /// Values whose elements the graph follows as symbolic integers.
    fn known_outputs(&mut self, binding: &Binding) -> bool {
        let states: Option<Vec<State>> = binding
            .outputs
            .iter()
            .map(|&output| {
                let info = self.function.value(output);
                let element = info.ty.element()?;
                let shape = self.sizes.extents(info.ty.extents()?)?;
                let elements: Option<Vec<i64>> =
                    info.contents.as_ref()?.iter().map(|number| self.sizes.integer(number)).collect();
                let contents = HostTensor::new(&shape, elements?).ok()?.cast(element).ok()?;
                Some(State::new(element, shape, Some(contents), None))
            })
            .collect();
        let Some(states) = states else { return false };
        self.values.extend(binding.outputs.iter().copied().zip(states));
        true
    }

    /// The shape of a value, or its number of elements.
    fn measured(&mut self, call: &Call, binding: &Binding) -> bool {
        if !matches!(call.operator.name, "shape" | "size") {
            return false;
        }
        let Some(result) = self.of_shape(call) else { return false };
        let (element, shape) = (result.element(), result.shape().to_vec());
        self.values.insert(binding.outputs[0], State::new(element, shape, Some(result), None));
        true
    }

    /// The result of a call for which only the shape of its first input counts.
    fn of_shape(&self, call: &Call) -> Option<HostTensor> {
        let (first, others) = call.inputs.split_first()?;
        let stand_in = HostTensor::full(&self.values.get(&(*first)?)?.shape, false).ok()?;
        let mut inputs = vec![Some(Value::Tensor(stand_in))];
        for input in others {
            inputs.push(match input {
                None => None,
                Some(value) => Some(Value::Tensor(self.values.get(value)?.contents.clone()?)),
            });
        }
        let arguments =
            Arguments { operator: call.operator, attributes: &call.attributes, inputs: &inputs, outputs: 1 };
        (call.operator.evaluate)(&arguments).ok()?.first()?.as_tensor().cloned()
    }

    /// Whether the shapes decide all that a group reads, so that its calls are evaluated now.
    pub(super) fn is_decided(&self, body: &Body, group: &Group) -> bool {
        inputs(body, group).into_iter().all(|input| {
            let contents = self.values.get(&input).and_then(|state| state.contents.as_ref());
            contents.is_some_and(|contents| contents.len() <= MOST_KNOWN)
        })
    }

    /// A call whose inputs the shapes decide is evaluated now, unless its result is large.
    fn computed(&mut self, call: &Call, binding: &Binding) -> bool {
        if call.operator.draws {
            return false;
        }
        let mut inputs = Vec::with_capacity(call.inputs.len());
        for input in &call.inputs {
            inputs.push(match input {
                None => None,
                Some(value) => match self.values.get(value).and_then(|state| state.contents.clone()) {
                    Some(contents) if contents.len() <= MOST_KNOWN => Some(Value::Tensor(contents)),
                    _ => return false,
                },
            });
        }
        let arguments = Arguments {
            operator: call.operator,
            attributes: &call.attributes,
            inputs: &inputs,
            outputs: binding.outputs.len(),
        };
        let Ok(results) = (call.operator.evaluate)(&arguments) else { return false };
        let tensors: Option<Vec<HostTensor>> =
            results.iter().map(|result| result.as_tensor().cloned()).collect();
        let Some(tensors) = tensors.filter(|tensors| tensors.len() >= binding.outputs.len()) else {
            return false;
        };
        for (&output, tensor) in binding.outputs.iter().zip(tensors) {
            let (element, shape) = (tensor.element(), tensor.shape().to_vec());
            self.values.insert(output, State::new(element, shape, Some(tensor), None));
        }
        true
    }

    /// A call whose results have no elements: there is nothing to compute.
    fn without_elements(&mut self, call: &Call, binding: &Binding) -> bool {
        let empty = |output: ValueId| {
            let element = self.function.value(output).ty.element()?;
            let shape = self.shape_of(call, output).filter(|shape| shape.contains(&0))?;
            let contents = HostTensor::full(&shape, 0i64).ok()?.cast(element).ok()?;
            Some(State::new(element, shape, Some(contents), None))
        };
        let states: Option<Vec<State>> = binding.outputs.iter().map(|&output| empty(output)).collect();
        let Some(states) = states.filter(|_| !call.operator.draws) else { return false };
        for (&output, state) in binding.outputs.iter().zip(states) {
            self.sizes.bind(&self.function.value(output).ty, &state.shape);
            self.values.insert(output, state);
        }
        true
    }

    /// A concatenation of a tensor with others that have no elements, such as the keys before the first word of a text: its result is the
    /// same memory.
    fn joined_with_nothing(&mut self, call: &Call, binding: &Binding) -> bool {
        if call.operator.name != "concat" {
            return false;
        }
        let states: Option<Vec<&State>> =
            call.inputs.iter().map(|input| self.values.get(&(*input)?)).collect();
        let Some(states) = states else { return false };
        let mut filled = call.inputs.iter().zip(&states).filter(|(_, state)| !state.shape.contains(&0));
        let (Some((&Some(source), state)), None) = (filled.next(), filled.next()) else { return false };
        let rank = state.shape.len();
        let axis = concatenated(call, rank);
        let fits = |other: &&State| {
            let equal =
                |dimension| Some(dimension) == axis || other.shape[dimension] == state.shape[dimension];
            other.element == state.element && other.shape.len() == rank && (0..rank).all(equal)
        };
        if !states.iter().all(fits) {
            return false;
        }
        let Some(at) = self.locate(source) else { return false };
        let state = State { at: Some(at), ..self.values[&source].clone() };
        self.sizes.bind(&self.function.value(binding.outputs[0]).ty, &state.shape);
        self.values.insert(binding.outputs[0], state);
        true
    }

    /// A call that gives the elements of its first input in another shape.
    fn reshaped(&mut self, call: &Call, binding: &Binding) -> bool {
        const VIEWS: [&str; 5] = ["reshape", "flatten", "squeeze", "unsqueeze", "identity"];
        if !VIEWS.contains(&call.operator.name) {
            return false;
        }
        let Some(source) = call.inputs.first().copied().flatten() else { return false };
        let extents = self.function.value(binding.outputs[0]).ty.extents();
        let shape = extents.and_then(|extents| self.sizes.extents(extents));
        // Inside of a loop, no shape is deduced before it runs.
        let shape = shape.or_else(|| Some(self.of_shape(call)?.shape().to_vec()));
        let (Some(shape), Some(state)) = (shape, self.values.get(&source)) else { return false };
        if shape.iter().product::<usize>() != state.shape.iter().product::<usize>() {
            return false;
        }
        let element = state.element;
        let contents = state.contents.as_ref().and_then(|contents| contents.reshape(&shape).ok());
        let (order, view, at) = match self.reshaped_view(source, &shape, extents) {
            Some((order, view)) => (order, view, self.locate(source)),
            None => match self.copied(source) {
                None => return false,
                Some((at, _)) => (Order::given(shape.len()), None, Some(at)),
            },
        };
        let Some(at) = at else { return false };
        let state = State { order, view, ..State::new(element, shape, contents, Some(at)) };
        self.values.insert(binding.outputs[0], state);
        true
    }

    /// The order of a value's dimensions in another shape, and which elements of its memory it has; `None` where neighbours are not at one
    /// distance.
    fn reshaped_view(
        &self,
        value: ValueId,
        shape: &[usize],
        extents: Option<&[SymInt]>,
    ) -> Option<(Order, Option<View>)> {
        let state = &self.values[&value];
        let view = self.view(value)?.reshaped(&state.shape, shape, extents)?;
        let order = view.order(shape);
        let is_whole = state.view.is_none() && view.is_dense(shape, &order);
        Some((order, Some(view).filter(|_| !is_whole)))
    }

    /// A call that numbers the dimensions of its input anew: its result is the same memory.
    fn transposed(&mut self, call: &Call, binding: &Binding) -> bool {
        if call.operator.name != "transpose" {
            return false;
        }
        let Some(source) = call.inputs.first().copied().flatten() else { return false };
        let Some(at) = self.locate(source) else { return false };
        let state = &self.values[&source];
        let Some(perm) = permutation(call, state.shape.len()) else { return false };
        let shape: Vec<usize> = perm.iter().map(|&dimension| state.shape[dimension]).collect();
        let order = state.order.renumbered(&perm).simplified(&shape);
        let view = state.view.as_ref().map(|view| view.renumbered(&perm));
        let state = State { order, view, ..State::new(state.element, shape, None, Some(at)) };
        self.values.insert(binding.outputs[0], state);
        true
    }
}
