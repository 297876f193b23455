//! Emitted kernels, executed by the simulator: their results are those of the interpreter, bit by bit.

mod assembler;
mod defaults;
mod elementwise;
mod limits;
mod mutations;
mod operators;
mod pipelines;
mod points;
mod random;
mod rows;
mod searched;
mod sharing;
mod statements;
mod support;
mod tensor_cores;
mod texts;
mod updates;
