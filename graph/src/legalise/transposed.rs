//! Transposed convolutions, as convolutions whose result is interleaved.
//!
//! Along a dimension with stride `s`, the element at place `p` of the uncut result gets products of the taps `p mod s + s · t` with the
//! elements at places `p div s − t`. So the elements of one phase `p mod s` are those of a convolution with every `s`-th tap. All phases
//! together are one convolution with as many filters for each filter as there are phases; it forms no product that falls between
//! two elements, and rules tile it as any other. Taps beyond the kernel are zeros.

use tilewright_core::build::Value;
use tilewright_core::expr::BinaryOp;

use crate::legalise::convolution::{Shape, multiply_windows, pad};
use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{inside, moved, scaled};
use crate::legalise::scalar::{add, both, computing, less, number};
use crate::legalise::window::Windows;
use crate::legalise::{Unsupported, unsupported};
use crate::operator::{TransposedGeometry, Window};
use crate::symbolic::SymInt;

pub(crate) fn conv_transpose(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
) -> Result<Vec<Tensor>, Unsupported> {
    let (x, weights) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    if x.rank() < 3 || x.rank() != weights.rank() || !x.dtype.is_float() || x.element != weights.element {
        unsupported!("only floats with batch, channels and as many spatial dimensions have a kernel form");
    }
    let fixed = emitter.sizes(&weights.extents)?;
    let groups = usize::try_from(operands.attributes().int_or_default("group")).unwrap_or(0);
    let channels = fixed[0];
    if groups == 0 || channels % groups != 0 || !x.extents[1].is(channels as i64) {
        unsupported!("{groups} groups do not fit the channels");
    }
    let input = emitter.present_sizes(&x.extents[2..])?;
    let geometry = TransposedGeometry::of(&operands.attributes(), &input, &fixed[2..])?;
    if geometry.dilations().iter().any(|&dilation| dilation != 1) {
        unsupported!("dilated transposed convolutions have no kernel form");
    }
    let output = output_extents(emitter, operands, &x.extents[2..], &geometry)?;
    let phases = Phases::of(&geometry, &fixed[2..], groups, fixed[1]);
    let windows = phases.windows(&input, &x.extents[2..]);
    let zero = number(x.dtype, 0.0);
    let padded = if windows.has_padding() { pad(emitter, &x, &windows, &zero)? } else { x.clone() };
    let arranged = phases.arrange(emitter, &weights, channels / groups)?;
    let shape = Shape::new(x.extents[0].clone(), groups, phases.count() * phases.filters, channels / groups);
    let sums = multiply_windows(emitter, [&padded, &arranged], &windows, &shape, x.element)?;
    let bias = operands.optional(emitter, 2)?;
    Ok(vec![phases.interleave(emitter, &sums, &output, &geometry, bias.as_ref())?])
}

/// The spatial extents of the result.
fn output_extents(
    emitter: &Emitter,
    operands: &Operands<'_>,
    input: &[SymInt],
    geometry: &TransposedGeometry,
) -> Result<Vec<SymInt>, Unsupported> {
    let mut extents = Vec::with_capacity(input.len());
    for (dimension, extent) in input.iter().enumerate() {
        let present = geometry.output()[dimension] as i64;
        if extent.as_constant().is_some() {
            extents.push(present.into());
            continue;
        }
        if operands.text("auto_pad") != "NOTSET" || operands.ints("output_shape").is_some() {
            unsupported!("the padding depends on the extent");
        }
        let stride = geometry.strides()[dimension] as i64;
        let unknown = || Unsupported::Form(format!("extent {extent} is not known"));
        let difference = present - emitter.present(extent).ok_or_else(unknown)? * stride;
        extents.push(&extent.scale(stride) + &difference.into());
    }
    Ok(extents)
}

/// How the taps of a kernel fall into phases.
struct Phases {
    strides: Vec<usize>,
    kernel: Vec<usize>,
    /// The most taps of one phase, along each dimension.
    taps: Vec<usize>,
    groups: usize,
    /// Output channels of one group.
    filters: usize,
}

impl Phases {
    fn of(geometry: &TransposedGeometry, kernel: &[usize], groups: usize, filters: usize) -> Self {
        let strides = geometry.strides().to_vec();
        let taps = kernel.iter().zip(&strides).map(|(kernel, &stride)| kernel.div_ceil(stride)).collect();
        Phases { strides, kernel: kernel.to_vec(), taps, groups, filters }
    }

    /// How many phases there are, of all dimensions together.
    fn count(&self) -> usize {
        self.strides.iter().product()
    }

    /// The windows over the input: all that reach an element of it.
    fn windows(&self, input: &[usize], extents: &[SymInt]) -> Windows {
        let rank = input.len();
        let around: Vec<i64> = self.taps.iter().map(|&taps| taps as i64 - 1).collect();
        let fixed = Window {
            input: input.to_vec(),
            kernel: self.taps.clone(),
            strides: vec![1; rank],
            dilations: vec![1; rank],
            before: around.clone(),
            after: around.clone(),
            output: input.iter().zip(&self.taps).map(|(input, taps)| input + taps - 1).collect(),
        };
        let output = extents.iter().zip(&around).map(|(extent, &more)| extent + &more.into()).collect();
        Windows { fixed, output }
    }

