//! The shapes that flat buffers had.
//!
//! The place of an element in flat memory is the sum of its indices times the distances of neighbours. Where extents are symbolic, this is
//! a polynomial in the dimensions, whose bounds say little: `i·N + j` lies inside of `M·N` elements because `i < M` and
//! `j < N`. [`Layout::indices`] finds these indices again, each of which is compared with its own extent.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::ids::BufferId;
use crate::index::{Facts, Index, Ranges};
use crate::program::Program;
use crate::strides::reach;

/// The extents of a buffer and the distances of neighbours along each dimension, in elements, outermost first.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) shape: Vec<Index>,
    pub(crate) strides: Vec<Index>,
}

/// The layouts of the flat buffers of a program. They follow from the program that was flattened and only help to prove what the
/// flat one says as well: programs that differ in them alone are equal, and their text leaves them out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layouts(Arc<BTreeMap<BufferId, Layout>>);

impl PartialEq for Layouts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Layouts {}

impl Hash for Layouts {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Layouts {
    pub(crate) fn insert(&mut self, buffer: BufferId, layout: Layout) {
        Arc::make_mut(&mut self.0).insert(buffer, layout);
    }
}

impl Layout {
    /// Indices, one for each dimension, whose element is at a place. They need not lie inside the extents. `None` when none are
    /// found.
    pub(crate) fn indices(&self, place: &Index) -> Option<Vec<Index>> {
        let mut rest = place.clone();
        let mut indices = Vec::with_capacity(self.strides.len());
        for stride in &self.strides {
            let (index, left) = rest.divide_with_rest(stride)?;
            indices.push(index);
            rest = left;
        }
        (rest.as_constant() == Some(0)).then_some(indices)
    }

    /// Other indices of the same element, where one is not known to be at least 0: the last column `W - 1` of a row is found as column
    /// `-1` of the next one.
    fn carry(&self, indices: &mut [Index], is_nonnegative: &dyn Fn(&Index) -> bool) {
        for axis in (1..indices.len()).rev() {
            let is_row = self.strides[axis - 1] == self.strides[axis].multiply(&self.shape[axis]);
            if is_row && !is_nonnegative(&indices[axis]) {
                indices[axis] = &indices[axis] + &self.shape[axis];
                indices[axis - 1] = indices[axis - 1].offset(-1);
            }
        }
    }

    /// Whether every place inside of the shape is less than `len`.
    fn fits(&self, len: &Index, ranges: &Ranges) -> bool {
        reach(&self.shape, &self.strides).is_provably_at_most(len, ranges)
            && self.strides.iter().all(|stride| stride.is_provably_nonnegative(ranges))
    }
}

impl Program {
    /// Whether all lanes of an index into a flat buffer are proved to lie inside of it wherever the facts hold.
    pub fn is_provably_inside(
        &self,
        buffer: BufferId,
        place: &Index,
        facts: &Facts,
        ranges: &Ranges,
    ) -> bool {
        let extents = &self.buffer(buffer).shape;
        let len = extents.first().cloned().unwrap_or_else(|| 1.into());
        let is_inside = |index: &Index, extent: &Index| {
            facts.prove_nonnegative(index, ranges)
                && facts.prove_nonnegative(&(extent - index).offset(-1), ranges)
        };
        is_inside(place, &len)
            || self.layouts.0.get(&buffer).is_some_and(|layout| {
                layout.indices(place).is_some_and(|mut indices| {
                    layout.carry(&mut indices, &|index| facts.prove_nonnegative(index, ranges));
                    indices.iter().zip(&layout.shape).all(|(index, extent)| is_inside(index, extent))
                        && layout.fits(&len, ranges)
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::VarId;

    fn var(number: u32) -> Index {
        Index::var(VarId(number))
    }

    /// A plane of `2·H × (W + 2) × 24` elements.
    fn layout() -> Layout {
        let shape = vec![var(8).scale(2), var(9).offset(2), Index::constant(24)];
        let strides = vec![shape[1].scale(24), Index::constant(24), Index::constant(1)];
        Layout { shape, strides }
    }

    fn place(layout: &Layout, indices: &[Index]) -> Index {
        let terms = indices.iter().zip(&layout.strides);
        terms.fold(Index::constant(0), |place, (index, stride)| &place + &index.multiply(stride))
    }

    #[test]
    fn indices_are_found_again() {
        let layout = layout();
        let tile = &var(0).scale(7) + &var(1);
        for indices in [
            [var(0), var(1), var(2)],
            [tile.offset(-1), &var(2) + &var(3), &var(4).scale(8) + &Index::lane(8)],
            [var(0).remainder(&var(8)).offset(3), var(1).offset(1), Index::constant(23)],
            [var(8).offset(-1), var(1).floor_div(3), Index::constant(0)],
        ] {
            assert_eq!(layout.indices(&place(&layout, &indices)).as_deref(), Some(&indices[..]));
        }
    }

    #[test]
    fn places_that_are_no_multiples_have_no_indices() {
        let layout = Layout { shape: vec![var(8)], strides: vec![Index::constant(4)] };
        assert!(layout.indices(&var(0).scale(4)).is_some());
        assert!(layout.indices(&var(0).scale(4).offset(2)).is_none());
        assert!(layout.indices(&var(0).scale(6)).is_none());
    }

    /// Whether `row·(W + 2)·24 + column·24 + channel` is proved to lie inside.
    fn proves(row: &Index, column: &Index, channel: &Index) -> bool {
        let layout = layout();
        let mut program = Program::new("flat");
        let len = place(&layout, &[layout.shape[0].clone(), Index::constant(0), Index::constant(0)]);
        let buffer = crate::program::Buffer {
            name: "x".into(),
            dtype: crate::dtype::DType::F32,
            shape: vec![len],
            scope: crate::program::Scope::Global,
        };
        let buffer = program.add_buffer(buffer);
        let place = place(&layout, &[row.clone(), column.clone(), channel.clone()]);
        program.layouts.insert(buffer, layout);
        let ranges: Ranges =
            [(VarId(0), var(8)), (VarId(1), var(9)), (VarId(2), Index::constant(3))].into_iter().collect();
        program.is_provably_inside(buffer, &place, &Facts::default(), &ranges)
    }

    #[test]
    fn each_index_is_compared_with_its_own_extent() {
        let (row, column, channel) = (var(0).scale(2), &var(1) + &var(2), &Index::lane(8) + &var(2).scale(8));
        let last = row.offset(1);
        assert!(proves(&row, &column, &channel) && proves(&last, &column, &channel));
        assert!(proves(&last, &var(9).offset(1), &channel), "the last column");
        assert!(!proves(&last.offset(1), &column, &channel), "a row too many");
        assert!(!proves(&last, &column.offset(1), &channel), "a column too many");
        assert!(!proves(&last, &var(9).offset(2), &channel));
        assert!(!proves(&row, &column.offset(-1), &channel), "a column too few");
        assert!(!proves(&last, &column, &channel.offset(1)), "a channel too many");
    }
}
