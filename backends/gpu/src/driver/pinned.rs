//! Page-locked memory of the host, from and to which a GPU copies while the host does something else.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaEvent, result};
use tilewright_core::device::{DeviceError, DeviceSlice, DeviceSliceMut};

use super::Gpu;
use super::failure::failed;
use super::gpu::check_sizes;
use super::memory::Use;

/// Page-locked memory of the host. Copies between it and a GPU are submitted, and made behind earlier work of their stream;
/// whoever looks at the bytes waits for them.
pub struct PinnedBuffer {
    gpu: Gpu,
    bytes: *mut u8,
    len: usize,
    /// The copies that may not be done yet.
    pending: Mutex<Vec<Arc<CudaEvent>>>,
}

// SAFETY: the memory belongs to the buffer alone; what the GPU does there is waited for before anybody looks.
unsafe impl Send for PinnedBuffer {}
// SAFETY: as above; shared references give shared access, once copies to the memory are done.
unsafe impl Sync for PinnedBuffer {}

impl Gpu {
    /// Page-locked memory with zeros. It is scarce: the system cannot use it for anything else.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when the system has none left.
    pub fn pinned(&self, len: usize) -> Result<PinnedBuffer, DeviceError> {
        let doing = "taking page-locked memory";
        self.bind(doing)?;
        // SAFETY: the context is bound; flags 0 ask for ordinary cached memory.
        let bytes = unsafe { result::malloc_host(len.max(1), 0) };
        let bytes: *mut u8 = bytes.map_err(|error| failed("page-locked memory", error, doing, len))?.cast();
        // SAFETY: there are as many bytes, which nobody else knows.
        unsafe { bytes.write_bytes(0, len.max(1)) };
        Ok(PinnedBuffer { gpu: self.clone(), bytes, len, pending: Mutex::default() })
    }

    /// Submits a copy from page-locked memory, and does not wait for it.
    ///
    /// # Errors
    /// [`DeviceError`] when the lengths differ, the memory belongs to another device, or the GPU fails.
    pub fn upload_pinned(&self, from: &PinnedBuffer, to: DeviceSliceMut<'_>) -> Result<(), DeviceError> {
        check_sizes(from.len, to.len())?;
        let (used, address) = self.place(to.memory(), true)?;
        // SAFETY: the bytes stay: dropping the buffer, and whoever wants to write them, waits for the copy.
        let bytes = unsafe { std::slice::from_raw_parts(from.bytes, from.len) };
        self.submit_copy(&from.pending, used, |stream| {
            // SAFETY: the memory is ours and large enough.
            unsafe { result::memcpy_htod_async(address, bytes, stream) }
        })
    }

    /// Submits a copy to page-locked memory, and does not wait for it.
    ///
    /// # Errors
    /// As [`Gpu::upload_pinned`].
    pub fn download_pinned(&self, from: DeviceSlice<'_>, to: &mut PinnedBuffer) -> Result<(), DeviceError> {
        check_sizes(from.len(), to.len)?;
        let (used, address) = self.place(from.memory(), false)?;
        // SAFETY: the buffer is borrowed exclusively, and whoever looks at the bytes later waits for the copy.
        let bytes = unsafe { std::slice::from_raw_parts_mut(to.bytes, to.len) };
        self.submit_copy(&to.pending, used, |stream| {
            // SAFETY: the memory is ours and large enough.
            unsafe { result::memcpy_dtoh_async(bytes, address, stream) }
        })
    }

    fn submit_copy(
        &self,
        pending: &Mutex<Vec<Arc<CudaEvent>>>,
        used: Use,
        copy: impl FnOnce(cudarc::driver::sys::CUstream) -> Result<(), cudarc::driver::DriverError>,
    ) -> Result<(), DeviceError> {
        let doing = "copying page-locked memory";
        self.refuse_recording("a copy to or from the host")?;
        self.bind(doing)?;
        let (current, uses) = (self.current(), [used]);
        let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
        self.before(&uses, &current)?;
        let copied = copy(current.stream().cu_stream());
        let marked = current.stream().record_event(None);
        match (copied, marked) {
            (Ok(()), Ok(event)) => pending.push(Arc::new(event)),
            (Ok(()), Err(error)) => {
                // Nothing marks the end of the copy: wait for it now.
                let waited = current.stream().synchronize();
                return Err(self.failed(waited.err().unwrap_or(error), doing));
            }
            (Err(error), _) => return Err(self.failed(error, doing)),
        }
        self.after(&uses, &current)
    }
}

impl PinnedBuffer {
    /// The size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes, once copies are done.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when a copy, or work before it, has failed.
    pub fn as_slice(&self) -> Result<&[u8], DeviceError> {
        self.wait()?;
        // SAFETY: the bytes were initialised, no copy to them is under way, and another one needs an exclusive borrow.
        Ok(unsafe { std::slice::from_raw_parts(self.bytes, self.len) })
    }

    /// The bytes to be written, once copies are done.
    ///
    /// # Errors
    /// As [`PinnedBuffer::as_slice`].
    pub fn as_mut_slice(&mut self) -> Result<&mut [u8], DeviceError> {
        self.wait()?;
        // SAFETY: as above, and the buffer is borrowed exclusively.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.bytes, self.len) })
    }

    fn wait(&self) -> Result<(), DeviceError> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        for event in &*pending {
            event.synchronize().map_err(|error| self.gpu.failed(error, "kernels ran or copies were made"))?;
        }
        pending.clear();
        Ok(())
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        // Where waiting fails, the GPU has failed, and copies nothing more.
        let _ = self.wait();
        if self.gpu.bind("giving page-locked memory back").is_ok() {
            // SAFETY: it was taken by `pinned`, and no copy is under way.
            let _ = unsafe { result::free_host(self.bytes.cast()) };
        }
    }
}

impl fmt::Debug for PinnedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedBuffer({} bytes for {})", self.len, self.gpu.name())
    }
}