    /// The weights as `[group · phase · filter, channel, tap, …]`, the last tap first.
    fn arrange(
        &self,
        emitter: &mut Emitter,
        weights: &Tensor,
        channels: usize,
    ) -> Result<Tensor, Unsupported> {
        let (filters, run) = (self.filters as i64, (self.count() * self.filters) as i64);
        let mut extents: Vec<SymInt> = vec![(self.groups as i64 * run).into(), channels.into()];
        extents.extend(self.taps.iter().map(|&taps| SymInt::from(taps)));
        let zero = number(weights.dtype, 0.0);
        emitter.compute(weights.element, &extents, &mut |builder, own| {
            let (group, in_group) = divided(&own[0], run);
            let (phase, filter) = divided(&in_group, filters);
            let channel = add(&scaled(&group, channels as i64), &own[1]);
            let mut places = vec![channel, filter];
            let mut condition: Option<Value> = None;
            for (dimension, phase) in self.phases(&phase).into_iter().enumerate() {
                let (stride, kernel) = (self.strides[dimension] as i64, self.kernel[dimension] as i64);
                let last = Value::int(self.taps[dimension] as i64 - 1);
                let turned = last.binary(BinaryOp::Sub, own[2 + dimension].clone());
                let tap = add(&phase, &scaled(&turned, stride));
                if kernel % stride != 0 {
                    let inside = less(&tap, &Value::int(kernel));
                    condition = Some(condition.map_or(inside.clone(), |condition| both(&condition, &inside)));
                }
                places.push(tap);
            }
            let weight = weights.at(builder, &places);
            condition.map_or(weight.clone(), |condition| condition.select(weight, zero.clone()))
        })
    }

    /// The phases along each dimension, of which one number is made.
    fn phases(&self, number: &Value) -> Vec<Value> {
        let mut phases = Vec::with_capacity(self.strides.len());
        let mut rest = number.clone();
        for &stride in self.strides.iter().rev() {
            let (more, phase) = divided(&rest, stride as i64);
            phases.push(phase);
            rest = more;
        }
        phases.reverse();
        phases
    }

    /// The result: the sums of all phases in their places, with the bias of each filter.
    fn interleave(
        &self,
        emitter: &mut Emitter,
        sums: &Tensor,
        output: &[SymInt],
        geometry: &TransposedGeometry,
        bias: Option<&Tensor>,
    ) -> Result<Tensor, Unsupported> {
        let channels = (self.groups * self.filters) as i64;
        let extents = [&[sums.extents[0].clone(), channels.into()][..], output].concat();
        let ends = emitter.values(&sums.extents[2..])?;
        let beyond: Vec<bool> = (0..output.len())
            .map(|dimension| self.reaches_beyond(emitter, dimension, output, &sums.extents, geometry))
            .collect::<Result<_, _>>()?;
        let (dtype, wide) = (sums.dtype, computing(sums.dtype));
        emitter.compute(sums.element, &extents, &mut |builder, own| {
            let mut places = vec![own[0].clone()];
            let (mut phase, mut condition) = (Value::int(0), None::<Value>);
            for (dimension, &stride) in self.strides.iter().enumerate() {
                let (stride, before) = (stride as i64, geometry.before()[dimension]);
                // Strides before the first window: no remainder of a negative number is formed.
                let ahead = ((-before).max(0) + stride - 1) / stride;
                let uncut = moved(&own[2 + dimension], -(before + ahead * stride));
                let (window, own_phase) = divided(&uncut, stride);
                let window = moved(&window, ahead);
                if beyond[dimension] {
                    let inside = inside(&window, &ends[dimension]);
                    condition = Some(condition.map_or(inside.clone(), |condition| both(&condition, &inside)));
                }
                phase = add(&scaled(&phase, stride), &own_phase);
                places.push(window);
            }
            let (group, filter) = divided(&own[1], self.filters as i64);
            let row = add(&scaled(&group, self.count() as i64), &phase);
            places.insert(1, add(&scaled(&row, self.filters as i64), &filter));
            let sum = sums.at(builder, &places);
            let sum = condition.map_or(sum.clone(), |condition| condition.select(sum, number(dtype, 0.0)));
            match bias {
                None => sum,
                Some(bias) => {
                    let bias = bias.at(builder, &own[1..2]).cast(wide);
                    add(&sum.cast(wide), &bias).cast(dtype)
                }
            }
        })
    }

    /// Whether some place of the result lies outside of all windows.
    fn reaches_beyond(
        &self,
        emitter: &Emitter,
        dimension: usize,
        output: &[SymInt],
        windows: &[SymInt],
        geometry: &TransposedGeometry,
    ) -> Result<bool, Unsupported> {
        let before = geometry.before()[dimension];
        let end = &output[dimension] + &before.into();
        let room = windows[2 + dimension].scale(self.strides[dimension] as i64);
        Ok(before < 0 || !emitter.at_most(&end, &room)?)
    }
}

/// Quotient and remainder by a constant, without the operations where it is 1.
fn divided(number: &Value, divisor: i64) -> (Value, Value) {
    if divisor == 1 {
        return (number.clone(), Value::int(0));
    }
    let divisor = Value::int(divisor);
    (number.binary(BinaryOp::Div, divisor.clone()), number.binary(BinaryOp::Rem, divisor))
}
