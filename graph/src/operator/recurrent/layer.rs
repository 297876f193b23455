//! Running a cell over sequences, in one direction or both.

use crate::operator::evaluate::refuse;
use crate::operator::{Arguments, Fault, Value};
use crate::tensor::{ElementType, HostTensor};

/// Weights of a layer: `gates · hidden` rows for each direction.
pub(super) struct Weights {
    /// `[direction][row][input]`
    pub(super) input: Vec<f64>,
    /// `[direction][row][hidden]`
    pub(super) recurrent: Vec<f64>,
    /// Whether inputs and states are rounded to bytes before they are multiplied.
    pub(super) rounds_factors: bool,
}

/// Extents and options of a layer.
pub(super) struct Layer {
    pub(super) steps: usize,
    pub(super) batch: usize,
    pub(super) inputs: usize,
    pub(super) hidden: usize,
    pub(super) directions: usize,
    /// For each direction whether it runs from the last step to the first.
    reversed: Vec<bool>,
    batch_first: bool,
    lengths: Vec<usize>,
    clip: f64,
    element: ElementType,
}

/// The state of one sequence.
pub(super) struct State {
    pub(super) hidden: Vec<f64>,
    pub(super) cell: Vec<f64>,
}

/// The operands of a cell in one step.
pub(super) struct Step<'s> {
    pub(super) direction: usize,
    /// The products of the input with the rows of the weights, with the bias of the input.
    pub(super) input: &'s [f64],
    /// The recurrent weights of the direction, row by row.
    pub(super) recurrent: &'s [f64],
    /// The bias of the recurrence, one number for each row.
    pub(super) bias: &'s [f64],
    pub(super) clip: f64,
    rounds_factors: bool,
}

/// How many sums are formed side by side: one sum alone waits for each addition to end.
const SUMS: usize = 8;

/// The product of two vectors of one length.
fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut sums = [0.0; SUMS];
    let (mut lefts, mut rights) = (left.chunks_exact(SUMS), right.chunks_exact(SUMS));
    for (left, right) in (&mut lefts).zip(&mut rights) {
        for place in 0..SUMS {
            sums[place] += left[place] * right[place];
        }
    }
    let rest = lefts.remainder().iter().zip(rights.remainder()).map(|(left, right)| left * right);
    sums.iter().sum::<f64>() + rest.sum::<f64>()
}

/// The numbers that bytes with one scale and zero point stand for, those of `DynamicQuantizeLinear` for these numbers. As it does, this
/// computes in `f32`.
fn rounded_to_bytes(numbers: &[f64]) -> Vec<f64> {
    let numbers: Vec<f32> = numbers.iter().map(|number| *number as f32).collect();
    let low = numbers.iter().copied().fold(0.0, f32::min);
    let high = numbers.iter().copied().fold(0.0, f32::max);
    let scale = if low < high { (high - low) / 255.0 } else { 1.0 };
    let zero = (0.0 - low / scale).clamp(0.0, 255.0).round_ties_even();
    // A conversion saturates, and gives 0 for NaN.
    let byte = |number: f32| ((number / scale).round_ties_even() + zero) as u8;
    numbers.iter().map(|number| f64::from(f32::from(byte(*number)) - zero) * f64::from(scale)).collect()
}

impl Step<'_> {
    /// A state as the factor of products.
    pub(super) fn factor(&self, state: &[f64]) -> Vec<f64> {
        if self.rounds_factors { rounded_to_bytes(state) } else { state.to_vec() }
    }

    /// The product of a state with one row of the recurrent weights.
    pub(super) fn recur(&self, row: usize, state: &[f64]) -> f64 {
        let weights = &self.recurrent[row * state.len()..(row + 1) * state.len()];
        dot(weights, state)
    }

    /// A number within the limits of the attribute `clip`.
    pub(super) fn clip(&self, x: f64) -> f64 {
        x.clamp(-self.clip, self.clip)
    }
}

impl Layer {
    /// Reads extents and options. `rows` is the number of rows of the weights of one direction.
    pub(super) fn read(
        arguments: &Arguments<'_>,
        rows: usize,
        directions_of_weights: usize,
    ) -> Result<Self, Fault> {
        let x = arguments.tensor(0)?;
        let batch_first = arguments.operator.attribute("layout").is_some() && arguments.flag("layout");
        let &[first, second, inputs] = x.shape() else {
            refuse!("expected three dimensions, found shape {:?}", x.shape())
        };
        let (steps, batch) = if batch_first { (second, first) } else { (first, second) };
        let hidden = usize::try_from(arguments.int("hidden_size").unwrap_or(rows as i64)).unwrap_or(0);
        let reversed = match arguments.text("direction") {
            "forward" => vec![false],
            "reverse" => vec![true],
            "bidirectional" => vec![false, true],
            other => refuse!("attribute direction cannot be {other}"),
        };
        if reversed.len() != directions_of_weights || hidden == 0 {
            refuse!("weights of {directions_of_weights} directions do not fit {} directions", reversed.len());
        }
        let lengths = match arguments.optional_integers(4)? {
            None => vec![steps; batch],
            Some(lengths) => {
                lengths.iter().map(|&length| usize::try_from(length).unwrap_or(usize::MAX)).collect()
            }
        };
        if lengths.len() != batch || lengths.iter().any(|&length| length > steps) {
            refuse!("lengths {lengths:?} do not fit {batch} sequences of {steps} steps");
        }
        let clip = arguments.float("clip").unwrap_or(f64::INFINITY);
        let directions = reversed.len();
        Ok(Layer {
            steps,
            batch,
            inputs,
            hidden,
            directions,
            reversed,
            batch_first,
            lengths,
            clip,
            element: x.element(),
        })
    }

