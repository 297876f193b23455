//! Tensors of other extents.

mod grid;
mod regions;
mod resize;

pub(crate) use grid::grid_sample;
pub(crate) use regions::roi_align;
pub(crate) use resize::resize;
