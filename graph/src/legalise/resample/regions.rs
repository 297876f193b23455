//! Pooling over regions of interest.
//!
//! Along each dimension, scratch tensors hold the places that take part in each part of a region, and their weights: all channels have the same. They are
//! located in `f64`, as the evaluation does. Channels are the innermost loop, and lie beside each other in a copy where the pictures have another order, so
//! that vectors run along them: the places are known from the data alone.

use tilewright_core::build::{UpdateOp, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, UnaryOp};

use crate::legalise::emitter::{Emitter, Tensor, here, nest};
use crate::legalise::operands::Operands;
use crate::legalise::scalar::{add, both, computing, divide, less, multiply, number, subtract};
use crate::legalise::{Order, Unsupported, unsupported};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// The most samples of a part along one dimension: their places are written out.
const MOST_SAMPLES: i64 = 16;

/// The order of loops over batch, channels, rows and columns in which vectors run along channels.
const CHANNELS_INNERMOST: [usize; 4] = [0, 2, 3, 1];

pub(crate) fn roi_align(emitter: &mut Emitter, operands: &Operands<'_>) -> Result<Vec<Tensor>, Unsupported> {
    let (x, regions, pictures) =
        (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?, operands.tensor(emitter, 2)?);
    let is_known = x.rank() == 4 && regions.rank() == 2 && regions.extents[1].is(4) && pictures.rank() == 1;
    if !is_known || !x.dtype.is_float() || !regions.dtype.is_float() || !pictures.dtype.is_int() {
        unsupported!(
            "only pictures of floats, and regions of four numbers with a picture each, have a kernel form"
        );
    }
    let sampler = Sampler::of(operands)?;
    let (rows, columns) =
        (sampler.along(emitter, &regions, 0, &x)?, sampler.along(emitter, &regions, 1, &x)?);
    let extents = [regions.extents[0].clone(), x.extents[1].clone(), rows.parts(), columns.parts()];
    let (dtype, wide) = (x.dtype, computing(x.dtype));
    let taps = emitter.bounds(&[sampler.taps(), sampler.taps()])?;
    let (op, neutral) =
        if sampler.is_largest { (UpdateOp::Max, f64::NEG_INFINITY) } else { (UpdateOp::Add, 0.0) };
    let x = channels_last(emitter, x)?;
    let result = emitter.local(x.element, &extents, None)?;
    emitter.nest_in(&CHANNELS_INNERMOST, &extents, &mut |builder, own| {
        let [region, channel, row, column] = own else { unreachable!("there are four extents") };
        let total = builder.accumulator("total", number(wide, neutral), here!());
        let picture = pictures.at(builder, std::slice::from_ref(region)).cast(DType::I64);
        nest(builder, &taps, &mut Vec::new(), &mut |builder, tap| {
            let [down, right] = tap else { unreachable!("there are two loops") };
            let in_rows = [region.clone(), row.clone(), down.clone()];
            let in_columns = [region.clone(), column.clone(), right.clone()];
            let weight =
                multiply(&rows.weights.at(builder, &in_rows), &columns.weights.at(builder, &in_columns));
            let place = [
                picture.clone(),
                channel.clone(),
                rows.places.at(builder, &in_rows),
                columns.places.at(builder, &in_columns),
            ];
            // An element without weight may be no number.
            let is_nothing = weight.binary(BinaryOp::Eq, number(weight_type(x.dtype), 0.0));
            let element = is_nothing.select(number(wide, 0.0), x.at(builder, &place).cast(wide));
            builder.update(total, op, multiply(&weight.cast(wide), &element), here!());
        });
        let pooled = builder.read(total);
        let value = if sampler.is_largest {
            pooled
        } else {
            divide(&pooled, &number(wide, (sampler.samples * sampler.samples) as f64))
        };
        result.store(builder, own, UpdateOp::Set, value.cast(dtype), here!());
    })?;
    Ok(vec![result])
}

/// The pictures with their channels beside each other: as they are, or a copy.
fn channels_last(emitter: &mut Emitter, x: Tensor) -> Result<Tensor, Unsupported> {
    let order = Order::of(&CHANNELS_INNERMOST);
    if x.order == order || x.extents[1].is(1) {
        return Ok(x);
    }
    let copy = emitter.ordered(x.element, &x.extents, None, order)?;
    emitter.nest_in(&CHANNELS_INNERMOST, &x.extents, &mut |builder, own| {
        let value = x.at(builder, own);
        copy.store(builder, own, UpdateOp::Set, value, here!());
    })?;
    Ok(copy)
}

