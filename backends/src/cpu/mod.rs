//! The CPU backend: facts about the machine, its measured peaks and the run time of compiled kernels.

pub mod machine;
pub mod peak;
pub mod pool;
