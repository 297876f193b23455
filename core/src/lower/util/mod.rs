//! Analyses and edits of statements that several passes share.

pub(in crate::lower) mod comparison;
pub(in crate::lower) mod condition;
pub(in crate::lower) mod copy;
pub(in crate::lower) mod marked;
pub(in crate::lower) mod prune;
pub(in crate::lower) mod shorten;
pub(in crate::lower) mod unreached;
