//! Memory of a GPU.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaEvent, result};
use tilewright_core::device::{DeviceError, DeviceMemory};

use super::Gpu;
use super::failure::failed;
use super::stream::Lane;

/// Memory of a GPU, given back when it is dropped, behind the work that was submitted before.
pub(crate) struct GpuMemory {
    block: Arc<Block>,
}

/// A piece of memory. Recorded graphs keep it as well.
pub(crate) struct Block {
    gpu: Gpu,
    address: u64,
    len: usize,
    /// The stream that it was taken from and goes back to.
    home: Lane,
    uses: Mutex<Uses>,
    /// Whether graphs write it.
    is_shared: AtomicBool,
}

/// The work that other work has to wait for: the last one that writes the memory, and those since then that read it.
#[derive(Default)]
struct Uses {
    writer: Option<Mark>,
    readers: Vec<Mark>,
}

/// A place in a stream, behind some work.
#[derive(Clone)]
struct Mark {
    stream: u64,
    event: Arc<CudaEvent>,
}

/// That work uses a piece of memory.
#[derive(Clone)]
pub(crate) struct Use {
    pub(crate) block: Arc<Block>,
    pub(crate) is_written: bool,
}

impl GpuMemory {
    /// Memory with unspecified contents. It has an address even where it has no bytes.
    pub(super) fn new(gpu: &Gpu, len: usize) -> Result<Self, DeviceError> {
        gpu.bind("taking memory")?;
        let current = gpu.current();
        // Taking memory is not recorded: a graph keeps the memory that it uses.
        let home = if current.recording().is_some() { gpu.first_lane() } else { current.lane };
        // SAFETY: nothing uses the memory before it is there: work on the same stream comes behind, and other work waits.
        let address = unsafe { result::malloc_async(home.stream().cu_stream(), len.max(1)) }
            .map_err(|error| failed(gpu.name(), error, "taking memory", len))?;
        let (uses, is_shared) = (Mutex::default(), AtomicBool::new(false));
        let block = Arc::new(Block { gpu: gpu.clone(), address, len, home, uses, is_shared });
        if gpu.has_streams() {
            let event = block.home.stream().record_event(None);
            let event = event.map_err(|error| gpu.failed(error, "taking memory"))?;
            block.note(Mark { stream: block.home.number(), event: Arc::new(event) }, true);
        }
        Ok(GpuMemory { block })
    }

    /// Memory as memory of a GPU, if it is of this one.
    pub(super) fn of<'a>(memory: &'a dyn DeviceMemory, gpu: &Gpu) -> Option<&'a GpuMemory> {
        (memory as &dyn Any).downcast_ref::<GpuMemory>().filter(|own| own.block.gpu.is(gpu))
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.block.len
    }

    /// Where it begins: a multiple of 256 bytes.
    pub(crate) fn address(&self) -> u64 {
        self.block.address
    }

    /// That work uses it.
    pub(crate) fn used(&self, is_written: bool) -> Use {
        Use { block: Arc::clone(&self.block), is_written }
    }
}

impl Block {
    /// From now on, graphs write it.
    pub(super) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Makes work that is submitted to a lane next wait for work on other streams that it depends on.
    pub(super) fn before(gpu: &Gpu, uses: &[Use], lane: &Lane) -> Result<(), DeviceError> {
        if !gpu.has_streams() {
            return Ok(());
        }
        for Use { block, is_written } in uses {
            let known = block.uses.lock().unwrap_or_else(PoisonError::into_inner);
            let readers = if *is_written { &known.readers[..] } else { &[] };
            for mark in known.writer.iter().chain(readers).filter(|mark| mark.stream != lane.number()) {
                lane.stream()
                    .wait(&mark.event)
                    .map_err(|error| gpu.failed(error, "waiting for work on another stream"))?;
            }
        }
        Ok(())
    }

    /// Remembers that work that was submitted to a lane uses memory.
    pub(super) fn after(gpu: &Gpu, uses: &[Use], lane: &Lane) -> Result<(), DeviceError> {
        if !gpu.has_streams() || uses.is_empty() {
            return Ok(());
        }
        let event = lane.stream().record_event(None);
        let event = event.map_err(|error| gpu.failed(error, "marking a place in a stream"))?;
        let mark = Mark { stream: lane.number(), event: Arc::new(event) };
        for Use { block, is_written } in uses {
            block.note(mark.clone(), *is_written);
        }
        Ok(())
    }

    fn note(&self, mark: Mark, is_written: bool) {
        let mut known = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if is_written {
            *known = Uses { writer: Some(mark), readers: Vec::new() };
        } else {
            // Of one stream, the last work comes behind all before.
            known.readers.retain(|reader| reader.stream != mark.stream);
            known.readers.push(mark);
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // Of a GPU that has failed, nothing can be given back; its driver has taken all memory.
        if self.gpu.bind("giving memory back").is_err() {
            return;
        }
        let (home, number) = (self.home.stream(), self.home.number());
        let known = self.uses.get_mut().unwrap_or_else(PoisonError::into_inner);
        for mark in known.writer.iter().chain(&known.readers).filter(|mark| mark.stream != number) {
            if home.wait(&mark.event).is_err() {
                return;
            }
        }
        // SAFETY: it was taken from this stream, its owners are gone, and the stream has waited for work on others.
        let _ = unsafe { result::free_async(self.address, home.cu_stream()) };
    }
}

impl DeviceMemory for GpuMemory {
    fn len(&self) -> usize {
        self.block.len
    }

    fn is_shared(&self) -> bool {
        self.block.is_shared.load(Ordering::Relaxed)
    }

    fn place(&self) -> String {
        self.block.gpu.name().to_owned()
    }
}
