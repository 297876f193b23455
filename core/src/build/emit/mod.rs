//! From assignments to a program: single assignment, merging, one block in one perfect loop nest each.

pub(super) mod blocks;
mod loads;
pub(super) mod merge;
pub(super) mod version;
