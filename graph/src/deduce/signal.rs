//! Types of Fourier transforms.

use crate::deduce::{Deduction, Fact};
use crate::ir::{Attribute, Shape};
use crate::operator::{Fault, axis};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// A window, whose length is an input.
pub(crate) fn window(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = match deduction.call.attributes.get("output_datatype") {
        Some(Attribute::Element(element)) => *element,
        _ => ElementType::F32,
    };
    let length = deduction.contents(0).and_then(<[SymInt]>::first).cloned();
    let length = length.unwrap_or_else(|| deduction.fresh());
    Ok(vec![Fact::tensor(Some(element), Shape::Known(vec![length]))])
}

/// The number of coefficients of which the others are conjugates.
fn half(length: &SymInt) -> SymInt {
    match length.as_constant() {
        Some(length) => (length / 2 + 1).into(),
        None => &length.ceil_div(&2.into()) + &SymInt::from(1),
    }
}

/// A transform along a dimension.
pub(crate) fn dft(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    let number = match deduction.input(2) {
        None => Some(-2),
        Some(_) => deduction.constants(2).and_then(|numbers| numbers.first().copied()),
    };
    let (Some(extents), Some(number)) = (deduction.extents(0), number) else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
    };
    let along = axis(number, extents.len())?;
    let (inverse, onesided) = (deduction.flag("inverse"), deduction.flag("onesided"));
    let length = match deduction.input(1) {
        None if inverse && onesided => extents[along].as_constant().map(|extent| (2 * (extent - 1)).into()),
        None => Some(extents[along].clone()),
        Some(_) => deduction.contents(1).and_then(<[SymInt]>::first).cloned(),
    };
    let mut result = extents.to_vec();
    result[along] = match length {
        Some(length) if !onesided || inverse => length,
        Some(length) if length.as_constant().is_some() => half(&length),
        _ => deduction.fresh(),
    };
    if let Some(parts) = result.last_mut() {
        *parts = if inverse && onesided { 1 } else { 2 }.into();
    }
    Ok(vec![Fact::tensor(element, Shape::Known(result))])
}

/// Transforms of frames: batch, frames, coefficients, parts.
pub(crate) fn stft(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    let Some([batch, samples, ..]) = deduction.extents(0) else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
    };
    let given = deduction.constants(3).and_then(|numbers| numbers.first().copied());
    let window = || deduction.extents(2).and_then(|extents| extents.first()?.as_constant());
    let length = given.or_else(window);
    let hop = deduction.constants(1).and_then(|numbers| numbers.first().copied()).filter(|&hop| hop > 0);
    let frames = match (samples.as_constant(), length, hop) {
        (Some(samples), Some(length), Some(hop)) if samples >= length => {
            Some(((samples - length) / hop + 1).into())
        }
        _ => None,
    };
    let kept =
        length.map(|length| if deduction.flag("onesided") { half(&length.into()) } else { length.into() });
    let extents = [Some(batch.clone()), frames, kept, Some(2.into())];
    let extents = extents.map(|extent: Option<SymInt>| extent.unwrap_or_else(|| deduction.fresh()));
    Ok(vec![Fact::tensor(element, Shape::Known(extents.to_vec()))])
}
