//! Reading tensors at coordinates that another tensor gives.
//!
//! For each sample and dimension, scratch tensors hold the places that take part, their weights, and whether they are inside: they
//! are computed once and serve all channels. Coordinates are located in `f64`, as the evaluation does, so that both round alike.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, UnaryOp};

use crate::legalise::emitter::{Emitter, Tensor, here};
use crate::legalise::operands::Operands;
use crate::legalise::scalar::{add, both, computing, divide, less, multiply, number, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// How many places may take part in one sample.
const MOST_TERMS: usize = 16;

/// The parameter of the cubic convolution kernel (Keys 1981).
const CUBIC: f64 = -0.75;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Nearest,
    Linear,
    Cubic,
}

#[derive(Clone, Copy, PartialEq)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

pub(crate) fn grid_sample(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
) -> Result<Vec<Tensor>, Unsupported> {
    let (x, grid) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    let rank = x.rank().saturating_sub(2);
    if rank == 0 || !x.dtype.is_float() || !grid.dtype.is_float() || grid.rank() != rank + 2 {
        unsupported!("only floats with batch, channels and a grid of as many dimensions have a kernel form");
    }
    if grid.extents[0] != x.extents[0] || !grid.extents[rank + 1].is(rank as i64) {
        unsupported!("the grid does not fit the tensor");
    }
    let sampler = Sampler::of(operands)?;
    if sampler.taps().pow(rank as u32) > MOST_TERMS {
        unsupported!("samples of more than {MOST_TERMS} places have no kernel form");
    }
    let along = (0..rank).map(|d| sampler.along(emitter, &grid, d, &x));
    let along = along.collect::<Result<Vec<_>, _>>()?;
    let extents = [&x.extents[..2], &grid.extents[1..=rank]].concat();
    let (wide, dtype) = (computing(x.dtype), x.dtype);
    let result = emitter.compute(x.element, &extents, &mut |builder, own| {
        let sample = [&own[..1], &own[2..]].concat();
        let terms = (0..sampler.taps().pow(rank as u32))
            .map(|tap| term(builder, &x, &along, &own[..2], &sample, sampler.taps(), tap).cast(wide));
        terms.reduce(|sum, term| add(&sum, &term)).expect("there is a place").cast(dtype)
    })?;
    Ok(vec![result])
}

/// One of the elements that take part in a sample, with its weight.
fn term(
    builder: &KernelBuilder,
    x: &Tensor,
    along: &[Along],
    outer: &[Value],
    sample: &[Value],
    taps: usize,
    tap: usize,
) -> Value {
    let (mut places, mut weight, mut inside) = (outer.to_vec(), None::<Value>, None::<Value>);
    let mut left = tap;
    for one in along {
        let at = [sample, &[Value::int((left % taps) as i64)]].concat();
        left /= taps;
        places.push(one.places.at(builder, &at));
        if let Some(weights) = &one.weights {
            let own = weights.at(builder, &at);
            weight = Some(weight.map_or(own.clone(), |weight| multiply(&weight, &own)));
        }
        if let Some(is_inside) = &one.inside {
            let own = is_inside.at(builder, &at);
            inside = Some(inside.map_or(own.clone(), |inside| both(&inside, &own)));
        }
    }
    let wide = computing(x.dtype);
    let element = x.at(builder, &places).cast(wide);
    let value = weight.map_or(element.clone(), |weight| multiply(&weight.cast(wide), &element));
    inside.map_or(value.clone(), |inside| inside.select(value, number(wide, 0.0)))
}

struct Sampler {
    mode: Mode,
    padding: Padding,
    /// Whether -1 and 1 are the centres of the first and last elements, not their outer borders.
    aligned: bool,
}

/// The places of all samples along one dimension: `[batch, …, tap]`.
struct Along {
    places: Tensor,
    /// Absent where one element is taken as it is.
    weights: Option<Tensor>,
    /// Absent where places are moved inside.
    inside: Option<Tensor>,
}

impl Sampler {
    fn of(operands: &Operands<'_>) -> Result<Self, Unsupported> {
        let mode = match operands.text("mode") {
            "nearest" => Mode::Nearest,
            "linear" | "bilinear" => Mode::Linear,
            "cubic" | "bicubic" => Mode::Cubic,
            other => unsupported!("there is no mode {other}"),
        };
        let padding = match operands.text("padding_mode") {
            "zeros" => Padding::Zeros,
            "border" => Padding::Border,
            "reflection" => Padding::Reflection,
            other => unsupported!("there is no padding mode {other}"),
        };
        Ok(Sampler { mode, padding, aligned: operands.flag("align_corners") })
    }

    /// How many places of one dimension take part in a sample.
    fn taps(&self) -> usize {
        match self.mode {
            Mode::Nearest => 1,
            Mode::Linear => 2,
            Mode::Cubic => 4,
        }
    }

