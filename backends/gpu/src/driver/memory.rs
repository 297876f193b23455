//! Memory of a GPU.

use std::any::Any;

use cudarc::driver::result;
use tilewright_core::device::{DeviceError, DeviceMemory};

use super::Gpu;
use super::failure::failed;

/// Memory of a GPU, given back when it is dropped, behind the work that was submitted before.
pub(crate) struct GpuMemory {
    gpu: Gpu,
    address: u64,
    len: usize,
}

impl GpuMemory {
    /// Memory with unspecified contents. It has an address even where it has no bytes.
    pub(super) fn new(gpu: &Gpu, len: usize) -> Result<Self, DeviceError> {
        gpu.bind("taking memory")?;
        // SAFETY: nothing uses the memory before it is there: the stream orders the one behind the other.
        let address = unsafe { result::malloc_async(gpu.stream().cu_stream(), len.max(1)) }
            .map_err(|error| failed(gpu.name(), error, "taking memory", len))?;
        Ok(GpuMemory { gpu: gpu.clone(), address, len })
    }

    /// Memory as memory of a GPU, if it is of this one.
    pub(super) fn of<'a>(memory: &'a dyn DeviceMemory, gpu: &Gpu) -> Option<&'a GpuMemory> {
        (memory as &dyn Any).downcast_ref::<GpuMemory>().filter(|own| own.gpu.is(gpu))
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.len
    }

    /// Where it begins: a multiple of 256 bytes.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        // Of a GPU that has failed, nothing can be given back; its driver has taken all memory.
        if self.gpu.bind("giving memory back").is_ok() {
            // SAFETY: it was taken from this stream, and its owner is gone.
            let _ = unsafe { result::free_async(self.address, self.gpu.stream().cu_stream()) };
        }
    }
}

impl DeviceMemory for GpuMemory {
    fn len(&self) -> usize {
        self.len
    }

    fn place(&self) -> String {
        self.gpu.name().to_owned()
    }
}
