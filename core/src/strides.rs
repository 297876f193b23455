//! Where the elements of a buffer lie in memory.
//!
//! A buffer is dense and row-major, with two exceptions. The distances of an intermediate may be [aligned](Program::align): lowering
//! chooses them. A parameter may have *strides*, which the caller chooses: the view of a matrix's columns, a transposed
//! matrix, a row that is repeated. Element `[i, j]` is then element `i·s + j·t` of a memory that ends with the last element of the
//! view. The elements of a result lie apart, and the memory between them stays as it is: results of several calls can be parts of one
//! tensor. Parameters without strides are dense.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::expr::Indices;
use crate::ids::BufferId;
use crate::index::Index;
use crate::program::Program;

/// The strides of parameters, in elements.
pub(crate) type StrideTable = Arc<BTreeMap<BufferId, Vec<Index>>>;

impl Program {
    /// The distance of neighbours along each dimension of a parameter, in elements; `None` for a dense buffer.
    pub fn strides(&self, id: BufferId) -> Option<&[Index]> {
        self.stride_table.get(&id).map(Vec::as_slice)
    }

    /// Says how far neighbours of a parameter are apart, in elements: a value that dimensions give, and that is at least 0, for each dimension.
    /// Elements of a parameter that is written must [lie apart](lie_apart).
    pub fn set_strides(&mut self, id: BufferId, strides: Vec<Index>) {
        Arc::make_mut(&mut self.stride_table).insert(id, strides);
    }

    /// Makes a parameter dense.
    pub(crate) fn forget_strides(&mut self, id: BufferId) {
        if self.strides(id).is_some() {
            Arc::make_mut(&mut self.stride_table).remove(&id);
        }
    }

    /// The distance of neighbours along each dimension of a buffer, apart from alignments.
    pub fn distances(&self, id: BufferId) -> Vec<Index> {
        if let Some(strides) = self.strides(id) {
            return strides.to_vec();
        }
        let shape = &self.buffer(id).shape;
        let mut distances = vec![Index::constant(1); shape.len()];
        for axis in (1..shape.len()).rev() {
            distances[axis - 1] = distances[axis].multiply(&shape[axis]);
        }
        distances
    }

    /// How many elements the memory of a parameter has, apart from alignments; there is at least one element.
    pub fn memory_len(&self, id: BufferId) -> Index {
        reach(&self.buffer(id).shape, &self.distances(id))
    }

    /// The position of an element in the memory of its buffer, apart from alignments.
    pub fn place(&self, id: BufferId, indices: &Indices) -> Index {
        let distances = self.distances(id);
        indices.iter().zip(&distances).fold(Index::constant(0), |place, (index, distance)| {
            place.add_scaled(&index.multiply(distance), 1)
        })
    }
}

/// Whether strides keep all elements of a shape apart: ordered by their strides, each dimension steps over all elements of those before it. Strides
/// that interleave otherwise count as not apart, although some of them are.
///
/// Exact for slices and transpositions of dense tensors.
pub fn lie_apart(shape: &[i64], strides: &[i64]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut dimensions: Vec<(i64, i64)> =
        strides.iter().copied().zip(shape.iter().copied()).filter(|&(_, extent)| extent > 1).collect();
    dimensions.sort_unstable();
    let mut reach: i64 = 1;
    dimensions.into_iter().all(|(stride, extent)| {
        let is_apart = stride >= reach;
        reach = reach.saturating_add((extent - 1).saturating_mul(stride));
        is_apart
    })
}

/// How many elements a memory has that ends with the last element of a shape; there is at least one element.
pub(crate) fn reach(shape: &[Index], strides: &[Index]) -> Index {
    shape.iter().zip(strides).fold(Index::constant(1), |len, (extent, stride)| {
        len.add_scaled(&extent.offset(-1).multiply(stride), 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_apart() {
        assert!(lie_apart(&[3, 4], &[4, 1]) && lie_apart(&[3, 4], &[1, 3]) && lie_apart(&[3, 4], &[9, 2]));
        assert!(lie_apart(&[3, 1], &[1, 0]), "one element lies anywhere");
        assert!(lie_apart(&[], &[]) && lie_apart(&[0, 4], &[4, 1]) && lie_apart(&[0, 4], &[1, 0]));
        assert!(!lie_apart(&[3, 4], &[3, 1]) && !lie_apart(&[3, 4], &[0, 1]) && !lie_apart(&[2], &[0]));
        assert!(lie_apart(&[3, i64::MAX], &[7, i64::MAX]), "without overflow");
    }
}
