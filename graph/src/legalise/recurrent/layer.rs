//! A recurrent layer: its operands, the products with its inputs, and the loop over its steps.
//!
//! The products of all inputs with the weights are one product of matrices. Then each direction and sequence runs through
//! its steps in order; in a step, the state is multiplied by the recurrent weights, and a cell makes the next state.
//!
//! The second direction runs from the last step to the first. A sequence that ends early keeps its state in the steps behind
//! its end, so that both directions run over all steps.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Bound, Emitter, Tensor, here, nest};
use crate::legalise::operands::Operands;
use crate::legalise::recurrent::activation::activate;
use crate::legalise::recurrent::quantised::{Bytes, StateBytes};
use crate::legalise::scalar::{add, clamp, computing, less, multiply, number};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::{Activation, activations};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// Weights of a layer; each gate has a row for each unit.
pub(super) struct Weights {
    pub(super) input: Factor,
    pub(super) recurrent: Factor,
}

/// A matrix of weights for each direction, `[direction, row, column]`.
pub(super) enum Factor {
    Floats(Tensor),
    Bytes(Box<Bytes>),
}

impl Factor {
    fn extents(&self) -> &[SymInt] {
        match self {
            Factor::Floats(weights) => &weights.extents,
            Factor::Bytes(weights) => &weights.bytes.extents,
        }
    }
}

/// The order in which a layer runs through its steps.
#[derive(Clone, Copy, PartialEq)]
enum Course {
    Forward,
    Reverse,
    Both,
}

impl Course {
    /// A value of one direction in one step: `at` gives that of a time, of which `last` is the last.
    fn in_step(self, direction: &Value, step: &Value, last: &Value, at: &dyn Fn(&Value) -> Value) -> Value {
        let reversed = last.binary(BinaryOp::Sub, step.clone());
        match self {
            Course::Forward => at(step),
            Course::Reverse => at(&reversed),
            Course::Both => direction.binary(BinaryOp::Eq, Value::int(0)).select(at(step), at(&reversed)),
        }
    }
}

/// Extents, options and operands of a layer.
pub(super) struct Layer {
    x: Tensor,
    weights: Weights,
    bias: Option<Tensor>,
    lengths: Option<Tensor>,
    initial: [Option<Tensor>; 2],
    pub(super) peepholes: Option<Tensor>,
    directions: usize,
    steps: SymInt,
    batch: SymInt,
    inputs: SymInt,
    /// The number of units.
    pub(super) hidden: usize,
    gates: usize,
    course: Course,
    batch_first: bool,
    clip: Option<f64>,
    activations: Vec<Vec<Activation>>,
    /// The type that is computed with, as a type of elements and of programs.
    pub(super) wide: (ElementType, DType),
}

/// The recurrence while it is emitted: the places of one sequence in one direction, and its state.
pub(super) struct Sequence<'s> {
    pub(super) layer: &'s Layer,
    /// Products of the inputs, `[direction, time, batch, row]`, with the biases of the inputs.
    projected: &'s Tensor,
    pub(super) direction: Value,
    batch: Value,
    step: Value,
    /// The last time.
    last: Value,
    /// The states of units, `[direction, batch, unit]`.
    pub(super) hidden: &'s Tensor,
    pub(super) cells: &'s Tensor,
    /// The states of all steps, `[direction, step, batch, unit]`.
    all: &'s Tensor,
    /// Room for the values of gates, `[direction, batch, row]`.
    pub(super) gates: &'s Tensor,
    state_bytes: Option<&'s StateBytes>,
}

