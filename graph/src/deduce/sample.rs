//! Types of what samples pictures.

use crate::deduce::{Deduction, Fact};
use crate::ir::Shape;
use crate::operator::Fault;

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
