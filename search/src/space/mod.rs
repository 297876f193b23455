//! Design spaces: rules make them of a program, mutators move in them, postprocessors make their points fit to be compiled.

pub mod chain;
mod endless;
mod fault;
mod generate;
pub mod mutate;
pub mod postproc;
pub mod rule;
pub mod rules;
pub mod spec;

pub use fault::{Misbehaviour, RuleFault};
pub(crate) use generate::{Breadth, complete, generate_some_design_spaces};
pub use generate::{
    DesignSpaces, MAX_SPACES, RuleLimits, design_spaces, generate_design_spaces,
    generate_design_spaces_within,
};
