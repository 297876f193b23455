//! Memory for the intermediates of running kernels.
//!
//! Each thread has one workspace, which grows to the largest need that it has met and stays. So a
//! call in the steady state allocates nothing, calls on several threads never share, and pages are first touched
//! by the thread that uses them. A thread that both calls a kernel and takes part in its parallel loops uses
//! the front of its workspace for the former and the rest for the latter.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::{NonNull, null_mut};

use crate::pages::prefer_huge_pages;

/// The alignment of a workspace: a cache line.
const ALIGNMENT: usize = 64;

thread_local! {
    static WORKSPACE: RefCell<Workspace> = const { RefCell::new(Workspace { memory: None, used: 0 }) };
}

struct Workspace {
    memory: Option<Memory>,
    /// How much of the front the kernel called on this thread uses.
    used: usize,
}

struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    fn new(bytes: usize) -> Result<Self, OutOfMemory> {
        let error = OutOfMemory { bytes };
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| error)?;
        // SAFETY: the layout's size is not zero: `Workspace::reserve` asks for at least one byte.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(error)?;
        prefer_huge_pages(start.as_ptr(), bytes);
        Ok(Memory { start, layout })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `start` was allocated with this layout and is not used after its owner is gone.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// The system has no memory for a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory {
    /// The bytes of the request.
    pub(crate) bytes: usize,
}

impl Workspace {
    /// The address of at least `bytes` bytes. Its contents are lost if it has to grow.
    fn reserve(&mut self, bytes: usize) -> Result<*mut u8, OutOfMemory> {
        if bytes == 0 {
            return Ok(null_mut());
        }
        match &self.memory {
            Some(memory) if memory.layout.size() >= bytes => Ok(memory.start.as_ptr()),
            _ => {
                // Freed first, so that both are never held at once.
                self.memory = None;
                Ok(self.memory.insert(Memory::new(bytes)?).start.as_ptr())
            }
        }
    }
}

/// Runs a kernel with the address of `main` bytes on this thread, while `body` bytes more are kept for
/// parallel loops that this thread takes part in.
pub(crate) fn with<R>(main: u64, body: u64, run: impl FnOnce(*mut u8) -> R) -> Result<R, OutOfMemory> {
    if main == 0 && body == 0 {
        return Ok(run(null_mut()));
    }
    /// Gives the workspace back also when `run` unwinds.
    struct InUse(usize);
    impl Drop for InUse {
        fn drop(&mut self) {
            WORKSPACE.with_borrow_mut(|workspace| workspace.used = self.0);
        }
    }
    let (main, total) = (main as usize, main.saturating_add(body) as usize);
    let (start, _in_use) = WORKSPACE.with_borrow_mut(|workspace| {
        // A kernel never calls another, so nothing on this thread is lost by growing.
        let start = workspace.reserve(total)?;
        Ok((start, InUse(std::mem::replace(&mut workspace.used, main))))
    })?;
    Ok(run(start))
}

/// For compiled code: the address of `bytes` bytes for a parallel loop's body on the running thread.
pub(crate) extern "C" fn of_body(bytes: i64) -> *mut u8 {
    let bytes = bytes as usize;
    WORKSPACE.with_borrow_mut(|workspace| {
        let used = workspace.used;
        match workspace.reserve(used + bytes) {
            // SAFETY: `used` bytes lie inside the allocation, which has `used + bytes`.
            Ok(start) => unsafe { start.add(used) },
            // Compiled code cannot report this, and there is no way to go on.
            Err(OutOfMemory { bytes }) => {
                handle_alloc_error(Layout::from_size_align(bytes, ALIGNMENT).unwrap_or(Layout::new::<u8>()))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_workspace_and_threads_do_not_share() {
        let first = with(100, 28, |start| start as usize).unwrap();
        let second = with(64, 64, |start| (start as usize, of_body(64) as usize)).unwrap();
        assert_eq!(second, (first, first + 64), "no new memory for the same need");
        assert_eq!(first % ALIGNMENT, 0);
        let other = std::thread::spawn(|| {
            let body = of_body(128) as usize;
            (body, of_body(64) as usize)
        });
        let (body, again) = other.join().unwrap();
        assert_eq!(body, again);
    }

    #[test]
    fn no_need_takes_no_memory() {
        assert_eq!(with(0, 0, |start| start.is_null()), Ok(true));
    }

    #[test]
    fn too_large_a_need_is_an_error() {
        assert_eq!(with(1 << 62, 0, |_| ()), Err(OutOfMemory { bytes: 1 << 62 }));
        assert_eq!(with(64, 0, |start| start.is_null()), Ok(false), "and the thread can go on");
    }
}
