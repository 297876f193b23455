//! The tensor intrinsics of CPUs, as data.
//!
//! Their emission is a part of SIMD code generation.

#[cfg(test)]
mod tests;
mod x86;

use std::sync::LazyLock;

use tilewright_core::intrinsic::IntrinsicSet;

static KNOWN: LazyLock<IntrinsicSet> =
    LazyLock::new(|| IntrinsicSet::new(x86::descriptions()).expect("distinct names"));

/// The descriptions of all instructions that some CPU has, whether or not this machine is one.
pub fn known() -> &'static IntrinsicSet {
    &KNOWN
}
