//! Concatenations. Steps write their results where a concatenation has them, so that it copies nothing.
//!
//! The buffer of a concatenation begins with the first step that writes a part of it, and has that part's order of dimensions. Parts that are no results of
//! steps, have another order, or are computed from other parts of the same concatenation are copied once all others are there.

use rustc_hash::FxHashMap;
use tilewright_graph::fuse::Group;
use tilewright_graph::ir::{Binding, Body, Call, Operation, ValueId};
use tilewright_graph::legalise::Order;

use super::view::View;
use super::{At, Operand, Planner, State};
use crate::plan::memory::Lifetime;
use crate::plan::order::concatenated;
use crate::prepare::{Computed, Prepared, inputs, prepare_copy};

/// The concatenations of the bodies that a plan is made of.
#[derive(Default)]
pub(super) struct Concatenations {
    /// By their results.
    all: FxHashMap<ValueId, Concatenation>,
    /// The concatenation in which each value is written, by its result: that with the most parts among those that read the value. Others often have the first parts of
    /// this one.
    of_parts: FxHashMap<ValueId, ValueId>,
}

/// A concatenation.
struct Concatenation {
    call: Call,
    parts: Vec<ValueId>,
    /// Its memory, once a part is written there.
    joint: Option<Joint>,
    /// Whether it has no such memory: sizes are not known in time.
    is_refused: bool,
}

/// The memory of a concatenation.
#[derive(Clone)]
struct Joint {
    buffer: usize,
    /// All elements.
    view: View,
    shape: Vec<usize>,
    order: Order,
    /// The dimension along which parts are joined.
    dimension: usize,
    /// The shape of each part, and where it begins along that dimension.
    parts: Vec<(Vec<usize>, usize)>,
}

/// The place of a part in a concatenation.
pub(super) struct Placement {
    buffer: usize,
    pub(super) view: View,
    shape: Vec<usize>,
}

impl Concatenations {
    /// Notes the concatenations among groups, which are of one body.
    pub(super) fn find<'b>(&mut self, body: &Body, groups: impl IntoIterator<Item = &'b Group>) {
        for group in groups {
            let Some(binding) = group.bindings.first().map(|&place| &body.bindings[place]) else { continue };
            let Operation::Call(call) = &binding.operation else { continue };
            let parts: Option<Vec<ValueId>> = call.inputs.iter().copied().collect();
            let Some(parts) = parts.filter(|parts| call.operator.name == "concat" && parts.len() > 1) else {
                continue;
            };
            let output = binding.outputs[0];
            for part in &parts {
                let is_once = parts.iter().filter(|other| *other == part).count() == 1;
                let known = self.of_parts.get(part).map_or(0, |known| self.all[known].parts.len());
                if is_once && known < parts.len() {
                    self.of_parts.insert(*part, output);
                }
            }
            let own = Concatenation { call: call.clone(), parts, joint: None, is_refused: false };
            self.all.insert(output, own);
        }
    }
}

impl Placement {
    /// Whether the result of a program is what belongs here.
    pub(super) fn takes(&self, prepared: &Prepared) -> bool {
        matches!(&prepared.outputs[..], [computed] if computed.shape == self.shape)
    }
}

/// The order in memory of a result of a step that has an order for results of its rank.
fn order_for(order: Option<&Order>, shape: &[usize]) -> Order {
    let own = order.filter(|order| order.rank() == shape.len());
    own.map_or_else(|| Order::given(shape.len()), |order| order.clone().simplified(shape))
}

