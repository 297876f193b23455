//! Resizing, one dimension after the other.
//!
//! Where each element of a dimension comes from is a table, made for the present extents: the places that take part, and their
//! weights.

use tilewright_core::build::{UpdateOp, Value};

use crate::legalise::emitter::{Bound, Emitter, Tensor, here, nest};
use crate::legalise::operands::Operands;
use crate::legalise::scalar::{add, computing, multiply, number};
use crate::legalise::{Unsupported, select, unsupported};
use crate::operator::{Arguments, Resized, Source};
use crate::tensor::{ElementType, HostTensor};

/// Pictures of any other extents.
pub(crate) fn resize(emitter: &mut Emitter, operands: &Operands<'_>) -> Result<Vec<Tensor>, Unsupported> {
    match select::resize(emitter, operands) {
        Err(Unsupported::Form(_)) => {}
        outcome => return outcome,
    }
    let mut x = operands.tensor(emitter, 0)?;
    let shape = x.extents.iter().map(|extent| {
        let constant = extent.as_constant().and_then(|extent| usize::try_from(extent).ok());
        constant.ok_or_else(|| Unsupported::Form("the extents depend on the call".to_owned()))
    });
    let shape = shape.collect::<Result<Vec<_>, _>>()?;
    let inputs = [None, operands.value(1)?, operands.value(2)?, operands.value(3)?];
    let arguments = Arguments { inputs: &inputs, ..operands.attributes() };
    let dimensions = crate::operator::resized(&arguments, &shape)?;
    if !x.dtype.is_float() && operands.text("mode") != "nearest" {
        unsupported!("weighted sums of elements of type {} have no kernel form", x.element);
    }
    let outside = operands.float("extrapolation_value");
    for (dimension, Resized { sources, stays }) in dimensions.iter().enumerate() {
        if !stays {
            x = along(emitter, &x, dimension, sources, outside)?;
        }
    }
    Ok(vec![x])
}

/// How many places are added without a loop.
const MOST_UNROLLED: usize = 4;

/// Replaces one dimension.
fn along(
    emitter: &mut Emitter,
    x: &Tensor,
    dimension: usize,
    sources: &[Source],
    outside: f64,
) -> Result<Tensor, Unsupported> {
    let taps = sources.iter().map(Source::len).max().unwrap_or(0).max(1);
    if sources.is_empty() {
        unsupported!("the result has no elements");
    }
    let tables = Tables::of(emitter, x, sources, taps)?;
    let mut extents = x.extents.clone();
    extents[dimension] = sources.len().into();
    let (wide, dtype) = (computing(x.dtype), x.dtype);
    let term = |builder: &tilewright_core::build::KernelBuilder, indices: &[Value], tap: Value| {
        let at = [indices[dimension].clone(), tap];
        let mut places = indices.to_vec();
        places[dimension] = tables.places.at(builder, &at);
        let value = x.at(builder, &places);
        match &tables.weights {
            None => value,
            Some(weights) => multiply(&value.cast(wide), &weights.at(builder, &at)),
        }
    };
    let finish = |builder: &tilewright_core::build::KernelBuilder, indices: &[Value], sum: Value| {
        let Some(inside) = &tables.inside else { return sum.cast(dtype) };
        let is_inside = inside.at(builder, &indices[dimension..=dimension]);
        is_inside.select(sum.cast(dtype), number(dtype, outside))
    };
    if taps <= MOST_UNROLLED {
        return emitter.compute(x.element, &extents, &mut |builder, indices| {
            let terms = (0..taps).map(|tap| term(builder, indices, Value::int(tap as i64)));
            let sum = terms.reduce(|sum, term| add(&sum, &term)).expect("there is a place");
            finish(builder, indices, sum)
        });
    }
    let result = emitter.local(x.element, &extents, None)?;
    let bound = [Bound::Many(Value::int(taps as i64))];
    emitter.nest(&extents, &mut |builder, indices| {
        let sum = builder.accumulator("sum", number(wide, 0.0), here!());
        nest(builder, &bound, &mut Vec::new(), &mut |builder, tap| {
            let term = term(builder, indices, tap[0].clone());
            builder.update(sum, UpdateOp::Add, term, here!());
        });
        let value = finish(builder, indices, builder.read(sum));
        result.store(builder, indices, UpdateOp::Set, value, here!());
    })?;
    Ok(result)
}

/// Where the elements of a dimension come from.
struct Tables {
    /// `[element, tap]`
    places: Tensor,
    /// `[element, tap]`; absent where each element is one of the source.
    weights: Option<Tensor>,
    /// Whether an element comes from inside; absent where all do.
    inside: Option<Tensor>,
}

impl Tables {
    fn of(emitter: &mut Emitter, x: &Tensor, sources: &[Source], taps: usize) -> Result<Self, Unsupported> {
        let (mut places, mut weights) = (Vec::new(), Vec::new());
        for source in sources {
            let own: &[(usize, f64)] = match source {
                Source::Weighted(own) => own,
                Source::Outside => &[],
            };
            let first = own.first().map_or(0, |(place, _)| *place);
            let padded = own.iter().copied().chain(std::iter::repeat((first, 0.0))).take(taps);
            for (place, weight) in padded {
                places.push(place as i64);
                weights.push(weight);
            }
        }
        let shape = [sources.len(), taps];
        let fault = |error: crate::tensor::TensorError| Unsupported::Fault(error.to_string());
        let is_copy = taps == 1
            && sources.iter().all(|source| !matches!(source, Source::Weighted(own) if own[0].1 != 1.0));
        let inside: Vec<bool> = sources.iter().map(|source| matches!(source, Source::Weighted(_))).collect();
        let element = if computing(x.dtype) == x.dtype { x.element } else { ElementType::F32 };
        Ok(Tables {
            places: emitter.table(HostTensor::new(&shape, places).map_err(fault)?)?,
            weights: if is_copy {
                None
            } else {
                let weights = HostTensor::new(&shape, weights).map_err(fault)?.cast(element);
                Some(emitter.table(weights.map_err(|error| Unsupported::Fault(error.to_string()))?)?)
            },
            inside: if inside.iter().all(|&inside| inside) {
                None
            } else {
                Some(emitter.table(HostTensor::vector(inside))?)
            },
        })
    }
}
