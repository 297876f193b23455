//! Tensors of other extents.

mod grid;
mod resize;

pub(crate) use grid::grid_sample;
pub(crate) use resize::resize;
