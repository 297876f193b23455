//! Memory that kernels use through its address: workspaces, and the buffers of the CPU as a device.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::any::Any;
use std::ptr::NonNull;

use tilewright_core::device::{DeviceMemory, DeviceSlice, DeviceSliceMut};

use super::pages::prefer_huge_pages;

/// The alignment of all such memory: a cache line.
pub(crate) const ALIGNMENT: usize = 64;

/// Aligned memory of at least one byte, freed when it is dropped.
pub(crate) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: memory belongs to no thread, and this type does not access it.
unsafe impl Send for Memory {}
// SAFETY: as above; who accesses it through `start` sees to it that threads do not conflict.
unsafe impl Sync for Memory {}

/// The system has no such memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory {
    /// How much was asked for.
    pub(crate) bytes: usize,
}

impl Memory {
    /// Memory with any content; one byte where none is asked for.
    pub(crate) fn new(bytes: usize) -> Result<Self, OutOfMemory> {
        // SAFETY: `allocated` passes a layout whose size is not zero.
        Self::allocated(bytes, |layout| unsafe { alloc(layout) })
    }

    /// Memory that holds zeros; one byte where none is asked for.
    pub(crate) fn zeroed(bytes: usize) -> Result<Self, OutOfMemory> {
        // SAFETY: `allocated` passes a layout whose size is not zero.
        Self::allocated(bytes, |layout| unsafe { alloc_zeroed(layout) })
    }

    fn allocated(bytes: usize, allocate: impl FnOnce(Layout) -> *mut u8) -> Result<Self, OutOfMemory> {
        let error = OutOfMemory { bytes };
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).map_err(|_| error)?;
        let start = NonNull::new(allocate(layout)).ok_or(error)?;
        prefer_huge_pages(start.as_ptr(), bytes);
        Ok(Memory { start, layout })
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `start` was allocated with this layout and is not used after its owner is gone.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// A buffer of the CPU as a device. Its content is initialised.
pub(crate) struct HostMemory {
    memory: Memory,
    len: usize,
}

impl HostMemory {
    /// Memory that holds zeros.
    pub(crate) fn zeroed(len: usize) -> Result<Self, OutOfMemory> {
        Ok(HostMemory { memory: Memory::zeroed(len)?, len })
    }
}

impl DeviceMemory for HostMemory {
    fn len(&self) -> usize {
        self.len
    }

    fn place(&self) -> String {
        "the CPU".to_owned()
    }
}

/// Where a slice of a buffer begins; `None` for memory of another device. As many bytes as the slice has may be read
/// while it is borrowed.
pub(crate) fn address(slice: &DeviceSlice<'_>) -> Option<*const u8> {
    Some(inside(slice.memory())?.cast_const())
}

/// As [`address`], for bytes that may be read and written.
pub(crate) fn address_mut(slice: &mut DeviceSliceMut<'_>) -> Option<*mut u8> {
    inside(slice.memory())
}

fn inside((memory, start): (&dyn DeviceMemory, usize)) -> Option<*mut u8> {
    let own = (memory as &dyn Any).downcast_ref::<HostMemory>()?;
    // Slices lie inside of their buffers; the address of an empty one at the end is not used.
    Some(own.memory.start().wrapping_add(start))
}
