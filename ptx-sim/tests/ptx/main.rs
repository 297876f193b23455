//! The simulator from outside: kernels as text, their results and what is found.

mod compilers;
mod faults;
mod foreign;
mod hostile;
mod instructions;
mod kernels;
mod matrices;
mod refused;
mod support;
mod warp;
