//! Streams, and which of them the work of a thread goes to.
//!
//! Work on one stream is done in the order in which it is submitted; work on several may be done at once. Each piece of memory
//! remembers the streams that use it, so that work on another one waits for it where the one writes what the other uses: kernels and copies
//! give what they would give one after the other, in the order in which they are submitted.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaEvent, CudaStream};
use tilewright_core::device::DeviceError;

use super::Gpu;
use super::graph::Recording;
use super::memory::{Block, Use};

/// A stream of a GPU: work on different streams may be done at once. Threads may share it; clones stand for the same stream.
///
/// Kernels and copies that a thread submits inside of [`Stream::scope`] go to the stream. Memory that several streams use needs no
/// care: a kernel waits for the work on other streams that writes what it uses, or uses what it writes.
#[derive(Clone)]
pub struct Stream {
    gpu: Gpu,
    lane: Lane,
}

/// A place in the work of a stream, with the time at which the GPU came there.
#[derive(Clone)]
pub struct Event {
    gpu: Gpu,
    event: Arc<CudaEvent>,
}

/// A stream of a GPU, with its number among the streams of its GPU, from 0 for the first one.
#[derive(Clone)]
pub(crate) struct Lane {
    stream: Arc<CudaStream>,
    number: u64,
}

/// Where the work of a thread goes: a lane, and whether it is recorded there instead of being executed.
#[derive(Clone)]
pub(crate) struct Current {
    pub(super) lane: Lane,
    pub(super) recording: Option<Rc<Recording>>,
}

thread_local! {
    /// The streams and recordings that this thread has entered, with their GPUs. The last entry of a GPU is in effect.
    static ENTERED: RefCell<Vec<(Gpu, Current)>> = const { RefCell::new(Vec::new()) };
}

impl Lane {
    pub(super) fn new(stream: Arc<CudaStream>, number: u64) -> Self {
        Lane { stream, number }
    }

    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Current {
    pub(crate) fn stream(&self) -> &CudaStream {
        self.lane.stream()
    }

    /// The recording of this stream, if there is one.
    pub(crate) fn recording(&self) -> Option<&Recording> {
        self.recording.as_deref()
    }
}

/// Does something while the work of this thread goes there.
pub(super) fn within<T>(gpu: &Gpu, current: Current, work: impl FnOnce() -> T) -> T {
    /// Leaves the scope, also where the work panics.
    struct Leave;

    impl Drop for Leave {
        fn drop(&mut self) {
            ENTERED.with_borrow_mut(|entered| drop(entered.pop()));
        }
    }

    ENTERED.with_borrow_mut(|entered| entered.push((gpu.clone(), current)));
    let _leave = Leave;
    work()
}

impl Gpu {
    /// A new stream.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when the GPU fails, [`DeviceError::OutOfMemory`] when it has no memory left.
    pub fn new_stream(&self) -> Result<Stream, DeviceError> {
        Ok(Stream { gpu: self.clone(), lane: self.new_lane()? })
    }

    /// A lane of its own, behind all work of the first one.
    pub(super) fn new_lane(&self) -> Result<Lane, DeviceError> {
        let failed = |error| self.failed(error, "making a stream");
        let stream = self.context().new_stream().map_err(failed)?;
        let number = self.count_stream();
        self.track_uses();
        // Until now, memory has not remembered what uses it.
        stream.join(self.first_lane().stream()).map_err(failed)?;
        Ok(Lane::new(stream, number))
    }

    /// Where the work of this thread goes.
    pub(crate) fn current(&self) -> Current {
        let entered = ENTERED.with_borrow(|entered| {
            let own = entered.iter().rev().find(|(gpu, _)| gpu.is(self));
            own.map(|(_, current)| current.clone())
        });
        entered.unwrap_or_else(|| Current { lane: self.first_lane(), recording: None })
    }

