//! Values of expressions, in registers of 128 bits.
//!
//! | module | holds |
//! |---|---|
//! | [`lanes`] | the registers that hold a group of lanes |
//! | [`expr`] | expressions |
//! | [`arith`], [`compare`], [`convert`], [`half`] | operations |
//! | [`select`] | conditional values, and conditions on lanes |

pub(in crate::codegen) mod arith;
pub(in crate::codegen) mod compare;
pub(in crate::codegen) mod convert;
pub(in crate::codegen) mod expr;
pub(in crate::codegen) mod half;
pub(in crate::codegen) mod lanes;
pub(in crate::codegen) mod select;
