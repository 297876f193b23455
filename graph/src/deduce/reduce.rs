//! Types of reductions.

use crate::deduce::{Deduction, Fact};
use crate::ir::Shape;
use crate::operator::{Fault, axis};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// A reduction over the dimensions that the second input names.
pub(crate) fn reduce(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    let Some(extents) = deduction.extents(0) else { return Ok(vec![Fact::tensor(element, Shape::Unknown)]) };
    let given = deduction.input(1).is_some();
    let axes = if given { deduction.constants(1) } else { Some(Vec::new()) };
    let keeps = deduction.flag("keepdims");
    let Some(axes) = axes else {
        let shape = match (keeps, deduction.length(1)) {
            (true, _) => deduction.fresh_shape(extents.len()),
            (false, Some(removed)) if removed > 0 => {
                deduction.fresh_shape(extents.len().saturating_sub(removed))
            }
            _ => Shape::Unknown,
        };
        return Ok(vec![Fact::tensor(element, shape)]);
    };
    let all = axes.is_empty() && !deduction.flag("noop_with_empty_axes");
    let mut reduced = vec![all; extents.len()];
    for number in axes {
        reduced[axis(number, extents.len())?] = true;
    }
    Ok(vec![Fact::tensor(element, reduced_shape(extents, &reduced, keeps))])
}

/// The place of an extreme along one dimension.
pub(crate) fn arg_reduce(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let shape = match deduction.extents(0) {
        None => Shape::Unknown,
        Some(extents) => {
            let mut reduced = vec![false; extents.len()];
            reduced[axis(deduction.int("axis").unwrap_or(0), extents.len())?] = true;
            reduced_shape(extents, &reduced, deduction.flag("keepdims"))
        }
    };
    Ok(vec![Fact::tensor(Some(ElementType::I64), shape)])
}

fn reduced_shape(extents: &[SymInt], reduced: &[bool], keeps: bool) -> Shape {
    let extent = |(extent, &reduced): (&SymInt, &bool)| match (reduced, keeps) {
        (false, _) => Some(extent.clone()),
        (true, true) => Some(1.into()),
        (true, false) => None,
    };
    Shape::Known(extents.iter().zip(reduced).filter_map(extent).collect())
}
