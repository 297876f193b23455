//! PTX as data: modules, instructions and operands, with one table of instructions.
//!
//! | module | holds |
//! |---|---|
//! | [`types`] | types of values, and classes of registers |
//! | [`operand`] | registers, constants, addresses |
//! | [`table`] | the instruction table |
//! | [`instruction`], [`kernel`] | lines of code, kernels, modules |
//! | [`verify`] | checks against the table |
//! | [`print`] | the text |

pub(crate) mod instruction;
pub(crate) mod kernel;
pub(crate) mod operand;
mod print;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod types;
pub(crate) mod verify;
