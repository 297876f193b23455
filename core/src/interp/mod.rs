//! The reference semantics: executes a program of any [level](crate::verify::Level).
//!
//! [`crate::math::scalar`] defines each operator on one element; this module defines the statements:
//! - A loop of any kind runs its iterations one after the other, from 0. With [`Options::parallel_order_seed`], a parallel
//!   loop runs them in another order, so that iterations that depend on each other give a different result.
//! - A block takes part in an enumerated point when all of its guards hold. Its `init` runs first at the
//!   points where every reduction iterator is 0 (at every point when it has none). Where the reduction has no
//!   point, `init` runs for each element in place of the outermost of its loops that has no iteration.
//! - The threads of a block, to which loops are bound, run at the same time where there are [barriers](crate::stmt::Stmt::Barrier): each
//!   runs to its next barrier before any continues. Two threads that access one element in between, unless both load it,
//!   are a fault.
//! - An asynchronous store is under way until its thread has waited for its [group](crate::stmt::Copies): an access to the element
//!   before is a fault.
//! - A statement with lanes computes its value for every lane before it stores any.
//! - An `alloc` makes the contents of its buffer undefined. So are, at first, intermediates and `out` tensors.
//!
//! The interpreter also makes checks that compiled code cannot: each access is in bounds, no undefined element
//! is read, iterators stay in their domain, and every `out` tensor is written completely.
//!
//! A program is first compiled to instructions on numbered registers, so that thousands of
//! differential tests are affordable.

mod code;
mod compile;
mod copies;
mod error;
mod machine;
mod memory;
mod operators;
mod slot;
#[cfg(test)]
mod tests;
mod threads;
mod value;

pub use error::InterpError;

use crate::expr::Constant;
use crate::program::Program;
use crate::tensor::AnyTensor;

/// How a program is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Runs the iterations of parallel loops in a random order with this seed, instead of from 0.
    pub parallel_order_seed: Option<u64>,
}

/// A program made ready for execution, for any dimensions and arguments.
#[derive(Debug)]
pub struct Interpreter {
    code: code::Code,
}

impl Interpreter {
    /// Makes a program ready.
    ///
    /// # Errors
    /// [`InterpError::Malformed`] when the program breaks an invariant of [`crate::verify`] that execution
    /// relies on.
    pub fn new(program: &Program) -> Result<Self, InterpError> {
        Ok(Interpreter { code: compile::compile(program)? })
    }

    /// Executes the program. Arguments are in the order of its parameters; tensors must have the
    /// element types and shapes that the parameters say. A parameter of one dimension takes a tensor of
    /// any rank with as many elements, so that the same arguments serve a program of the `Flat` level.
    ///
    /// # Errors
    /// [`InterpError`] when the arguments do not fit, or at the first fault; tensors may have been
    /// written until then.
    pub fn run(
        &self,
        options: Options,
        dims: &[i64],
        scalars: &[Constant],
        buffers: &mut [AnyTensor],
    ) -> Result<(), InterpError> {
        machine::execute(&self.code, options, dims, scalars, buffers)
    }
}

/// Executes a program once; see [`Interpreter::run`].
///
/// # Errors
/// As [`Interpreter::new`] and [`Interpreter::run`].
pub fn run(
    program: &Program,
    dims: &[i64],
    scalars: &[Constant],
    buffers: &mut [AnyTensor],
) -> Result<(), InterpError> {
    Interpreter::new(program)?.run(Options::default(), dims, scalars, buffers)
}
