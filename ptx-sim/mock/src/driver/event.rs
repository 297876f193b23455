//! Events.

use super::Driver;
use super::table::Handle;
use super::work::Work;
use crate::code::{Code, Outcome};

/// An event: a place in a stream, and the time when the stream came there.
pub(crate) struct Event {
    pub(crate) context: Handle,
    /// Whether it has a time.
    is_timed: bool,
    pub(crate) record: Option<Record>,
    /// How often it was recorded.
    pub(crate) records: u64,
    /// The capture in which it was recorded last, and what of it lies before.
    pub(crate) captured: Option<(Handle, super::capture::Reach)>,
}

/// Where an event was recorded last.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub(crate) stream: Handle,
    pub(crate) sequence: u64,
    /// In nanoseconds; `None` while it has not come.
    pub(crate) time: Option<f64>,
}

/// `CU_EVENT_DISABLE_TIMING`, and all flags.
const DISABLE_TIMING: u32 = 2;
const FLAGS: u32 = 7;

impl Driver {
    pub(crate) fn create_event(&mut self, flags: u32) -> Outcome<Handle> {
        let context = self.usable()?;
        if flags & !FLAGS != 0 {
            return Err(Code::InvalidValue);
        }
        let is_timed = flags & DISABLE_TIMING == 0;
        Ok(self.events.insert(Event { context, is_timed, record: None, records: 0, captured: None }))
    }

    pub(crate) fn destroy_event(&mut self, handle: Handle) -> Outcome {
        self.events.remove(handle).map(|_| ())
    }

    pub(crate) fn record_event(&mut self, handle: Handle, stream: Handle) -> Outcome {
        let stream = self.stream(stream)?;
        if self.events.get(handle)?.context != self.streams.get(stream)?.context {
            return Err(Code::InvalidHandle);
        }
        if let Some(capture) = self.streams.get(stream)?.capture {
            let reach = self.captures.get(capture)?.reach_of(stream);
            self.events.get_mut(handle)?.captured = Some((capture, reach));
            return Ok(());
        }
        let event = self.events.get_mut(handle)?;
        event.records += 1;
        event.captured = None;
        let generation = event.records;
        let sequence = self.submit(stream, Work::Record { event: handle, generation })?;
        self.events.get_mut(handle)?.record = Some(Record { stream, sequence, time: None });
        Ok(())
    }

    /// Makes a stream wait for an event.
    pub(crate) fn wait_event(&mut self, stream: Handle, handle: Handle) -> Outcome {
        let stream = self.stream(stream)?;
        let event = self.events.get(handle)?;
        let capture = self.streams.get(stream)?.capture;
        match (&event.captured, capture) {
            (Some((from, reach)), _) => {
                let (from, reach) = (*from, reach.clone());
                self.join_capture(from, stream, &reach)
            }
            (None, Some(capture)) => {
                self.captures.get_mut(capture)?.is_invalid = true;
                Err(Code::StreamCaptureIsolation)
            }
            (None, None) => {
                // An event that was never recorded is no obstacle.
                let Some(record) = event.record else { return Ok(()) };
                self.submit(stream, Work::Wait { event: handle, record })?;
                Ok(())
            }
        }
    }

    pub(crate) fn synchronise_event(&mut self, handle: Handle) -> Outcome {
        match self.usable_record(handle)? {
            Some(Record { stream, sequence, time: None }) => self.execute_until(stream, sequence),
            _ => Ok(()),
        }
    }

    /// Whether an event has come. As with streams, asking makes one piece of work be done.
    pub(crate) fn query_event(&mut self, handle: Handle) -> Outcome {
        let Some(Record { stream, sequence, time: None }) = self.usable_record(handle)? else {
            return Ok(());
        };
        let first = self.streams.get(stream)?.queue.front().map(|first| first.sequence);
        match first {
            Some(first) if first <= sequence => {
                self.execute_until(stream, first)?;
                if first == sequence { Ok(()) } else { Err(Code::NotReady) }
            }
            _ => Ok(()),
        }
    }

    fn usable_record(&self, handle: Handle) -> Outcome<Option<Record>> {
        let event = self.events.get(handle)?;
        self.check_context(event.context)?;
        if event.captured.is_some() {
            return Err(Code::CapturedEvent);
        }
        Ok(event.record)
    }

    /// The time from one event to another, in milliseconds.
    pub(crate) fn elapsed(&self, start: Handle, end: Handle) -> Outcome<f32> {
        let mut times = [0.0; 2];
        for (time, handle) in times.iter_mut().zip([start, end]) {
            let event = self.events.get(handle)?;
            self.check_context(event.context)?;
            let record = event.record.filter(|_| event.is_timed).ok_or(Code::InvalidHandle)?;
            *time = record.time.ok_or(Code::NotReady)?;
        }
        Ok(((times[1] - times[0]) / 1e6) as f32)
    }
}
