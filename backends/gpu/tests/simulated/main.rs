//! Emitted kernels, executed by the simulator: their results are those of the interpreter, bit by bit.

mod elementwise;
mod support;
