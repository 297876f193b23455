//! Types of what samples pictures, and of random samples.

use crate::deduce::{Deduction, Fact};
use crate::ir::{Attribute, Shape};
use crate::operator::Fault;
use crate::tensor::ElementType;

/// Batch and channels of the first input, then the places of the grid.
pub(crate) fn grid_sample(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let shape = match (deduction.extents(0), deduction.extents(1)) {
        (Some([batch, channels, ..]), Some([_, places @ .., _])) => {
            Shape::Known([&[batch.clone(), channels.clone()], places].concat())
        }
        _ => Shape::Unknown,
    };
    Ok(vec![Fact::tensor(deduction.element(0), shape)])
}

/// A picture of a given size for each region and channel.
pub(crate) fn roi_align(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let size = |name| deduction.int(name).unwrap_or(1).max(0);
    let (height, width) = (size("output_height"), size("output_width"));
    let shape = match (deduction.extents(0), deduction.extents(1)) {
        (Some([_, channels, ..]), Some([regions, ..])) => {
            Shape::Known(vec![regions.clone(), channels.clone(), height.into(), width.into()])
        }
        _ => Shape::Unknown,
    };
    Ok(vec![Fact::tensor(deduction.element(0), shape)])
}

/// Picture, class and number of each box that is chosen.
pub(crate) fn chosen_boxes(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let count = deduction.fresh();
    Ok(vec![Fact::tensor(Some(ElementType::I64), Shape::Known(vec![count, 3.into()]))])
}

fn dtype(deduction: &Deduction<'_>, usual: ElementType) -> Option<ElementType> {
    match deduction.call.attributes.get("dtype") {
        Some(Attribute::Element(element)) => Some(*element),
        _ => Some(usual),
    }
}

/// The shape that an attribute names.
pub(crate) fn of_shape_attribute(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let extents = deduction.ints("shape").unwrap_or_default();
    let shape = Shape::Known(extents.iter().map(|&extent| extent.into()).collect());
    Ok(vec![Fact::tensor(dtype(deduction, ElementType::F32), shape)])
}

/// As many samples as an attribute says, for each row.
pub(crate) fn multinomial(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let samples = deduction.int("sample_size").unwrap_or(1);
    let shape = match deduction.extents(0) {
        Some([rows, _]) => Shape::Known(vec![rows.clone(), samples.into()]),
        _ => Shape::Unknown,
    };
    Ok(vec![Fact::tensor(dtype(deduction, ElementType::I32), shape)])
}
