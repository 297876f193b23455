//! The simulator from outside: kernels as text, their results and what is found.

mod faults;
mod instructions;
mod kernels;
mod support;
