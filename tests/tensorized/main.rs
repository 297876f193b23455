//! Products of bytes and of `bf16` are computed by tensor intrinsics where the machine has them: random candidates give
//! what the definition gives, as blocks, as flat programs, and compiled.

mod bytes;
mod candidates;
mod halves;
mod tables;
