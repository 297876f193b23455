//! An opened GPU.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cudarc::driver::{CudaContext, CudaStream, DriverError, result};
use tilewright_core::device::{DeviceError, DeviceMemory, DeviceSlice, DeviceSliceMut};
use tilewright_core::target::{GpuTarget, Target};

use super::failure::{failed, text, unavailable};
use super::memory::{GpuMemory, Use};
use super::stream::Lane;
use super::{library, properties};

/// An NVIDIA GPU. Cheap to clone: clones stand for the same GPU, and threads may share it.
///
/// A kernel that accesses memory that it must not, or a GPU that falls off the bus, makes each later use fail with
/// [`DeviceError::Failed`]. Memory of the host keeps what it held. The GPU can be opened anew when everything that belongs to it is
/// dropped.
#[derive(Clone)]
pub struct Gpu {
    opened: Arc<Opened>,
}

struct Opened {
    name: String,
    label: String,
    target: Target,
    facts: GpuTarget,
    /// The stream of work for which nothing else is said. It goes before its context.
    first_lane: Lane,
    /// How many streams there have been.
    streams: AtomicU64,
    /// Whether memory remembers what uses it: from the second stream on.
    tracks_uses: AtomicBool,
    context: Arc<CudaContext>,
}

impl Gpu {
    /// How many GPUs there are.
    ///
    /// # Errors
    /// [`DeviceError::Unavailable`] when the driver is missing, too old, or finds none.
    pub fn count() -> Result<usize, DeviceError> {
        library::initialise()?;
        let count = CudaContext::device_count().map_err(|error| {
            unavailable("the CUDA driver", format!("it cannot count GPUs: {}", text(error)))
        })?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Opens a GPU by its number, from 0, as `nvidia-smi` lists them.
    ///
    /// # Errors
    /// [`DeviceError::Unavailable`] when there is no such GPU, it is too old, or the driver is; [`DeviceError::OutOfMemory`] when
    /// other programs have taken all of its memory; [`DeviceError::Failed`] when it fails.
    pub fn open(number: usize) -> Result<Gpu, DeviceError> {
        let name = format!("GPU {number}");
        let count = Self::count()?;
        if number >= count {
            let problem = match count {
                1 => "the only one has the number 0".to_owned(),
                _ => format!("there are {count}, with numbers from 0"),
            };
            return Err(unavailable(name, problem));
        }
        let problem = |error| failed(&name, error, "being opened", 0);
        let context = CudaContext::new(number).map_err(problem)?;
        // SAFETY: slices of `cudarc`, which would be tracked, are not used: work is ordered by one stream.
        unsafe { context.disable_event_tracking() };
        let facts = properties::target(&context, &name)?;
        let label = context.name().map_err(problem)?;
        let stream = context.new_stream().map_err(problem)?;
        Ok(Gpu {
            opened: Arc::new(Opened {
                name,
                label,
                target: facts.clone().into(),
                facts,
                first_lane: Lane::new(stream, 0),
                streams: AtomicU64::new(1),
                tracks_uses: AtomicBool::new(false),
                context,
            }),
        })
    }

    /// Its name in messages: `GPU 0`.
    pub fn name(&self) -> &str {
        &self.opened.name
    }

    /// The name that its maker gave it.
    pub fn product(&self) -> &str {
        &self.opened.label
    }

    /// Its properties.
    pub fn facts(&self) -> &GpuTarget {
        &self.opened.facts
    }

    pub(crate) fn as_target(&self) -> &Target {
        &self.opened.target
    }

    /// Memory with unspecified contents.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`], or [`DeviceError::Failed`].
    pub(crate) fn take(&self, bytes: usize) -> Result<GpuMemory, DeviceError> {
        GpuMemory::new(self, bytes)
    }

    /// Copies from the host. When it returns, the source may change.
    ///
    /// # Errors
    /// [`DeviceError`] when the lengths differ, the memory belongs to another device, or the GPU fails.
    pub(crate) fn copy_from_host(&self, from: &[u8], to: DeviceSliceMut<'_>) -> Result<(), DeviceError> {
        check_sizes(from.len(), to.len())?;
        let (used, address) = self.place(to.memory(), true)?;
        self.write(used, address, from)
    }

    /// Copies to the host, after all work that was submitted before.
    ///
    /// # Errors
    /// As [`Gpu::copy_from_host`]. The destination may hold anything then.
    pub(crate) fn copy_to_host(&self, from: DeviceSlice<'_>, to: &mut [u8]) -> Result<(), DeviceError> {
        check_sizes(from.len(), to.len())?;
        let (used, address) = self.place(from.memory(), false)?;
        self.read(used, address, to)
    }

    /// Copies to an address of memory that is large enough.
    pub(crate) fn write(&self, used: Use, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.refuse_recording("a copy to the GPU")?;
        if from.is_empty() {
            return Ok(());
        }
        self.bind("copying to it")?;
        let current = self.current();
        self.before(&[used], &current)?;
        // SAFETY: the memory is ours and large enough. The driver takes the bytes of ordinary memory before the call returns,
        // or the wait sees to it that it has: page-locked memory of the caller would be read later.
        unsafe { result::memcpy_htod_async(to, from, current.stream().cu_stream()) }
            .map_err(|error| self.failed(error, "copying to it"))?;
        current.stream().synchronize().map_err(|error| self.failed(error, "copying to it"))
    }

    /// Copies from an address, when all work that was submitted before is done.
    pub(crate) fn read(&self, used: Use, from: u64, to: &mut [u8]) -> Result<(), DeviceError> {
        self.refuse_recording("a copy from the GPU")?;
        self.bind("copying from it")?;
        let current = self.current();
        self.before(&[used], &current)?;
        let done = || current.stream().synchronize();
        if to.is_empty() {
            return done().map_err(|error| self.failed(error, "waiting for it"));
        }
        // SAFETY: the memory is ours and large enough; the wait sees to it that the copy is done while `to` is borrowed. If
        // waiting fails, the context has failed, and the driver copies nothing more.
        unsafe { result::memcpy_dtoh_async(to, from, current.stream().cu_stream()) }
            .map_err(|error| self.failed(error, "copying from it"))?;
        done().map_err(|error| self.failed(error, "kernels ran or copies were made"))
    }

    /// A part of memory, which has to be of this GPU, as something that work uses; and its address.
    ///
    /// # Errors
    /// [`DeviceError::OtherDevice`].
    pub(crate) fn place(
        &self,
        (memory, start): (&dyn DeviceMemory, usize),
        is_written: bool,
    ) -> Result<(Use, u64), DeviceError> {
        match GpuMemory::of(memory, self) {
            Some(own) => Ok((own.used(is_written), own.address() + start as u64)),
            None => Err(DeviceError::OtherDevice { device: self.name().to_owned(), place: memory.place() }),
        }
    }

    /// Fills memory with zeros.
    pub(crate) fn clear(&self, address: u64, bytes: usize, stream: &CudaStream) -> Result<(), DeviceError> {
        self.bind("clearing memory")?;
        // SAFETY: the memory is ours and large enough.
        unsafe { result::memset_d8_async(address, 0, bytes, stream.cu_stream()) }
            .map_err(|error| self.failed(error, "clearing memory"))
    }

    /// Waits until all work that was submitted is done, on every stream.
    pub(crate) fn wait(&self, doing: &str) -> Result<(), DeviceError> {
        self.refuse_recording("waiting")?;
        let waited = match self.has_streams() {
            true => self.context().synchronize(),
            false => self.first_lane().stream().synchronize(),
        };
        waited.map_err(|error| self.failed(error, doing))
    }

    /// Makes the GPU the one that calls of this thread mean.
    pub(super) fn bind(&self, doing: &str) -> Result<(), DeviceError> {
        self.context().bind_to_thread().map_err(|error| self.failed(error, doing))
    }

    pub(super) fn failed(&self, error: DriverError, doing: &str) -> DeviceError {
        failed(self.name(), error, doing, 0)
    }

    /// The stream of work for which nothing else is said.
    pub(super) fn first_lane(&self) -> Lane {
        self.opened.first_lane.clone()
    }

    /// The number of the next stream.
    pub(super) fn count_stream(&self) -> u64 {
        self.opened.streams.fetch_add(1, Ordering::Relaxed)
    }

    /// From now on, memory remembers what uses it.
    pub(super) fn track_uses(&self) {
        self.opened.tracks_uses.store(true, Ordering::SeqCst);
    }

    /// Whether memory remembers what uses it, because there are several streams.
    pub(super) fn has_streams(&self) -> bool {
        self.opened.tracks_uses.load(Ordering::SeqCst)
    }

    pub(super) fn context(&self) -> &Arc<CudaContext> {
        &self.opened.context
    }

    /// Whether both stand for the same opened GPU.
    pub(super) fn is(&self, other: &Gpu) -> bool {
        Arc::ptr_eq(&self.opened, &other.opened)
    }
}

pub(super) fn check_sizes(from: usize, to: usize) -> Result<(), DeviceError> {
    if from == to { Ok(()) } else { Err(DeviceError::Size { from, to }) }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({}, {})", self.name(), self.product())
    }
}