impl Layer {
    /// Reads the operands of a call whose cell has this many gates.
    pub(super) fn read(
        emitter: &mut Emitter,
        operands: &Operands<'_>,
        weights: Weights,
        gates: usize,
        defaults: &[&str],
    ) -> Result<Self, Unsupported> {
        let x = operands.tensor(emitter, 0)?;
        let size = |extent: &SymInt| extent.as_constant().and_then(|extent| usize::try_from(extent).ok());
        let ([first, second, inputs], [directions, rows, columns], [_, recurrent_rows, hidden]) =
            (&x.extents[..], weights.input.extents(), weights.recurrent.extents())
        else {
            unsupported!("inputs and weights must have three dimensions")
        };
        let (Some(directions), Some(rows), Some(hidden)) = (size(directions), size(rows), size(hidden))
        else {
            unsupported!("the number of units depends on the call")
        };
        let course = match operands.text("direction") {
            "forward" => Course::Forward,
            "reverse" => Course::Reverse,
            "bidirectional" => Course::Both,
            other => return Err(Unsupported::Fault(format!("attribute direction cannot be {other}"))),
        };
        let attributes = operands.attributes();
        let states = attributes.int("hidden_size").unwrap_or(hidden as i64);
        if !x.dtype.is_float()
            || columns != inputs
            || !recurrent_rows.is(rows as i64)
            || rows != gates * hidden
            || hidden == 0
            || states != hidden as i64
            || directions != if course == Course::Both { 2 } else { 1 }
        {
            unsupported!("the weights do not fit {inputs} inputs and {hidden} units");
        }
        if matches!(weights.input, Factor::Bytes(_)) && x.dtype != DType::F32 {
            unsupported!("inputs of type {} do not become bytes", x.element);
        }
        let batch_first = operands.has("layout") && operands.flag("layout");
        let (steps, batch) = if batch_first { (second, first) } else { (first, second) };
        let element = if computing(x.dtype) == x.dtype { x.element } else { ElementType::F32 };
        let mut layer = Layer {
            bias: operands.optional(emitter, 3)?,
            lengths: operands.optional(emitter, 4)?,
            initial: [None, None],
            peepholes: None,
            directions,
            steps: steps.clone(),
            batch: batch.clone(),
            inputs: inputs.clone(),
            hidden,
            gates,
            course,
            batch_first,
            clip: attributes.float("clip"),
            activations: activations(&attributes, directions, defaults)?,
            wide: (element, computing(x.dtype)),
            weights,
            x,
        };
        layer.initial = [operands.optional(emitter, 5)?, layer.cell_input(emitter, operands, 6)?];
        layer.peepholes = layer.cell_input(emitter, operands, 7)?;
        layer.check()?;
        Ok(layer)
    }

    /// An input that only cells with states of their own have.
    fn cell_input(
        &self,
        emitter: &mut Emitter,
        operands: &Operands<'_>,
        place: usize,
    ) -> Result<Option<Tensor>, Unsupported> {
        if self.gates == 4 { operands.optional(emitter, place) } else { Ok(None) }
    }

    /// Compares the shapes of the smaller operands.
    fn check(&self) -> Result<(), Unsupported> {
        let (directions, rows) = (SymInt::from(self.directions), self.gates * self.hidden);
        let state = if self.batch_first {
            vec![self.batch.clone(), directions.clone(), self.hidden.into()]
        } else {
            vec![directions.clone(), self.batch.clone(), self.hidden.into()]
        };
        let expected = [
            (&self.bias, vec![directions.clone(), (2 * rows).into()]),
            (&self.lengths, vec![self.batch.clone()]),
            (&self.initial[0], state.clone()),
            (&self.initial[1], state),
            (&self.peepholes, vec![directions, (3 * self.hidden).into()]),
        ];
        for (tensor, extents) in expected {
            if tensor.as_ref().is_some_and(|tensor| tensor.extents != extents) {
                unsupported!(
                    "an operand does not fit {} units in {} directions",
                    self.hidden,
                    self.directions
                );
            }
        }
        if self.lengths.as_ref().is_some_and(|lengths| lengths.dtype.is_float()) {
            unsupported!("lengths are no integers");
        }
        Ok(())
    }

    /// The numbers of directions and of sequences.
    pub(super) fn sequences(&self) -> (SymInt, SymInt) {
        (self.directions.into(), self.batch.clone())
    }

    /// A number within the limits of the attribute `clip`.
    pub(super) fn clipped(&self, x: &Value) -> Value {
        self.clip.map_or_else(|| x.clone(), |clip| clamp(x, -clip, clip, self.wide.1))
    }

    /// The bias of the recurrence, or of the input, of a row.
    fn bias(
        &self,
        builder: &KernelBuilder,
        direction: &Value,
        row: &Value,
        recurrent: bool,
    ) -> Option<Value> {
        let start = if recurrent { self.gates * self.hidden } else { 0 };
        let place = add(row, &Value::int(start as i64));
        let bias = self.bias.as_ref()?;
        Some(bias.at(builder, &[direction.clone(), place]).cast(self.wide.1))
    }

