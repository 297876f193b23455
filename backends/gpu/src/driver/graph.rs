//! Graphs: kernels that are recorded once and launched together, which costs the host less than launching each.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use tilewright_core::device::DeviceError;

use super::Gpu;
use super::memory::{Block, Use};
use super::module::Module;
use super::stream::{Current, Lane, within};

/// Kernels that were recorded, see [`Gpu::record`].
///
/// A graph keeps the memory that its kernels use, also that of tensors that are dropped, and reads and writes there what its launches find: a
/// tensor that was written when the graph was recorded is written by each launch. Threads may share it.
pub struct Graph {
    gpu: Gpu,
    /// The driver wants one thread at a time. `None` where nothing was recorded.
    graph: Mutex<Option<Owned>>,
    /// The stream that it was recorded on, and is launched on.
    lane: Lane,
    uses: Vec<Use>,
    /// The modules of its kernels.
    _modules: Vec<Module>,
}

struct Owned(CudaGraph);

// SAFETY: the driver's functions may be called with a graph from any thread, one at a time.
unsafe impl Send for Owned {}

/// A recording of work that has not ended yet.
#[derive(Default)]
pub(crate) struct Recording {
    uses: RefCell<Vec<Use>>,
    modules: RefCell<Vec<Module>>,
}

impl Recording {
    /// Keeps the module of a kernel that is recorded.
    pub(crate) fn keep(&self, module: &Module) {
        let mut modules = self.modules.borrow_mut();
        if !modules.iter().any(|known| known.is(module)) {
            modules.push(module.clone());
        }
    }

    /// Notes that a recorded kernel uses memory.
    pub(super) fn note(&self, noted: &[Use]) {
        let mut uses = self.uses.borrow_mut();
        for Use { block, is_written } in noted {
            match uses.iter_mut().find(|own| Arc::ptr_eq(&own.block, block)) {
                Some(own) => own.is_written |= is_written,
                None => uses.push(Use { block: Arc::clone(block), is_written: *is_written }),
            }
        }
    }
}

impl Gpu {
    /// Records the kernels that `work` submits to this GPU on this thread, instead of executing them. Each kernel has to have been called
    /// before with the same dimensions: making one, and computing on constant tensors, is not recorded. Copies to and from the host,
    /// tensors of the host and kernels that report indices out of bounds are refused.
    ///
    /// # Errors
    /// The errors of `work`; [`DeviceError::Failed`] when the GPU fails.
    pub fn record<T, E: From<DeviceError>>(
        &self,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<(Graph, T), E> {
        let failed = |error| self.failed(error, "recording a graph");
        if self.current().recording().is_some() {
            let problem = "a graph is being recorded on this thread already".to_owned();
            return Err(DeviceError::Failed { device: self.name().to_owned(), problem }.into());
        }
        let lane = self.new_lane()?;
        let stream = Arc::clone(lane.stream());
        // Memory that is taken meanwhile comes from the first stream, beside the one that is recorded.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        stream.begin_capture(mode).map_err(failed)?;
        let recording = Rc::new(Recording::default());
        let current = Current { lane: lane.clone(), recording: Some(Rc::clone(&recording)) };
        let done = within(self, current, work);
        // The capture has to be ended whatever happened.
        let graph = stream.end_capture(CUgraphInstantiate_flags(0));
        let done = done?;
        let graph = graph.map_err(failed)?;
        let uses = recording.uses.take();
        // From now on, more than the owners of the memory may write it.
        uses.iter().filter(|used| used.is_written).for_each(|used| used.block.share());
        let modules = recording.modules.take();
        let graph = Mutex::new(graph.map(Owned));
        Ok((Graph { gpu: self.clone(), graph, lane, uses, _modules: modules }, done))
    }
}

impl Graph {
    /// Launches the kernels, behind the work that was submitted to the stream of this thread, and before the work that is submitted next.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when the GPU fails, or a graph is being recorded on this thread.
    pub fn launch(&self) -> Result<(), DeviceError> {
        let failed = |error| self.gpu.failed(error, "launching a graph");
        self.gpu.refuse_recording("the launch of a graph")?;
        let current = self.gpu.current();
        let launched = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Owned(graph)) = &*launched else { return Ok(()) };
        self.gpu.bind("launching a graph")?;
        self.lane.stream().join(current.stream()).map_err(failed)?;
        Block::before(&self.gpu, &self.uses, &self.lane)?;
        graph.launch().map_err(failed)?;
        Block::after(&self.gpu, &self.uses, &self.lane)?;
        current.stream().join(self.lane.stream()).map_err(failed)
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} pieces of memory of {})", self.uses.len(), self.gpu.name())
    }
}
