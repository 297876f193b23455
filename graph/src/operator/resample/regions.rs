//! Pooling over regions of interest (He et al. 2017).

use crate::deduce;
use crate::legalise::resample;
use crate::operator::attribute::{FloatOr, IntOr, TextOr};
use crate::operator::evaluate::{one, refuse};
use crate::operator::resample::kernel::linear;
use crate::operator::{Arguments, Fault, Operator, ResultOrder, Value};
use crate::tensor::{HostTensor, Number, count, with_float};

pub(super) const OPERATORS: &[Operator] = &[Operator::new("roi_align", "RoiAlign", roi_align)
    .legalise(resample::roi_align)
    .deduce(deduce::roi_align)
    .result_order(ResultOrder::FirstOperand)
    .inputs(3, 3)
    .attributes(&[
        ("coordinate_transformation_mode", TextOr("half_pixel")),
        ("mode", TextOr("avg")),
        ("output_height", IntOr(1)),
        ("output_width", IntOr(1)),
        ("sampling_ratio", IntOr(0)),
        ("spatial_scale", FloatOr(1.0)),
    ])];

/// A region in elements: where it starts, and the extents of its parts, rows first.
struct Region {
    start: [f64; 2],
    part: [f64; 2],
    /// How many samples each part has.
    samples: [usize; 2],
}

fn roi_align(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, rois) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let &[batch, channels, height, width] = x.shape() else {
        refuse!("expected pictures, found shape {:?}", x.shape())
    };
    let &[regions, 4] = rois.shape() else {
        refuse!("regions must have four numbers each, found shape {:?}", rois.shape())
    };
    let pictures = arguments.integers(2)?;
    let extent = |name| usize::try_from(arguments.int_or_default(name)).unwrap_or(0);
    let output = [extent("output_height"), extent("output_width")];
    let half = match arguments.text("coordinate_transformation_mode") {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => refuse!("attribute coordinate_transformation_mode cannot be {other}"),
    };
    let largest = match arguments.text("mode") {
        "avg" => false,
        "max" => true,
        other => refuse!("attribute mode must be avg or max, not {other}"),
    };
    let shape = [regions, channels, output[0], output[1]];
    let corners = arguments.optional_numbers(1)?.unwrap_or_default();
    with_float!(x.element(), T => {
        let wide: Vec<f64> = x.expect::<T>()?.iter().map(|x| x.widen()).collect();
        let mut values = Vec::with_capacity(count(&shape)?);
        for (corners, &picture) in corners.chunks_exact(4).zip(&pictures) {
            let Some(picture) = usize::try_from(picture).ok().filter(|&picture| picture < batch) else {
                refuse!("a region is of picture {picture}, there are {batch}")
            };
            let region = Region::of(arguments, corners, output, half);
            // All channels have the same samples.
            let along = |d: usize, extent: usize| -> Vec<Vec<Neighbours>> {
                (0..output[d]).map(|part| region.samples(d, part, extent)).collect()
            };
            let (rows, columns) = (along(0, height), along(1, width));
            for channel in 0..channels {
                let plane = &wide[(picture * channels + channel) * height * width..][..height * width];
                for (row, column) in rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column))) {
                    values.push(T::narrow(pool(plane, width, [row, column], largest)));
                }
            }
        }
        one(HostTensor::new(&shape, values)?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

impl Region {
    fn of(arguments: &Arguments<'_>, corners: &[f64], output: [usize; 2], half: bool) -> Self {
        let scale = arguments.float_or_default("spatial_scale");
        let offset = if half { 0.5 } else { 0.0 };
        let ratio = usize::try_from(arguments.int_or_default("sampling_ratio")).unwrap_or(0);
        let start = [corners[1] * scale - offset, corners[0] * scale - offset];
        let end = [corners[3] * scale - offset, corners[2] * scale - offset];
        let part = |d: usize| {
            // Without the half pixel, a region has at least one element.
            let extent = if half { end[d] - start[d] } else { (end[d] - start[d]).max(1.0) };
            extent / output[d].max(1) as f64
        };
        let part = [part(0), part(1)];
        let samples = |part: f64| if ratio > 0 { ratio } else { (part.ceil() as usize).clamp(1, 1 << 16) };
        Region { start, part, samples: [samples(part[0]), samples(part[1])] }
    }

    /// The elements around the samples of a part along one dimension of so many elements.
    fn samples(&self, d: usize, part: usize, extent: usize) -> Vec<Neighbours> {
        let place = |sample: usize| (sample as f64 + 0.5) / self.samples[d] as f64;
        let at = |sample: usize| self.start[d] + (part as f64 + place(sample)) * self.part[d];
        (0..self.samples[d]).map(|sample| neighbours(at(sample), extent)).collect()
    }
}

/// The two elements around a sample along one dimension, with their weights.
type Neighbours = [(usize, f64); 2];

/// Just outside, the border counts; further outside, everything is zero.
fn neighbours(at: f64, extent: usize) -> Neighbours {
    if at < -1.0 || at > extent as f64 {
        return [(0, 0.0); 2];
    }
    let at = at.clamp(0.0, extent as f64 - 1.0);
    [0.0, 1.0].map(|step| (at.floor() as usize + step as usize, linear(at.floor() + step - at)))
}

/// The mean of all samples of a part, or the largest of their weighted corners.
fn pool(plane: &[f64], width: usize, [rows, columns]: [&[Neighbours]; 2], largest: bool) -> f64 {
    let (mut sum, mut best) = (0.0, f64::NEG_INFINITY);
    for (row, column) in rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column))) {
        for (&(y, down), &(x, right)) in
            row.iter().flat_map(|row| column.iter().map(move |column| (row, column)))
        {
            let weight = down * right;
            let value = if weight == 0.0 { 0.0 } else { weight * plane[y * width + x] };
            (sum, best) = (sum + value, best.max(value));
        }
    }
    if largest { best } else { sum / (rows.len() * columns.len()) as f64 }
}
