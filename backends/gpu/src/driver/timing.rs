//! How long work takes, by the GPU's own clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{CUevent_flags, CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaGraph, CudaStream, DriverError};
use tilewright_core::device::DeviceError;

use super::Gpu;
use super::memory::{Block, Use};
use super::stream::Lane;

/// Further repetitions of a measurement end after this time by the clock of the host. Repetitions on a real GPU take about as long on the host as on
/// the GPU; simulated ones take much longer.
const LONGEST_ROW: Duration = Duration::from_millis(100);

/// Repetitions that are recorded in one graph, where there are as many: launching a graph takes the host a few microseconds, which is longer
/// than small kernels take.
const TOGETHER: u64 = 32;

/// Launches a graph several times in a row, and gives the time of all launches.
fn row(stream: &Arc<CudaStream>, graph: &CudaGraph, repetitions: u64) -> Result<Duration, DriverError> {
    let mark = || stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
    let start = mark()?;
    for _ in 0..repetitions {
        graph.launch()?;
    }
    let milliseconds = start.elapsed_ms(&mark()?)?;
    Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
}

impl Gpu {
    /// Records what `submit` submits to the stream that it is given, repeats that, and gives the time of all repetitions. Launching
    /// a recorded graph costs the host less than submitting the work again; many repetitions are one graph. Where the host takes long for a
    /// repetition, the time of a part of them is extrapolated.
    ///
    /// `uses` is the memory that the work uses.
    ///
    /// # Errors
    /// The errors of `submit`, and [`DeviceError::Failed`].
    pub(crate) fn time<E: From<DeviceError>>(
        &self,
        repetitions: u64,
        uses: &[Use],
        submit: impl Fn(&CudaStream) -> Result<(), E>,
    ) -> Result<Duration, E> {
        let failed = |error| self.failed(error, "measuring a kernel");
        self.refuse_recording("a measurement")?;
        let stream = self.context().new_stream().map_err(failed)?;
        stream.join(self.current().stream()).map_err(failed)?;
        Block::before(self, uses, &Lane::new(Arc::clone(&stream), self.count_stream()))?;
        stream.synchronize().map_err(failed)?;
        let Some(graph) = self.repeated(&stream, 1, &submit)? else { return Ok(Duration::ZERO) };
        let row = |graph: &CudaGraph, launches| row(&stream, graph, launches).map_err(failed);
        let on_host = Instant::now();
        let mut time = row(&graph, repetitions.min(1))?;
        let more = repetitions.saturating_sub(1);
        if more > 0 {
            let affordable = LONGEST_ROW.as_secs_f64() / on_host.elapsed().as_secs_f64().max(1e-9);
            let runs = more.min(affordable as u64).max(1);
            let several = if runs < TOGETHER { None } else { self.repeated(&stream, TOGETHER, &submit)? };
            let (measured, of_row) = match &several {
                Some(several) => (runs / TOGETHER * TOGETHER, row(several, runs / TOGETHER)?),
                None => (runs, row(&graph, runs)?),
            };
            time += of_row.mul_f64(more as f64 / measured as f64);
        }
        // Work that is submitted later comes behind.
        self.current().stream().join(&stream).map_err(failed)?;
        Ok(time)
    }

    /// A graph of what `submit` submits, some times in a row; `None` where it submits nothing.
    fn repeated<E: From<DeviceError>>(
        &self,
        stream: &Arc<CudaStream>,
        times: u64,
        submit: &impl Fn(&CudaStream) -> Result<(), E>,
    ) -> Result<Option<CudaGraph>, E> {
        let failed = |error| self.failed(error, "measuring a kernel");
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        stream.begin_capture(mode).map_err(failed)?;
        let submitted = (0..times).try_for_each(|_| submit(stream));
        // The capture has to be ended whatever happened.
        let graph = stream.end_capture(CUgraphInstantiate_flags(0));
        submitted?;
        Ok(graph.map_err(failed)?)
    }
}
