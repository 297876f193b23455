//! Types of recurrent layers.

use crate::deduce::{Deduction, Fact};
use crate::ir::Shape;
use crate::operator::Fault;

/// All states, then the last ones of hidden units and of cells.
pub(crate) fn recurrent(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    let (Some([first, second, _]), Some([directions, ..])) = (deduction.extents(0), deduction.extents(1))
    else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown); deduction.outputs]);
    };
    // The width of a state is the number of columns of the recurrent weights, or of their rows where these are turned.
    let hidden = match (deduction.int("hidden_size"), deduction.extents(2)) {
        (Some(hidden), _) => hidden.into(),
        (None, Some([_, _, hidden])) if deduction.call.operator.domain.is_empty() => hidden.clone(),
        (None, Some([_, hidden, _])) => hidden.clone(),
        _ => deduction.fresh(),
    };
    let batch_first = deduction.call.operator.attribute("layout").is_some() && deduction.flag("layout");
    let tensor = |extents: [&crate::symbolic::SymInt; 4]| {
        Fact::tensor(element, Shape::Known(extents.into_iter().cloned().collect()))
    };
    let state = |extents: [&crate::symbolic::SymInt; 3]| {
        Fact::tensor(element, Shape::Known(extents.into_iter().cloned().collect()))
    };
    let (all, last) = if batch_first {
        (tensor([first, second, directions, &hidden]), state([first, directions, &hidden]))
    } else {
        (tensor([first, directions, second, &hidden]), state([directions, second, &hidden]))
    };
    Ok(vec![all, last.clone(), last])
}
