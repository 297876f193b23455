//! Emitted kernels, executed by the simulator: their results are those of the interpreter, bit by bit.

mod defaults;
mod elementwise;
mod operators;
mod statements;
mod support;
