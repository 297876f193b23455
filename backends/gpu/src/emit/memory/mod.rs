//! Loads and stores: where buffers are, addresses, and accesses of several elements at once.

mod access;
mod address;
mod ahead;
mod copy;
mod pack;
mod place;
mod plan;
mod update;

pub(super) use ahead::Ahead;
pub(super) use pack::memory_type;
pub(super) use place::{ALIGNMENT, constant_bytes, find_registers, place_shared};
