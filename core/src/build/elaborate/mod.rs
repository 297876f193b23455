//! From the recorded tree to typed, guarded assignments in rectangular loops.

mod bindings;
pub(super) mod expressions;
pub(super) mod flatten;
mod loops;
pub(super) mod types;
