//! Deformable convolutions (Dai et al. 2017, Zhu et al. 2018): each place of a window is moved by offsets and weighed by
//! a mask, both given by tensors.

use crate::deduce;
use crate::operator::attribute::{IntOr, Ints, TextOr};
use crate::operator::evaluate::{numbers, one, refuse};
use crate::operator::linear::convolution::{Convolution, add_bias};
use crate::operator::resample::bilinear;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, count, with_float};

pub(super) const OPERATORS: &[Operator] = &[Operator::new("deform_conv", "DeformConv", deform_conv)
    .deduce(deduce::element_only)
    .inputs(3, 5)
    .attributes(&[
        ("auto_pad", TextOr("NOTSET")),
        ("dilations", Ints),
        ("group", IntOr(1)),
        ("kernel_shape", Ints),
        ("offset_group", IntOr(1)),
        ("pads", Ints),
        ("strides", Ints),
    ])];

fn deform_conv(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, weights, offsets) = (arguments.tensor(0)?, arguments.tensor(1)?, arguments.tensor(2)?);
    let convolution = Convolution::of(arguments, x.shape(), weights.shape())?;
    let &[height, width] = &convolution.window.input[..] else {
        refuse!("only pictures are supported, with two spatial dimensions; found shape {:?}", x.shape())
    };
    let offset_groups = usize::try_from(arguments.int_or_default("offset_group")).unwrap_or(0).max(1);
    let (windows, size) = (convolution.window.windows()?, convolution.window.size());
    let channels = convolution.groups * convolution.channels;
    let places = convolution.batch * offset_groups * size * windows;
    let mask = arguments.optional(4)?;
    if channels % offset_groups != 0
        || offsets.len() != 2 * places
        || mask.is_some_and(|mask| mask.len() != places)
    {
        refuse!("offsets of shape {:?} do not fit {places} places", offsets.shape());
    }
    with_float!(x.element(), T => {
        let (x, weights, offsets) = (numbers(x)?, numbers(weights)?, numbers(offsets)?);
        let mask = mask.map(numbers).transpose()?;
        let mut sums = vec![0.0; count(&convolution.shape())?];
        for window in 0..windows {
            let taps: Vec<Vec<i64>> = convolution.window.coordinates(window).collect();
            for batch in 0..convolution.batch {
                let sample = |channel: usize, tap: usize| {
                    let group = batch * offset_groups + channel / (channels / offset_groups);
                    let moved = |part: usize| {
                        taps[tap][part] as f64 + offsets[((group * size + tap) * 2 + part) * windows + window]
                    };
                    let plane = &x[(batch * channels + channel) * height * width..][..height * width];
                    let weight = mask.as_ref().map_or(1.0, |mask| mask[(group * size + tap) * windows + window]);
                    weight * bilinear(plane, (height, width), (moved(0), moved(1)))
                };
                let samples: Vec<f64> =
                    (0..channels).flat_map(|channel| (0..size).map(move |tap| (channel, tap))).map(|(c, t)| sample(c, t)).collect();
                let run = convolution.channels * size;
                for (filter, weights) in weights.chunks_exact(run).enumerate() {
                    let group = filter / convolution.filters;
                    let products = samples[group * run..][..run].iter().zip(weights).map(|(x, weight)| x * weight);
                    sums[(batch * convolution.groups * convolution.filters + filter) * windows + window] = products.sum();
                }
            }
        }
        if let Some(bias) = arguments.optional(3)? {
            add_bias(&mut sums, &numbers(bias)?, &convolution.shape())?;
        }
        one(HostTensor::new(&convolution.shape(), sums.into_iter().map(T::narrow).collect())?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}
