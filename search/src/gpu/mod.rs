//! Schedules for a GPU: those of kernels that have not been tuned. There is no search yet.

mod by_element;
mod default_schedule;
mod in_block;
mod tiles;

pub(crate) use default_schedule::default_schedule;
