//! Tensors of other extents.

mod resize;

pub(crate) use resize::resize;
