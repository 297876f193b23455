//! The same elements in another order, or repeated.

use crate::deduce;
use crate::legalise::rearrange;
use crate::operator::attribute::{IntOr, Ints, TextOr};
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::select::{choose, take, transpose};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Places, broadcast_shapes};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("transpose", "Transpose", permute)
        .legalise(rearrange::transpose)
        .deduce(deduce::transpose)
        .attributes(&[("perm", Ints)]),
    Operator::new("expand", "Expand", expand).legalise(rearrange::expand).deduce(deduce::expand).inputs(2, 2),
    Operator::new("tile", "Tile", tile).legalise(rearrange::tile).deduce(deduce::tile).inputs(2, 2),
    Operator::new("space_to_depth", "SpaceToDepth", space_to_depth)
        .legalise(rearrange::space_to_depth)
        .deduce(deduce::space_to_depth)
        .attributes(&[("blocksize", IntOr(1))]),
    Operator::new("depth_to_space", "DepthToSpace", depth_to_space)
        .legalise(rearrange::depth_to_space)
        .deduce(deduce::depth_to_space)
        .attributes(&[("blocksize", IntOr(1)), ("mode", TextOr("DCR"))]),
];

fn permute(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let order: Vec<usize> = match arguments.ints("perm") {
        None => (0..x.rank()).rev().collect(),
        Some(order) => order.iter().map(|&number| axis(number, x.rank())).collect::<Result<_, _>>()?,
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..x.rank()) {
        refuse!("perm {order:?} must name each of {} dimensions once", x.rank());
    }
    one(transpose(x, &order)?)
}

fn expand(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let shape = broadcast_shapes(x.shape(), &extents(&arguments.integers(1)?)?)?;
    crate::tensor::count(&shape)?;
    one(take(x, &shape, Places::broadcast(&shape, x.shape()))?)
}

/// Numbers as extents.
pub(crate) fn extents(numbers: &[i64]) -> Result<Vec<usize>, Fault> {
    let extent =
        |&number: &i64| usize::try_from(number).map_err(|_| Fault(format!("{numbers:?} is no shape")));
    numbers.iter().map(extent).collect()
}

fn tile(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let repeats = extents(&arguments.integers(1)?)?;
    if repeats.len() != x.rank() {
        refuse!("repeats {repeats:?} must have one number for each of {} dimensions", x.rank());
    }
    let product = |(&extent, &repeat): (&usize, &usize)| extent.saturating_mul(repeat);
    crate::tensor::count(&x.shape().iter().zip(&repeats).map(product).collect::<Vec<_>>())?;
    let table = |(&extent, &repeat): (&usize, &usize)| {
        (0..extent * repeat).map(|place| Some(place % extent)).collect()
    };
    let tables: Vec<_> = x.shape().iter().zip(&repeats).map(table).collect();
    one(choose(x, &tables, None)?)
}

/// Batch, channels, height and width of a picture, and the size of its blocks.
fn picture(arguments: &Arguments<'_>) -> Result<([usize; 4], usize), Fault> {
    let x = arguments.tensor(0)?;
    let Ok(shape) = <[usize; 4]>::try_from(x.shape()) else {
        refuse!("expected batch, channels, height and width, found shape {:?}", x.shape())
    };
    match usize::try_from(arguments.int_or_default("blocksize")) {
        Ok(block) if block > 0 => Ok((shape, block)),
        _ => refuse!("attribute blocksize must be positive"),
    }
}

fn split_dimensions(
    x: &HostTensor,
    split: &[usize],
    order: &[usize],
    shape: &[usize],
) -> Result<Vec<Value>, Fault> {
    one(transpose(&x.reshape(split)?, order)?.reshape(shape)?)
}

fn space_to_depth(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let ([n, c, h, w], b) = picture(arguments)?;
    let x = arguments.tensor(0)?;
    split_dimensions(x, &[n, c, h / b, b, w / b, b], &[0, 3, 5, 1, 2, 4], &[n, c * b * b, h / b, w / b])
}

fn depth_to_space(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let ([n, c, h, w], b) = picture(arguments)?;
    let (x, rest, shape) = (arguments.tensor(0)?, c / (b * b), [n, c / (b * b), h * b, w * b]);
    match arguments.text("mode") {
        "DCR" => split_dimensions(x, &[n, b, b, rest, h, w], &[0, 3, 4, 1, 5, 2], &shape),
        "CRD" => split_dimensions(x, &[n, rest, b, b, h, w], &[0, 1, 4, 2, 5, 3], &shape),
        other => refuse!("attribute mode must be DCR or CRD, not {other}"),
    }
}
