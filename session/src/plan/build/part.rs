//! Parts of tensors. Steps read them inside of the whole tensor.

use tilewright_core::dtype::DType;
use tilewright_graph::ir::{Binding, Call, Operation, ValueId};
use tilewright_graph::operator::slice_places;
use tilewright_graph::tensor::ElementType;

use super::view::View;
use super::{At, Planner, State};
use crate::plan::order::{axis, dimension};

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
        let Some(source) = call.inputs.first().copied().flatten() else { return false };
        let Some(parts) = self.parts(call, source, binding) else { return false };
        let Some(at @ (At::Input(_) | At::Buffer(_) | At::Constant(_))) = self.locate(source) else {
            return false;
        };
        if !parts.iter().all(|(_, view)| self.is_aligned(source, view)) {
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

    /// Whether elements of a value begin at an address that kernels of the device take.
    fn is_aligned(&self, source: ValueId, view: &View) -> bool {
        let size = self.values[&source].element.dtype().map_or(1, DType::bytes);
        (view.start() * size).is_multiple_of(self.alignment)
    }

    /// The shapes and places of the results of such a call.
    fn parts(&self, call: &Call, source: ValueId, binding: &Binding) -> Option<Vec<(Vec<usize>, View)>> {
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
            if step <= 0 {
                return None;
            }
            let places: Vec<usize> =
                slice_places(start, end, step, shape[dimension]).into_iter().flatten().collect();
            let step = places.get(1).map_or(1, |second| second - places[0]);
            view = view.part(dimension, *places.first()?, step);
            shape[dimension] = places.len();
        }
        Some((shape, view))
    }

    /// Parts that lie one behind the other.
    fn divided(&self, call: &Call, source: ValueId, binding: &Binding) -> Option<Vec<(Vec<usize>, View)>> {
        let whole = &self.values[&source].shape;
        let along = axis(call, whole.len())?;
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
        let along = axis(call, shape.len())?;
        let &[place] = &self.integers(call, 1)??[..] else { return None };
        let place = if place < 0 { place + shape[along] as i64 } else { place };
        let place = usize::try_from(place).ok().filter(|&place| place < shape[along])?;
        let view = view.part(along, place, 1);
        match self.values[&call.inputs[1]?].shape.len() {
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
