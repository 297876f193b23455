//! Points of design spaces: how they are made, and which of them to measure next.

pub mod candidate;
mod climb;
pub mod default_schedule;
pub mod fit;
pub mod strategy;
pub mod transfer;
