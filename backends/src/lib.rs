//! Backends: what turns a lowered program into machine code and runs it.

pub mod cpu;
