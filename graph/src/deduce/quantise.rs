//! Types of operators on quantised numbers.

use crate::deduce::elementwise::shape_of;
use crate::deduce::{Deduction, Fact, linear};
use crate::ir::{Attribute, Shape};
use crate::operator::{Fault, refuse};
use crate::tensor::ElementType;

/// The element type that an attribute names.
fn named(deduction: &Deduction<'_>) -> Option<ElementType> {
    match deduction.call.attributes.get("output_dtype") {
        Some(Attribute::Element(element)) => Some(*element),
        _ => None,
    }
}

/// Integers of the zero point's type.
pub(crate) fn quantize(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = match deduction.input(2) {
        Some(_) => deduction.element(2),
        None => named(deduction).or(Some(ElementType::U8)),
    };
    Ok(vec![Fact::tensor(element, shape_of(deduction, 0))])
}

/// Numbers of the scale's type.
pub(crate) fn dequantize(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = named(deduction).or(deduction.element(1));
    Ok(vec![Fact::tensor(element, shape_of(deduction, 0))])
}

/// Elements of a table in the places of bytes.
pub(crate) fn look_up(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    Ok(vec![Fact::tensor(deduction.element(1), shape_of(deduction, 0))])
}

/// Bytes, their scale and their zero point.
pub(crate) fn dynamic_quantize(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let scalar = |element| Fact::tensor(Some(element), Shape::fixed(&[]));
    let bytes = Fact::tensor(Some(ElementType::U8), shape_of(deduction, 0));
    Ok(vec![bytes, scalar(ElementType::F32), scalar(ElementType::U8)])
}

/// A product with a matrix in blocks: the last extent becomes the number of columns.
pub(crate) fn block_product(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    let columns = match deduction.call.attributes.get("columns") {
        Some(Attribute::Int(columns)) if *columns >= 0 => *columns,
        _ => refuse!("attribute columns must be a number of columns"),
    };
    let Some(extents) = deduction.extents(0) else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown)]);
    };
    let Some((_, rows)) = extents.split_last() else { refuse!("scalars have no matrix product") };
    let extents = rows.iter().cloned().chain([columns.into()]).collect();
    Ok(vec![Fact::tensor(element, Shape::Known(extents))])
}

/// A product of integers.
pub(crate) fn matmul_integer(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    to_i32(linear::matmul(deduction)?)
}

/// A convolution of integers.
pub(crate) fn conv_integer(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    to_i32(linear::conv(deduction)?)
}

/// A product of integers that is stored as integers of its zero point's type.
pub(crate) fn qlinear_matmul(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let facts = linear::matmul_of(deduction, [0, 3])?;
    Ok(to_element(&facts, deduction.element(7)))
}

/// A convolution of integers that is stored as integers of its zero point's type.
pub(crate) fn qlinear_conv(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let facts = linear::conv_of(deduction, [0, 3])?;
    Ok(to_element(&facts, deduction.element(7)))
}

fn to_i32(facts: Vec<Fact>) -> Result<Vec<Fact>, Fault> {
    Ok(to_element(&facts, Some(ElementType::I32)))
}

/// The same shapes with elements of another type.
fn to_element(facts: &[Fact], element: Option<ElementType>) -> Vec<Fact> {
    let shape = |fact: &Fact| fact.ty.as_tensor().map_or(Shape::Unknown, |tensor| tensor.shape.clone());
    facts.iter().map(|fact| Fact::tensor(element, shape(fact))).collect()
}
