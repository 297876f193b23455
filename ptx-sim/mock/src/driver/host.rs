//! The host's memory: page-locked allocations, and copies through addresses that programs pass.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ffi::c_void;

use crate::code::{Code, Outcome};

/// Alignment of page-locked memory: a page.
const PAGE: usize = 4096;

/// An address of the host, which is used when the program that passed it promised that it may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HostAddress(usize);

impl HostAddress {
    pub(crate) fn of<T>(pointer: *const T) -> HostAddress {
        HostAddress(pointer as usize)
    }

    pub(crate) fn to_pointer(self) -> *mut c_void {
        self.0 as *mut c_void
    }

    /// Reads bytes.
    ///
    /// # Safety
    /// `bytes` bytes have to be readable there.
    pub(crate) unsafe fn read(self, bytes: usize) -> Vec<u8> {
        // SAFETY: the caller promises it.
        unsafe { std::slice::from_raw_parts(self.0 as *const u8, bytes) }.to_vec()
    }

    /// Writes bytes.
    ///
    /// # Safety
    /// As many bytes have to be writable there, and `data` has to lie elsewhere.
    pub(crate) unsafe fn write(self, data: &[u8]) {
        // SAFETY: the caller promises it.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.0 as *mut u8, data.len()) }
    }
}

/// All page-locked memory.
#[derive(Default)]
pub(crate) struct PinnedMemory(BTreeMap<usize, Layout>);

impl PinnedMemory {
    /// Allocates bytes, which are zero.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Outcome<HostAddress> {
        if bytes == 0 {
            return Err(Code::InvalidValue);
        }
        let layout = Layout::from_size_align(bytes, PAGE).map_err(|_| Code::OutOfMemory)?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return Err(Code::OutOfMemory);
        }
        self.0.insert(start as usize, layout);
        Ok(HostAddress::of(start))
    }

    /// Gives an allocation back.
    pub(crate) fn free(&mut self, address: HostAddress) -> Outcome {
        let layout = self.0.remove(&address.0).ok_or(Code::InvalidValue)?;
        // SAFETY: it was allocated with this layout and is not in the list any more.
        unsafe { dealloc(address.0 as *mut u8, layout) };
        Ok(())
    }

    /// Whether an allocation has all these bytes.
    pub(crate) fn contains(&self, address: HostAddress, bytes: usize) -> bool {
        let before = self.0.range(..=address.0).next_back();
        before.is_some_and(|(start, layout)| {
            address.0.checked_add(bytes).is_some_and(|end| end <= start + layout.size())
        })
    }
}
