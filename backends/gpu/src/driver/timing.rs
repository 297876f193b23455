//! How long work takes, by the GPU's own clock.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{CUevent_flags, CUgraphInstantiate_flags, CUstreamCaptureMode};
use tilewright_core::device::DeviceError;

use super::Gpu;

impl Gpu {
    /// Records what `submit` submits to the stream that it is given, repeats that, and gives the time of all repetitions. Launching
    /// a recorded graph costs the host less than submitting the work again.
    ///
    /// # Errors
    /// The errors of `submit`, and [`DeviceError::Failed`].
    pub(crate) fn time<E: From<DeviceError>>(
        &self,
        repetitions: u64,
        submit: impl FnOnce(&CudaStream) -> Result<(), E>,
    ) -> Result<Duration, E> {
        let failed = |error| self.failed(error, "measuring a kernel");
        let stream = self.context().new_stream().map_err(failed)?;
        stream.join(self.stream()).map_err(failed)?;
        stream.synchronize().map_err(failed)?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        stream.begin_capture(mode).map_err(failed)?;
        let submitted = submit(&stream);
        // The capture has to be ended whatever happened.
        let graph = stream.end_capture(CUgraphInstantiate_flags(0));
        submitted?;
        let Some(graph) = graph.map_err(failed)? else { return Ok(Duration::ZERO) };
        let mark = |stream: &Arc<CudaStream>| stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
        let start = mark(&stream).map_err(failed)?;
        for _ in 0..repetitions {
            graph.launch().map_err(failed)?;
        }
        let end = mark(&stream).map_err(failed)?;
        let milliseconds = start.elapsed_ms(&end).map_err(failed)?;
        // Work that is submitted later comes behind.
        self.stream().join(&stream).map_err(failed)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}
