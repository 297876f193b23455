//! Resize: a tensor with other extents.

use crate::deduce;
use crate::legalise::resample;
use crate::operator::attribute::{FloatOr, IntOr, Ints, TextOr};
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::lanes::Lanes;
use crate::operator::resample::kernel::{cubic, linear};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, count, with_number};

pub(super) const OPERATORS: &[Operator] = &[Operator::new("resize", "Resize", resize)
    .legalise(resample::resize)
    .deduce(deduce::resize)
    .extents(extents)
    .inputs(1, 4)
    .attributes(&[
        ("antialias", IntOr(0)),
        ("axes", Ints),
        ("coordinate_transformation_mode", TextOr("half_pixel")),
        ("cubic_coeff_a", FloatOr(-0.75)),
        ("exclude_outside", IntOr(0)),
        ("extrapolation_value", FloatOr(0.0)),
        ("keep_aspect_ratio_policy", TextOr("stretch")),
        ("mode", TextOr("nearest")),
        ("nearest_mode", TextOr("round_prefer_floor")),
    ])];

/// How one dimension changes.
struct Change {
    input: usize,
    output: usize,
    scale: f64,
    /// First and last place of the region that is read, as shares of the extent.
    region: (f64, f64),
}

/// Where an element of one dimension comes from.
pub(crate) enum Source {
    /// Places with weights.
    Weighted(Vec<(usize, f64)>),
    /// Outside: the extrapolation value.
    Outside,
}

impl Source {
    /// How many places take part.
    pub(crate) fn len(&self) -> usize {
        match self {
            Source::Weighted(taps) => taps.len(),
            Source::Outside => 0,
        }
    }
}

/// One dimension of the result.
pub(crate) struct Resized {
    /// Where its elements come from.
    pub(crate) sources: Vec<Source>,
    /// Whether they are those of the input, in order.
    pub(crate) stays: bool,
}

/// The dimensions of the result for an input of a shape. `arguments` need not have that input.
pub(crate) fn resized(arguments: &Arguments<'_>, shape: &[usize]) -> Result<Vec<Resized>, Fault> {
    let mode = arguments.text("coordinate_transformation_mode");
    let dimension =
        |change: &Change| Ok(Resized { sources: table(arguments, change)?, stays: change.stays(mode) });
    changes(arguments, shape)?.iter().map(dimension).collect()
}

impl Change {
    /// Whether the dimension is copied, whatever the mode; a region may still cut it.
    fn stays(&self, mode: &str) -> bool {
        self.scale == 1.0 && self.output == self.input && mode != "tf_crop_and_resize"
    }
}

/// The extents of the result.
fn extents(arguments: &Arguments<'_>, shape: &[usize]) -> Result<Vec<usize>, Fault> {
    Ok(changes(arguments, shape)?.iter().map(|change| change.output).collect())
}

fn resize(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let changes = changes(arguments, x.shape())?;
    let tables = changes.iter().map(|change| table(arguments, change)).collect::<Result<Vec<_>, _>>()?;
    let shape: Vec<usize> = changes.iter().map(|change| change.output).collect();
    count(&shape)?;
    let extrapolated = arguments.float_or_default("extrapolation_value");
    with_number!(x.element(), T => {
        let mut values: Vec<f64> = x.expect::<T>()?.iter().map(|x| x.to_f64()).collect();
        let mut extents = x.shape().to_vec();
        for (dimension, table) in tables.iter().enumerate() {
            values = resample(&values, &extents, dimension, table, extrapolated)?;
            extents[dimension] = table.len();
        }
        one(HostTensor::new(&shape, values.into_iter().map(T::from_f64).collect())?)
    }, else refuse!("expected numbers, found {}", x.element()))
}

/// The new extents, from scales or sizes.
fn changes(arguments: &Arguments<'_>, shape: &[usize]) -> Result<Vec<Change>, Fault> {
    let axes: Vec<usize> = match arguments.ints("axes") {
        None => (0..shape.len()).collect(),
        Some(axes) => axes.iter().map(|&number| axis(number, shape.len())).collect::<Result<_, _>>()?,
    };
    let given = |place: usize| {
        Ok::<_, Fault>(arguments.optional_numbers(place)?.filter(|numbers| !numbers.is_empty()))
    };
    let (region, scales, sizes) = (given(1)?, given(2)?, given(3)?);
    let mut changes: Vec<Change> =
        shape.iter().map(|&input| Change { input, output: input, scale: 1.0, region: (0.0, 1.0) }).collect();
    let numbers = match (&scales, &sizes) {
        (Some(numbers), None) | (None, Some(numbers)) if numbers.len() == axes.len() => numbers,
        _ => {
            refuse!("either scales or sizes must be given, one number for each of {} dimensions", axes.len())
        }
    };
    if numbers.iter().any(|&number| !(0.0..1e9).contains(&number)) {
        refuse!("scales or sizes {numbers:?} must not be negative");
    }
    let common = common_scale(arguments, shape, &axes, numbers)?;
    for (place, &dimension) in axes.iter().enumerate() {
        let change = &mut changes[dimension];
        let input = change.input as f64;
        (change.output, change.scale) = match (scales.is_some(), common) {
            (true, _) => ((input * numbers[place]).floor() as usize, numbers[place]),
            (false, Some(scale)) => ((input * scale + 0.5).floor() as usize, scale),
            (false, None) => (numbers[place] as usize, numbers[place] / input),
        };
        if let Some(region) = &region {
            match (region.get(place), region.get(place + axes.len())) {
                (Some(&first), Some(&last)) => change.region = (first, last),
                _ => refuse!("a region needs two numbers for each of {} dimensions", axes.len()),
            }
        }
    }
    Ok(changes)
}

