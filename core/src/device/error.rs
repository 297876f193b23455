//! Why compiling, calling or using memory failed.

use crate::tensor::SourceError;

/// Why a device could not compile a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The device lacks something that the program needs.
    #[error("{target} backend cannot compile {what}")]
    Unsupported {
        /// The kind of device.
        target: &'static str,
        /// The thing, named as in the program.
        what: String,
    },
    /// The code generator failed: a bug of ours.
    #[error("code generation failed: {0}")]
    CodeGeneration(String),
    /// The device has no memory left for the code, or failed.
    #[error(transparent)]
    Device(DeviceError),
}

/// Why a device could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// There is no such device, or its driver is missing or too old.
    #[error("{device} cannot be used: {problem}")]
    Unavailable {
        /// The device.
        device: String,
        /// The missing thing, and the remedy.
        problem: String,
    },
    /// The memory of a device is used up.
    #[error("{device} has no {bytes} bytes of memory left")]
    OutOfMemory {
        /// The device.
        device: String,
        /// How much was asked for.
        bytes: u64,
    },
    /// Memory was passed to a device that it does not belong to.
    #[error("{device} cannot use memory of {place}")]
    OtherDevice {
        /// The device.
        device: String,
        /// Where the memory is.
        place: String,
    },
    /// The source and the destination of a copy differ in size.
    #[error("a copy of {from} bytes into {to} bytes")]
    Size {
        /// Bytes of the source.
        from: usize,
        /// Bytes of the destination.
        to: usize,
    },
    /// The device failed while it ran, and must be opened again.
    #[error("{device} failed: {problem}")]
    Failed {
        /// The device.
        device: String,
        /// The message of its driver.
        problem: String,
    },
}

/// Why a call was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The number of arguments of one sort differs from the program's.
    #[error("{expected} {sort} expected, {found} given")]
    Count {
        /// `dimensions`, `scalars` or `tensors`.
        sort: &'static str,
        /// How many the program has.
        expected: usize,
        /// How many came.
        found: usize,
    },
    /// A tensor's size does not fit its shape.
    #[error("tensor `{name}` needs {expected} bytes for its shape, {found} given")]
    Size {
        /// The parameter.
        name: String,
        /// Bytes that its shape takes.
        expected: u64,
        /// Bytes that came.
        found: u64,
    },
    /// A tensor that is written was passed for reading only, its memory is not aligned to its elements, or it is in
    /// memory that the device cannot use.
    #[error("tensor `{name}` {problem}")]
    Tensor {
        /// The parameter.
        name: String,
        /// The problem with it.
        problem: String,
    },
    /// A dimension is negative or a shape too large to address.
    #[error("dimension `{name}` = {value} is out of range")]
    Dimension {
        /// The dimension or tensor.
        name: String,
        /// The offending value.
        value: i64,
    },
    /// An index that depends on data lay outside its tensor.
    #[error("an index read from data is {value}, outside 0..{extent}{}", .location.as_ref().map(|l| format!(" {l}")).unwrap_or_default())]
    IndexOutOfBounds {
        /// The index.
        value: i64,
        /// The extent of the dimension.
        extent: i64,
        /// Where in the definition: ``of tensor `table` at src/lib.rs:12:9 in kernel `gather` ``, with `or` and more places when it can
        /// be one of several. Compiled code does not know; who has the definition adds it.
        location: Option<String>,
    },
    /// The elements of a tensor lie elsewhere and cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The device has no memory left for the run, or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
