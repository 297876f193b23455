//! What the tests of lowering share.

pub(crate) mod kernels;
