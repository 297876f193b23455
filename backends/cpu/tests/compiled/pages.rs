//! Memory between inaccessible pages.

use std::ptr::null_mut;

/// Some bytes with an inaccessible page directly before or directly behind them.
pub(crate) struct Fenced {
    mapping: *mut libc::c_void,
    mapped: usize,
    start: usize,
    len: usize,
}

impl Fenced {
    /// A copy of `bytes` that touches the inaccessible page behind (`at_end`) or before.
    pub(crate) fn copy_of(bytes: &[u8], at_end: bool) -> Self {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let inner = bytes.len().next_multiple_of(page);
        let mapped = inner + 2 * page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping, of which the middle is then made accessible.
        let mapping = unsafe { libc::mmap(null_mut(), mapped, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(mapping, libc::MAP_FAILED);
        if inner > 0 {
            // SAFETY: the range lies inside the mapping.
            let result =
                unsafe { libc::mprotect(mapping.byte_add(page), inner, libc::PROT_READ | libc::PROT_WRITE) };
            assert_eq!(result, 0);
        }
        let start = if at_end { page + inner - bytes.len() } else { page };
        let mut fenced = Fenced { mapping, mapped, start, len: bytes.len() };
        fenced.bytes_mut().copy_from_slice(bytes);
        fenced
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: these bytes are mapped, accessible and initialised (anonymous pages are zero).
        unsafe { std::slice::from_raw_parts(self.mapping.byte_add(self.start).cast(), self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and this is the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.byte_add(self.start).cast(), self.len) }
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.mapping, self.mapped) };
    }
}
