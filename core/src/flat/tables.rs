//! Loads from tables: the element that a byte names.
//!
//! Any other index that depends on data is checked when the kernel runs, and has no vector form. A byte cannot leave a table of 256 elements, and
//! vector instructions look up the bytes of all lanes at once.

use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::ids::BufferId;
use crate::index::{Base, Index};
use crate::program::Program;

/// How many bytes there are.
pub const BYTES: usize = 256;

/// The byte by which a load reads a table, if it does so: a buffer of one dimension with at least [`BYTES`] elements of 8 or 32 bits.
pub fn byte_of_look_up<'a>(program: &Program, buffer: BufferId, indices: &'a [Index]) -> Option<&'a Expr> {
    let buffer = program.buffer(buffer);
    let ([extent], [index]) = (&buffer.shape[..], indices) else { return None };
    let is_table = extent.as_constant().is_some_and(|extent| extent >= BYTES as i64)
        && matches!(buffer.dtype, DType::U8 | DType::I8 | DType::I32 | DType::F32);
    let [term] = index.terms() else { return None };
    if !is_table || index.constant_part() != 0 || term.coefficient != 1 || !term.digit.is_whole() {
        return None;
    }
    let Base::Value(value) = &term.digit.base else { return None };
    match value.kind() {
        ExprKind::Cast(byte) if byte.dtype() == DType::U8 => Some(byte),
        _ => None,
    }
}
