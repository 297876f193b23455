//! Fourier transforms, as products with a table of sines and cosines.
//!
//! A coefficient is a sum over all samples, so that a transform is a product of matrices. The table is computed in `f64`, with
//! angles that are reduced first, and rounded once.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Emitter, Tensor, here, nest};
use crate::legalise::operands::Operands;
use crate::legalise::scalar::{add, computing, multiply, number, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::axis;
use crate::symbolic::SymInt;
use crate::tensor::{ElementType, HostTensor};

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// How many elements a table may have: longer transforms are left to the evaluation.
const LARGEST_TABLE: usize = 1 << 24;

/// The properties of a transform.
struct Transform {
    /// Its length.
    length: usize,
    /// How many samples it reads; the others are zero.
    samples: usize,
    /// How many parts a sample has: one or two.
    parts: usize,
    /// How many results it gives.
    kept: usize,
    /// How many parts a result has.
    kept_parts: usize,
    inverse: bool,
}

impl Transform {
    /// Whether the samples are the first half of coefficients whose other half is their conjugate.
    fn is_half(&self) -> bool {
        self.kept_parts == 1
    }

    /// The factors `[sample, part, result · parts]`; `weight` is one of each sample.
    fn table(&self, element: ElementType, weight: &dyn Fn(usize) -> f64) -> Result<HostTensor, Unsupported> {
        let columns = self.kept * self.kept_parts;
        let size = self.samples.checked_mul(self.parts).and_then(|rows| rows.checked_mul(columns));
        if size.is_none_or(|size| size == 0 || size > LARGEST_TABLE) {
            unsupported!("a transform of length {} needs too large a table", self.length);
        }
        let direction = if self.inverse { std::f64::consts::TAU } else { -std::f64::consts::TAU };
        let turns: Vec<(f64, f64)> =
            (0..self.length).map(|step| (direction * step as f64 / self.length as f64).sin_cos()).collect();
        let scale = if self.inverse { 1.0 / self.length as f64 } else { 1.0 };
        let mut factors = Vec::with_capacity(self.samples * self.parts * columns);
        for sample in 0..self.samples {
            // The conjugate of a coefficient adds the same real part again.
            let is_twice = self.is_half() && sample > 0 && 2 * sample < self.length;
            let weight = weight(sample) * scale * if is_twice { 2.0 } else { 1.0 };
            for part in 0..self.parts {
                for result in 0..self.kept {
                    let (sin, cos) = turns[result * sample % self.length];
                    let factor = if part == 0 { (cos, sin) } else { (-sin, cos) };
                    factors.push(weight * factor.0);
                    if self.kept_parts == 2 {
                        factors.push(weight * factor.1);
                    }
                }
            }
        }
        let table = HostTensor::new(&[self.samples, self.parts, columns], factors)
            .map_err(|error| Unsupported::Fault(error.to_string()))?;
        table.cast(element).map_err(|error| Unsupported::Fault(error.to_string()))
    }
}

/// The type that a tensor of floats is computed with.
fn wide_element(x: &Tensor) -> ElementType {
    if computing(x.dtype) == x.dtype { x.element } else { ElementType::F32 }
}

/// A sample, from the indices outside and its place and part.
type Sample<'a> = &'a dyn Fn(&KernelBuilder, &[Value], &Value, &Value) -> Value;

/// Products of samples with a table: `[outer …, result · part]`.
fn transform(
    emitter: &mut Emitter,
    x: &Tensor,
    outer: &[SymInt],
    table: &Tensor,
    sample: Sample<'_>,
) -> Result<Tensor, Unsupported> {
    let wide = computing(x.dtype);
    let extents = [outer, &table.extents[2..]].concat();
    let sums = emitter.filled(wide_element(x), &extents, number(wide, 0.0))?;
    let (bounds, depth) = (emitter.bounds(&extents)?, emitter.bounds(&table.extents[..2])?);
    nest(&mut emitter.builder, &bounds, &mut Vec::new(), &mut |builder, indices| {
        let (outer, column) = indices.split_at(indices.len() - 1);
        nest(builder, &depth, &mut Vec::new(), &mut |builder, inner| {
            let [place, part] = inner else { unreachable!("there are two loops") };
            let factor = table.at(builder, &[place.clone(), part.clone(), column[0].clone()]);
            let term = multiply(&sample(builder, outer, place, part).cast(wide), &factor);
            sums.store(builder, indices, UpdateOp::Add, term, here!());
        });
    });
    Ok(sums)
}

/// `first · factor + second`, as an index.
fn index(first: &Value, factor: usize, second: &Value) -> Value {
    if factor == 1 { add(first, second) } else { add(&multiply(first, &Value::int(factor as i64)), second) }
}

fn constant(extent: &SymInt) -> Result<usize, Unsupported> {
    let constant = extent.as_constant().and_then(|extent| usize::try_from(extent).ok());
    constant.ok_or_else(|| Unsupported::Form(format!("extent {extent} depends on the call")))
}

/// The first number of an input that is known, if it is given.
fn known(operands: &Operands<'_>, place: usize) -> Result<Option<i64>, Unsupported> {
    Ok(operands.optional_integers(place)?.and_then(|numbers| numbers.first().copied()))
}

/// A transform along one dimension.
pub(crate) fn dft(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let Some((parts, shape)) = x.extents.split_last() else { unsupported!("expected parts of numbers") };
    let parts = constant(parts)?;
    let along = axis(known(operands, 2)?.unwrap_or(-2), x.rank())?;
    if !x.dtype.is_float() || !(1..=2).contains(&parts) || along >= shape.len() {
        unsupported!("expected real or complex floats");
    }
    let (inverse, onesided) = (operands.flag("inverse"), operands.flag("onesided"));
    let (extent, real) = (constant(&shape[along])?, inverse && onesided);
    let length = match known(operands, 1)? {
        Some(length) => usize::try_from(length).unwrap_or(0),
        None if real => 2 * extent.saturating_sub(1),
        None => extent,
    };
    let half = length / 2 + 1;
    let transform_of = Transform {
        length,
        samples: extent.min(if real { half } else { length }),
        parts,
        kept: if onesided && !inverse { half } else { length },
        kept_parts: if real { 1 } else { 2 },
        inverse,
    };
    if length == 0 {
        unsupported!("a transform needs a length");
    }
    let table = emitter.table(transform_of.table(wide_element(&x), &|_| 1.0)?)?;
    let mut outer = shape.to_vec();
    outer.remove(along);
    let sums = transform(emitter, &x, &outer, &table, &|builder, outer, place, part| {
        let mut indices = outer.to_vec();
        indices.insert(along, place.clone());
        indices.push(part.clone());
        x.at(builder, &indices)
    })?;
    let mut extents = shape.to_vec();
    extents[along] = transform_of.kept.into();
    extents.push(transform_of.kept_parts.into());
    let dtype = x.dtype;
    let result = emitter.compute(x.element, &extents, &mut |builder, indices| {
        let mut outer = indices[..shape.len()].to_vec();
        let result = outer.remove(along);
        outer.push(index(&result, transform_of.kept_parts, &indices[shape.len()]));
        sums.at(builder, &outer).cast(dtype)
    })?;
    Ok(vec![result])
}

/// Transforms of frames of a signal, which begin at a constant distance and may overlap.
pub(crate) fn stft(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let (batch, samples, parts) = match &x.extents[..] {
        [batch, samples] => (batch.clone(), constant(samples)?, 1),
        [batch, samples, parts] => (batch.clone(), constant(samples)?, constant(parts)?),
        _ => unsupported!("expected batch, samples and parts"),
    };
    let hop = known(operands, 1)?.and_then(|hop| usize::try_from(hop).ok()).filter(|&hop| hop > 0);
    let window = operands.contents(2)?.map(|window| window.cast(ElementType::F64));
    let window = window.transpose().map_err(|error| Unsupported::Fault(error.to_string()))?;
    let window: Option<Vec<f64>> = window.and_then(|window| window.as_slice::<f64>().map(<[f64]>::to_vec));
    let given = known(operands, 3)?.and_then(|length| usize::try_from(length).ok());
    let length = given.or(window.as_ref().map(Vec::len)).filter(|&length| length > 0 && length <= samples);
    let (Some(hop), Some(length)) = (hop, length) else {
        unsupported!("the distance or the length of frames does not fit {samples} samples")
    };
    let window = window.unwrap_or_else(|| vec![1.0; length]);
    if !x.dtype.is_float() || !(1..=2).contains(&parts) || window.len() > length || window.is_empty() {
        unsupported!("expected real or complex floats, and a window that is no longer than a frame");
    }
    let kept = if operands.flag("onesided") { length / 2 + 1 } else { length };
    if parts == 1 && window.len() == length && length > 2 {
        return real_frames(emitter, &x, &Frames { length, hop, kept, samples }, &window);
    }
    let transform_of =
        Transform { length, samples: window.len(), parts, kept, kept_parts: 2, inverse: false };
    let table = emitter.table(transform_of.table(wide_element(&x), &|sample| window[sample])?)?;
    let frames = SymInt::from((samples - length) / hop + 1);
    let is_flat = x.rank() == 2;
    let sums =
        transform(emitter, &x, &[batch.clone(), frames.clone()], &table, &|builder, outer, place, part| {
            let sample = index(&outer[1], hop, place);
            let mut indices = vec![outer[0].clone(), sample];
            if !is_flat {
                indices.push(part.clone());
            }
            x.at(builder, &indices)
        })?;
    let extents = [batch, frames, transform_of.kept.into(), 2.into()];
    let dtype = x.dtype;
    let result = emitter.compute(x.element, &extents, &mut |builder, indices| {
        let column = index(&indices[2], 2, &indices[3]);
        sums.at(builder, &[indices[0].clone(), indices[1].clone(), column]).cast(dtype)
    })?;
    Ok(vec![result])
}

/// Frames of a signal.
struct Frames {
    length: usize,
    /// How far one begins behind the one before.
    hop: usize,
    /// How many coefficients of each are wanted.
    kept: usize,
    /// How many samples the signal has.
    samples: usize,
}

/// Transforms of frames of a real signal. Samples at equal distances from the middle of a frame share their cosine, and their sines but
/// for the sign: real parts are sums over the sums of such pairs, imaginary parts over their differences, half as many terms.
fn real_frames(emitter: &mut Emitter, x: &Tensor, frames: &Frames, window: &[f64]) -> Emitted {
    let &Frames { length, hop, kept, samples } = frames;
    let (pairs, wide) = ((length - 1) / 2, computing(x.dtype));
    let element = wide_element(x);
    let tables = pair_tables(element, length, pairs, kept)?;
    let [cosines, sines, signs] = tables.map(|table| emitter.table(table));
    let (cosines, sines, signs) = (cosines?, sines?, signs?);
    let window = converted(HostTensor::vector(window.to_vec()), element)?;
    let window = emitter.table(window)?;
    let outer = [x.extents[0].clone(), ((samples - length) / hop + 1).into()];
    let is_flat = x.rank() == 2;
    let sample = |builder: &KernelBuilder, outer: &[Value], place: &Value| {
        let mut indices = vec![outer[0].clone(), index(&outer[1], hop, place)];
        if !is_flat {
            indices.push(Value::int(0));
        }
        let weight = window.at(builder, std::slice::from_ref(place));
        multiply(&x.at(builder, &indices).cast(wide), &weight)
    };
    let folded = [&outer[..], &[pairs.into()]].concat();
    let (sums, differences) = (emitter.scratch(element, &folded)?, emitter.scratch(element, &folded)?);
    let bounds = emitter.bounds(&folded)?;
    nest(&mut emitter.builder, &bounds, &mut Vec::new(), &mut |builder, indices| {
        let before = add(&indices[2], &Value::int(1));
        let after = Value::int(length as i64 - 1).binary(BinaryOp::Sub, indices[2].clone());
        let before = builder.bind("before", sample(builder, indices, &before), here!());
        let after = builder.bind("after", sample(builder, indices, &after), here!());
        sums.store(builder, indices, UpdateOp::Set, add(&before, &after), here!());
        differences.store(builder, indices, UpdateOp::Set, subtract(&before, &after), here!());
    });
    let real = product(emitter, &sums, &cosines)?;
    let imaginary = product(emitter, &differences, &sines)?;
    let extents = [&outer[..], &[kept.into(), 2.into()]].concat();
    let result = emitter.compute(x.element, &extents, &mut |builder, indices| {
        let mut total = add(&real.at(builder, &indices[..3]), &sample(builder, indices, &Value::int(0)));
        if length % 2 == 0 {
            let middle = sample(builder, indices, &Value::int(length as i64 / 2));
            total = add(&total, &multiply(&middle, &signs.at(builder, &indices[2..3])));
        }
        let is_real = indices[3].binary(BinaryOp::Eq, Value::int(0));
        is_real.select(total, imaginary.at(builder, &indices[..3])).cast(x.dtype)
    })?;
    Ok(vec![result])
}

fn converted(table: HostTensor, element: ElementType) -> Result<HostTensor, Unsupported> {
    table.cast(element).map_err(|error| Unsupported::Fault(error.to_string()))
}

/// Cosines and negated sines `[pair, coefficient]`, and the sign of the middle sample for each coefficient.
fn pair_tables(
    element: ElementType,
    length: usize,
    pairs: usize,
    kept: usize,
) -> Result<[HostTensor; 3], Unsupported> {
    if pairs.checked_mul(kept).is_none_or(|size| size > LARGEST_TABLE) {
        unsupported!("a transform of length {length} needs too large a table");
    }
    let turn = |step: usize| (std::f64::consts::TAU * step as f64 / length as f64).sin_cos();
    let turns: Vec<(f64, f64)> = (0..length).map(turn).collect();
    let of_pairs = |factor: fn((f64, f64)) -> f64| {
        let factors = (1..=pairs)
            .flat_map(|pair| (0..kept).map(move |coefficient| pair * coefficient % length))
            .map(|step| factor(turns[step]));
        let table = HostTensor::new(&[pairs, kept], factors.collect::<Vec<f64>>());
        converted(table.map_err(|error| Unsupported::Fault(error.to_string()))?, element)
    };
    let signs = (0..kept).map(|coefficient| if coefficient % 2 == 0 { 1.0 } else { -1.0 });
    let signs = converted(HostTensor::vector(signs.collect::<Vec<f64>>()), element)?;
    Ok([of_pairs(|(_, cos)| cos)?, of_pairs(|(sin, _)| -sin)?, signs])
}

/// Products of the rows of a tensor with a table.
fn product(emitter: &mut Emitter, rows: &Tensor, table: &Tensor) -> Result<Tensor, Unsupported> {
    let extents = [&rows.extents[..2], &table.extents[1..]].concat();
    let sums = emitter.filled(rows.element, &extents, number(rows.dtype, 0.0))?;
    let (bounds, depth) = (emitter.bounds(&extents)?, emitter.bounds(&table.extents[..1])?);
    nest(&mut emitter.builder, &bounds, &mut Vec::new(), &mut |builder, indices| {
        nest(builder, &depth, &mut Vec::new(), &mut |builder, inner| {
            let left = rows.at(builder, &[indices[0].clone(), indices[1].clone(), inner[0].clone()]);
            let right = table.at(builder, &[inner[0].clone(), indices[2].clone()]);
            sums.store(builder, indices, UpdateOp::Add, multiply(&left, &right), here!());
        });
    });
    Ok(sums)
}