impl Planner<'_> {
    /// Where the result of a group is written that a concatenation reads.
    pub(super) fn placement(
        &mut self,
        body: &Body,
        group: &Group,
        order: Option<&Order>,
    ) -> Option<Placement> {
        let placement = self.place_of(group, order)?;
        // A step reads and writes different buffers.
        (!self.reads(body, group, &placement)).then_some(placement)
    }

    /// Whether a group reads the memory in which a concatenation would have its result.
    pub(super) fn reads_own_place(&mut self, body: &Body, group: &Group, order: Option<&Order>) -> bool {
        self.place_of(group, order).is_some_and(|placement| self.reads(body, group, &placement))
    }

    fn reads(&self, body: &Body, group: &Group, placement: &Placement) -> bool {
        let is_read =
            |value: &ValueId| self.values.get(value).is_some_and(|state| state.is_in(placement.buffer));
        inputs(body, group).iter().any(is_read)
    }

    fn place_of(&mut self, group: &Group, order: Option<&Order>) -> Option<Placement> {
        let &[result] = &group.outputs[..] else { return None };
        self.place(result, order)
    }

    /// The place of a value in the largest concatenation that reads it, if it can lie there in this order.
    fn place(&mut self, value: ValueId, order: Option<&Order>) -> Option<Placement> {
        let joined = *self.concatenations.of_parts.get(&value)?;
        let joint = self.joint(joined, order)?;
        let position = self.concatenations.all[&joined].parts.iter().position(|part| *part == value)?;
        let (shape, start) = joint.parts[position].clone();
        let is_alike = order_for(order, &shape) == order_for(Some(&joint.order), &shape);
        let view = joint.view.part(joint.dimension, start, 1);
        is_alike.then_some(Placement { buffer: joint.buffer, view, shape })
    }

    /// The memory of a concatenation, which is reserved for it if it has none yet.
    fn joint(&mut self, joined: ValueId, order: Option<&Order>) -> Option<Joint> {
        let known = &self.concatenations.all[&joined];
        if known.joint.is_some() || known.is_refused {
            return known.joint.clone();
        }
        let joint = self.reserve(joined, order);
        let known = self.concatenations.all.get_mut(&joined)?;
        (known.joint, known.is_refused) = (joint.clone(), joint.is_none());
        joint
    }

    /// Memory for a concatenation, whose parts have an order: a part of a larger one, or a buffer.
    fn reserve(&mut self, joined: ValueId, order: Option<&Order>) -> Option<Joint> {
        let Concatenation { call, parts, .. } = &self.concatenations.all[&joined];
        let element = self.function.value(joined).ty.element()?.dtype()?;
        let shapes: Vec<Vec<usize>> =
            parts.iter().map(|&part| self.shape_ahead(part)).collect::<Option<_>>()?;
        let mut shape = shapes.first()?.clone();
        let dimension = concatenated(call, shape.len())?;
        let (mut parts, mut start) = (Vec::new(), 0);
        for own in shapes {
            let fits = |place: usize| place == dimension || own[place] == shape[place];
            if own.len() != shape.len() || own.contains(&0) || !(0..own.len()).all(fits) {
                return None;
            }
            let begin = start;
            start += own[dimension];
            parts.push((own, begin));
        }
        shape[dimension] = start;
        if element.is_storage_only() {
            return None;
        }
        let order = order_for(order, &shape);
        let whole = self.place(joined, Some(&order)).filter(|placement| placement.shape == shape);
        let view = match &whole {
            Some(placement) => placement.view.clone(),
            None => View::whole(&shape, self.function.value(joined).ty.extents(), &order),
        };
        // Kernels of the device take memory from some addresses on.
        let start = |(_, start): &(Vec<usize>, usize)| view.part(dimension, *start, 1).start();
        if !parts.iter().all(|part| (start(part) * element.bytes()).is_multiple_of(self.alignment)) {
            return None;
        }
        let buffer = match whole {
            Some(placement) => placement.buffer,
            None => {
                let size = shape.iter().product::<usize>().checked_mul(element.bytes())?;
                let step = self.drafts.len();
                self.buffers.push(Lifetime { size, birth: step, death: step });
                self.buffers.len() - 1
            }
        };
        Some(Joint { buffer, view, shape, order, dimension, parts })
    }

    /// The shape of a value, which may be computed later.
    fn shape_ahead(&self, value: ValueId) -> Option<Vec<usize>> {
        match self.values.get(&value) {
            Some(state) => Some(state.shape.clone()),
            None => self.sizes.extents(self.function.value(value).ty.extents()?),
        }
    }

    /// A value that a step writes where a concatenation has it.
    pub(super) fn placed_result(
        &mut self,
        value: ValueId,
        computed: Computed,
        placement: Placement,
    ) -> Option<Operand> {
        let Computed { element, shape, order } = computed;
        let Placement { buffer, view, .. } = placement;
        self.sizes.bind(&self.function.value(value).ty, &shape);
        self.buffers[buffer].death = self.drafts.len();
        let at = At::Buffer(buffer);
        let new = State::new(element, shape.clone(), None, Some(at));
        let state = State { order, view: Some(view), ..new };
        let part = state.part();
        self.values.insert(value, state);
        Some(Operand { at, element, shape, part })
    }

    /// A concatenation whose parts lie where it has them. With `may_copy`, parts that lie elsewhere are copied, if others are there.
    pub(super) fn joined(&mut self, binding: &Binding, may_copy: bool) -> bool {
        self.try_joined(binding, may_copy).is_some()
    }

    fn try_joined(&mut self, binding: &Binding, may_copy: bool) -> Option<()> {
        let Operation::Call(call) = &binding.operation else { return None };
        let parts: Vec<ValueId> = call.inputs.iter().copied().collect::<Option<_>>()?;
        if call.operator.name != "concat" || parts.len() < 2 {
            return None;
        }
        let output = binding.outputs[0];
        if let Some((at, shape, view)) = self.adjacent(call, &parts) {
            return self.look_at(output, at, shape, view);
        }
        let joint = self.concatenations.all.get(&output)?.joint.clone()?;
        for (&part, (shape, _)) in parts.iter().zip(&joint.parts) {
            if self.values.get(&part)?.shape != *shape {
                return None;
            }
        }
        let places: Vec<View> =
            joint.parts.iter().map(|(_, start)| joint.view.part(joint.dimension, *start, 1)).collect();
        let is_there = |planner: &Self, part: ValueId, view: &View| {
            let state = &planner.values[&part];
            state.is_in(joint.buffer) && state.view.as_ref().is_some_and(|own| own.is_at(view, &state.shape))
        };
        let missing: Vec<usize> =
            (0..parts.len()).filter(|&place| !is_there(self, parts[place], &places[place])).collect();
        if missing.len() == parts.len() || (!missing.is_empty() && !may_copy) {
            return None;
        }
        for place in missing {
            let (shape, _) = joint.parts[place].clone();
            let view = places[place].clone();
            self.copy_to(parts[place], &joint.order, Placement { buffer: joint.buffer, view, shape })?;
        }
        self.look_at(output, At::Buffer(joint.buffer), joint.shape, joint.view)
    }

    /// A result that has no memory of its own.
    fn look_at(&mut self, output: ValueId, at: At, shape: Vec<usize>, view: View) -> Option<()> {
        let ty = &self.function.value(output).ty;
        let element = ty.element()?;
        self.sizes.bind(ty, &shape);
        let order = view.order(&shape);
        let state = State { order, view: Some(view), ..State::new(element, shape, None, Some(at)) };
        self.values.insert(output, state);
        Some(())
    }

    /// The memory, shape and places of a concatenation, if its parts lie there already, one behind the other.
    fn adjacent(&self, call: &Call, parts: &[ValueId]) -> Option<(At, Vec<usize>, View)> {
        let first = self.values.get(parts.first()?)?;
        let mut shape = first.shape.clone();
        let dimension = concatenated(call, shape.len())?;
        let (at @ At::Buffer(buffer), view) = (first.at?, first.view.clone()?) else { return None };
        for &part in &parts[1..] {
            let state = self.values.get(&part)?;
            let place = view.part(dimension, shape[dimension], 1);
            let fits = |place: usize| place == dimension || state.shape[place] == shape[place];
            let is_alike = state.shape.len() == shape.len() && (0..shape.len()).all(fits);
            if !state.is_in(buffer) || !is_alike || !state.view.as_ref()?.is_at(&place, &state.shape) {
                return None;
            }
            shape[dimension] += state.shape[dimension];
        }
        Some((at, shape, view))
    }

    /// Takes back memory that was reserved for concatenations, and where no step writes after all.
    pub(super) fn give_back_unwritten(&mut self) {
        let mut is_written = vec![false; self.buffers.len()];
        for output in self.drafts.iter().flat_map(|draft| &draft.outputs) {
            if let At::Buffer(buffer) = output.at {
                is_written[buffer] = true;
            }
        }
        let unwritten = self.buffers.iter_mut().zip(is_written).filter(|(_, is_written)| !is_written);
        unwritten.for_each(|(buffer, _)| buffer.size = 0);
    }

    /// Copies a value to its place in a concatenation.
    fn copy_to(&mut self, value: ValueId, order: &Order, placement: Placement) -> Option<()> {
        self.locate(value)?;
        let original = self.values[&value].clone();
        if original.is_in(placement.buffer) {
            // A step reads and writes different buffers.
            let describe = |value| self.describe(value);
            let apart = prepare_copy(&self.graph.forms, value, &describe, None, None).ok()?;
            self.kernel(apart, &[value], "copy".into(), None)?;
        }
        let strides = placement.view.strides();
        let describe = |value| self.describe(value);
        let prepared = prepare_copy(&self.graph.forms, value, &describe, Some(order), Some(&strides)).ok()?;
        if !placement.takes(&prepared) {
            return None;
        }
        self.kernel(prepared, &[value], "copy".into(), Some(placement))?;
        // Other steps go on to read it where it was.
        self.values.insert(value, original);
        Some(())
    }
}