/// The one scale with which sizes keep the aspect ratio, if they shall.
fn common_scale(
    arguments: &Arguments<'_>,
    shape: &[usize],
    axes: &[usize],
    sizes: &[f64],
) -> Result<Option<f64>, Fault> {
    let scales = axes.iter().zip(sizes).map(|(&dimension, &size)| size / shape[dimension] as f64);
    match arguments.text("keep_aspect_ratio_policy") {
        "stretch" => Ok(None),
        "not_larger" => Ok(scales.reduce(f64::min)),
        "not_smaller" => Ok(scales.reduce(f64::max)),
        other => refuse!(
            "attribute keep_aspect_ratio_policy must be stretch, not_larger or not_smaller, not {other}"
        ),
    }
}

/// The sources of all elements of one dimension.
fn table(arguments: &Arguments<'_>, change: &Change) -> Result<Vec<Source>, Fault> {
    let mode = arguments.text("coordinate_transformation_mode");
    if change.stays(mode) {
        return Ok((0..change.output).map(|place| Source::Weighted(vec![(place, 1.0)])).collect());
    }
    if change.input == 0 && change.output > 0 {
        refuse!("an empty dimension cannot become {} long", change.output);
    }
    (0..change.output).map(|place| source(arguments, change, mode, place as f64)).collect()
}

/// Where a place of the output lies in the input.
fn coordinate(change: &Change, mode: &str, place: f64) -> Result<f64, Fault> {
    let (input, scale) = (change.input as f64, change.scale);
    // The exact extent, which need not be whole.
    let output = input * scale;
    Ok(match mode {
        "half_pixel" => (place + 0.5) / scale - 0.5,
        "pytorch_half_pixel" if change.output <= 1 => 0.0,
        "pytorch_half_pixel" => (place + 0.5) / scale - 0.5,
        "half_pixel_symmetric" => {
            let adjustment = change.output as f64 / output;
            input / 2.0 * (1.0 - adjustment) + (place + 0.5) / scale - 0.5
        }
        "asymmetric" => place / scale,
        "align_corners" if output == 1.0 => 0.0,
        "align_corners" => place * (input - 1.0) / (output - 1.0),
        "tf_crop_and_resize" => {
            let (first, last) = change.region;
            if change.output > 1 {
                first * (input - 1.0) + place * (last - first) * (input - 1.0) / (output - 1.0)
            } else {
                0.5 * (first + last) * (input - 1.0)
            }
        }
        other => refuse!("attribute coordinate_transformation_mode cannot be {other}"),
    })
}

fn source(arguments: &Arguments<'_>, change: &Change, mode: &str, place: f64) -> Result<Source, Fault> {
    let at = coordinate(change, mode, place)?;
    let last = change.input as f64 - 1.0;
    if mode == "tf_crop_and_resize" && !(0.0..=last).contains(&at) {
        return Ok(Source::Outside);
    }
    let a = arguments.float_or_default("cubic_coeff_a");
    let (radius, kernel): (f64, Box<dyn Fn(f64) -> f64>) = match arguments.text("mode") {
        "nearest" => {
            let place = nearest(at, arguments.text("nearest_mode"))?.clamp(0.0, last);
            return Ok(Source::Weighted(vec![(place as usize, 1.0)]));
        }
        "linear" => (1.0, Box::new(linear)),
        "cubic" => (2.0, Box::new(move |distance| cubic(distance, a))),
        other => refuse!("attribute mode must be nearest, linear or cubic, not {other}"),
    };
    // Smaller pictures average over all places that an element covers.
    let shrink = if arguments.flag("antialias") { change.scale.min(1.0) } else { 1.0 };
    let first = (-radius / shrink).floor() as i64 + 1;
    let excludes = arguments.flag("exclude_outside");
    let taps = (first..2 - first).filter_map(|step| {
        let tap = at.floor() + step as f64;
        let inside = (0.0..=last).contains(&tap);
        (inside || !excludes).then(|| (tap.clamp(0.0, last) as usize, kernel((tap - at) * shrink)))
    });
    let mut taps: Vec<(usize, f64)> = taps.collect();
    let sum: f64 = taps.iter().map(|(_, weight)| weight).sum();
    taps.iter_mut().for_each(|(_, weight)| *weight /= sum);
    Ok(Source::Weighted(taps))
}

fn nearest(at: f64, mode: &str) -> Result<f64, Fault> {
    Ok(match mode {
        "round_prefer_floor" => (at - 0.5).ceil(),
        "round_prefer_ceil" => (at + 0.5).floor(),
        "floor" => at.floor(),
        "ceil" => at.ceil(),
        other => refuse!("attribute nearest_mode cannot be {other}"),
    })
}

/// Replaces one dimension by weighted sums.
fn resample(
    values: &[f64],
    shape: &[usize],
    dimension: usize,
    table: &[Source],
    extrapolated: f64,
) -> Result<Vec<f64>, Fault> {
    let lanes = Lanes::along(shape, dimension);
    let results = Lanes { length: table.len(), ..lanes };
    let mut resampled = vec![0.0; count(&[lanes.outer, table.len(), lanes.inner])?];
    for (start, result_start) in lanes.starts().zip(results.starts()) {
        for (place, source) in results.places(result_start).zip(table) {
            resampled[place] = match source {
                Source::Outside => extrapolated,
                Source::Weighted(taps) => {
                    taps.iter().map(|&(tap, weight)| weight * values[start + tap * lanes.inner]).sum()
                }
            };
        }
    }
    Ok(resampled)
}
