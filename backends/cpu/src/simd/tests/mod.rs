//! The contract of leaves: checked on their instructions, and while they run.

mod contract;
#[cfg(all(target_arch = "x86_64", unix))]
mod run;
mod tiles;
