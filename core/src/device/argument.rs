//! The arguments of a call.

use std::sync::Arc;

use super::{DeviceSlice, DeviceSliceMut};
use crate::expr::Constant;
use crate::tensor::{IdentifiedBytes, Identity, StoredBytes};

/// The arguments of a call, in the order of the program's parameters.
#[derive(Debug)]
pub struct Arguments<'a, 'data> {
    /// A value for each symbolic dimension.
    pub dims: &'a [i64],
    /// A value for each run-time scalar.
    pub scalars: &'a [Constant],
    /// The elements of each tensor.
    pub buffers: &'a mut [BufferArgument<'data>],
}

/// The elements of one tensor argument, dense and row-major, in the memory of the host or of a device.
#[derive(Debug)]
pub enum BufferArgument<'data> {
    /// A tensor of the host that is only read.
    Read(&'data [u8]),
    /// A tensor of the host that is only read, with the identity of its contents: what is computed from it alone may be kept.
    Identified(IdentifiedBytes<'data>),
    /// A tensor that is only read, whose elements lie elsewhere: a program that reads them needs them in memory first.
    Stored(&'data StoredBytes),
    /// A tensor of the host that is written, and perhaps read.
    Write(&'data mut [u8]),
    /// A tensor of a device that is only read.
    DeviceRead(DeviceSlice<'data>),
    /// A tensor of a device that is written, and perhaps read.
    DeviceWrite(DeviceSliceMut<'data>),
}

impl BufferArgument<'_> {
    /// The size in bytes.
    pub fn len(&self) -> usize {
        match self {
            BufferArgument::Read(bytes) => bytes.len(),
            BufferArgument::Identified(identified) => identified.bytes().len(),
            BufferArgument::Stored(stored) => stored.len(),
            BufferArgument::Write(bytes) => bytes.len(),
            BufferArgument::DeviceRead(slice) => slice.len(),
            BufferArgument::DeviceWrite(slice) => slice.len(),
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a program may write it.
    pub fn is_writable(&self) -> bool {
        matches!(self, BufferArgument::Write(_) | BufferArgument::DeviceWrite(_))
    }

    /// The bytes, where they lie in the memory of the host.
    pub fn host_bytes(&self) -> Option<&[u8]> {
        match self {
            BufferArgument::Read(bytes) => Some(bytes),
            BufferArgument::Identified(identified) => Some(identified.bytes()),
            BufferArgument::Write(bytes) => Some(bytes),
            BufferArgument::Stored(_) | BufferArgument::DeviceRead(_) | BufferArgument::DeviceWrite(_) => {
                None
            }
        }
    }

    /// The identity of the contents, where they have one: a tensor that was passed as constant.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        match self {
            BufferArgument::Identified(identified) => Some(identified.identity()),
            BufferArgument::Stored(stored) => Some(stored.identity()),
            BufferArgument::DeviceRead(slice) => slice.identity(),
            BufferArgument::Read(_) | BufferArgument::Write(_) | BufferArgument::DeviceWrite(_) => None,
        }
    }

    /// The same argument for a shorter time.
    pub fn reborrow(&mut self) -> BufferArgument<'_> {
        match self {
            BufferArgument::Read(bytes) => BufferArgument::Read(bytes),
            BufferArgument::Identified(identified) => BufferArgument::Identified(*identified),
            BufferArgument::Stored(stored) => BufferArgument::Stored(stored),
            BufferArgument::Write(bytes) => BufferArgument::Write(bytes),
            BufferArgument::DeviceRead(slice) => BufferArgument::DeviceRead(*slice),
            BufferArgument::DeviceWrite(slice) => BufferArgument::DeviceWrite(slice.reborrow()),
        }
    }

    /// The same elements, to be read only, for a shorter time.
    pub fn to_read(&self) -> BufferArgument<'_> {
        match self {
            BufferArgument::Read(bytes) => BufferArgument::Read(bytes),
            BufferArgument::Identified(identified) => BufferArgument::Identified(*identified),
            BufferArgument::Stored(stored) => BufferArgument::Stored(stored),
            BufferArgument::Write(bytes) => BufferArgument::Read(bytes),
            BufferArgument::DeviceRead(slice) => BufferArgument::DeviceRead(*slice),
            BufferArgument::DeviceWrite(slice) => BufferArgument::DeviceRead(slice.as_slice()),
        }
    }
}
