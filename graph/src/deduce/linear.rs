//! Types of sums of products and of pooling.

use crate::deduce::elementwise::broadcast_extents;
use crate::deduce::{Deduction, Fact};
use crate::ir::{Attribute, Shape};
use crate::operator::{Contraction, Fault, Label, refuse};
use crate::symbolic::SymInt;

/// A product of stacks of matrices.
pub(crate) fn matmul(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    matmul_of(deduction, [0, 1])
}

/// A product of the stacks of matrices that two inputs give.
pub(crate) fn matmul_of(
    deduction: &mut Deduction<'_>,
    [left, right]: [usize; 2],
) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(left);
    let (Some(left), Some(right)) = (deduction.extents(left), deduction.extents(right)) else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
    };
    product(deduction, left, right)
}

/// A product of stacks of matrices, whose last two dimensions may be exchanged.
pub(crate) fn fused_matmul(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let is_plain = !deduction.flag("transBatchA") && !deduction.flag("transBatchB");
    let operand = |place: usize, flag: &str| {
        let mut extents = deduction.extents(place).filter(|_| is_plain)?.to_vec();
        let rank = extents.len();
        // Vectors stay as they are.
        if deduction.flag(flag) && rank > 1 {
            extents.swap(rank - 2, rank - 1);
        }
        Some(extents)
    };
    match (operand(0, "transA"), operand(1, "transB")) {
        (Some(left), Some(right)) => product(deduction, &left, &right),
        _ => Ok(vec![Fact::tensor(deduction.element(0), Shape::Unknown)]),
    }
}

fn product(deduction: &mut Deduction<'_>, left: &[SymInt], right: &[SymInt]) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    if left.is_empty() || right.is_empty() {
        refuse!("scalars have no matrix product");
    }
    let (left_batch, m) = left.split_at(left.len().saturating_sub(2));
    let (right_batch, n) = right.split_at(right.len().saturating_sub(2));
    let inner = (&m[m.len() - 1], &n[0]);
    if let (Some(columns), Some(rows)) = (inner.0.as_constant(), inner.1.as_constant())
        && columns != rows
    {
        refuse!("{columns} columns do not fit {rows} rows");
    }
    let mut extents =
        broadcast_extents(deduction, &[Some(left_batch), Some(right_batch)])?.unwrap_or_default();
    extents.extend(m[..m.len() - 1].iter().cloned());
    extents.extend(n[1..].iter().cloned());
    Ok(vec![Fact::tensor(element, Shape::Known(extents))])
}

/// Attention: rows of the queries, columns of the values, and the stacks that all inputs broadcast to.
pub(crate) fn attention(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    let inputs: Option<Vec<&[SymInt]>> = [0, 1, 2].iter().map(|&place| deduction.extents(place)).collect();
    let Some(inputs) = inputs else { return Ok(vec![Fact::tensor(element, Shape::Unknown)]) };
    if inputs.iter().any(|extents| extents.len() < 2) {
        refuse!("queries, keys and values must be stacks of matrices");
    }
    let width = inputs[2][inputs[2].len() - 1].clone();
    // Of keys and values only the stack counts: queries decide how many rows there are, and a mask may make more of one.
    let one = SymInt::from(1);
    let stack_of = |extents: &[SymInt], rows: &SymInt| {
        extents[..extents.len() - 2].iter().chain([rows]).cloned().collect::<Vec<SymInt>>()
    };
    let mut shapes = vec![
        stack_of(inputs[0], &inputs[0][inputs[0].len() - 2]),
        stack_of(inputs[1], &one),
        stack_of(inputs[2], &one),
    ];
    if deduction.input(3).is_some() {
        let Some(mask) = deduction.extents(3) else {
            return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
        };
        shapes.push(mask[..mask.len().saturating_sub(1)].to_vec());
    }
    let shapes: Vec<Option<&[SymInt]>> = shapes.iter().map(|shape| Some(&shape[..])).collect();
    let Some(mut extents) = broadcast_extents(deduction, &shapes)? else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
    };
    extents.push(width);
    Ok(vec![Fact::tensor(element, Shape::Known(extents))])
}

