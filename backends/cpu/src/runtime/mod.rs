//! Everything that compiled code needs when it runs, apart from the [thread pool](crate::pool).
//!
//! | module | holds |
//! |---|---|
//! | [`function`] | the table of functions that compiled code imports by name |
//! | [`arithmetic`] | operations for which a machine has no instruction |
//! | [`frame`] | the words through which a call passes its arguments |
//! | [`workspace`] | memory for intermediates |

mod arithmetic;
pub(crate) mod frame;
mod function;
pub(crate) mod workspace;

pub(crate) use arithmetic::library_functions;
pub(crate) use function::RuntimeFunction;
