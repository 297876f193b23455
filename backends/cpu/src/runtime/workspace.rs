//! Memory for the intermediates of running kernels.
//!
//! Each thread has one workspace, which grows to the largest need that it has met and stays. So a
//! call in the steady state allocates nothing, calls on several threads never share, and pages are first touched
//! by the thread that uses them. A thread that both calls a kernel and takes part in its parallel loops uses
//! the front of its workspace for the former and the rest for the latter.

use std::alloc::{Layout, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::null_mut;

use crate::memory::{ALIGNMENT, Memory, OutOfMemory};

thread_local! {
    static WORKSPACE: RefCell<Workspace> = const { RefCell::new(Workspace { memory: None, used: 0 }) };
}

struct Workspace {
    memory: Option<Memory>,
    /// How much of the front the kernel called on this thread uses.
    used: usize,
}

impl Workspace {
    /// The address of at least `bytes` bytes. Its contents are lost if it has to grow.
    fn reserve(&mut self, bytes: usize) -> Result<*mut u8, OutOfMemory> {
        if bytes == 0 {
            return Ok(null_mut());
        }
        match &self.memory {
            Some(memory) if memory.size() >= bytes => Ok(memory.start()),
            _ => {
                // Freed first, so that both are never held at once.
                self.memory = None;
                Ok(self.memory.insert(Memory::new(bytes)?).start())
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