    /// Emits the layer. `step` emits one step of one sequence. `held_back` names the rows, from there on, to which the cell adds the
    /// bias of the recurrence itself.
    pub(super) fn emit(
        &self,
        emitter: &mut Emitter,
        held_back: usize,
        step: &dyn Fn(&mut KernelBuilder, &Sequence<'_>),
    ) -> Result<Vec<Tensor>, Unsupported> {
        let projected = self.project(emitter, held_back)?;
        let (count, rows) = (SymInt::from(self.directions), SymInt::from(self.gates * self.hidden));
        let units = SymInt::from(self.hidden);
        let state = [count.clone(), self.batch.clone(), units.clone()];
        let hidden = self.start(emitter, &state, 0)?;
        let cells = if self.gates == 4 { self.start(emitter, &state, 1)? } else { hidden.clone() };
        let gates = emitter.scratch(self.wide.0, &[count.clone(), self.batch.clone(), rows])?;
        let all =
            emitter.scratch(self.wide.0, &[count.clone(), self.steps.clone(), self.batch.clone(), units])?;
        let state_bytes = match &self.weights.recurrent {
            Factor::Bytes(_) => Some(StateBytes::new(emitter, &state)?),
            Factor::Floats(_) => None,
        };
        let last = add(&emitter.value(&self.steps)?, &Value::int(-1));
        let bounds = emitter.bounds(&[count, self.batch.clone(), self.steps.clone()])?;
        nest(&mut emitter.builder, &bounds, &mut Vec::new(), &mut |builder, indices| {
            let [direction, batch, step_index] = indices else { unreachable!("there are three loops") };
            step(
                builder,
                &Sequence {
                    layer: self,
                    projected: &projected,
                    direction: direction.clone(),
                    batch: batch.clone(),
                    step: step_index.clone(),
                    last: last.clone(),
                    hidden: &hidden,
                    cells: &cells,
                    all: &all,
                    gates: &gates,
                    state_bytes: state_bytes.as_ref(),
                },
            );
        });
        let element = self.x.element;
        Ok(vec![
            self.all_states(emitter, &all, element)?,
            self.last_states(emitter, &hidden, element)?,
            self.last_states(emitter, &cells, element)?,
        ])
    }

    /// The products of all inputs with their weights, and the biases.
    fn project(&self, emitter: &mut Emitter, held_back: usize) -> Result<Tensor, Unsupported> {
        let dtype = self.wide.1;
        let rows = SymInt::from(self.gates * self.hidden);
        let extents = [self.directions.into(), self.steps.clone(), self.batch.clone(), rows];
        let bounds = emitter.bounds(&extents)?;
        let places = |time: &Value, batch: &Value, inner: &Value| self.time_and_batch(time, batch, inner);
        let sums = match &self.weights.input {
            Factor::Floats(weights) => self.products(emitter, weights, &extents)?,
            Factor::Bytes(weights) => weights.project(emitter, &self.x, &extents, &places)?,
        };
        if self.bias.is_none() {
            return Ok(sums);
        }
        let biased = emitter.scratch(self.wide.0, &extents)?;
        nest(&mut emitter.builder, &bounds, &mut Vec::new(), &mut |builder, indices| {
            let (direction, row) = (&indices[0], &indices[3]);
            let mut value = sums.at(builder, indices);
            if let Some(bias) = self.bias(builder, direction, row, false) {
                value = add(&value, &bias);
            }
            if let Some(bias) = self.bias(builder, direction, row, true) {
                let is_held_back = less(row, &Value::int(held_back as i64));
                let held_back_rows = held_back < self.gates * self.hidden;
                let bias = if held_back_rows { is_held_back.select(bias, number(dtype, 0.0)) } else { bias };
                value = add(&value, &bias);
            }
            biased.store(builder, indices, UpdateOp::Set, value, here!());
        });
        Ok(biased)
    }

    /// The products of all inputs with their weights, `[direction, time, batch, row]`.
    fn products(
        &self,
        emitter: &mut Emitter,
        weights: &Tensor,
        extents: &[SymInt; 4],
    ) -> Result<Tensor, Unsupported> {
        let dtype = self.wide.1;
        let depth = emitter.bounds(std::slice::from_ref(&self.inputs))?;
        let bounds = emitter.bounds(extents)?;
        let sums = emitter.filled(self.wide.0, extents, number(dtype, 0.0))?;
        nest(&mut emitter.builder, &bounds, &mut Vec::new(), &mut |builder, indices| {
            let [direction, time, batch, row] = indices else { unreachable!("there are four loops") };
            nest(builder, &depth, &mut Vec::new(), &mut |builder, depth| {
                let x = self.x.at(builder, &self.time_and_batch(time, batch, &depth[0])).cast(dtype);
                let weight = weights.at(builder, &[direction.clone(), row.clone(), depth[0].clone()]);
                let term = multiply(&x, &weight.cast(dtype));
                sums.store(builder, indices, UpdateOp::Add, term, here!());
            });
        });
        Ok(sums)
    }

    /// Indices of an input in its own order.
    fn time_and_batch(&self, time: &Value, batch: &Value, inner: &Value) -> Vec<Value> {
        let (first, second) = if self.batch_first { (batch, time) } else { (time, batch) };
        vec![first.clone(), second.clone(), inner.clone()]
    }

    /// The states before the first step.
    fn start(&self, emitter: &mut Emitter, extents: &[SymInt], which: usize) -> Result<Tensor, Unsupported> {
        let Some(initial) = &self.initial[which] else {
            return emitter.filled(self.wide.0, extents, number(self.wide.1, 0.0));
        };
        let state = emitter.scratch(self.wide.0, extents)?;
        let bounds = emitter.bounds(extents)?;
        nest(&mut emitter.builder, &bounds, &mut Vec::new(), &mut |builder, indices| {
            let value = initial.at(builder, &self.in_state(indices)).cast(self.wide.1);
            state.store(builder, indices, UpdateOp::Set, value, here!());
        });
        Ok(state)
    }

    /// Indices `[direction, batch, unit]` in the order that states have outside.
    fn in_state(&self, indices: &[Value]) -> Vec<Value> {
        let mut places = indices.to_vec();
        if self.batch_first {
            places.swap(0, 1);
        }
        places
    }

    /// The states of all times as the operator gives them.
    fn all_states(
        &self,
        emitter: &mut Emitter,
        all: &Tensor,
        element: ElementType,
    ) -> Result<Tensor, Unsupported> {
        let (directions, units) = (SymInt::from(self.directions), SymInt::from(self.hidden));
        let extents = if self.batch_first {
            [self.batch.clone(), self.steps.clone(), directions, units]
        } else {
            [self.steps.clone(), directions, self.batch.clone(), units]
        };
        let last = add(&emitter.value(&self.steps)?, &Value::int(-1));
        emitter.compute(element, &extents, &mut |builder, indices| {
            let (batch, time, direction) = if self.batch_first {
                (&indices[0], &indices[1], &indices[2])
            } else {
                (&indices[2], &indices[0], &indices[1])
            };
            let at = |step: &Value| {
                all.at(builder, &[direction.clone(), step.clone(), batch.clone(), indices[3].clone()])
            };
            // A step is as far from the first one as its time from the last one, and the other way round.
            self.course.in_step(direction, time, &last, &at).cast(self.x.dtype)
        })
    }

    fn last_states(
        &self,
        emitter: &mut Emitter,
        state: &Tensor,
        element: ElementType,
    ) -> Result<Tensor, Unsupported> {
        let (directions, units) = (SymInt::from(self.directions), SymInt::from(self.hidden));
        let mut extents = [directions, self.batch.clone(), units];
        if self.batch_first {
            extents.swap(0, 1);
        }
        emitter.compute(element, &extents, &mut |builder, indices| {
            state.at(builder, &self.in_state(indices)).cast(self.x.dtype)
        })
    }
}

impl Sequence<'_> {
    /// Loops over rows or units.
    pub(super) fn each(
        &self,
        builder: &mut KernelBuilder,
        count: usize,
        body: &mut dyn FnMut(&mut KernelBuilder, &Value),
    ) {
        let bound =
            if count == 1 { Bound::One } else { Bound::Many(Value::typed_int(DType::I64, count as i64)) };
        nest(builder, &[bound], &mut Vec::new(), &mut |builder, indices| body(builder, &indices[0]));
    }

