//! Items that generated code names. Not for people: anything here may change with any version.

mod call;
pub mod dimension;
mod elements;
pub mod index;
mod value;

pub use core::convert::Into;
pub use core::marker::Sized;
pub use core::option::Option::{self, None, Some};
pub use core::result::Result::{self, Err, Ok};
pub use core::{file, line, module_path};

pub use std::vec;

pub use half::{bf16, f16};
pub use inventory;
pub use tilewright_core::build::{KernelBuilder, SourceLocation, UpdateOp, Value};
pub use tilewright_core::device::BufferArgument;
pub use tilewright_core::dtype::DType;
pub use tilewright_core::expr::{BinaryOp, Constant, UnaryOp};
pub use tilewright_core::math::scalar::function::*;
pub use tilewright_core::tensor::{Bits, Element, Float, Integer, Number, Tensor, TensorView, TensorViewMut};
pub use tilewright_runtime::graph;
pub use tilewright_search::rule::RuleEntry;

pub use crate::__location as location;
pub use crate::Error;
pub use crate::definition::{DimSpec, KernelDefinition, ParameterKind, ParameterSpec};
pub use crate::devices::{DeviceHandle, DeviceRead, DeviceTensor, DeviceWrite};
pub use crate::kernel::{Instances, Kernel, KernelEntry};
pub use crate::records::ShippedRecords;
pub use call::{
    Buffers, allocate, allocate_on, constant_bytes, definition, read_bytes, scalar, scalar_constant,
    write_bytes,
};
pub use elements::{Elements, constant_dimension, intermediate, read, size, stepped, write, zero};
pub use value::{
    Of, Scalar, cast, cast_to_parameter, float_literal, integer_literal, single, stepped_index, steps, value,
};

/// The place in the user's source of the token that the call is written with.
#[doc(hidden)]
#[macro_export]
macro_rules! __location {
    () => {
        $crate::__private::SourceLocation::new(::core::file!(), ::core::line!(), ::core::column!())
    };
}

/// The body of a kernel whose definition has errors: the program that holds it does not compile.
pub fn definition_has_errors() -> ! {
    unreachable!("a program with an erroneous kernel definition does not compile")
}
