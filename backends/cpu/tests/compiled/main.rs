//! Compiled kernels against the reference semantics.
//!
//! Every tensor lies between pages that cannot be accessed, once touching the page before and once the page
//! behind, so that any access outside a tensor ends the test.

mod bf16;
mod copies;
mod errors;
#[path = "../../../../core/tests/lowering/execute.rs"]
mod execute;
mod hints;
#[path = "../../../../core/tests/lowering/kernels.rs"]
mod kernels;
mod loops;
mod memory;
mod operators;
mod packed;
mod pages;
mod random;
#[path = "../../../../core/tests/lowering/random_schedule.rs"]
mod random_schedule;
#[path = "../../../../core/tests/support/recurrences.rs"]
mod recurrences;
mod registers;
mod scheduled;
mod storage;
mod support;
mod tensorized;
mod tiles;
mod transpositions;
