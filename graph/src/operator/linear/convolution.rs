//! Convolutions.

use crate::deduce;
use crate::ir::AttributeKind;
use crate::legalise::convolution;
use crate::operator::attribute::{IntOr, Ints, TextOr};
use crate::operator::evaluate::{numbers, one, refuse};
use crate::operator::window::Window;
use crate::operator::{Arguments, Fault, Operator, ResultOrder, Value};
use crate::tensor::{HostTensor, Wide, with_float};

/// The attributes of all convolutions.
pub(in crate::operator) const ATTRIBUTES: &[(&str, AttributeKind)] = &[
    ("auto_pad", TextOr("NOTSET")),
    ("dilations", Ints),
    ("group", IntOr(1)),
    ("kernel_shape", Ints),
    ("pads", Ints),
    ("strides", Ints),
];

pub(super) const OPERATORS: &[Operator] = &[Operator::new("conv", "Conv", conv)
    .legalise(convolution::conv)
    .result_order(ResultOrder::Channels { weights: 1, filters: 0 })
    .deduce(deduce::conv)
    .inputs(2, 3)
    .attributes(ATTRIBUTES)];

/// The extents of a convolution.
pub(in crate::operator) struct Convolution {
    pub(super) batch: usize,
    pub(super) groups: usize,
    /// Input channels of one group.
    pub(super) channels: usize,
    /// Output channels of one group.
    pub(super) filters: usize,
    pub(super) window: Window,
}

impl Convolution {
    /// Reads the extents of input `[batch, channels, …]` and weights `[filters, channels of a group, …]`.
    pub(in crate::operator) fn of(
        arguments: &Arguments<'_>,
        input: &[usize],
        weights: &[usize],
    ) -> Result<Self, Fault> {
        let groups = usize::try_from(arguments.int_or_default("group")).unwrap_or(0);
        let (&[batch, channels, ref input_extents @ ..], &[filters, group_channels, ref kernel @ ..]) =
            (input, weights)
        else {
            refuse!("shapes {input:?} and {weights:?} are none of a convolution")
        };
        if groups == 0 || channels != groups.saturating_mul(group_channels) || filters % groups != 0 {
            refuse!("weights of shape {weights:?} in {groups} groups do not fit an input of shape {input:?}");
        }
        let window = Window::of(arguments, input_extents, kernel)?;
        Ok(Convolution { batch, groups, channels: group_channels, filters: filters / groups, window })
    }

    /// The shape of the result.
    pub(in crate::operator) fn shape(&self) -> Vec<usize> {
        [&[self.batch, self.groups * self.filters][..], &self.window.output].concat()
    }

    /// The sums of products, before rounding, with zeros in the padding.
    pub(in crate::operator) fn compute<W: Wide>(&self, input: &[W], weights: &[W]) -> Result<Vec<W>, Fault> {
        let (windows, size) = (self.window.windows()?, self.window.size());
        let plane: usize = self.window.input.iter().product();
        let mut result = vec![W::default(); crate::tensor::count(&self.shape())?];
        let mut patch = vec![W::default(); self.channels * size];
        for window in 0..windows {
            let taps = self.window.taps(window);
            for group in 0..self.batch * self.groups {
                let first = group * self.channels * plane;
                for (channel, patch) in patch.chunks_exact_mut(size).enumerate() {
                    let start = first + channel * plane;
                    for (value, tap) in patch.iter_mut().zip(&taps) {
                        *value = tap.map_or_else(W::default, |tap| input[start + tap]);
                    }
                }
                for filter in 0..self.filters {
                    let row = (group % self.groups * self.filters + filter) * patch.len();
                    let products = patch.iter().zip(&weights[row..row + patch.len()]);
                    let sum = products.fold(W::default(), |sum, (&x, &weight)| sum.plus(x.times(weight)));
                    result[(group * self.filters + filter) * windows + window] = sum;
                }
            }
        }
        Ok(result)
    }
}

fn conv(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, weights) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let convolution = Convolution::of(arguments, x.shape(), weights.shape())?;
    with_float!(x.element(), T => {
        let mut sums = convolution.compute(&numbers(x)?, &numbers(weights)?)?;
        if let Some(bias) = arguments.optional(2)? {
            add_bias(&mut sums, &numbers(bias)?, &convolution.shape())?;
        }
        one(HostTensor::new(&convolution.shape(), sums.into_iter().map(<T as crate::tensor::Number>::narrow).collect())?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

/// Adds one number to each channel.
pub(in crate::operator) fn add_bias<W: Wide>(
    sums: &mut [W],
    bias: &[W],
    shape: &[usize],
) -> Result<(), Fault> {
    if bias.len() != shape[1] {
        refuse!("a bias of {} elements does not fit {} channels", bias.len(), shape[1]);
    }
    let plane: usize = shape[2..].iter().product();
    if plane > 0 && !bias.is_empty() {
        for (place, plane) in sums.chunks_exact_mut(plane).enumerate() {
            let addend = bias[place % bias.len()];
            plane.iter_mut().for_each(|sum| *sum = sum.plus(addend));
        }
    }
    Ok(())
}
