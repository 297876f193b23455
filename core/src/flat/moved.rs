//! Values that only move an element from one buffer to another.

use crate::expr::{Constant, Expr, ExprKind, Indices};
use crate::ids::BufferId;

/// An element of a buffer, or zero in its place where a condition does not hold.
#[derive(Clone, Debug)]
pub struct MovedElement<'e> {
    /// The buffer.
    pub buffer: BufferId,
    /// The index of each dimension. It may be outside of the buffer where a condition does not hold.
    pub indices: &'e Indices,
    /// The conditions, all of which have to hold.
    pub conditions: Vec<&'e Expr>,
}

/// The element that a value is; `None` where it is something else.
pub fn moved_element(value: &Expr) -> Option<MovedElement<'_>> {
    match value.kind() {
        ExprKind::Load(buffer, indices) => {
            Some(MovedElement { buffer: *buffer, indices, conditions: Vec::new() })
        }
        ExprKind::Select(condition, then, otherwise) if has_no_bits(otherwise) => {
            let mut moved = moved_element(then)?;
            moved.conditions.insert(0, condition);
            Some(moved)
        }
        _ => None,
    }
}

/// Whether all bits of a constant are zero.
fn has_no_bits(value: &Expr) -> bool {
    matches!(value.as_constant(), Some(Constant::Int(0) | Constant::Float(0)))
}
