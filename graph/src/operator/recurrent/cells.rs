//! The cells of recurrent layers.

use crate::deduce;
use crate::ir::AttributeKind;
use crate::legalise::recurrent;
use crate::operator::attribute::{Float, Floats, Int, IntOr, TextOr, Texts};
use crate::operator::evaluate::refuse;
use crate::operator::recurrent::activations;
use crate::operator::recurrent::layer::{Layer, State, Step, Weights};
use crate::operator::{Arguments, Fault, Operator, Value};

/// The attributes that all cells have, and those of one cell.
macro_rules! attributes {
    ($($own:expr),*) => {
        &[
            ("activation_alpha", Floats),
            ("activation_beta", Floats),
            ("activations", Texts),
            ("clip", Float),
            ("direction", TextOr("forward")),
            ("hidden_size", Int),
            ("layout", IntOr(0)),
            $($own,)*
        ]
    };
}

const RNN: &[(&str, AttributeKind)] = attributes![];
const GRU: &[(&str, AttributeKind)] = attributes![("linear_before_reset", IntOr(0))];
const LSTM: &[(&str, AttributeKind)] = attributes![("input_forget", IntOr(0))];

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("rnn", "RNN", rnn)
        .deduce(deduce::recurrent)
        .legalise(recurrent::rnn)
        .inputs(3, 6)
        .outputs(0, 2)
        .attributes(RNN),
    Operator::new("gru", "GRU", gru)
        .deduce(deduce::recurrent)
        .legalise(recurrent::gru)
        .inputs(3, 6)
        .outputs(0, 2)
        .attributes(GRU),
    Operator::new("lstm", "LSTM", lstm)
        .deduce(deduce::recurrent)
        .legalise(recurrent::lstm)
        .inputs(3, 8)
        .outputs(0, 3)
        .attributes(LSTM),
    Operator::new("dynamic_quantize_lstm", "DynamicQuantizeLSTM", dynamic_quantize_lstm)
        .deduce(deduce::recurrent)
        .legalise(recurrent::dynamic_quantize_lstm)
        .inputs(12, 12)
        .outputs(0, 3)
        .attributes(LSTM)
        .domain("com.microsoft"),
];

/// The layer of a cell with this number of gates, whose weights have a row for each unit of each gate. With `transposed`,
/// the rows are the last dimension of the weights.
fn read_layer(arguments: &Arguments<'_>, gates: usize, transposed: bool) -> Result<Layer, Fault> {
    let (w, r) = (arguments.tensor(1)?, arguments.tensor(2)?);
    let (&[directions, w1, w2], &[_, r1, r2]) = (w.shape(), r.shape()) else {
        refuse!("weights of shapes {:?} and {:?} must have three dimensions", w.shape(), r.shape())
    };
    let (rows, inputs, hidden) = if transposed { (w2, w1, r1) } else { (w1, w2, r2) };
    let layer = Layer::read(arguments, hidden, directions)?;
    let recurrent =
        if transposed { [directions, layer.hidden, rows] } else { [directions, rows, layer.hidden] };
    if rows != gates * layer.hidden || inputs != layer.inputs || r.shape() != recurrent {
        refuse!(
            "weights of shapes {:?} and {:?} do not fit {} inputs and {} hidden units",
            w.shape(),
            r.shape(),
            layer.inputs,
            layer.hidden
        );
    }
    Ok(layer)
}

/// Layer and weights of a cell with this number of gates.
fn read(arguments: &Arguments<'_>, gates: usize) -> Result<(Layer, Weights), Fault> {
    let layer = read_layer(arguments, gates, false)?;
    let numbers = |place: usize| Ok::<_, Fault>(arguments.optional_numbers(place)?.unwrap_or_default());
    Ok((layer, Weights { input: numbers(1)?, recurrent: numbers(2)?, rounds_factors: false }))
}

fn rnn(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (layer, weights) = read(arguments, 1)?;
    let chosen = activations(arguments, layer.directions, &["Tanh"])?;
    let rows = layer.hidden;
    let mut outputs = layer.run(arguments, &weights, rows, |step, state| {
        let f = chosen[step.direction][0];
        let next = (0..rows)
            .map(|row| f.apply(step.clip(step.input[row] + step.recur(row, &state.hidden) + step.bias[row])));
        state.hidden = next.collect();
    })?;
    outputs.truncate(2);
    Ok(outputs)
}

