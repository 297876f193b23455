//! Functions of bytes as tables.

use tilewright_core::flat::tables::BYTES;

use crate::operator::evaluate::{one, refuse};
use crate::operator::select::take;
use crate::operator::{Arguments, Fault, Value};

/// For each byte, the element of a table of 256 that it names. Inputs: bytes, table. A signed byte names the element of its bits, so that -1 names
/// the last one.
pub(super) fn look_up(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, table) = (arguments.tensor(0)?, arguments.tensor(1)?);
    if x.element().dtype().is_none_or(|dtype| dtype.bits() != 8) {
        refuse!("elements of type {} are no bytes", x.element());
    }
    if table.shape() != [BYTES] {
        refuse!("a table has {BYTES} elements in one dimension, not the shape {:?}", table.shape());
    }
    let places = arguments.integers(0)?.into_iter().map(|byte| byte as u8 as usize);
    one(take(table, x.shape(), places)?)
}
