//! Reading tensors at coordinates that another tensor gives.

use crate::deduce;
use crate::legalise::resample;
use crate::operator::attribute::{IntOr, TextOr};
use crate::operator::evaluate::{one, refuse};
use crate::operator::resample::kernel::{cubic, linear};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, count, with_float};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("grid_sample", "GridSample", grid_sample)
        .legalise(resample::grid_sample)
        .deduce(deduce::grid_sample)
        .inputs(2, 2)
        .attributes(&[
            ("align_corners", IntOr(0)),
            ("mode", TextOr("linear")),
            ("padding_mode", TextOr("zeros")),
        ]),
    Operator::new("affine_grid", "AffineGrid", affine_grid)
        .inputs(2, 2)
        .attributes(&[("align_corners", IntOr(0))]),
];

/// The value of a plane at a place between its elements, with zeros around.
pub(in crate::operator) fn bilinear(
    plane: &[f64],
    (height, width): (usize, usize),
    (y, x): (f64, f64),
) -> f64 {
    let value = |row: f64, column: f64| {
        let inside = row >= 0.0 && column >= 0.0 && row < height as f64 && column < width as f64;
        if inside { plane[row as usize * width + column as usize] } else { 0.0 }
    };
    let corners = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)];
    let corner = |(down, right): (f64, f64)| {
        let (row, column) = (y.floor() + down, x.floor() + right);
        linear(row - y) * linear(column - x) * value(row, column)
    };
    corners.into_iter().map(corner).sum()
}

/// The values outside of a tensor.
#[derive(Clone, Copy, PartialEq)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Nearest,
    Linear,
    Cubic,
}

struct Sampler<'a> {
    shape: &'a [usize],
    padding: Padding,
    mode: Mode,
    /// Whether -1 and 1 are the centres of the first and last elements, not their outer borders.
    aligned: bool,
}

