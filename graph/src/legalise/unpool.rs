//! Pooling backwards: elements spread over a larger tensor.

use tilewright_core::build::{UpdateOp, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Emitter, Tensor, here};
use crate::legalise::operands::Operands;
use crate::legalise::place::require_indices;
use crate::legalise::scalar::number;
use crate::legalise::{Unsupported, unsupported};
use crate::operator::extents;
use crate::symbolic::SymInt;

/// Writes each element to the place that an index names, in a tensor of zeros. Indices count within the tensor that windows cover, also
/// where another shape is asked for. Of several elements for one place, the last one stays.
pub(crate) fn max(emitter: &mut Emitter, operands: &Operands<'_>) -> Result<Vec<Tensor>, Unsupported> {
    let (x, indices) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    require_indices(&indices)?;
    if x.rank() < 3 || indices.extents != x.extents || !x.dtype.is_float() {
        unsupported!("only floats with batch, channels and an index each have a kernel form");
    }
    let covered = covered(&x, operands)?;
    let shape = match operands.optional_integers(2)? {
        None => covered.clone(),
        Some(shape) => extents(&shape)?.into_iter().map(SymInt::from).collect(),
    };
    if shape.len() != x.rank() || !emitter.has_elements(&covered)? || !emitter.has_elements(&shape)? {
        unsupported!("a result of {} dimensions does not fit", shape.len());
    }
    let ends = emitter.values(&covered)?;
    let result = emitter.filled(x.element, &shape, number(x.dtype, 0.0))?;
    let loops: Vec<usize> = (0..x.rank()).collect();
    // The index of the first long dimension is the rest of the divisions. The program checks its range when it runs.
    let first = shape.iter().position(|extent| !extent.is(1)).unwrap_or(0);
    emitter.nest_in(&loops, &x.extents, &mut |builder, own| {
        let mut rest = builder.bind("index", indices.at(builder, own).cast(DType::I64), here!());
        let mut places = vec![Value::int(0); ends.len()];
        for dimension in (first + 1..ends.len()).rev() {
            places[dimension] = rest.binary(BinaryOp::Rem, ends[dimension].clone());
            rest = rest.binary(BinaryOp::Div, ends[dimension].clone());
        }
        places[first] = rest;
        let value = x.at(builder, own);
        result.store(builder, &places, UpdateOp::Set, value, here!());
    })?;
    Ok(vec![result])
}

/// The extents that the windows of an input cover.
fn covered(x: &Tensor, operands: &Operands<'_>) -> Result<Vec<SymInt>, Unsupported> {
    let spatial = x.rank() - 2;
    let list = |name: &str, usual: i64, count: usize| match operands.ints(name) {
        None => vec![usual; count],
        Some(given) => given.to_vec(),
    };
    let (kernel, strides, pads) =
        (list("kernel_shape", 1, spatial), list("strides", 1, spatial), list("pads", 0, 2 * spatial));
    if kernel.len() != spatial || strides.len() != spatial || pads.len() != 2 * spatial {
        unsupported!("the attributes do not fit {spatial} spatial dimensions");
    }
    let mut extents = x.extents[..2].to_vec();
    for (d, extent) in x.extents[2..].iter().enumerate() {
        let reach = (extent - &1.into()).scale(strides[d]);
        extents.push(&reach + &(kernel[d] - pads[d] - pads[d + spatial]).into());
    }
    Ok(extents)
}
