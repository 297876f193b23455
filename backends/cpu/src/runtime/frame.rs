//! The frame: the words through which a call reaches compiled code.
//!
//! A kernel is a function of one argument, the address of an array of 8-byte words:
//!
//! | word | content |
//! |---|---|
//! | 0 | address of the call's [`Status`] |
//! | 1 | number of threads |
//! | 2 | address of the workspace of the calling thread |
//! | 3 | bytes of workspace that each thread needs in parallel loops |
//! | 4… | dimensions, then run-time scalars, then addresses of tensors, each in the program's order |
//!
//! A scalar lies in the low bytes of its word in the form that registers hold it in: integers and
//! booleans extended to 64 bits, `f16`, `bf16` and `f32` as the bits of an `f32`.

use std::sync::atomic::{AtomicI64, Ordering};

use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::program::{Param, Program};

/// The byte offset of the status's address.
pub(crate) const STATUS: i32 = 0;
/// The byte offset of the number of threads.
pub(crate) const THREADS: i32 = 8;
/// The byte offset of the workspace's address.
pub(crate) const WORKSPACE: i32 = 16;
/// The byte offset of the number of bytes of workspace that each thread needs in parallel loops.
pub(crate) const BODY_BYTES: i32 = 24;
/// The number of words before the parameters.
pub(crate) const HEADER_WORDS: usize = 4;

/// Where each parameter of a program lies in the frame.
#[derive(Clone, Debug)]
pub(crate) struct FrameLayout {
    dims: Vec<VarId>,
    scalars: Vec<VarId>,
    buffers: Vec<BufferId>,
}

impl FrameLayout {
    /// The layout for a program.
    pub(crate) fn of(program: &Program) -> Self {
        let mut layout = FrameLayout { dims: Vec::new(), scalars: Vec::new(), buffers: Vec::new() };
        for param in program.params.iter() {
            match param {
                Param::Dim(var) => layout.dims.push(*var),
                Param::Scalar(var, _) => layout.scalars.push(*var),
                Param::Buffer(buffer, _) => layout.buffers.push(*buffer),
            }
        }
        layout
    }

    /// The byte offset of a dimension.
    pub(crate) fn dim(&self, var: VarId) -> Option<i32> {
        Some(offset(self.dim_position(var)?))
    }

    /// The position of a dimension among the dimensions.
    pub(crate) fn dim_position(&self, var: VarId) -> Option<usize> {
        self.dims.iter().position(|dim| *dim == var)
    }

    /// The byte offset of a run-time scalar.
    pub(crate) fn scalar(&self, var: VarId) -> Option<i32> {
        let position = self.scalars.iter().position(|scalar| *scalar == var)?;
        Some(offset(self.dims.len() + position))
    }

    /// The byte offset of a tensor's address.
    pub(crate) fn buffer(&self, buffer: BufferId) -> Option<i32> {
        let position = self.buffers.iter().position(|param| *param == buffer)?;
        Some(offset(self.dims.len() + self.scalars.len() + position))
    }
}

fn offset(parameter: usize) -> i32 {
    i32::try_from(8 * (HEADER_WORDS + parameter)).expect("fewer than 2²⁸ parameters")
}

/// The report of compiled code: the first index that depended on data and was out of bounds.
///
/// The thread that changes `state` from 0 to 1 writes the other two.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct Status {
    state: AtomicI64,
    value: AtomicI64,
    extent: AtomicI64,
}

impl Status {
    /// The byte offset of the state.
    pub(crate) const STATE: i32 = 0;
    /// The byte offset of the index.
    pub(crate) const VALUE: i32 = 8;
    /// The byte offset of the extent that it had to be below.
    pub(crate) const EXTENT: i32 = 16;

    /// The index and the extent, when there was a failure. Call it after the kernel has returned, when no thread writes.
    pub(crate) fn failure(&self) -> Option<(i64, i64)> {
        let load = |word: &AtomicI64| word.load(Ordering::Relaxed);
        (load(&self.state) != 0).then(|| (load(&self.value), load(&self.extent)))
    }
}
