//! Buffers of one dimension: row-major, or by the strides of a parameter; distances may be symbolic.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::access::rewrite_accesses;
use crate::expr::Indices;
use crate::ids::BufferId;
use crate::index::Index;
use crate::layout::Layout;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Access, Alignment, Buffer, Param, Program};
use crate::strides::reach;
use crate::swizzle::Swizzle;

/// Makes every buffer one-dimensional.
pub(in crate::lower) fn flatten_buffers(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    let shapes: Vec<(BufferId, Buffer)> =
        program.buffers().map(|(id, buffer)| (id, buffer.clone())).collect();
    let mut strides: FxHashMap<BufferId, Vec<Index>> = FxHashMap::default();
    for (id, buffer) in shapes {
        let (len, of_buffer) = match program.strides(id) {
            Some(strides) => (reach(&buffer.shape, strides), strides.to_vec()),
            None => row_major(program, id, &buffer.shape),
        };
        let is_dense = program.strides(id).is_none();
        keep_rows(program, id, &buffer);
        program.forget_alignments(id);
        if !is_dense {
            keep_between(program, id);
        }
        program.forget_strides(id);
        check_size(&buffer)?;
        if buffer.shape.len() != 1 || !is_dense {
            program.buffer_mut(id).shape = vec![len];
            if buffer.constant_len().is_none() {
                program.layouts.insert(id, Layout { shape: buffer.shape, strides: of_buffer.clone() });
            }
            strides.insert(id, of_buffer);
        }
    }
    rewrite_accesses(&mut program.body, &|buffer, indices| {
        let strides = strides.get(&buffer)?;
        let offset = indices.iter().zip(strides).fold(Index::constant(0), |offset, (index, stride)| {
            offset.add_scaled(&index.multiply(stride), 1)
        });
        Some((buffer, Indices::from_iter([offset])))
    });
    Ok(())
}

/// Says that the elements between those of a result stay: the flat buffer has them as well.
fn keep_between(program: &mut Program, id: BufferId) {
    let params = Arc::make_mut(&mut program.params);
    for param in params.iter_mut().filter(|param| **param == Param::Buffer(id, Access::Output)) {
        *param = Param::Buffer(id, Access::InOut);
    }
}

/// Notes the length of the rows of a swizzled buffer, which its shape says no more. Where sizes are symbolic, the layout is a plain one.
fn keep_rows(program: &mut Program, id: BufferId, buffer: &Buffer) {
    let Some(Swizzle { row: 0 }) = program.swizzle(id) else { return };
    let is_known = buffer.constant_len().is_some() && !buffer.dtype.is_storage_only();
    let row = buffer.shape.last().and_then(Index::as_constant).filter(|_| is_known);
    match row.filter(|row| (1..=Swizzle::MAX_ROW).contains(row)) {
        Some(row) => program.set_swizzle(id, Swizzle { row }),
        None => program.forget_swizzle(id),
    }
}

/// The number of elements, and the distance of neighbours along each dimension.
fn row_major(program: &Program, id: BufferId, shape: &[Index]) -> (Index, Vec<Index>) {
    let mut strides = vec![Index::constant(1); shape.len()];
    let mut len = Index::constant(1);
    for (axis, (stride, extent)) in strides.iter_mut().zip(shape).enumerate().rev() {
        if let Some((_, Alignment { factor, offset })) =
            program.alignments(id).find(|(other, _)| *other == axis)
        {
            len = len.offset(-offset).ceil_div(factor).scale(factor).offset(offset);
        }
        *stride = len.clone();
        len = len.multiply(extent);
    }
    (len, strides)
}

/// Checks that the constant part of a buffer's size fits; symbolic dimensions are checked by each call.
fn check_size(buffer: &Buffer) -> Result<(), LowerError> {
    let bytes = buffer
        .shape
        .iter()
        .filter_map(Index::as_constant)
        .try_fold(buffer.dtype.bytes() as i64, |product, extent| product.checked_mul(extent));
    match bytes {
        Some(_) => Ok(()),
        None => Err(LowerError::TooLarge {
            pass: "flatten_buffers",
            buffer: buffer.name.to_string(),
            shape: buffer
                .shape
                .iter()
                .map(|extent| extent.as_constant().map_or_else(|| "symbolic".to_owned(), |e| e.to_string()))
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}