/// Gates in the order update, reset, hidden.
fn gru(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (layer, weights) = read(arguments, 3)?;
    let chosen = activations(arguments, layer.directions, &["Sigmoid", "Tanh"])?;
    let n = layer.hidden;
    let linear_before_reset = arguments.flag("linear_before_reset");
    let mut outputs = layer.run(arguments, &weights, 3 * n, |step, state| {
        let [f, g] = chosen[step.direction][..] else {
            unreachable!("there are two activations a direction")
        };
        let gate = |row: usize| {
            f.apply(step.clip(step.input[row] + step.recur(row, &state.hidden) + step.bias[row]))
        };
        let update: Vec<f64> = (0..n).map(gate).collect();
        let reset: Vec<f64> = (n..2 * n).map(gate).collect();
        let kept: Vec<f64> = state.hidden.iter().zip(&reset).map(|(hidden, reset)| hidden * reset).collect();
        let candidate = |unit: usize| {
            let row = 2 * n + unit;
            let recurrent = if linear_before_reset {
                reset[unit] * (step.recur(row, &state.hidden) + step.bias[row])
            } else {
                step.recur(row, &kept) + step.bias[row]
            };
            g.apply(step.clip(step.input[row] + recurrent))
        };
        let next =
            (0..n).map(|unit| (1.0 - update[unit]) * candidate(unit) + update[unit] * state.hidden[unit]);
        state.hidden = next.collect();
    })?;
    outputs.truncate(2);
    Ok(outputs)
}

fn lstm(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (layer, weights) = read(arguments, 4)?;
    run_lstm(arguments, &layer, &weights)
}

/// Gates in the order input, output, forget, cell; peepholes in the order input, output, forget.
fn run_lstm(arguments: &Arguments<'_>, layer: &Layer, weights: &Weights) -> Result<Vec<Value>, Fault> {
    let chosen = activations(arguments, layer.directions, &["Sigmoid", "Tanh", "Tanh"])?;
    let n = layer.hidden;
    let peepholes = match arguments.optional_numbers(7)? {
        None => vec![0.0; layer.directions * 3 * n],
        Some(numbers) if numbers.len() == layer.directions * 3 * n => numbers,
        Some(numbers) => {
            refuse!("peepholes have {} elements, {} are expected", numbers.len(), layer.directions * 3 * n)
        }
    };
    let coupled = arguments.flag("input_forget");
    layer.run(arguments, weights, 4 * n, |step: &Step<'_>, state: &mut State| {
        let [f, g, h] = chosen[step.direction][..] else {
            unreachable!("there are three activations a direction")
        };
        let peephole = &peepholes[step.direction * 3 * n..][..3 * n];
        let factor = step.factor(&state.hidden);
        let sum = |row: usize| step.input[row] + step.recur(row, &factor) + step.bias[row];
        let (mut hidden, mut cell) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for unit in 0..n {
            let old = state.cell[unit];
            let input = f.apply(step.clip(sum(unit) + peephole[unit] * old));
            let forget = if coupled {
                1.0 - input
            } else {
                f.apply(step.clip(sum(2 * n + unit) + peephole[2 * n + unit] * old))
            };
            let new = forget * old + input * g.apply(step.clip(sum(3 * n + unit)));
            let output = f.apply(step.clip(sum(n + unit) + peephole[n + unit] * new));
            hidden.push(output * h.apply(new));
            cell.push(new);
        }
        *state = State { hidden, cell };
    })
}

/// An LSTM whose weights are integers with scale and zero point, `[direction, input, gates · hidden]`. The inputs of a call, and the state
/// of each sequence in each step, become unsigned bytes, too, as `DynamicQuantizeLinear` makes them. ONNX Runtime uses one scale for
/// all sequences that a thread computes: the results of a batch of several sequences differ by rounding.
fn dynamic_quantize_lstm(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let layer = read_layer(arguments, 4, true)?;
    let (directions, rows) = (layer.directions, 4 * layer.hidden);
    let weights = Weights {
        input: dequantised(arguments, 1, [directions, layer.inputs, rows], 8)?,
        recurrent: dequantised(arguments, 2, [directions, layer.hidden, rows], 10)?,
        rounds_factors: true,
    };
    run_lstm(arguments, &layer, &weights)
}

/// Weights as numbers, with rows and columns exchanged. Scales and zero points follow at `first` and after it, one for
/// each direction or for each row.
fn dequantised(
    arguments: &Arguments<'_>,
    place: usize,
    [directions, columns, rows]: [usize; 3],
    first: usize,
) -> Result<Vec<f64>, Fault> {
    let numbers = |place: usize| Ok::<_, Fault>(arguments.optional_numbers(place)?.unwrap_or_default());
    let (weights, scales, zeros) = (numbers(place)?, numbers(first)?, numbers(first + 1)?);
    let parameter = |list: &[f64], direction: usize, row: usize| match list.len() {
        length if length == directions => Ok(list[direction]),
        length if length == directions * rows => Ok(list[direction * rows + row]),
        length => refuse!("{length} scales or zero points do not fit {directions} directions of {rows} rows"),
    };
    let mut result = Vec::with_capacity(weights.len());
    for direction in 0..directions {
        for row in 0..rows {
            let (scale, zero) = (parameter(&scales, direction, row)?, parameter(&zeros, direction, row)?);
            let element =
                |column: usize| (weights[(direction * columns + column) * rows + row] - zero) * scale;
            result.extend((0..columns).map(element));
        }
    }
    Ok(result)
}
