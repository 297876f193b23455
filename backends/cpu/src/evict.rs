//! Evicting memory from the caches, so that what runs next finds its operands in memory only.

use tilewright_core::device::BufferArgument;

use super::memory;

/// Evicts the elements of buffers from every cache of the machine; false where that cannot be done.
pub(crate) fn evict(buffers: &[BufferArgument<'_>]) -> bool {
    buffers.iter().all(|buffer| {
        let address = match buffer {
            // It has no memory, and is not accessed.
            BufferArgument::Stored(_) => return true,
            BufferArgument::DeviceRead(slice) => memory::address(slice),
            BufferArgument::DeviceWrite(slice) => memory::address(&slice.as_slice()),
            host => host.host_bytes().map(<[u8]>::as_ptr),
        };
        address.is_some_and(|address| flush(address, buffer.len()))
    })
}

/// The bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Writes the cache lines of some bytes back to memory and drops them.
#[cfg(target_arch = "x86_64")]
fn flush(start: *const u8, len: usize) -> bool {
    use std::arch::x86_64::{_mm_clflush, _mm_mfence};
    if len == 0 {
        return true;
    }
    // The first byte of each line, and the last byte, which may lie in a line of its own.
    for offset in (0..len).step_by(LINE).chain([len - 1]) {
        // SAFETY: `start` is the address of `len` bytes that the caller's buffer borrows, and flushing a line changes no memory.
        unsafe { _mm_clflush(start.wrapping_add(offset)) }
    }
    // SAFETY: a fence accesses no memory.
    unsafe { _mm_mfence() }
    true
}

/// There is no portable instruction for it.
#[cfg(not(target_arch = "x86_64"))]
fn flush(_: *const u8, _: usize) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_keeps_contents() {
        let (read, mut write) = (vec![7u8; 1000], vec![9u8; 3]);
        let buffers =
            [BufferArgument::Read(&read), BufferArgument::Write(&mut write), BufferArgument::Read(&[])];
        assert_eq!(evict(&buffers), cfg!(target_arch = "x86_64"));
        assert!(read.iter().all(|byte| *byte == 7) && write == [9; 3]);
    }
}
