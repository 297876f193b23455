//! Streams.

use std::collections::VecDeque;
use std::ffi::c_void;

use super::Driver;
use super::capture::CaptureMode;
use super::host::HostAddress;
use super::table::Handle;
use super::work::{Callback, Submitted, Work};
use crate::code::{Code, Outcome};

/// How the work of a stream is ordered with that of others of its context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ordering {
    /// With that of all blocking streams: the stream that has no handle.
    Legacy,
    /// With that of the legacy stream.
    Blocking,
    /// With nothing.
    NonBlocking,
}

/// A stream: work in the order in which it was submitted.
pub(crate) struct Stream {
    pub(crate) context: Handle,
    pub(crate) ordering: Ordering,
    pub(crate) priority: i32,
    /// Work that was not executed yet.
    pub(crate) queue: VecDeque<Submitted>,
    /// When the work that was executed has ended, in nanoseconds.
    pub(crate) time: f64,
    /// The capture that records what is submitted.
    pub(crate) capture: Option<Handle>,
}

/// The handles that stand for the legacy stream and for that of a thread.
const LEGACY: Handle = Handle(1);
const PER_THREAD: Handle = Handle(2);

impl Driver {
    pub(crate) fn add_stream(&mut self, context: Handle, ordering: Ordering, priority: i32) -> Handle {
        let queue = VecDeque::new();
        self.streams.insert(Stream { context, ordering, priority, queue, time: 0.0, capture: None })
    }

    pub(crate) fn create_stream(&mut self, flags: u32, priority: i32) -> Outcome<Handle> {
        let context = self.usable()?;
        let ordering = match flags {
            0 => Ordering::Blocking,
            1 => Ordering::NonBlocking,
            _ => return Err(Code::InvalidValue),
        };
        Ok(self.add_stream(context, ordering, priority))
    }

    /// The stream that a program means, which can be used.
    pub(crate) fn stream(&self, handle: Handle) -> Outcome<Handle> {
        let handle = match handle {
            Handle(0) | LEGACY => self.context(self.usable()?)?.legacy_stream,
            PER_THREAD => self.context(self.usable()?)?.thread_stream,
            handle => handle,
        };
        let context = self.streams.get(handle)?.context;
        self.check_context(context)?;
        Ok(handle)
    }

    /// Destroys a stream, after its remaining work, as far as that can run.
    pub(crate) fn destroy_stream(&mut self, handle: Handle) -> Outcome {
        let stream = self.streams.get(handle)?;
        if stream.ordering == Ordering::Legacy {
            return Err(Code::InvalidHandle);
        }
        if stream.capture.is_some() {
            return Err(Code::StreamCaptureUnsupported);
        }
        let done = self.complete(handle);
        self.streams.remove(handle)?;
        done
    }

    /// Submits work to a stream: it is put into its queue, or recorded.
    pub(crate) fn submit(&mut self, handle: Handle, work: Work) -> Outcome<u64> {
        self.check_implicit(handle)?;
        self.submitted += 1;
        let sequence = self.submitted;
        let stream = self.streams.get_mut(handle)?;
        match stream.capture {
            Some(capture) => self.record_work(capture, handle, work)?,
            None => stream.queue.push_back(Submitted { sequence, work }),
        }
        Ok(sequence)
    }

    /// Waits for a stream.
    pub(crate) fn synchronise_stream(&mut self, handle: Handle) -> Outcome {
        let handle = self.stream(handle)?;
        self.refuse_while_recording(handle)?;
        self.complete(handle)
    }

    /// Waits for all streams of a context.
    pub(crate) fn synchronise_context(&mut self, context: Handle) -> Outcome {
        self.check_context(context)?;
        self.refuse_while_capturing(Some(context))?;
        for stream in self.streams.find(|stream| stream.context == context) {
            self.complete(stream)?;
        }
        Ok(())
    }

    /// Waits for all streams of a device, as giving memory back does.
    pub(crate) fn synchronise_device(&mut self, device: usize) -> Outcome {
        for context in self.contexts.find(|context| context.device == device) {
            for stream in self.streams.find(|stream| stream.context == context) {
                self.complete(stream)?;
            }
        }
        Ok(())
    }

    /// Whether a stream has nothing left to do. Since nothing is executed before somebody waits, asking makes the oldest piece of
    /// work be done, so that a program that asks again and again sees an end.
    pub(crate) fn query_stream(&mut self, handle: Handle) -> Outcome {
        let handle = self.stream(handle)?;
        self.refuse_while_recording(handle)?;
        match self.streams.get(handle)?.queue.front() {
            None => Ok(()),
            Some(first) => {
                let sequence = first.sequence;
                self.execute_until(handle, sequence)?;
                if self.streams.get(handle)?.queue.is_empty() { Ok(()) } else { Err(Code::NotReady) }
            }
        }
    }

    /// The streams of a context with an ordering.
    pub(crate) fn streams_with(&self, context: Handle, ordering: Ordering) -> Vec<Handle> {
        self.streams.find(|stream| stream.context == context && stream.ordering == ordering)
    }

    /// The legacy stream cannot depend on a blocking stream that is being captured.
    fn check_implicit(&mut self, handle: Handle) -> Outcome {
        let stream = self.streams.get(handle)?;
        if stream.ordering != Ordering::Legacy {
            return Ok(());
        }
        for other in self.streams_with(stream.context, Ordering::Blocking) {
            if let Some(capture) = self.streams.get(other)?.capture {
                self.captures.get_mut(capture)?.is_invalid = true;
                return Err(Code::StreamCaptureImplicit);
            }
        }
        Ok(())
    }

    /// Waiting for a stream that is recorded has no meaning.
    fn refuse_while_recording(&mut self, handle: Handle) -> Outcome {
        match self.streams.get(handle)?.capture {
            None => Ok(()),
            Some(capture) => {
                self.captures.get_mut(capture)?.is_invalid = true;
                Err(Code::StreamCaptureUnsupported)
            }
        }
    }

    /// Refuses what could interfere with a capture: for captures of any thread, or of this one, or none, by their mode. With a
    /// context, captures of its streams are meant alone.
    pub(crate) fn refuse_while_capturing(&mut self, context: Option<Handle>) -> Outcome {
        let thread = std::thread::current().id();
        let found = self.captures.find(|capture| {
            let hinders = match capture.mode {
                CaptureMode::Global => true,
                CaptureMode::ThreadLocal => capture.thread == thread,
                CaptureMode::Relaxed => context.is_some(),
            };
            hinders && context.is_none_or(|context| capture.context == context)
        });
        for capture in &found {
            self.captures.get_mut(*capture)?.is_invalid = true;
        }
        if found.is_empty() { Ok(()) } else { Err(Code::StreamCaptureUnsupported) }
    }

    pub(crate) fn stream_priority(&self, handle: Handle) -> Outcome<i32> {
        Ok(self.streams.get(self.stream(handle)?)?.priority)
    }

    /// Makes a stream call a function of the program.
    ///
    /// # Safety
    /// The function has to be one that may be called with this argument when the stream comes to it.
    pub(crate) unsafe fn call(
        &mut self,
        handle: Handle,
        function: Callback,
        argument: *mut c_void,
    ) -> Outcome {
        let stream = self.stream(handle)?;
        let argument = HostAddress::of(argument);
        self.submit(stream, Work::Call { function, argument }).map(|_| ())
    }

    /// The least and the greatest priority of streams: lower numbers come first.
    pub(crate) const PRIORITIES: (i32, i32) = (0, -5);
}
