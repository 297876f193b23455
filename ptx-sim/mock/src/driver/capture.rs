//! Graphs, and recording them from streams.

use std::sync::Arc;
use std::thread::ThreadId;

use rustc_hash::FxHashMap;

use super::Driver;
use super::table::Handle;
use super::work::Work;
use crate::code::{Code, Outcome};

/// A graph: work in an order that agrees with all dependences.
#[derive(Clone)]
pub(crate) struct Graph(pub(crate) Arc<[Work]>);

/// Which calls are refused while a stream is captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CaptureMode {
    /// Those that could interfere, from any thread.
    Global,
    /// Those that could interfere, from the thread that captures.
    ThreadLocal,
    /// None.
    Relaxed,
}

/// Whether a stream is captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum CaptureStatus {
    None = 0,
    Active = 1,
    Invalidated = 2,
}

/// How much of the work of each stream lies before a place.
pub(crate) type Reach = FxHashMap<Handle, usize>;

/// A graph while it is recorded.
pub(crate) struct Capture {
    pub(crate) context: Handle,
    pub(crate) mode: CaptureMode,
    pub(crate) thread: ThreadId,
    /// Whether something was done that has no meaning in a graph.
    pub(crate) is_invalid: bool,
    /// The stream in which it was begun.
    origin: Handle,
    works: Vec<Work>,
    /// The work before the end of each stream that takes part, its own included.
    reaches: FxHashMap<Handle, Reach>,
}

impl Capture {
    /// The work before the end of a stream.
    pub(crate) fn reach_of(&self, stream: Handle) -> Reach {
        self.reaches.get(&stream).cloned().unwrap_or_default()
    }

    /// Whether the end of the first stream comes after all work of the others.
    fn is_joined(&self) -> bool {
        let origin = self.reach_of(self.origin);
        self.reaches.iter().all(|(stream, reach)| {
            let own = reach.get(stream).copied().unwrap_or(0);
            origin.get(stream).copied().unwrap_or(0) >= own
        })
    }
}

impl Driver {
    pub(crate) fn begin_capture(&mut self, stream: Handle, mode: CaptureMode) -> Outcome {
        let stream = self.stream(stream)?;
        let found = self.streams.get(stream)?;
        if found.capture.is_some() {
            return Err(Code::IllegalState);
        }
        let context = found.context;
        if self.context(context)?.legacy_stream == stream {
            return Err(Code::StreamCaptureUnsupported);
        }
        let capture = self.captures.insert(Capture {
            context,
            mode,
            thread: std::thread::current().id(),
            is_invalid: false,
            origin: stream,
            works: Vec::new(),
            reaches: [(stream, Reach::default())].into_iter().collect(),
        });
        self.streams.get_mut(stream)?.capture = Some(capture);
        Ok(())
    }

    /// Ends a capture, and gives its graph.
    pub(crate) fn end_capture(&mut self, stream: Handle) -> Outcome<Handle> {
        let stream = self.stream(stream)?;
        let handle = self.streams.get(stream)?.capture.ok_or(Code::IllegalState)?;
        let capture = self.captures.get(handle)?;
        if capture.origin != stream {
            return Err(Code::StreamCaptureUnmatched);
        }
        if capture.mode != CaptureMode::Relaxed && capture.thread != std::thread::current().id() {
            return Err(Code::StreamCaptureWrongThread);
        }
        let capture = self.captures.remove(handle)?;
        for stream in capture.reaches.keys() {
            if let Ok(stream) = self.streams.get_mut(*stream) {
                stream.capture = None;
            }
        }
        if capture.is_invalid {
            return Err(Code::StreamCaptureInvalidated);
        }
        if !capture.is_joined() {
            return Err(Code::StreamCaptureUnjoined);
        }
        Ok(self.graphs.insert(Graph(capture.works.into())))
    }

    pub(crate) fn capture_status(&self, stream: Handle) -> Outcome<CaptureStatus> {
        let stream = self.stream(stream)?;
        Ok(match self.streams.get(stream)?.capture {
            None => CaptureStatus::None,
            Some(capture) if self.captures.get(capture)?.is_invalid => CaptureStatus::Invalidated,
            Some(_) => CaptureStatus::Active,
        })
    }

    pub(crate) fn record_work(&mut self, capture: Handle, stream: Handle, work: Work) -> Outcome {
        let capture = self.captures.get_mut(capture)?;
        if capture.is_invalid {
            return Err(Code::StreamCaptureInvalidated);
        }
        capture.works.push(work);
        let count = capture.works.len();
        capture.reaches.entry(stream).or_default().insert(stream, count);
        Ok(())
    }

    /// Makes a stream part of a capture, and its end come after a place of it.
    pub(crate) fn join_capture(&mut self, handle: Handle, stream: Handle, reach: &Reach) -> Outcome {
        let own = self.streams.get(stream)?.capture;
        // A capture that has ended leaves no event that a stream could wait for.
        let capture = self.captures.get_mut(handle).map_err(|_| Code::CapturedEvent)?;
        if own.is_some_and(|own| own != handle) {
            capture.is_invalid = true;
            return Err(Code::StreamCaptureMerge);
        }
        let mine = capture.reaches.entry(stream).or_default();
        for (other, place) in reach {
            let known = mine.entry(*other).or_default();
            *known = (*known).max(*place);
        }
        self.streams.get_mut(stream)?.capture = Some(handle);
        Ok(())
    }

    pub(crate) fn instantiate(&mut self, graph: Handle) -> Outcome<Handle> {
        self.usable()?;
        let graph = self.graphs.get(graph).map_err(|_| Code::InvalidValue)?.clone();
        Ok(self.executables.insert(graph))
    }

    pub(crate) fn launch_graph(&mut self, executable: Handle, stream: Handle) -> Outcome {
        let stream = self.stream(stream)?;
        let Graph(works) = self.executables.get(executable).map_err(|_| Code::InvalidValue)?.clone();
        self.submit(stream, Work::Graph(works)).map(|_| ())
    }

    /// Fails where a graph cannot be launched in a stream.
    pub(crate) fn upload_graph(&self, executable: Handle, stream: Handle) -> Outcome {
        self.stream(stream)?;
        self.executables.get(executable).map(|_| ()).map_err(|_| Code::InvalidValue)
    }

    pub(crate) fn clone_graph(&mut self, graph: Handle) -> Outcome<Handle> {
        let graph = self.graphs.get(graph).map_err(|_| Code::InvalidValue)?.clone();
        Ok(self.graphs.insert(graph))
    }

    pub(crate) fn graph_size(&self, graph: Handle) -> Outcome<usize> {
        self.graphs.get(graph).map(|graph| graph.0.len()).map_err(|_| Code::InvalidValue)
    }

    pub(crate) fn destroy_graph(&mut self, graph: Handle) -> Outcome {
        self.graphs.remove(graph).map(|_| ()).map_err(|_| Code::InvalidValue)
    }

    pub(crate) fn destroy_executable(&mut self, executable: Handle) -> Outcome {
        self.executables.remove(executable).map(|_| ()).map_err(|_| Code::InvalidValue)
    }
}