fn grid_sample(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, grid) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let &[batch, channels, ref spatial @ ..] = x.shape() else {
        refuse!("expected batch and channels, found shape {:?}", x.shape())
    };
    let (&[grid_batch, ref places @ ..], rank) = (grid.shape(), spatial.len()) else {
        refuse!("the grid is a scalar")
    };
    if grid_batch != batch || places.len() != rank + 1 || places[rank] != rank || spatial.contains(&0) {
        refuse!("a grid of shape {:?} does not fit an input of shape {:?}", grid.shape(), x.shape());
    }
    let sampler = Sampler {
        shape: spatial,
        padding: match arguments.text("padding_mode") {
            "zeros" => Padding::Zeros,
            "border" => Padding::Border,
            "reflection" => Padding::Reflection,
            other => refuse!("attribute padding_mode must be zeros, border or reflection, not {other}"),
        },
        mode: match arguments.text("mode") {
            "nearest" => Mode::Nearest,
            "linear" | "bilinear" => Mode::Linear,
            "cubic" | "bicubic" => Mode::Cubic,
            other => refuse!("attribute mode must be nearest, linear or cubic, not {other}"),
        },
        aligned: arguments.flag("align_corners"),
    };
    let shape = [&[batch, channels][..], &places[..rank]].concat();
    let (samples, plane): (usize, usize) = (places[..rank].iter().product(), spatial.iter().product());
    let coordinates = arguments.optional_numbers(1)?.unwrap_or_default();
    with_float!(x.element(), T => {
        let wide: Vec<f64> = x.expect::<T>()?.iter().map(|x| x.widen()).collect();
        let mut values = Vec::with_capacity(count(&shape)?);
        for number in 0..batch * channels {
            let plane = &wide[number * plane..(number + 1) * plane];
            for sample in 0..samples {
                let first = (number / channels * samples + sample) * rank;
                // Coordinates stand in the order x, y, z: the last dimension first.
                let at: Vec<f64> = coordinates[first..first + rank].iter().rev().copied().collect();
                values.push(T::narrow(sampler.sample(plane, &at)));
            }
        }
        one(HostTensor::new(&shape, values)?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

impl Sampler<'_> {
    /// First and last coordinate of a dimension.
    fn borders(&self, extent: usize) -> (f64, f64) {
        if self.aligned { (0.0, extent as f64 - 1.0) } else { (-0.5, extent as f64 - 0.5) }
    }

    /// A coordinate from -1 to 1 as one in elements, moved inside as the padding says.
    fn locate(&self, coordinate: f64, extent: usize) -> f64 {
        let (low, high) = self.borders(extent);
        let mut at = low + (coordinate + 1.0) / 2.0 * (high - low);
        if self.mode == Mode::Nearest {
            at = at.round_ties_even();
        }
        match self.padding {
            Padding::Border if at < low || at > high => at.clamp(0.0, extent as f64 - 1.0),
            Padding::Reflection => reflect(at, low, high),
            _ => at,
        }
    }

    /// The element at whole coordinates.
    fn element(&self, plane: &[f64], places: &[f64]) -> f64 {
        let offset = places.iter().zip(self.shape).try_fold(0, |offset, (&place, &extent)| {
            let (low, high) = self.borders(extent);
            let last = extent as f64 - 1.0;
            let place = match self.padding {
                Padding::Zeros => (0.0..=last).contains(&place).then_some(place)?,
                Padding::Border => place.clamp(0.0, last),
                Padding::Reflection => reflect(place, low, high).clamp(0.0, last),
            };
            Some(offset * extent + place as usize)
        });
        offset.map_or(0.0, |offset| plane[offset])
    }

    fn sample(&self, plane: &[f64], coordinates: &[f64]) -> f64 {
        let at: Vec<f64> = coordinates
            .iter()
            .zip(self.shape)
            .map(|(&coordinate, &extent)| self.locate(coordinate, extent))
            .collect();
        let (first, last): (i32, i32) = match self.mode {
            Mode::Nearest => return self.element(plane, &at),
            Mode::Linear => (0, 1),
            Mode::Cubic => (-1, 2),
        };
        let weight =
            |distance: f64| if self.mode == Mode::Linear { linear(distance) } else { cubic(distance, -0.75) };
        let width = (last - first + 1) as usize;
        let mut sum = 0.0;
        for tap in 0..width.pow(at.len() as u32) {
            let steps = crate::operator::window::unravel(tap, &vec![width; at.len()]);
            let places: Vec<f64> =
                at.iter().zip(steps).map(|(at, step)| at.floor() + f64::from(first) + step as f64).collect();
            let weights: f64 = places.iter().zip(&at).map(|(place, at)| weight(place - at)).product();
            sum += weights * self.element(plane, &places);
        }
        sum
    }
}

/// A coordinate mirrored at both borders until it is between them.
fn reflect(at: f64, low: f64, high: f64) -> f64 {
    let range = high - low;
    if range <= 0.0 || !at.is_finite() {
        return low.max(0.0);
    }
    let within = (at - low).rem_euclid(2.0 * range);
    low + within.min(2.0 * range - within)
}

/// The coordinates to which an affine map takes the places of a picture, from -1 to 1.
fn affine_grid(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let theta = arguments.tensor(0)?;
    let size = crate::operator::extents(&arguments.integers(1)?)?;
    let &[batch, _, ref spatial @ ..] = &size[..] else {
        refuse!("size {size:?} must have batch and channels")
    };
    let rank = spatial.len();
    if theta.shape() != [batch, rank, rank + 1] {
        refuse!("maps of shape {:?} do not fit size {size:?}", theta.shape());
    }
    let aligned = arguments.flag("align_corners");
    let coordinate = |place: usize, extent: usize| match (aligned, extent) {
        (true, 1) => 0.0,
        (true, extent) => 2.0 * place as f64 / (extent as f64 - 1.0) - 1.0,
        (false, extent) => (2.0 * place as f64 + 1.0) / extent as f64 - 1.0,
    };
    let shape: Vec<usize> = [batch].into_iter().chain(spatial.iter().copied()).chain([rank]).collect();
    with_float!(theta.element(), T => {
        let maps = theta.expect::<T>()?;
        let mut values = Vec::with_capacity(count(&shape)?);
        for map in maps.chunks_exact(rank * (rank + 1)) {
            for place in 0..spatial.iter().product() {
                let places = crate::operator::window::unravel(place, spatial);
                let mut at: Vec<f64> = places.iter().zip(spatial).rev().map(|(&place, &extent)| coordinate(place, extent)).collect();
                at.push(1.0);
                for row in map.chunks_exact(rank + 1) {
                    values.push(T::narrow(row.iter().zip(&at).map(|(x, at)| x.widen() * at).sum()));
                }
            }
        }
        one(HostTensor::new(&shape, values)?)
    }, else refuse!("expected floating-point elements, found {}", theta.element()))
}