/// The type of weights for pictures of a type.
fn weight_type(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// The attributes of a call.
struct Sampler {
    /// The number of parts along each dimension, rows first.
    parts: [usize; 2],
    /// The number of samples of a part along one dimension.
    samples: i64,
    scale: f64,
    /// Whether coordinates count from the borders of elements, not from their centres.
    is_half: bool,
    is_largest: bool,
}

/// The places and weights of all regions along one dimension: `[region, part, tap]`.
struct Along {
    places: Tensor,
    weights: Tensor,
}

impl Along {
    fn parts(&self) -> SymInt {
        self.places.extents[1].clone()
    }
}

impl Sampler {
    fn of(operands: &Operands<'_>) -> Result<Self, Unsupported> {
        let attributes = operands.attributes();
        let part = |name| usize::try_from(attributes.int_or_default(name)).unwrap_or(0);
        let samples = attributes.int_or_default("sampling_ratio");
        if !(1..=MOST_SAMPLES).contains(&samples) {
            unsupported!(
                "a number of samples that follows from each region, or is above {MOST_SAMPLES}, has no kernel form"
            );
        }
        let is_half = match operands.text("coordinate_transformation_mode") {
            "half_pixel" => true,
            "output_half_pixel" => false,
            other => unsupported!("there is no coordinate_transformation_mode {other}"),
        };
        let is_largest = match operands.text("mode") {
            "avg" => false,
            "max" => true,
            other => unsupported!("there is no mode {other}"),
        };
        let parts = [part("output_height"), part("output_width")];
        if parts.contains(&0) {
            unsupported!("a result without elements has no kernel form");
        }
        Ok(Sampler {
            parts,
            samples,
            scale: attributes.float_or_default("spatial_scale"),
            is_half,
            is_largest,
        })
    }

    /// How many places of one dimension take part in a part of a region: two around each sample.
    fn taps(&self) -> SymInt {
        (2 * self.samples).into()
    }

    fn along(
        &self,
        emitter: &mut Emitter,
        regions: &Tensor,
        dimension: usize,
        x: &Tensor,
    ) -> Result<Along, Unsupported> {
        let own = [regions.extents[0].clone(), self.parts[dimension].into()];
        let extents = [&own[..], &[self.taps()]].concat();
        let places = emitter.scratch(ElementType::I64, &extents)?;
        let is_wide = weight_type(x.dtype) == DType::F64;
        let weights = emitter.scratch(if is_wide { ElementType::F64 } else { ElementType::F32 }, &extents)?;
        let extent = emitter.value(&x.extents[2 + dimension])?.cast(DType::F64);
        let last = subtract(&extent, &float(1.0));
        emitter.nest_in(&[0, 1], &own, &mut |builder, own| {
            let [region, part] = own else { unreachable!("there are two extents") };
            // Columns come before rows, the start before the end.
            let mut corner = |name: &str, place: usize| {
                let corner = regions.at(builder, &[region.clone(), Value::int(place as i64)]);
                let scaled = multiply(&corner.cast(DType::F64), &float(self.scale));
                let moved = if self.is_half { subtract(&scaled, &float(0.5)) } else { scaled };
                builder.bind(name, moved, here!())
            };
            let (start, end) = (corner("start", 1 - dimension), corner("end", 3 - dimension));
            let length = self.part_length(&start, &end, dimension);
            for sample in 0..self.samples {
                let share = (sample as f64 + 0.5) / self.samples as f64;
                let along = multiply(&add(&part.cast(DType::F64), &float(share)), &length);
                let at = builder.bind("at", add(&start, &along), here!());
                // Just outside, the border counts; further outside, everything is zero.
                let is_inside = both(&at_most(&float(-1.0), &at), &at_most(&at, &extent));
                let raised = less(&at, &float(0.0)).select(float(0.0), at);
                let at = builder.bind("at", less(&raised, &last).select(raised, last.clone()), here!());
                let before = at.unary(UnaryOp::Floor);
                let behind = subtract(&at, &before);
                let next = add(&before, &float(1.0));
                let next = less(&next, &last).select(next, last.clone());
                let around = [(before, subtract(&float(1.0), &behind)), (next, behind)];
                for (step, (place, weight)) in around.into_iter().enumerate() {
                    let to = [region.clone(), part.clone(), Value::int(2 * sample + step as i64)];
                    places.store(builder, &to, UpdateOp::Set, place.cast(DType::I64), here!());
                    let weight = is_inside.select(weight, float(0.0)).cast(weights.dtype);
                    weights.store(builder, &to, UpdateOp::Set, weight, here!());
                }
            }
        })?;
        Ok(Along { places, weights })
    }

    /// The extent of one part of a region. From centres of elements, a region has at least one element.
    fn part_length(&self, start: &Value, end: &Value, dimension: usize) -> Value {
        let whole = subtract(end, start);
        let whole = match self.is_half {
            true => whole,
            false => less(&whole, &float(1.0)).select(float(1.0), whole),
        };
        divide(&whole, &float(self.parts[dimension] as f64))
    }
}

fn float(value: f64) -> Value {
    number(DType::F64, value)
}

fn at_most(left: &Value, right: &Value) -> Value {
    left.binary(BinaryOp::Le, right.clone())
}
