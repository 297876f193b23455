//! Transposed convolutions.

use crate::deduce;
use crate::legalise::transposed;
use crate::operator::attribute::{IntOr, Ints, TextOr};
use crate::operator::evaluate::{numbers, one, refuse};
use crate::operator::linear::convolution::add_bias;
use crate::operator::window::{Settings, unravel};
use crate::operator::{Arguments, Fault, Operator, ResultOrder, Value};
use crate::tensor::{HostTensor, Number, count, with_float};

pub(super) const OPERATORS: &[Operator] = &[Operator::new("conv_transpose", "ConvTranspose", conv_transpose)
    .legalise(transposed::conv_transpose)
    .result_order(ResultOrder::Channels { weights: 1, filters: 1 })
    .deduce(deduce::conv_transpose)
    .inputs(2, 3)
    .attributes(&[
        ("auto_pad", TextOr("NOTSET")),
        ("dilations", Ints),
        ("group", IntOr(1)),
        ("kernel_shape", Ints),
        ("output_padding", Ints),
        ("output_shape", Ints),
        ("pads", Ints),
        ("strides", Ints),
    ])];

/// Where the places of input and window meet in the output: `place · stride + tap · dilation - before`.
pub(crate) struct Geometry {
    settings: Settings,
    before: Vec<i64>,
    output: Vec<usize>,
}

impl Geometry {
    /// The distances of neighbouring places.
    pub(crate) fn strides(&self) -> &[usize] {
        &self.settings.strides
    }

    /// The distances of neighbouring taps.
    pub(crate) fn dilations(&self) -> &[usize] {
        &self.settings.dilations
    }

    /// How much is cut off before the output.
    pub(crate) fn before(&self) -> &[i64] {
        &self.before
    }

    /// The extents of the output.
    pub(crate) fn output(&self) -> &[usize] {
        &self.output
    }

    /// Reads the attributes.
    pub(crate) fn of(arguments: &Arguments<'_>, input: &[usize], kernel: &[usize]) -> Result<Self, Fault> {
        let rank = input.len();
        if kernel.len() != rank || kernel.contains(&0) {
            refuse!("a window of extents {kernel:?} does not fit spatial dimensions {input:?}");
        }
        let settings = Settings::read(arguments, rank)?;
        let padding = arguments.ints("output_padding").map_or_else(|| vec![0; rank], <[i64]>::to_vec);
        let wanted = arguments.ints("output_shape");
        let wanted = wanted.map(|wanted| &wanted[wanted.len().saturating_sub(rank)..]);
        if padding.len() != rank || wanted.is_some_and(|wanted| wanted.len() != rank) {
            refuse!("attributes output_padding and output_shape must have {rank} numbers");
        }
        let mut geometry = Geometry { before: settings.pads[..rank].to_vec(), output: Vec::new(), settings };
        for d in 0..rank {
            let Settings { strides, dilations, pads } = &geometry.settings;
            let full = (input[d] as i64 - 1) * strides[d] as i64
                + (kernel[d] as i64 - 1) * dilations[d] as i64
                + 1
                + padding[d];
            let extent = match (wanted, arguments.text("auto_pad")) {
                (Some(wanted), mode) => {
                    geometry.before[d] = leading((full - wanted[d]).max(0), mode);
                    wanted[d]
                }
                (None, mode @ ("SAME_UPPER" | "SAME_LOWER")) => {
                    let extent = (input[d] * strides[d]) as i64;
                    geometry.before[d] = leading((full - extent).max(0), mode);
                    extent
                }
                (None, "VALID") => {
                    geometry.before[d] = 0;
                    full
                }
                _ => full - pads[d] - pads[d + rank],
            };
            geometry.output.push(
                usize::try_from(extent)
                    .map_err(|_| Fault("the padding is larger than the result".to_owned()))?,
            );
        }
        Ok(geometry)
    }
}

/// How much of the padding lies before the output.
fn leading(total: i64, mode: &str) -> i64 {
    if mode == "SAME_UPPER" { total / 2 } else { total - total / 2 }
}

fn conv_transpose(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, weights) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let groups = usize::try_from(arguments.int_or_default("group")).unwrap_or(0);
    let (&[batch, channels, ref input @ ..], &[weight_channels, filters, ref kernel @ ..]) =
        (x.shape(), weights.shape())
    else {
        refuse!("shapes {:?} and {:?} are none of a convolution", x.shape(), weights.shape())
    };
    if groups == 0 || channels != weight_channels || channels % groups != 0 {
        refuse!("weights of shape {:?} in {groups} groups do not fit shape {:?}", weights.shape(), x.shape());
    }
    let geometry = Geometry::of(arguments, input, kernel)?;
    let shape = [&[batch, groups * filters][..], &geometry.output].concat();
    with_float!(x.element(), T => {
        let (x, weights) = (numbers(x)?, numbers(weights)?);
        let mut sums = vec![0.0; count(&shape)?];
        let sizes = Sizes { batch, channels, groups, filters };
        geometry.scatter(&sizes, (&x, input), (&weights, kernel), &mut sums);
        if let Some(bias) = arguments.optional(2)? {
            add_bias(&mut sums, &numbers(bias)?, &shape)?;
        }
        one(HostTensor::new(&shape, sums.into_iter().map(T::narrow).collect())?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

struct Sizes {
    batch: usize,
    channels: usize,
    groups: usize,
    filters: usize,
}

impl Geometry {
    /// Adds the products of each element of the input with its filters to the output.
    fn scatter(
        &self,
        sizes: &Sizes,
        (x, input): (&[f64], &[usize]),
        (weights, kernel): (&[f64], &[usize]),
        sums: &mut [f64],
    ) {
        let (plane, size, output): (usize, usize, usize) =
            (input.iter().product(), kernel.iter().product(), self.output.iter().product());
        let per_group = sizes.channels / sizes.groups;
        for place in 0..plane {
            let targets: Vec<Option<usize>> =
                (0..size).map(|tap| self.target(place, input, tap, kernel)).collect();
            for batch in 0..sizes.batch {
                for channel in 0..sizes.channels {
                    let value = x[(batch * sizes.channels + channel) * plane + place];
                    for filter in 0..sizes.filters {
                        let plane = (batch * sizes.groups + channel / per_group) * sizes.filters + filter;
                        let weights = &weights[(channel * sizes.filters + filter) * size..][..size];
                        for (target, weight) in targets.iter().zip(weights) {
                            if let Some(target) = target {
                                sums[plane * output + target] += value * weight;
                            }
                        }
                    }
                }
            }
        }
    }

    /// The offset in the output to which a place and a tap contribute, if it is inside.
    fn target(&self, place: usize, input: &[usize], tap: usize, kernel: &[usize]) -> Option<usize> {
        let (place, tap) = (unravel(place, input), unravel(tap, kernel));
        (0..input.len()).try_fold(0, |offset, d| {
            let forward = place[d] * self.settings.strides[d] + tap[d] * self.settings.dilations[d];
            let coordinate = usize::try_from(forward as i64 - self.before[d]).ok()?;
            (coordinate < self.output[d]).then(|| offset * self.output[d] + coordinate)
        })
    }
}
