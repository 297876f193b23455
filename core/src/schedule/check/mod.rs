//! Preconditions that several primitives share. None of them edits a program.
//!
//! | module | checks |
//! |---|---|
//! | [`buffer`] | the writers of a buffer, and whether it is finished where it is to be read |
//! | [`domain`] | that loops enumerate a block's domain by themselves |
//! | [`independence`] | that iterations of a loop may run in any order |
//! | [`inline`] | that a block can be computed in its consumers, or in its producer |
//! | [`location`] | that a producer can be computed in a loop |
//! | [`order`] | that recurrences stay in order |

pub(in crate::schedule) mod buffer;
pub(in crate::schedule) mod domain;
pub(in crate::schedule) mod independence;
pub(in crate::schedule) mod inline;
pub(in crate::schedule) mod location;
pub(in crate::schedule) mod order;
