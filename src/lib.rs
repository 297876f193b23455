//! Tilewright.

// Generated code names `::tilewright`, in this crate too.
extern crate self as tilewright;

#[doc(hidden)]
#[path = "private/mod.rs"]
pub mod __private;
pub mod definition;
mod error;
pub mod kernel;

pub use error::Error;
pub use tilewright_core::tensor::{Tensor, TensorView, TensorViewMut};
pub use tilewright_macros::{schedule_rule, tensor_kernel};