/// A product of two matrices that may be transposed.
pub(crate) fn gemm(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    let (Some([a, b]), Some([c, d])) = (deduction.extents(0), deduction.extents(1)) else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
    };
    let rows = if deduction.flag("transA") { b } else { a };
    let columns = if deduction.flag("transB") { c } else { d };
    Ok(vec![Fact::tensor(element, Shape::Known(vec![rows.clone(), columns.clone()]))])
}

/// Attributes of windows along one dimension.
struct Step {
    kernel: SymInt,
    stride: i64,
    dilation: i64,
    before: i64,
    after: i64,
}

fn text<'a>(deduction: &Deduction<'a>, name: &str, default: &'a str) -> &'a str {
    match deduction.call.attributes.get(name) {
        Some(Attribute::Text(text)) => text,
        _ => default,
    }
}

/// The settings of each dimension, or `None` when the attributes do not fit the rank, which the evaluation reports.
fn steps(deduction: &Deduction<'_>, kernel: &[SymInt]) -> Option<Vec<Step>> {
    let rank = kernel.len();
    let list = |name: &str, default: i64, length: usize| match deduction.ints(name) {
        None => Some(vec![default; length]),
        Some(values) => (values.len() == length).then(|| values.to_vec()),
    };
    let (strides, dilations, pads) =
        (list("strides", 1, rank)?, list("dilations", 1, rank)?, list("pads", 0, 2 * rank)?);
    let step = |d: usize| Step {
        kernel: kernel[d].clone(),
        stride: strides[d],
        dilation: dilations[d],
        before: pads[d],
        after: pads[d + rank],
    };
    (strides.iter().chain(&dilations).all(|&value| value > 0)).then(|| (0..rank).map(step).collect())
}

/// The number of windows along each spatial dimension.
fn windows(deduction: &mut Deduction<'_>, input: &[SymInt], kernel: &[SymInt]) -> Vec<SymInt> {
    let mode = text(deduction, "auto_pad", "NOTSET");
    let rounds_up = deduction.call.operator.attribute("ceil_mode").is_some() && deduction.flag("ceil_mode");
    let Some(steps) = steps(deduction, kernel).filter(|_| input.len() == kernel.len()) else {
        return input.iter().map(|_| deduction.fresh()).collect();
    };
    let mut extents = Vec::with_capacity(steps.len());
    for (extent, step) in input.iter().zip(steps) {
        let stride = SymInt::from(step.stride);
        let span = (&step.kernel - &1.into()).scale(step.dilation);
        let (before, after) = if mode == "VALID" { (0, 0) } else { (step.before, step.after) };
        let room = &(&(extent + &(before + after).into()) - &span) - &1.into();
        extents.push(match mode {
            "SAME_UPPER" | "SAME_LOWER" => extent.ceil_div(&stride),
            // With this, whether the last window starts in the padding depends on the extent.
            _ if rounds_up && room.as_constant().is_none() && step.stride > 1 => deduction.fresh(),
            _ if rounds_up => {
                let count = &room.ceil_div(&stride) + &1.into();
                let behind = count.as_constant().zip(extent.as_constant());
                let drops =
                    behind.is_some_and(|(count, extent)| (count - 1) * step.stride >= extent + before);
                if drops { &count - &1.into() } else { count }
            }
            _ => &room.floor_div(&stride) + &1.into(),
        });
    }
    extents
        .iter()
        .map(
            |extent| {
                if extent.as_constant().is_some_and(|extent| extent < 0) { 0.into() } else { extent.clone() }
            },
        )
        .collect()
}

/// A convolution.
pub(crate) fn conv(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    conv_of(deduction, [0, 1])
}

/// A convolution of an input and weights that two inputs give.
pub(crate) fn conv_of(deduction: &mut Deduction<'_>, [x, weights]: [usize; 2]) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(x);
    let (Some([batch, _, input @ ..]), Some([filters, _, kernel @ ..])) =
        (deduction.extents(x), deduction.extents(weights))
    else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
    };
    let mut extents = vec![batch.clone(), filters.clone()];
    extents.extend(windows(deduction, input, kernel));
    Ok(vec![Fact::tensor(element, Shape::Known(extents))])
}

