//! The table of operators: names, arguments, attributes, types, and what they compute.
//!
//! One row says everything about an operator. Its name is that of the text form; ONNX's name is beside it. The semantics
//! are those of ONNX's newest version of the operator; what older versions mean is expressed by these when a file is
//! imported.

mod collection;
mod elementwise;
mod evaluate;
mod index;
mod lanes;
mod linear;
mod normalise;
mod pool;
mod quantise;
mod recurrent;
mod reduce;
mod resample;
mod select;
mod shape;
mod signal;
mod spec;
mod table;
mod window;

pub use evaluate::{Arguments, Fault, Value};
pub(crate) use evaluate::{axis, refuse};
pub use index::slice_places;
pub(crate) use linear::{Contraction, Label, TransposedGeometry};
pub(crate) use normalise::EPSILON;
pub(crate) use quantise::{Panels, Rounding};
pub(crate) use recurrent::{Activation, activations};
pub(crate) use resample::{Resized, Source, resized};
pub(crate) use select::slice_at;
pub(crate) use shape::{concat, extents};
pub(crate) use spec::OWN_DOMAIN;
pub use spec::{Arity, Evaluate, Extents, Operator, ResultOrder, attribute};
pub use table::{all, find, find_onnx, is_pointwise, is_product, is_reduction};
pub(crate) use window::Window;
