//! Facts about flat programs that both code generators need.
//!
//! | module | holds |
//! |---|---|
//! | [`access`] | every access to memory in a part of a program |
//! | [`value_number`] | numbers for expressions: equal expressions have equal numbers |
//! | [`lanes`] | the index that one lane of a vector has |
//! | [`form`] | how elements are held in registers |

pub(crate) mod access;
pub(crate) mod form;
pub(crate) mod lanes;
pub(crate) mod value_number;
