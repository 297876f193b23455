//! Types of what is computed element by element.

use crate::deduce::{Deduction, Fact};
use crate::ir::{Attribute, Shape};
use crate::operator::Fault;
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// The type of the first input.
pub(crate) fn same(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    Ok(vec![deduction.input(0).map_or_else(Fact::unknown, |input| Fact::of_type(input.ty.clone()))])
}

/// The extents to which shapes broadcast, or `None` when a rank is not known.
pub(crate) fn broadcast_extents(
    deduction: &mut Deduction<'_>,
    shapes: &[Option<&[SymInt]>],
) -> Result<Option<Vec<SymInt>>, Fault> {
    let Some(shapes) = shapes.iter().copied().collect::<Option<Vec<&[SymInt]>>>() else { return Ok(None) };
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut extents = vec![SymInt::from(1); rank];
    for shape in shapes {
        let missing = rank - shape.len();
        for (extent, other) in extents[missing..].iter_mut().zip(shape) {
            *extent = broadcast_extent(deduction, extent, other)?;
        }
    }
    Ok(Some(extents))
}

fn broadcast_extent(deduction: &mut Deduction<'_>, left: &SymInt, right: &SymInt) -> Result<SymInt, Fault> {
    Ok(match (left.as_constant(), right.as_constant()) {
        _ if left == right => left.clone(),
        (Some(1), _) => right.clone(),
        (_, Some(1)) => left.clone(),
        (Some(a), Some(b)) => return Err(Fault(format!("extents {a} and {b} do not broadcast"))),
        // Whatever the symbol is, it has to be 1 or the constant.
        (Some(_), None) => left.clone(),
        (None, Some(_)) => right.clone(),
        (None, None) => deduction.fresh(),
    })
}

fn broadcast_inputs(deduction: &mut Deduction<'_>, element: Option<ElementType>) -> Result<Vec<Fact>, Fault> {
    let shapes: Vec<_> = (0..deduction.call.inputs.len()).map(|place| deduction.extents(place)).collect();
    let extents = broadcast_extents(deduction, &shapes)?;
    Ok(vec![Fact::tensor(element, extents.map_or(Shape::Unknown, Shape::Known))])
}

/// All inputs broadcast; the element type is that of the first.
pub(crate) fn broadcast(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    broadcast_inputs(deduction, element)
}

/// All inputs broadcast to truth values.
pub(crate) fn compare(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    broadcast_inputs(deduction, Some(ElementType::Bool))
}

/// All inputs broadcast; the first is a condition.
pub(crate) fn choose(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(1).or(deduction.element(2));
    broadcast_inputs(deduction, element)
}

/// The shape of the first input, with the element type of an attribute.
pub(crate) fn cast(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = match deduction.call.attributes.get("to") {
        Some(Attribute::Element(element)) => Some(*element),
        _ => None,
    };
    Ok(vec![Fact::tensor(element, shape_of(deduction, 0))])
}

/// The shape of the first input, with the element type of the second.
pub(crate) fn cast_like(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    Ok(vec![Fact::tensor(deduction.element(1), shape_of(deduction, 0))])
}

pub(super) fn shape_of(deduction: &Deduction<'_>, place: usize) -> Shape {
    deduction.extents(place).map_or(Shape::Unknown, |extents| Shape::Known(extents.to_vec()))
}