    fn along(
        &self,
        emitter: &mut Emitter,
        grid: &Tensor,
        dimension: usize,
        x: &Tensor,
    ) -> Result<Along, Unsupported> {
        let rank = grid.rank() - 2;
        let samples = &grid.extents[..=rank];
        let extents = [samples, &[SymInt::from(self.taps())]].concat();
        let borders = self.borders(&emitter.value(&x.extents[2 + dimension])?.cast(DType::F64));
        let places = emitter.scratch(ElementType::I64, &extents)?;
        let weighted = self.mode != Mode::Nearest;
        let (element, dtype) = match x.dtype {
            DType::F64 => (ElementType::F64, DType::F64),
            _ => (ElementType::F32, DType::F32),
        };
        let weights = if weighted { Some(emitter.scratch(element, &extents)?) } else { None };
        let padded = self.padding == Padding::Zeros;
        let inside = if padded { Some(emitter.scratch(ElementType::Bool, &extents)?) } else { None };
        let loops: Vec<usize> = (0..samples.len()).collect();
        emitter.nest_in(&loops, samples, &mut |builder, sample| {
            // Coordinates stand in the order x, y, z: the last dimension first.
            let part = Value::int((rank - 1 - dimension) as i64);
            let coordinate = grid.at(builder, &[sample, &[part]].concat()).cast(DType::F64);
            let at = builder.bind("at", self.locate(&coordinate, &borders), here!());
            for tap in 0..self.taps() {
                let first = if self.mode == Mode::Cubic { -1.0 } else { 0.0 };
                let place = match self.mode {
                    Mode::Nearest => at.clone(),
                    _ => add(&at.unary(UnaryOp::Floor), &float(first + tap as f64)),
                };
                let to = [sample, &[Value::int(tap as i64)]].concat();
                let mut set = |tensor: &Option<Tensor>, value: Value| {
                    if let Some(tensor) = tensor {
                        tensor.store(builder, &to, UpdateOp::Set, value, here!());
                    }
                };
                set(&weights, self.weight(&subtract(&place, &at)).cast(dtype));
                set(&inside, both(&at_least(&place, 0.0), &less(&place, &borders.extent)));
                let moved = match self.padding {
                    Padding::Reflection => reflect(&place, &borders),
                    _ => place,
                };
                set(&Some(places.clone()), clamp(&moved, &borders).cast(DType::I64));
            }
        })?;
        Ok(Along { places, weights, inside })
    }

    /// First and last coordinate of a dimension.
    fn borders(&self, extent: &Value) -> Borders {
        let (low, high) = if self.aligned { (0.0, -1.0) } else { (-0.5, -0.5) };
        Borders { extent: extent.clone(), low: float(low), high: add(extent, &float(high)) }
    }

    /// A coordinate from -1 to 1 as one in elements, moved inside as the padding says.
    fn locate(&self, coordinate: &Value, borders: &Borders) -> Value {
        let share = divide(&add(coordinate, &float(1.0)), &float(2.0));
        let range = subtract(&borders.high, &borders.low);
        let mut at = add(&borders.low, &multiply(&share, &range));
        if self.mode == Mode::Nearest {
            at = at.unary(UnaryOp::RoundTiesEven);
        }
        match self.padding {
            Padding::Zeros => at,
            Padding::Border => {
                let outside = less(&at, &borders.low).binary(BinaryOp::Or, less(&borders.high, &at));
                outside.select(clamp(&at, borders), at)
            }
            Padding::Reflection => reflect(&at, borders),
        }
    }

    /// The weight of an element at some distance.
    fn weight(&self, distance: &Value) -> Value {
        let d = distance.unary(UnaryOp::Abs);
        let polynomial = |coefficients: &[f64]| {
            let mut terms = coefficients.iter();
            let first = float(*terms.next().expect("a polynomial has a coefficient"));
            terms.fold(first, |value, &term| add(&multiply(&value, &d), &float(term)))
        };
        match self.mode {
            Mode::Nearest => float(1.0),
            Mode::Linear => {
                let weight = subtract(&float(1.0), &d);
                less(&weight, &float(0.0)).select(float(0.0), weight)
            }
            Mode::Cubic => {
                let near = polynomial(&[CUBIC + 2.0, -(CUBIC + 3.0), 0.0, 1.0]);
                let far = polynomial(&[CUBIC, -5.0 * CUBIC, 8.0 * CUBIC, -4.0 * CUBIC]);
                let outer = less(&d, &float(2.0)).select(far, float(0.0));
                less(&float(1.0), &d).select(outer, near)
            }
        }
    }
}

/// The extent of a dimension with its first and last coordinate, as numbers.
struct Borders {
    extent: Value,
    low: Value,
    high: Value,
}

fn float(value: f64) -> Value {
    number(DType::F64, value)
}

fn at_least(value: &Value, low: f64) -> Value {
    value.binary(BinaryOp::Ge, float(low))
}

/// The nearest place that is inside; the first one for what is no number.
fn clamp(at: &Value, borders: &Borders) -> Value {
    let last = subtract(&borders.extent, &float(1.0));
    let raised = at_least(at, 0.0).select(at.clone(), float(0.0));
    less(&last, &raised).select(last, raised)
}

/// A coordinate mirrored at both borders until it is between them; the first one for what is not finite.
fn reflect(at: &Value, borders: &Borders) -> Value {
    let range = subtract(&borders.high, &borders.low);
    let both_ways = multiply(&range, &float(2.0));
    let from_low = subtract(at, &borders.low);
    let turns = divide(&from_low, &both_ways).unary(UnaryOp::Floor);
    let within = subtract(&from_low, &multiply(&turns, &both_ways));
    let back = subtract(&both_ways, &within);
    let nearer = less(&within, &back).select(within, back);
    let is_finite = subtract(at, at).binary(BinaryOp::Eq, float(0.0));
    let turns_back = both(&is_finite, &less(&float(0.0), &range));
    let first = less(&borders.low, &float(0.0)).select(float(0.0), borders.low.clone());
    turns_back.select(add(&borders.low, &nearer), first)
}
