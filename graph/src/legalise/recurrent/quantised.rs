//! Weights that are integers with scales and zero points.

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::scalar::{multiply, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::symbolic::SymInt;

/// Weights `[direction, column, row]` as floats `[direction, row, column]`. Scales and zero points follow at `first`, one of each
/// for a direction or for each of its rows.
pub(super) fn weights(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
    place: usize,
    first: usize,
) -> Result<Tensor, Unsupported> {
    let weights = operands.tensor(emitter, place)?;
    let (scales, zeros) = (operands.tensor(emitter, first)?, operands.tensor(emitter, first + 1)?);
    let [directions, columns, rows] = &weights.extents[..] else {
        unsupported!("weights must have three dimensions")
    };
    let fits = |parameter: &Tensor| match &parameter.extents[..] {
        [own] => own == directions || (directions.is(1) && own == rows),
        [own, own_rows] => own == directions && (own_rows == rows || own_rows.is(1)),
        _ => false,
    };
    if !fits(&scales) || !fits(&zeros) {
        unsupported!("scales or zero points do not fit {directions} directions of {rows} rows");
    }
    let extents = [directions.clone(), rows.clone(), columns.clone()];
    let per_row = |parameter: &Tensor, own: &SymInt| parameter.rank() == 1 && own == rows && !own.is(1);
    let dtype = scales.dtype;
    emitter.compute(scales.element, &extents, &mut |builder, indices| {
        let [direction, row, column] = indices else { unreachable!("there are three loops") };
        let parameter = |parameter: &Tensor| {
            let zero = tilewright_core::build::Value::int(0);
            let places = match &parameter.extents[..] {
                [own] if per_row(parameter, own) => vec![row.clone()],
                [_] => vec![direction.clone()],
                [_, own] if own.is(1) => vec![direction.clone(), zero],
                _ => vec![direction.clone(), row.clone()],
            };
            parameter.at(builder, &places).cast(dtype)
        };
        let weight = weights.at(builder, &[direction.clone(), column.clone(), row.clone()]).cast(dtype);
        multiply(&subtract(&weight, &parameter(&zeros)), &parameter(&scales))
    })
}