    fn places(&self, inner: &Value) -> [Value; 3] {
        [self.direction.clone(), self.batch.clone(), inner.clone()]
    }

    /// The element of a tensor `[direction, batch, …]`.
    pub(super) fn at(&self, builder: &KernelBuilder, tensor: &Tensor, inner: &Value) -> Value {
        tensor.at(builder, &self.places(inner))
    }

    /// Changes an element of a tensor `[direction, batch, …]`.
    pub(super) fn store(&self, builder: &mut KernelBuilder, tensor: &Tensor, inner: &Value, value: Value) {
        tensor.store(builder, &self.places(inner), UpdateOp::Set, value, here!());
    }

    /// The product of the input with a row of its weights, with the biases that are not held back.
    pub(super) fn projected(&self, builder: &KernelBuilder, row: &Value) -> Value {
        let at = |time: &Value| {
            let places = [self.direction.clone(), time.clone(), self.batch.clone(), row.clone()];
            self.projected.at(builder, &places)
        };
        self.layer.course.in_step(&self.direction, &self.step, &self.last, &at)
    }

    /// Does something with the product of the state with each row of the recurrent weights up to one.
    pub(super) fn each_product(
        &self,
        builder: &mut KernelBuilder,
        rows: usize,
        then: &mut dyn FnMut(&mut KernelBuilder, &Value, Value),
    ) {
        match (&self.layer.weights.recurrent, self.state_bytes) {
            (Factor::Bytes(weights), Some(bytes)) => bytes.each_product(builder, self, weights, rows, then),
            _ => self.each(builder, rows, &mut |builder, row| {
                let product = self.recur(builder, row, self.hidden);
                then(builder, row, product);
            }),
        }
    }