    /// The first states that an input gives, or zeros: `[direction][batch][hidden]`.
    fn initial(&self, arguments: &Arguments<'_>, place: usize) -> Result<Vec<f64>, Fault> {
        let count = self.directions * self.batch * self.hidden;
        match arguments.optional_numbers(place)? {
            None => Ok(vec![0.0; count]),
            Some(numbers) if numbers.len() == count => Ok(self.swap_batch(&numbers, self.batch_first)),
            Some(numbers) => refuse!("input {place} has {} elements, {count} are expected", numbers.len()),
        }
    }

    /// Exchanges batch and direction.
    fn swap_batch(&self, numbers: &[f64], swap: bool) -> Vec<f64> {
        if !swap {
            return numbers.to_vec();
        }
        let row = |place: usize| {
            let (direction, batch) = (place / self.batch, place % self.batch);
            &numbers[(batch * self.directions + direction) * self.hidden..][..self.hidden]
        };
        (0..self.directions * self.batch).flat_map(row).copied().collect()
    }

    /// Runs a cell over all sequences. `bias` holds those of inputs and those of the recurrence of all rows, for each
    /// direction. Gives all states, the last states and the last cells.
    pub(super) fn run(
        &self,
        arguments: &Arguments<'_>,
        weights: &Weights,
        rows: usize,
        cell: impl Fn(&Step<'_>, &mut State),
    ) -> Result<Vec<Value>, Fault> {
        let Some(x) = arguments.optional_numbers(0)? else { refuse!("input 0 is missing") };
        let x = if weights.rounds_factors { rounded_to_bytes(&x) } else { x };
        let bias = match arguments.optional_numbers(3)? {
            None => vec![0.0; self.directions * 2 * rows],
            Some(bias) if bias.len() == self.directions * 2 * rows => bias,
            Some(bias) => {
                refuse!("the bias has {} elements, {} are expected", bias.len(), self.directions * 2 * rows)
            }
        };
        let (hidden, cells) = (self.initial(arguments, 5)?, self.initial(arguments, 6)?);
        let mut all =
            vec![0.0; crate::tensor::count(&[self.steps, self.directions, self.batch, self.hidden])?];
        let (mut last_hidden, mut last_cells) = (Vec::new(), Vec::new());
        for direction in 0..self.directions {
            let bias = &bias[direction * 2 * rows..(direction + 1) * 2 * rows];
            let input_weights = &weights.input[direction * rows * self.inputs..][..rows * self.inputs];
            for batch in 0..self.batch {
                let start = (direction * self.batch + batch) * self.hidden;
                let own = |states: &[f64]| states[start..start + self.hidden].to_vec();
                let mut state = State { hidden: own(&hidden), cell: own(&cells) };
                for step in 0..self.lengths[batch] {
                    let time = if self.reversed[direction] { self.lengths[batch] - 1 - step } else { step };
                    let place =
                        if self.batch_first { batch * self.steps + time } else { time * self.batch + batch };
                    let x = &x[place * self.inputs..][..self.inputs];
                    let product = |row: usize| {
                        let weights = &input_weights[row * self.inputs..][..self.inputs];
                        dot(weights, x) + bias[row]
                    };
                    let input: Vec<f64> = (0..rows).map(product).collect();
                    let recurrent =
                        &weights.recurrent[direction * rows * self.hidden..][..rows * self.hidden];
                    let own = Step {
                        direction,
                        input: &input,
                        recurrent,
                        bias: &bias[rows..],
                        clip: self.clip,
                        rounds_factors: weights.rounds_factors,
                    };
                    cell(&own, &mut state);
                    let target = ((time * self.directions + direction) * self.batch + batch) * self.hidden;
                    all[target..target + self.hidden].copy_from_slice(&state.hidden);
                }
                last_hidden.extend(state.hidden);
                last_cells.extend(state.cell);
            }
        }
        Ok(vec![self.all_states(&all)?, self.last_states(&last_hidden)?, self.last_states(&last_cells)?])
    }

    fn all_states(&self, all: &[f64]) -> Result<Value, Fault> {
        let shape = [self.steps, self.directions, self.batch, self.hidden];
        let states = HostTensor::new(&shape, all.to_vec())?.cast(self.element)?;
        let ordered = if self.batch_first {
            crate::operator::select::transpose(&states, &[2, 0, 1, 3])?
        } else {
            states
        };
        Ok(ordered.into())
    }

    fn last_states(&self, last: &[f64]) -> Result<Value, Fault> {
        let states = HostTensor::new(&[self.directions, self.batch, self.hidden], last.to_vec())?
            .cast(self.element)?;
        let ordered =
            if self.batch_first { crate::operator::select::transpose(&states, &[1, 0, 2])? } else { states };
        Ok(ordered.into())
    }
}
