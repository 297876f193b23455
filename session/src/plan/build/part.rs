//! Parts of tensors, which their readers find where the whole tensor lies.

use tilewright_core::dtype::DType;
use tilewright_graph::ir::{Binding, Call, Operation, ValueId};
use tilewright_graph::operator::Arguments;
use tilewright_graph::tensor::ElementType;
use tilewright_runtime::DeviceId;

use super::view::View;
use super::{At, Planner, State};
use crate::plan::order::dimension;

/// Kernels of devices take tensors whose addresses are multiples of this, in bytes: the widest access of a GPU's thread.
const DEVICE_ALIGNMENT: usize = 16;

impl Planner<'_> {
    /// Which elements of its memory a value has.
    pub(super) fn view(&self, value: ValueId) -> Option<View> {
        let state = self.values.get(&value)?;
        let whole = || View::whole(&state.shape, self.function.value(value).ty.extents(), &state.order);
        Some(state.view.clone().unwrap_or_else(whole))
    }

    /// A call whose results are parts of its first input: they have no memory of their own.
    pub(super) fn viewed(&mut self, binding: &Binding) -> bool {
        let Operation::Call(call) = &binding.operation else { return false };
        let Some(parts) = self.parts(call, binding) else { return false };
        let Some(source) = call.inputs[0] else { return false };
        let Some(at @ (At::Input(_) | At::Buffer(_) | At::Constant(_))) = self.locate(source) else {
            return false;
        };
        if self.device != DeviceId::DEFAULT && !parts.iter().all(|(_, view)| self.is_aligned(source, view)) {
            return false;
        }
        for (&output, (shape, view)) in binding.outputs.iter().zip(parts) {
            let state = &self.values[&source];
            let order = view.order(&shape);
            self.sizes.bind(&self.function.value(output).ty, &shape);
            let state = State { order, view: Some(view), ..State::new(state.element, shape, None, Some(at)) };
            self.values.insert(output, state);
        }
        true
    }

    /// Whether elements of a value begin at an address that kernels of devices take.
    fn is_aligned(&self, source: ValueId, view: &View) -> bool {
        let size = self.values[&source].element.dtype().map_or(1, DType::bytes);
        (view.start() * size).is_multiple_of(DEVICE_ALIGNMENT)
    }

    /// The shapes and places of the results of such a call.
    fn parts(&self, call: &Call, binding: &Binding) -> Option<Vec<(Vec<usize>, View)>> {
        let source = call.inputs.first().copied().flatten()?;
        let state = self.values.get(&source)?;
        let is_possible =
            !state.shape.contains(&0) && state.element.dtype().is_some_and(|dtype| !dtype.is_storage_only());
        if !is_possible {
            return None;
        }
        match call.operator.name {
            "slice" => Some(vec![self.sliced(call, source)?]),
            "split" => self.divided(call, source, binding),
            "gather" => Some(vec![self.picked(call, source)?]),
            _ => None,
        }
    }

    /// A slice that runs forwards.
    fn sliced(&self, call: &Call, source: ValueId) -> Option<(Vec<usize>, View)> {
        let (mut shape, mut view) = (self.values[&source].shape.clone(), self.view(source)?);
        let (starts, ends) = (self.integers(call, 1)??, self.integers(call, 2)??);
        let axes = self.integers(call, 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
        let steps = self.integers(call, 4)?.unwrap_or_else(|| vec![1; starts.len()]);
        if [ends.len(), axes.len(), steps.len()].iter().any(|&length| length != starts.len()) {
            return None;
        }
        for (((&start, &end), &number), &step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
            let dimension = dimension(number, shape.len())?;
            let extent = shape[dimension];
            let place = |bound: i64| {
                let bound = if bound < 0 { bound.saturating_add(extent as i64) } else { bound };
                bound.clamp(0, extent as i64) as usize
            };
            let (start, end) = (place(start), place(end));
            let step = usize::try_from(step).ok().filter(|&step| step > 0)?;
            if start >= end {
                return None;
            }
            shape[dimension] = (end - start).div_ceil(step);
            view = view.part(dimension, start, step.min(extent));
        }
        Some((shape, view))
    }

    /// Parts that lie one behind the other.
    fn divided(&self, call: &Call, source: ValueId, binding: &Binding) -> Option<Vec<(Vec<usize>, View)>> {
        let whole = &self.values[&source].shape;
        let attributes =
            Arguments { operator: call.operator, attributes: &call.attributes, inputs: &[], outputs: 1 };
        let along = dimension(attributes.int_or_default("axis"), whole.len())?;
        let view = self.view(source)?;
        let (mut parts, mut start) = (Vec::new(), 0);
        for &output in &binding.outputs {
            let shape = self.shape_of(call, output)?;
            let own = *shape.get(along).filter(|&&own| own > 0)?;
            let fits = |dimension| dimension == along || shape[dimension] == whole[dimension];
            if shape.len() != whole.len() || !(0..shape.len()).all(fits) {
                return None;
            }
            parts.push((shape, view.part(along, start, 1)));
            start += own;
        }
        (start == whole[along]).then_some(parts)
    }

    /// One place along a dimension, which the shapes decide.
    fn picked(&self, call: &Call, source: ValueId) -> Option<(Vec<usize>, View)> {
        let (mut shape, view) = (self.values[&source].shape.clone(), self.view(source)?);
        let attributes =
            Arguments { operator: call.operator, attributes: &call.attributes, inputs: &[], outputs: 1 };
        let along = dimension(attributes.int_or_default("axis"), shape.len())?;
        let places = self.values.get(&call.inputs.get(1).copied().flatten()?)?.contents.as_ref()?;
        let &[place] = &places.cast(ElementType::I64).ok()?.as_slice::<i64>()?.to_vec()[..] else {
            return None;
        };
        let place = if place < 0 { place + shape[along] as i64 } else { place };
        let place = usize::try_from(place).ok().filter(|&place| place < shape[along])?;
        let view = view.part(along, place, 1);
        match places.rank() {
            0 => {
                shape.remove(along);
                Some((shape, view.without(along)))
            }
            1 => {
                shape[along] = 1;
                Some((shape, view))
            }
            _ => None,
        }
    }

    /// The elements of an input as integers: `None` where they are not known, `Some(None)` where the input is left out.
    fn integers(&self, call: &Call, place: usize) -> Option<Option<Vec<i64>>> {
        let Some(value) = call.inputs.get(place).copied().flatten() else { return Some(None) };
        let contents = self.values.get(&value)?.contents.as_ref()?.cast(ElementType::I64).ok()?;
        Some(Some(contents.as_slice::<i64>()?.to_vec()))
    }
}