/// A transposed convolution.
pub(crate) fn conv_transpose(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    let (Some([batch, _, input @ ..]), Some([_, filters, kernel @ ..])) =
        (deduction.extents(0), deduction.extents(1))
    else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
    };
    let groups = deduction.int("group").unwrap_or(1);
    let mut extents = vec![batch.clone(), filters.scale(groups)];
    let plain = deduction.ints("output_shape").is_none() && text(deduction, "auto_pad", "NOTSET") == "NOTSET";
    let added = deduction.ints("output_padding").map_or_else(|| vec![0; input.len()], <[i64]>::to_vec);
    let steps = steps(deduction, kernel)
        .filter(|_| plain && kernel.len() == input.len() && added.len() == input.len());
    match steps {
        None => extents.extend(input.iter().map(|_| deduction.fresh())),
        Some(steps) => extents.extend(input.iter().zip(steps).zip(added).map(|((extent, step), added)| {
            let span = (&step.kernel - &1.into()).scale(step.dilation);
            let full = &(extent - &1.into()).scale(step.stride) + &span;
            &full + &(1 + added - step.before - step.after).into()
        })),
    }
    Ok(vec![Fact::tensor(element, Shape::Known(extents))])
}

/// Pooling over windows that an attribute describes.
pub(crate) fn pool(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    let (Some([batch, channels, input @ ..]), Some(kernel)) =
        (deduction.extents(0), deduction.ints("kernel_shape"))
    else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
    };
    let kernel: Vec<SymInt> = kernel.iter().map(|&extent| extent.into()).collect();
    let mut extents = vec![batch.clone(), channels.clone()];
    extents.extend(windows(deduction, input, &kernel));
    let shape = Shape::Known(extents);
    let places = Fact::tensor(Some(crate::tensor::ElementType::I64), shape.clone());
    Ok(vec![Fact::tensor(element, shape), places])
}

/// Pooling backwards: as many elements as windows of an attribute cover, or as the third input says.
pub(crate) fn max_unpool(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    if deduction.input(2).is_some() {
        let shape = deduction.contents(2).map(<[SymInt]>::to_vec);
        return Ok(vec![Fact::tensor(element, shape.map_or(Shape::Unknown, Shape::Known))]);
    }
    let (Some([batch, channels, input @ ..]), Some(kernel)) =
        (deduction.extents(0), deduction.ints("kernel_shape"))
    else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
    };
    let kernel: Vec<SymInt> = kernel.iter().map(|&extent| extent.into()).collect();
    let Some(steps) = steps(deduction, &kernel).filter(|_| input.len() == kernel.len()) else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
    };
    let mut extents = vec![batch.clone(), channels.clone()];
    extents.extend(input.iter().zip(steps).map(|(extent, step)| {
        let full = &(extent - &1.into()).scale(step.stride) + &step.kernel;
        &full - &(step.before + step.after).into()
    }));
    Ok(vec![Fact::tensor(element, Shape::Known(extents))])
}

/// Pooling over all spatial dimensions.
pub(crate) fn global_pool(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let shape = match deduction.extents(0) {
        Some([batch, channels, input @ ..]) => {
            let ones = input.iter().map(|_| SymInt::from(1));
            Shape::Known([batch.clone(), channels.clone()].into_iter().chain(ones).collect())
        }
        _ => Shape::Unknown,
    };
    Ok(vec![Fact::tensor(deduction.element(0), shape)])
}

/// The extents of the labels that a sum of products keeps.
pub(crate) fn einsum(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    let inputs: Option<Vec<&[SymInt]>> =
        (0..deduction.call.inputs.len()).map(|place| deduction.extents(place)).collect();
    let Some(inputs) = inputs else { return Ok(vec![Fact::tensor(element, Shape::Unknown)]) };
    let ranks: Vec<usize> = inputs.iter().map(|extents| extents.len()).collect();
    let contraction = Contraction::parse(text(deduction, "equation", ""), &ranks)?;
    let extent = |label: &Label| {
        let own =
            contraction.inputs.iter().zip(&inputs).flat_map(|(labels, extents)| labels.iter().zip(*extents));
        let mut found = own.filter(|(other, _)| *other == label).map(|(_, extent)| extent);
        let first = found.next().cloned().unwrap_or_else(|| 1.into());
        found.fold(first, |known, extent| if known.is(1) { extent.clone() } else { known })
    };
    Ok(vec![Fact::tensor(element, Shape::Known(contraction.kept.iter().map(extent).collect()))])
}
