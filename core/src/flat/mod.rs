//! Facts about flat programs that code generators need.
//!
//! | module | holds |
//! |---|---|
//! | [`access`] | every access to memory in a part of a program |
//! | [`value_number`] | numbers for expressions: equal expressions have equal numbers |
//! | [`lanes`] | the index that one lane of a vector has |
//! | [`moved`] | values that only move an element |
//! | [`tables`] | loads of the element that a byte names |

pub mod access;
pub mod lanes;
pub mod moved;
pub mod tables;
pub mod value_number;