    /// The product of a state `[direction, batch, unit]` with a row of the recurrent weights, which are floats.
    pub(super) fn recur(&self, builder: &mut KernelBuilder, row: &Value, state: &Tensor) -> Value {
        let Factor::Floats(weights) = &self.layer.weights.recurrent else {
            unreachable!("the products of bytes are formed for all rows")
        };
        let dtype = self.layer.wide.1;
        let sum = builder.accumulator("sum", number(dtype, 0.0), here!());
        self.each(builder, self.layer.hidden, &mut |builder, unit| {
            let weight = weights.at(builder, &[self.direction.clone(), row.clone(), unit.clone()]);
            let term = multiply(&weight.cast(dtype), &self.at(builder, state, unit));
            builder.update(sum, UpdateOp::Add, term, here!());
        });
        builder.read(sum)
    }

    /// The bias of the recurrence that is held back, or zero.
    pub(super) fn bias(&self, builder: &KernelBuilder, row: &Value) -> Value {
        let bias = self.layer.bias(builder, &self.direction, row, true);
        bias.unwrap_or_else(|| number(self.layer.wide.1, 0.0))
    }

    /// The activation at a place of the cell; where directions differ, the direction chooses.
    pub(super) fn activate(&self, place: usize, x: &Value) -> Value {
        let (activations, dtype) = (&self.layer.activations, self.layer.wide.1);
        let (first, last) = (activations[0][place], activations[activations.len() - 1][place]);
        if first == last {
            return activate(first, x, dtype);
        }
        let is_first = self.direction.binary(BinaryOp::Eq, Value::int(0));
        is_first.select(activate(first, x, dtype), activate(last, x, dtype))
    }

    /// Ends a step: a unit's new state, and that of its cell. A sequence that has ended keeps its states.
    pub(super) fn finish(
        &self,
        builder: &mut KernelBuilder,
        unit: &Value,
        hidden: Value,
        cell: Option<Value>,
    ) {
        let (mut kept, mut given, mut kept_cell) = (hidden.clone(), hidden, cell);
        if let Some(lengths) = &self.layer.lengths {
            let length = lengths.at(builder, std::slice::from_ref(&self.batch)).cast(DType::I64);
            let time = self
                .layer
                .course
                .in_step(&self.direction, &self.step, &self.last, &|time| time.cast(DType::I64));
            let runs = builder.bind("runs", less(&time, &length), here!());
            kept = runs.select(kept, self.at(builder, self.hidden, unit));
            given = runs.select(given, number(self.layer.wide.1, 0.0));
            kept_cell = kept_cell.map(|cell| runs.select(cell, self.at(builder, self.cells, unit)));
        }
        let places = [self.direction.clone(), self.step.clone(), self.batch.clone(), unit.clone()];
        self.all.store(builder, &places, UpdateOp::Set, given, here!());
        if let Some(cell) = kept_cell {
            self.store(builder, self.cells, unit, cell);
        }
        self.store(builder, self.hidden, unit, kept);
    }
}
