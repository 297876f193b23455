//! Pooling over windows.

use crate::deduce;
use crate::ir::AttributeKind;
use crate::legalise::pool;
use crate::operator::attribute::{IntOr, Ints, TextOr};
use crate::operator::evaluate::{one, refuse};
use crate::operator::window::Window;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, with_float, with_number};

const MAX: &[(&str, AttributeKind)] = &[
    ("auto_pad", TextOr("NOTSET")),
    ("ceil_mode", IntOr(0)),
    ("dilations", Ints),
    ("kernel_shape", Ints),
    ("pads", Ints),
    ("storage_order", IntOr(0)),
    ("strides", Ints),
];
const AVERAGE: &[(&str, AttributeKind)] = &[
    ("auto_pad", TextOr("NOTSET")),
    ("ceil_mode", IntOr(0)),
    ("count_include_pad", IntOr(0)),
    ("dilations", Ints),
    ("kernel_shape", Ints),
    ("pads", Ints),
    ("strides", Ints),
];
const LP: &[(&str, AttributeKind)] = &[
    ("auto_pad", TextOr("NOTSET")),
    ("ceil_mode", IntOr(0)),
    ("dilations", Ints),
    ("kernel_shape", Ints),
    ("p", IntOr(2)),
    ("pads", Ints),
    ("strides", Ints),
];

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("max_pool", "MaxPool", max_pool)
        .legalise(pool::max)
        .deduce(deduce::pool)
        .outputs(1, 2)
        .attributes(MAX),
    Operator::new("average_pool", "AveragePool", average_pool)
        .legalise(pool::average)
        .deduce(deduce::pool)
        .attributes(AVERAGE),
    Operator::new("lp_pool", "LpPool", lp_pool).legalise(pool::norm).deduce(deduce::pool).attributes(LP),
];

/// The windows that the attributes describe, and the number of planes, one for each channel of each picture.
fn windows(arguments: &Arguments<'_>) -> Result<(Window, usize, Vec<usize>), Fault> {
    let x = arguments.tensor(0)?;
    let &[batch, channels, ref input @ ..] = x.shape() else {
        refuse!("expected batch and channels, found shape {:?}", x.shape())
    };
    let Some(kernel) = arguments.ints("kernel_shape") else { refuse!("attribute kernel_shape is missing") };
    let kernel: Vec<usize> = kernel.iter().map(|&extent| usize::try_from(extent).unwrap_or(0)).collect();
    let window = Window::of(arguments, input, &kernel)?;
    let shape = [&[batch, channels][..], &window.output].concat();
    crate::tensor::count(&shape)?;
    Ok((window, batch * channels, shape))
}

fn max_pool(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let (window, planes, shape) = windows(arguments)?;
    let columns_first = arguments.flag("storage_order");
    let plane: usize = window.input.iter().product();
    with_number!(x.element(), T => {
        let elements = x.expect::<T>()?;
        let all_taps: Vec<Vec<Option<usize>>> = (0..window.windows()?).map(|place| window.taps(place)).collect();
        let (mut values, mut places) = (Vec::new(), Vec::new());
        for first in (0..planes).map(|number| number * plane) {
            for taps in &all_taps {
                let best = taps.iter().flatten().copied().reduce(|best, tap| {
                    let (old, new) = (elements[first + best], elements[first + tap]);
                    if new > old || (new.is_nan() && !old.is_nan()) { tap } else { best }
                });
                values.push(best.map_or(T::lowest(), |best| elements[first + best]));
                let place = best.map_or(0, |best| first + if columns_first { transposed(best, &window.input) } else { best });
                places.push(place as i64);
            }
        }
        Ok(vec![HostTensor::new(&shape, values)?.into(), HostTensor::new(&shape, places)?.into()])
    }, else refuse!("expected numbers, found {}", x.element()))
}

/// The number of a place when the first dimension moves fastest.
fn transposed(place: usize, shape: &[usize]) -> usize {
    let coordinates = crate::operator::window::unravel(place, shape);
    coordinates.iter().zip(shape).rev().fold(0, |number, (coordinate, extent)| number * extent + coordinate)
}

fn average_pool(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (window, planes, shape) = windows(arguments)?;
    let counts_padding = arguments.flag("count_include_pad");
    // Places of the padding count, those that only rounding up adds behind it do not.
    let padded = |coordinates: &[i64]| {
        coordinates.iter().enumerate().all(|(d, &coordinate)| {
            coordinate >= -window.before[d] && coordinate < window.input[d] as i64 + window.after[d]
        })
    };
    let counts: Vec<usize> = (0..window.windows()?)
        .map(|place| {
            window
                .coordinates(place)
                .filter(|at| padded(at) && (counts_padding || window.offset(at).is_some()))
                .count()
        })
        .collect();
    reduce(arguments, &window, planes, &shape, |place, taps| taps.sum::<f64>() / counts[place] as f64)
}

fn lp_pool(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (window, planes, shape) = windows(arguments)?;
    let order = arguments.int_or_default("p") as f64;
    reduce(arguments, &window, planes, &shape, |_, taps| {
        taps.map(|x| x.abs().powf(order)).sum::<f64>().powf(order.recip())
    })
}

/// Applies a function to the elements of each window.
fn reduce(
    arguments: &Arguments<'_>,
    window: &Window,
    planes: usize,
    shape: &[usize],
    function: impl Fn(usize, &mut dyn Iterator<Item = f64>) -> f64,
) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let plane: usize = window.input.iter().product();
    with_float!(x.element(), T => {
        let elements = x.expect::<T>()?;
        let all_taps: Vec<Vec<Option<usize>>> = (0..window.windows()?).map(|place| window.taps(place)).collect();
        let values = (0..planes).flat_map(|number| {
            let function = &function;
            all_taps.iter().enumerate().map(move |(place, taps)| {
                let mut inside = taps.iter().flatten().map(|tap| elements[number * plane + tap].widen());
                T::narrow(function(place, &mut inside))
            })
        });
        one(HostTensor::new(shape, values.collect())?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}
