//! Memory: where intermediates live, and accesses to buffers.
//!
//! | module | holds |
//! |---|---|
//! | [`storage`], [`promote`] | whether an intermediate lives in registers, on the stack or in the workspace |
//! | [`address`] | indices and addresses |
//! | [`tables`] | loads from tables by bytes |
//! | [`access`], [`bounds`] | loads and stores of groups of lanes, and checks that they stay inside their buffers |
//! | [`atomic`] | updates in one step |

pub(in crate::codegen) mod access;
pub(in crate::codegen) mod address;
pub(in crate::codegen) mod atomic;
pub(in crate::codegen) mod bounds;
pub(in crate::codegen) mod promote;
pub(in crate::codegen) mod storage;
mod tables;
