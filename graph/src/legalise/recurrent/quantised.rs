//! Layers whose weights are integers with scales and zero points, and whose inputs and states become bytes in each call.
//!
//! A product is formed of the integers as they are, and what the zero points contribute is subtracted from it:
//! `Σ(a-p)(b-q) = Σa·b - p·Σ(b-q) - q·Σa`, where b and q are weights, so that Σ(b-q) is formed once.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::dtype::DType;

use crate::legalise::emitter::{Emitter, Tensor, here, nest};
use crate::legalise::operands::Operands;
use crate::legalise::quantise::{byte_of, quantise_by_range, scale_of, zero_point_of};
use crate::legalise::recurrent::layer::Sequence;
use crate::legalise::scalar::{multiply, number, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// The most columns for which all sums fit into 32 bits: for each column, `a·b` is at most 255 · 128, `p·(b-q)` at most 255 · 255, and `q·a` at most
/// 255 · 128.
const MOST_COLUMNS: i64 = i32::MAX as i64 / (255 * (128 + 255 + 128));

/// Weights as signed bytes.
pub(super) struct Bytes {
    /// `[direction, row, column]`
    pub(super) bytes: Tensor,
    /// For each direction and row, the sum of its bytes without their zero points.
    centred: Tensor,
    scales: PerRow,
    zeros: PerRow,
}

/// Numbers for each direction, or for each of its rows.
struct PerRow {
    tensor: Tensor,
    /// Whether a tensor of one dimension has a number for each row, of the only direction.
    is_of_rows: bool,
    /// The number that is subtracted from each.
    shift: i64,
}

impl PerRow {
    fn of(tensor: Tensor, directions: &SymInt, rows: &SymInt, shift: i64) -> Result<Self, Unsupported> {
        let is_of_rows =
            matches!(&tensor.extents[..], [own] if own == rows && !own.is(1) && directions.is(1));
        let fits = match &tensor.extents[..] {
            [own] => own == directions || is_of_rows,
            [own, own_rows] => own == directions && (own_rows == rows || own_rows.is(1)),
            _ => false,
        };
        if !fits {
            unsupported!("scales or zero points do not fit {directions} directions of {rows} rows");
        }
        Ok(PerRow { tensor, is_of_rows, shift })
    }

    fn at(&self, builder: &KernelBuilder, direction: &Value, row: &Value, dtype: DType) -> Value {
        let places = match &self.tensor.extents[..] {
            [_] if self.is_of_rows => vec![row.clone()],
            [_] => vec![direction.clone()],
            [_, own] if own.is(1) => vec![direction.clone(), Value::int(0)],
            _ => vec![direction.clone(), row.clone()],
        };
        let value = self.tensor.at(builder, &places).cast(dtype);
        if self.shift == 0 { value } else { subtract(&value, &Value::typed_int(dtype, self.shift)) }
    }
}

/// The integers of a factor, with the numbers that they have in common.
struct Factor {
    scale: Value,
    zero: Value,
    /// The sum of the integers of a row.
    total: Value,
}

impl Bytes {
    /// Reads weights `[direction, column, row]`. Scales and zero points follow at `first`.
    pub(super) fn read(
        emitter: &mut Emitter,
        operands: &Operands<'_>,
        place: usize,
        first: usize,
    ) -> Result<Self, Unsupported> {
        let weights = operands.tensor(emitter, place)?;
        let [directions, columns, rows] = &weights.extents.clone()[..] else {
            unsupported!("weights must have three dimensions")
        };
        if columns.as_constant().is_none_or(|columns| columns > MOST_COLUMNS) {
            unsupported!("sums of {columns} products may exceed 32 bits");
        }
        // Instructions multiply unsigned bytes, here inputs and states, by signed ones.
        let shift = match weights.dtype {
            DType::I8 => 0,
            DType::U8 => 128,
            _ => unsupported!("weights of type {} are no bytes", weights.element),
        };
        let scales = PerRow::of(operands.tensor(emitter, first)?, directions, rows, 0)?;
        let zeros = PerRow::of(operands.tensor(emitter, first + 1)?, directions, rows, shift)?;
        let extents = [directions.clone(), rows.clone(), columns.clone()];
        let bytes = emitter.compute(ElementType::I8, &extents, &mut |builder, indices| {
            let [direction, row, column] = indices else { unreachable!("there are three loops") };
            let weight = weights.at(builder, &[direction.clone(), column.clone(), row.clone()]);
            let shifted = subtract(&weight.cast(DType::I32), &Value::typed_int(DType::I32, shift));
            if shift == 0 { weight } else { shifted.cast(DType::I8) }
        })?;
        let depth = emitter.bounds(std::slice::from_ref(columns))?;
        let centred = emitter.filled(ElementType::I32, &extents[..2], Value::typed_int(DType::I32, 0))?;
        let bounds = emitter.bounds(&extents[..2])?;
        nest(&mut emitter.builder, &bounds, &mut Vec::new(), &mut |builder, indices| {
            let [direction, row] = indices else { unreachable!("there are two loops") };
            let zero = zeros.at(builder, direction, row, DType::I32);
            nest(builder, &depth, &mut Vec::new(), &mut |builder, column| {
                let byte = bytes.at(builder, &[direction.clone(), row.clone(), column[0].clone()]);
                let term = subtract(&byte.cast(DType::I32), &zero);
                centred.store(builder, indices, UpdateOp::Add, term, here!());
            });
        });
        Ok(Bytes { bytes, centred, scales, zeros })
    }

    /// The number that a sum of products of integers stands for.
    fn number(
        &self,
        builder: &KernelBuilder,
        direction: &Value,
        row: &Value,
        sum: &Value,
        factor: &Factor,
    ) -> Value {
        let centred = self.centred.at(builder, &[direction.clone(), row.clone()]);
        let zero = self.zeros.at(builder, direction, row, DType::I32);
        let moved = subtract(sum, &multiply(&factor.zero.cast(DType::I32), &centred));
        let moved = subtract(&moved, &multiply(&zero, &factor.total));
        let scale = self.scales.at(builder, direction, row, DType::F32);
        multiply(&moved.cast(DType::F32), &multiply(&factor.scale, &scale))
    }

    /// The products of all inputs `[first, second, column]` with the weights, for each direction: `[direction, time, batch, row]`. `places` gives the
    /// indices of an input.
    pub(super) fn project(
        &self,
        emitter: &mut Emitter,
        x: &Tensor,
        extents: &[SymInt; 4],
        places: &dyn Fn(&Value, &Value, &Value) -> Vec<Value>,
    ) -> Result<Tensor, Unsupported> {
        let [bytes, scale, zero] = quantise_by_range(emitter, x)?;
        let nothing = || Value::typed_int(DType::I32, 0);
        let depth = emitter.bounds(&x.extents[2..])?;
        let totals = emitter.filled(ElementType::I32, &extents[1..3], nothing())?;
        let bounds = emitter.bounds(&extents[1..3])?;
        nest(&mut emitter.builder, &bounds, &mut Vec::new(), &mut |builder, indices| {
            nest(builder, &depth, &mut Vec::new(), &mut |builder, column| {
                let byte = bytes.at(builder, &places(&indices[0], &indices[1], &column[0]));
                totals.store(builder, indices, UpdateOp::Add, byte.cast(DType::I32), here!());
            });
        });
        let sums = emitter.filled(ElementType::I32, extents, nothing())?;
        let bounds = emitter.bounds(extents)?;
        nest(&mut emitter.builder, &bounds, &mut Vec::new(), &mut |builder, indices| {
            let [direction, time, batch, row] = indices else { unreachable!("there are four loops") };
            nest(builder, &depth, &mut Vec::new(), &mut |builder, column| {
                let byte = bytes.at(builder, &places(time, batch, &column[0])).cast(DType::I32);
                let weight = self.bytes.at(builder, &[direction.clone(), row.clone(), column[0].clone()]);
                sums.store(
                    builder,
                    indices,
                    UpdateOp::Add,
                    multiply(&byte, &weight.cast(DType::I32)),
                    here!(),
                );
            });
        });
        emitter.compute(ElementType::F32, extents, &mut |builder, indices| {
            let [direction, time, batch, row] = indices else { unreachable!("there are four loops") };
            let factor = Factor {
                scale: scale.at(builder, &[]),
                zero: zero.at(builder, &[]),
                total: totals.at(builder, &[time.clone(), batch.clone()]),
            };
            self.number(builder, direction, row, &sums.at(builder, indices), &factor)
        })
    }
}

/// Room for the states of a step as bytes, `[direction, batch, unit]`.
pub(super) struct StateBytes {
    bytes: Tensor,
}

impl StateBytes {
    pub(super) fn new(emitter: &mut Emitter, extents: &[SymInt; 3]) -> Result<Self, Unsupported> {
        Ok(StateBytes { bytes: emitter.scratch(ElementType::U8, extents)? })
    }

    /// Emits the bytes of a sequence's state, and for each row of `weights` the number of its product with the state, of which `then` does something.
    pub(super) fn each_product(
        &self,
        builder: &mut KernelBuilder,
        sequence: &Sequence<'_>,
        weights: &Bytes,
        rows: usize,
        then: &mut dyn FnMut(&mut KernelBuilder, &Value, Value),
    ) {
        let factor = self.round(builder, sequence);
        sequence.each(builder, rows, &mut |builder, row| {
            let sum = builder.accumulator("sum", Value::typed_int(DType::I32, 0), here!());
            sequence.each(builder, sequence.layer.hidden, &mut |builder, unit| {
                let byte = sequence.at(builder, &self.bytes, unit).cast(DType::I32);
                let places = [sequence.direction.clone(), row.clone(), unit.clone()];
                let weight = weights.bytes.at(builder, &places).cast(DType::I32);
                builder.update(sum, UpdateOp::Add, multiply(&byte, &weight), here!());
            });
            let sum = builder.read(sum);
            let number = weights.number(builder, &sequence.direction, row, &sum, &factor);
            then(builder, row, number);
        });
    }

    /// Emits the bytes of a sequence's state.
    fn round(&self, builder: &mut KernelBuilder, sequence: &Sequence<'_>) -> Factor {
        let units = sequence.layer.hidden;
        let extreme = |builder: &mut KernelBuilder, name: &str, op: UpdateOp| {
            let found = builder.accumulator(name, number(DType::F32, 0.0), here!());
            sequence.each(builder, units, &mut |builder, unit| {
                let state = sequence.at(builder, sequence.hidden, unit);
                builder.update(found, op, state, here!());
            });
            builder.read(found)
        };
        let low = extreme(builder, "low", UpdateOp::Min);
        let high = extreme(builder, "high", UpdateOp::Max);
        let scale = builder.bind("scale", scale_of(&low, &high), here!());
        let zero = builder.bind("zero", zero_point_of(&low, &scale), here!());
        sequence.each(builder, units, &mut |builder, unit| {
            let byte = byte_of(&sequence.at(builder, sequence.hidden, unit), &scale, zero.clone());
            sequence.store(builder, &self.bytes, unit, byte);
        });
        let total = builder.accumulator("total", Value::typed_int(DType::I32, 0), here!());
        sequence.each(builder, units, &mut |builder, unit| {
            let byte = sequence.at(builder, &self.bytes, unit).cast(DType::I32);
            builder.update(total, UpdateOp::Add, byte, here!());
        });
        Factor { scale, zero, total: builder.read(total) }
    }
}
