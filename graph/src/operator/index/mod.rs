//! Operators that read or write places which other tensors name, and selections.

mod boxes;
mod gather;
mod pad;
mod scatter;
mod search;
mod slice;

use crate::operator::{Fault, Operator};

pub use slice::slice_places;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[
    slice::OPERATORS,
    pad::OPERATORS,
    gather::OPERATORS,
    scatter::OPERATORS,
    search::OPERATORS,
    boxes::OPERATORS,
];

/// A place from a number that may count from the end. Outside is an error.
pub(super) fn place(number: i64, extent: usize) -> Result<usize, Fault> {
    let signed = extent as i64;
    if number < -signed || number >= signed {
        return Err(Fault(format!("index {number} is outside a dimension of extent {extent}")));
    }
    Ok(if number < 0 { number + signed } else { number } as usize)
}
