//! Functions of bytes as tables.

use tilewright_core::dtype::DType;
use tilewright_core::flat::tables::BYTES;

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::{Unsupported, unsupported};

/// The element of a table that each byte names.
pub(crate) fn look_up(emitter: &mut Emitter, operands: &Operands<'_>) -> Result<Vec<Tensor>, Unsupported> {
    let (x, table) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    if !matches!(x.dtype, DType::U8 | DType::I8) {
        unsupported!("elements of type {} are no bytes", x.element);
    }
    if !matches!(&table.extents[..], [extent] if extent.is(BYTES as i64)) {
        unsupported!("a table has {BYTES} elements");
    }
    let result = emitter.compute(table.element, &x.extents, &mut |builder, indices| {
        let byte = x.at(builder, indices);
        let byte = if x.dtype == DType::U8 { byte } else { byte.cast(DType::U8) };
        table.at(builder, &[byte.cast(DType::I64)])
    })?;
    Ok(vec![result])
}
