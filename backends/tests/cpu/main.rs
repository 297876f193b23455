//! Compiled kernels against the reference semantics.
//!
//! Every tensor lies between pages that cannot be accessed, once touching the page before and once the page
//! behind, so that any access outside a tensor ends the test.

mod errors;
mod loops;
mod memory;
mod operators;
mod pages;
mod random;
mod support;
