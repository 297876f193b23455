//! The code that Tilewright's attributes refuse, and the messages: `tests/refusals.rs` compiles each file of `cases`.
