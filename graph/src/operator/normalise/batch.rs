//! Normalisations with one scale and one bias for each channel.

use crate::deduce;
use crate::legalise::{self, normalisation};
use crate::operator::attribute::{FloatOr, IntOr, Ints};
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::normalise::moments;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, with_float};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("batch_normalization", "BatchNormalization", batch_normalization)
        .legalise(normalisation::batch)
        .deduce(deduce::same)
        .inputs(5, 5)
        .outputs(1, 5)
        .attributes(&[("epsilon", FloatOr(1e-5)), ("momentum", FloatOr(0.9)), ("training_mode", IntOr(0))]),
    Operator::new("instance_normalization", "InstanceNormalization", |a| grouped(a, None))
        .legalise(|emitter, operands| legalise::grouped::channels(emitter, operands, false))
        .deduce(deduce::same)
        .inputs(3, 3)
        .attributes(&[("epsilon", FloatOr(1e-5))]),
    Operator::new("group_normalization", "GroupNormalization", |a| {
        grouped(a, Some(a.int("num_groups").unwrap_or(0)))
    })
    .legalise(|emitter, operands| legalise::grouped::channels(emitter, operands, true))
    .deduce(deduce::same)
    .inputs(3, 3)
    .attributes(&[("epsilon", FloatOr(1e-5)), ("num_groups", IntOr(0)), ("stash_type", IntOr(1))]),
    Operator::new("mean_variance_normalization", "MeanVarianceNormalization", mean_variance)
        .legalise(legalise::grouped::mean_and_variance)
        .deduce(deduce::same)
        .attributes(&[("axes", Ints)]),
];

/// Batch, channels and the number of elements of one plane.
fn planes(x: &HostTensor) -> Result<(usize, usize, usize), Fault> {
    match x.shape() {
        // A vector is one channel.
        &[length] => Ok((1, 1, length)),
        &[batch, channels, ref inner @ ..] => Ok((batch, channels, inner.iter().product())),
        shape => refuse!("expected batch and channels, found shape {shape:?}"),
    }
}

/// The numbers of an input, one for each channel.
fn per_channel(arguments: &Arguments<'_>, place: usize, channels: usize) -> Result<Vec<f64>, Fault> {
    match arguments.optional_numbers(place)? {
        Some(numbers) if numbers.len() == channels => Ok(numbers),
        Some(numbers) => refuse!("input {place} has {} elements for {channels} channels", numbers.len()),
        None => refuse!("input {place} is missing"),
    }
}

fn batch_normalization(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let (batch, channels, plane) = planes(x)?;
    let input = |place| per_channel(arguments, place, channels);
    let (scale, bias, mut mean, mut variance) = (input(1)?, input(2)?, input(3)?, input(4)?);
    let (epsilon, momentum) = (arguments.float_or_default("epsilon"), arguments.float_or_default("momentum"));
    let running = arguments.tensor(3)?;
    with_float!(x.element(), T => {
        let elements = x.expect::<T>()?;
        let mut more = Vec::new();
        if arguments.flag("training_mode") {
            for channel in 0..channels {
                let own = (0..batch * plane).map(|n| elements[(n / plane * channels + channel) * plane + n % plane].widen());
                let (own_mean, own_variance) = moments(own);
                let blend = |old: f64, new: f64| old * momentum + new * (1.0 - momentum);
                more.push((blend(mean[channel], own_mean), blend(variance[channel], own_variance)));
                (mean[channel], variance[channel]) = (own_mean, own_variance);
            }
        }
        let normal = |(place, x): (usize, &T)| {
            let channel = place / plane.max(1) % channels;
            T::narrow(scale[channel] * (x.widen() - mean[channel]) / (variance[channel] + epsilon).sqrt() + bias[channel])
        };
        let mut outputs: Vec<Value> = vec![HostTensor::new(x.shape(), elements.iter().enumerate().map(normal).collect())?.into()];
        let (means, variances): (Vec<f64>, Vec<f64>) = more.into_iter().unzip();
        for numbers in [means, variances].into_iter().filter(|numbers| !numbers.is_empty()) {
            outputs.push(HostTensor::vector(numbers).cast(running.element())?.into());
        }
        Ok(outputs)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

/// Normalises groups of channels of each picture; without a number of groups, each channel alone.
fn grouped(arguments: &Arguments<'_>, groups: Option<i64>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let (_, channels, plane) = planes(x)?;
    let groups = groups.map_or(channels, |groups| usize::try_from(groups).unwrap_or(0));
    if groups == 0 || channels % groups != 0 {
        refuse!("{channels} channels cannot be divided into {groups} groups");
    }
    let spread = |place: usize| match arguments.optional_numbers(place)? {
        // Before version 21, there was one number for each group.
        Some(numbers) if numbers.len() == groups => {
            Ok((0..channels).map(|channel| numbers[channel / (channels / groups)]).collect::<Vec<f64>>())
        }
        _ => per_channel(arguments, place, channels),
    };
    let (scale, bias, epsilon) = (spread(1)?, spread(2)?, arguments.float_or_default("epsilon"));
    with_float!(x.element(), T => {
        let run = channels / groups * plane;
        let mut elements = Vec::with_capacity(x.len());
        for (number, group) in x.expect::<T>()?.chunks(run.max(1)).enumerate() {
            let (mean, variance) = moments(group.iter().map(|x| x.widen()));
            for (place, x) in group.iter().enumerate() {
                let channel = number % groups * (channels / groups) + place / plane;
                elements.push(T::narrow(scale[channel] * (x.widen() - mean) / (variance + epsilon).sqrt() + bias[channel]));
            }
        }
        one(HostTensor::new(x.shape(), elements)?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

/// The number that is added to the standard deviation, as in the operator's function body.
pub(crate) const EPSILON: f64 = 1e-9;

fn mean_variance(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let mut reduced = vec![false; x.rank()];
    for &number in arguments.ints("axes").unwrap_or(&[0, 2, 3]) {
        reduced[axis(number, x.rank())?] = true;
    }
    let kept: Vec<usize> =
        x.shape().iter().zip(&reduced).map(|(&extent, &gone)| if gone { 1 } else { extent }).collect();
    let places: Vec<usize> = {
        let mut strides = crate::tensor::row_major_strides(&kept);
        strides.iter_mut().zip(&reduced).filter(|(_, gone)| **gone).for_each(|(stride, _)| *stride = 0);
        crate::tensor::Places::new(x.shape(), strides).collect()
    };
    with_float!(x.element(), T => {
        let elements = x.expect::<T>()?;
        let mut groups = vec![Vec::new(); kept.iter().product()];
        elements.iter().zip(&places).for_each(|(x, &place)| groups[place].push(x.widen()));
        let moments: Vec<(f64, f64)> = groups.iter().map(|group| moments(group.iter().copied())).collect();
        let normal = |(x, &place): (&T, &usize)| T::narrow((x.widen() - moments[place].0) / (moments[place].1.sqrt() + EPSILON));
        one(HostTensor::new(x.shape(), elements.iter().zip(&places).map(normal).collect())?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}
