//! Pooling over regions of interest (He et al. 2017).

use crate::deduce;
use crate::operator::attribute::{FloatOr, IntOr, TextOr};
use crate::operator::evaluate::{one, refuse};
use crate::operator::resample::kernel::linear;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, count, with_float};

pub(super) const OPERATORS: &[Operator] = &[Operator::new("roi_align", "RoiAlign", roi_align)
    .deduce(deduce::roi_align)
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
            for channel in 0..channels {
                let plane = &wide[(picture * channels + channel) * height * width..][..height * width];
                for part in 0..output[0] * output[1] {
                    let part = [part / output[1], part % output[1]];
                    values.push(T::narrow(region.pool(plane, [height, width], part, largest)));
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

    /// The mean of all samples of a part, or the largest of their weighted corners.
    fn pool(&self, plane: &[f64], shape: [usize; 2], part: [usize; 2], largest: bool) -> f64 {
        let at = |d: usize, sample: usize| {
            self.start[d] + (part[d] as f64 + (sample as f64 + 0.5) / self.samples[d] as f64) * self.part[d]
        };
        let (mut sum, mut best) = (0.0, f64::NEG_INFINITY);
        for row in 0..self.samples[0] {
            for column in 0..self.samples[1] {
                let corners = corners(plane, shape, [at(0, row), at(1, column)]);
                sum += corners.iter().sum::<f64>();
                best = corners.into_iter().fold(best, f64::max);
            }
        }
        if largest { best } else { sum / (self.samples[0] * self.samples[1]) as f64 }
    }
}

/// The weighted elements around a place. Just outside, the border counts; further outside, everything is zero.
fn corners(plane: &[f64], shape: [usize; 2], at: [f64; 2]) -> [f64; 4] {
    if (0..2).any(|d| at[d] < -1.0 || at[d] > shape[d] as f64) {
        return [0.0; 4];
    }
    let at = [0, 1].map(|d| at[d].clamp(0.0, shape[d] as f64 - 1.0));
    [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)].map(|(down, right)| {
        let (row, column) = (at[0].floor() + down, at[1].floor() + right);
        let weight = linear(row - at[0]) * linear(column - at[1]);
        if weight == 0.0 { 0.0 } else { weight * plane[row as usize * shape[1] + column as usize] }
    })
}
