//! The items that most files need that define or call kernels: `use tilewright::prelude::*;`.

pub use half::{bf16, f16};
pub use tilewright_core::schedule::{BlockRv, Schedule};
pub use tilewright_core::tensor::{Bits, Element, Float, Integer, Number, Tensor, TensorView, TensorViewMut};
pub use tilewright_macros::{schedule_rule, tensor_fn, tensor_graph, tensor_kernel};
pub use tilewright_search::rule::{RuleExtension, RuleResult};
