//! Pooling backwards: elements spread over a larger tensor.

use crate::deduce;
use crate::legalise::unpool;
use crate::operator::attribute::Ints;
use crate::operator::evaluate::{one, refuse};
use crate::operator::window::{Settings, Window};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, count, with_float};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("max_unpool", "MaxUnpool", max_unpool)
        .deduce(deduce::max_unpool)
        .legalise(unpool::max)
        .inputs(2, 3)
        .attributes(&[("kernel_shape", Ints), ("pads", Ints), ("strides", Ints)]),
    Operator::new("column_to_image", "Col2Im", column_to_image)
        .deduce(deduce::element_only)
        .inputs(3, 3)
        .attributes(&[("dilations", Ints), ("pads", Ints), ("strides", Ints)]),
];

/// Writes each element to the place that an index names, in a tensor of zeros. Indices count within the tensor that the
/// attributes describe, also when a larger one is asked for.
fn max_unpool(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let &[batch, channels, ref input @ ..] = x.shape() else {
        refuse!("expected batch and channels, found shape {:?}", x.shape())
    };
    let kernel = arguments.ints("kernel_shape").unwrap_or_default();
    if kernel.len() != input.len() {
        refuse!("attribute kernel_shape must have {} numbers", input.len());
    }
    let Settings { strides, pads, .. } = Settings::read(arguments, input.len())?;
    let mut inferred = vec![batch, channels];
    for (d, &extent) in input.iter().enumerate() {
        let full = (extent as i64 - 1) * strides[d] as i64 - pads[d] - pads[d + input.len()] + kernel[d];
        inferred.push(
            usize::try_from(full).map_err(|_| Fault("the padding is larger than the result".to_owned()))?,
        );
    }
    let shape = match arguments.optional_integers(2)? {
        None => inferred.clone(),
        Some(shape) => crate::operator::extents(&shape)?,
    };
    if shape.len() != inferred.len() {
        refuse!("a result of shape {shape:?} does not fit an input of shape {:?}", x.shape());
    }
    let indices = arguments.integers(1)?;
    with_float!(x.element(), T => {
        let mut elements = vec![T::default(); count(&shape)?];
        for (&value, &index) in x.expect::<T>()?.iter().zip(&indices) {
            let place = usize::try_from(index).ok().filter(|&place| place < inferred.iter().product());
            let coordinates = place.map(|place| crate::operator::window::unravel(place, &inferred));
            let offset = coordinates.and_then(|coordinates| {
                coordinates.iter().zip(&shape).try_fold(0, |offset, (&at, &extent)| (at < extent).then(|| offset * extent + at))
            });
            match offset {
                Some(offset) => elements[offset] = value,
                None => refuse!("index {index} is outside shape {shape:?}"),
            }
        }
        one(HostTensor::new(&shape, elements)?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

/// Adds up columns, each of which holds the elements of one window, in the picture that the windows were taken of.
fn column_to_image(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let image = crate::operator::extents(&arguments.integers(1)?)?;
    let block = crate::operator::extents(&arguments.integers(2)?)?;
    let &[batch, rows, columns] = x.shape() else {
        refuse!("expected batch, rows and columns, found shape {:?}", x.shape())
    };
    if image.len() != block.len() || block.contains(&0) {
        refuse!("blocks of shape {block:?} do not fit a picture of shape {image:?}");
    }
    let window = Window::plain(arguments, &image, &block)?;
    let size = window.size();
    if rows % size != 0 || columns != window.windows()? {
        refuse!("columns of shape {:?} are none of blocks {block:?} of a picture {image:?}", x.shape());
    }
    let channels = rows / size;
    let plane: usize = image.iter().product();
    let shape = [&[batch, channels][..], &image].concat();
    with_float!(x.element(), T => {
        let elements = x.expect::<T>()?;
        let mut sums = vec![0.0; count(&shape)?];
        for column in 0..columns {
            for (tap, offset) in window.taps(column).into_iter().enumerate() {
                let Some(offset) = offset else { continue };
                for number in 0..batch * channels {
                    sums[number * plane + offset] += elements[(number * size + tap) * columns + column].widen();
                }
            }
        }
        one(HostTensor::new(&shape, sums.into_iter().map(T::narrow).collect())?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}