    /// Refuses what cannot be recorded in a graph, while one is recorded on this thread.
    pub(crate) fn refuse_recording(&self, what: &str) -> Result<(), DeviceError> {
        match self.current().recording() {
            None => Ok(()),
            Some(_) => {
                let problem = format!("{what} cannot be recorded in a graph");
                Err(DeviceError::Failed { device: self.name().to_owned(), problem })
            }
        }
    }

    /// Makes work that is submitted next wait for work on other streams that it depends on. Work that is recorded waits when
    /// the graph is launched.
    pub(crate) fn before(&self, uses: &[Use], current: &Current) -> Result<(), DeviceError> {
        match current.recording() {
            Some(recording) => {
                recording.note(uses);
                Ok(())
            }
            None => Block::before(self, uses, &current.lane),
        }
    }

    /// Remembers that work that was submitted uses memory.
    pub(crate) fn after(&self, uses: &[Use], current: &Current) -> Result<(), DeviceError> {
        match current.recording() {
            Some(_) => Ok(()),
            None => Block::after(self, uses, &current.lane),
        }
    }
}

impl Stream {
    /// The GPU that it belongs to.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Does something whose kernels and copies go to this stream, as far as this thread submits them. Copies of ordinary memory
    /// wait for the stream; others do not.
    pub fn scope<T>(&self, work: impl FnOnce() -> T) -> T {
        within(&self.gpu, Current { lane: self.lane.clone(), recording: None }, work)
    }

    /// The place behind all work that was submitted to the stream.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when the GPU fails.
    pub fn record(&self) -> Result<Event, DeviceError> {
        let event = self.lane.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
        let event = event.map_err(|error| self.gpu.failed(error, "marking a place in a stream"))?;
        Ok(Event { gpu: self.gpu.clone(), event: Arc::new(event) })
    }

    /// Makes work that is submitted from now on wait until a place in another stream is reached.
    ///
    /// # Errors
    /// [`DeviceError::OtherDevice`] when the place is in a stream of another GPU, [`DeviceError::Failed`] when the GPU fails.
    pub fn wait_for(&self, event: &Event) -> Result<(), DeviceError> {
        if !self.gpu.is(&event.gpu) {
            let (device, place) = (self.gpu.name().to_owned(), event.gpu.name().to_owned());
            return Err(DeviceError::OtherDevice { device, place });
        }
        self.lane
            .stream
            .wait(&event.event)
            .map_err(|error| self.gpu.failed(error, "making a stream wait for another one"))
    }

    /// Waits until all work that was submitted to the stream is done.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when some of it has failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.lane
            .stream
            .synchronize()
            .map_err(|error| self.gpu.failed(error, "kernels ran or copies were made"))
    }
}

impl Event {
    /// Waits until the GPU has come there.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when work before it has failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.event.synchronize().map_err(|error| self.gpu.failed(error, "kernels ran or copies were made"))
    }

    /// Whether the GPU has come there; it does not wait.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when work before it has failed.
    pub fn is_reached(&self) -> Result<bool, DeviceError> {
        self.gpu.bind("asking for a place in a stream")?;
        self.event
            .try_is_complete()
            .map_err(|error| self.gpu.failed(error, "kernels ran or copies were made"))
    }

    /// The time from an earlier place to this one, by the GPU's clock; waits for both.
    ///
    /// # Errors
    /// [`DeviceError::OtherDevice`] when the other place is of another GPU, [`DeviceError::Failed`] when work before either has failed.
    pub fn since(&self, earlier: &Event) -> Result<Duration, DeviceError> {
        if !self.gpu.is(&earlier.gpu) {
            let (device, place) = (self.gpu.name().to_owned(), earlier.gpu.name().to_owned());
            return Err(DeviceError::OtherDevice { device, place });
        }
        let milliseconds = earlier.event.elapsed_ms(&self.event);
        let milliseconds = milliseconds.map_err(|error| self.gpu.failed(error, "measuring a time"))?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({} of {})", self.lane.number, self.gpu.name())
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", self.gpu.name())
    }
}
