//! Element types; their table stands in the crate `tilewright-vocabulary`.

pub use tilewright_vocabulary::{DType, Kind, UnknownDType};
