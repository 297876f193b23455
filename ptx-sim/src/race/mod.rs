//! Who accessed what, and what is ordered with what.
//!
//! Each thread has a *view*: up to which time it knows what the others did. Barriers, and releases that are acquired, merge
//! views. An access is remembered per granule of memory, with the thread and its time, as in FastTrack (Flanagan and
//! Freund, 2009): the last write, and all reads since it that are not ordered with each other. An access races with a
//! remembered one by another thread if its own thread's view does not reach that one's time, unless both are reads or both are strong.

mod clock;
mod shadow;

pub(crate) use clock::{Clocks, Publications, Published as Told};
pub(crate) use shadow::{Accessor, Conflict, ConflictKind, Shadow, Stamp};
