//! The mock driver through `cudarc`, as the product uses it: the library is loaded when the program runs.

mod faults;
mod graphs;
mod handles;
mod memory;
mod modules;
mod streams;
mod support;
