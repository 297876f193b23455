//! The cells of recurrent layers: one step of one sequence.

use tilewright_core::build::{KernelBuilder, Value};

use crate::legalise::Unsupported;
use crate::legalise::emitter::{Emitter, Tensor, here};
use crate::legalise::operands::Operands;
use crate::legalise::recurrent::layer::{Factor, Layer, Sequence, Weights};
use crate::legalise::recurrent::quantised::Bytes;
use crate::legalise::scalar::{add, multiply, number, subtract};

type Emitted = Result<Vec<Tensor>, Unsupported>;

fn weights(emitter: &mut Emitter, operands: &Operands<'_>) -> Result<Weights, Unsupported> {
    let input = Factor::Floats(operands.tensor(emitter, 1)?);
    Ok(Weights { input, recurrent: Factor::Floats(operands.tensor(emitter, 2)?) })
}

/// The row of a gate for a unit.
fn row(gate: usize, layer: &Layer, unit: &Value) -> Value {
    if gate == 0 { unit.clone() } else { add(unit, &Value::int((gate * layer.hidden) as i64)) }
}

/// Computes the values of all gates up to a row, before their activations.
fn compute_gates(builder: &mut KernelBuilder, sequence: &Sequence<'_>, rows: usize) {
    sequence.each_product(builder, rows, &mut |builder, row, product| {
        let value = add(&product, &sequence.projected(builder, row));
        sequence.store(builder, sequence.gates, row, value);
    });
}

/// A gate's value, before its activation.
fn gate(builder: &KernelBuilder, sequence: &Sequence<'_>, number: usize, unit: &Value) -> Value {
    sequence.at(builder, sequence.gates, &row(number, sequence.layer, unit))
}

/// One gate, whose activation is the next state.
pub(crate) fn rnn(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let weights = weights(emitter, operands)?;
    let layer = Layer::read(emitter, operands, weights, 1, &["Tanh"])?;
    let mut results = layer.emit(emitter, layer.hidden, &|builder, sequence| {
        compute_gates(builder, sequence, layer.hidden);
        sequence.each(builder, layer.hidden, &mut |builder, unit| {
            let value = layer.clipped(&gate(builder, sequence, 0, unit));
            let next = builder.bind("next", sequence.activate(0, &value), here!());
            sequence.finish(builder, unit, next, None);
        });
    })?;
    results.truncate(2);
    Ok(results)
}

/// Gates in the order update, reset, candidate.
pub(crate) fn gru(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let weights = weights(emitter, operands)?;
    let layer = Layer::read(emitter, operands, weights, 3, &["Sigmoid", "Tanh"])?;
    let (units, late) = (layer.hidden, operands.flag("linear_before_reset"));
    let (count, batch) = layer.sequences();
    let kept = emitter.scratch(layer.wide.0, &[count, batch, units.into()])?;
    let held_back = if late { 2 * units } else { 3 * units };
    let mut results = layer.emit(emitter, held_back, &|builder, sequence| {
        compute_gates(builder, sequence, 2 * units);
        let reset = |builder: &KernelBuilder, unit: &Value| {
            sequence.activate(0, &layer.clipped(&gate(builder, sequence, 1, unit)))
        };
        if !late {
            sequence.each(builder, units, &mut |builder, unit| {
                let state = sequence.at(builder, sequence.hidden, unit);
                let value = multiply(&reset(builder, unit), &state);
                sequence.store(builder, &kept, unit, value);
            });
        }
        sequence.each(builder, units, &mut |builder, unit| {
            let row = row(2, &layer, unit);
            let state = if late { sequence.hidden } else { &kept };
            let product = sequence.recur(builder, &row, state);
            let recurrent = if late {
                multiply(&reset(builder, unit), &add(&product, &sequence.bias(builder, &row)))
            } else {
                product
            };
            let value = add(&recurrent, &sequence.projected(builder, &row));
            sequence.store(builder, sequence.gates, &row, value);
        });
        sequence.each(builder, units, &mut |builder, unit| {
            let update = layer.clipped(&gate(builder, sequence, 0, unit));
            let update = builder.bind("update", sequence.activate(0, &update), here!());
            let candidate = sequence.activate(1, &layer.clipped(&gate(builder, sequence, 2, unit)));
            let state = sequence.at(builder, sequence.hidden, unit);
            let rest = subtract(&number(layer.wide.1, 1.0), &update);
            let next = add(&multiply(&rest, &candidate), &multiply(&update, &state));
            let next = builder.bind("next", next, here!());
            sequence.finish(builder, unit, next, None);
        });
    })?;
    results.truncate(2);
    Ok(results)
}

/// Gates in the order input, output, forget, cell.
pub(crate) fn lstm(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let weights = weights(emitter, operands)?;
    lstm_with(emitter, operands, weights)
}

/// An LSTM whose weights are integers with scales and zero points.
pub(crate) fn dynamic_quantize_lstm(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let weights = Weights {
        input: Factor::Bytes(Box::new(Bytes::read(emitter, operands, 1, 8)?)),
        recurrent: Factor::Bytes(Box::new(Bytes::read(emitter, operands, 2, 10)?)),
    };
    lstm_with(emitter, operands, weights)
}

fn lstm_with(emitter: &mut Emitter, operands: &Operands<'_>, weights: Weights) -> Emitted {
    let layer = Layer::read(emitter, operands, weights, 4, &["Sigmoid", "Tanh", "Tanh"])?;
    let (units, coupled) = (layer.hidden, operands.flag("input_forget"));
    layer.emit(emitter, 4 * units, &|builder, sequence| {
        compute_gates(builder, sequence, 4 * units);
        sequence.each(builder, units, &mut |builder, unit| lstm_unit(builder, sequence, unit, coupled));
    })
}

/// Peepholes have the order input, output, forget.
fn lstm_unit(builder: &mut KernelBuilder, sequence: &Sequence<'_>, unit: &Value, coupled: bool) {
    let layer = sequence.layer;
    let peeped = |builder: &KernelBuilder, number: usize, cell: &Value| {
        let value = gate(builder, sequence, number, unit);
        let Some(peepholes) = &layer.peepholes else { return layer.clipped(&value) };
        let place = row(number, layer, unit);
        let peephole = peepholes.at(builder, &[sequence.direction.clone(), place]).cast(layer.wide.1);
        layer.clipped(&add(&value, &multiply(&peephole, cell)))
    };
    let old = sequence.at(builder, sequence.cells, unit);
    let input = builder.bind("input", sequence.activate(0, &peeped(builder, 0, &old)), here!());
    let forget = if coupled {
        subtract(&number(layer.wide.1, 1.0), &input)
    } else {
        sequence.activate(0, &peeped(builder, 2, &old))
    };
    let candidate = sequence.activate(1, &layer.clipped(&gate(builder, sequence, 3, unit)));
    let cell = add(&multiply(&forget, &old), &multiply(&input, &candidate));
    let cell = builder.bind("cell", cell, here!());
    let output = sequence.activate(0, &peeped(builder, 1, &cell));
    let hidden = multiply(&output, &sequence.activate(2, &cell));
    let hidden = builder.bind("hidden", hidden, here!());
    sequence.finish(builder, unit, hidden, Some(cell));
}
