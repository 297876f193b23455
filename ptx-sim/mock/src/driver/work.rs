//! Work: what streams execute, and in which order.

use std::ffi::c_void;
use std::sync::Arc;

use tilewright_ptx_sim::{Launch, Memory, MemoryError};

use super::device::cost;
use super::event::Record;
use super::host::HostAddress;
use super::stream::Ordering;
use super::table::Handle;
use super::{Driver, IN_CALLBACK};
use crate::code::{Code, Outcome};

/// A function of the program.
pub(crate) type Callback = unsafe extern "C" fn(*mut c_void);

/// A piece of work of a stream.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Launch {
        module: Handle,
        kernel: Arc<str>,
        launch: Arc<Launch>,
    },
    /// A copy of bytes that were taken from the host when the copy was submitted.
    Write {
        to: u64,
        data: Arc<[u8]>,
    },
    /// A copy from page-locked memory, which is read when the copy is executed.
    Upload {
        to: u64,
        from: HostAddress,
        bytes: u64,
    },
    /// A copy to the host's memory.
    Download {
        to: HostAddress,
        from: u64,
        bytes: u64,
    },
    /// A copy between addresses of devices.
    Copy {
        to: u64,
        from: u64,
        bytes: u64,
    },
    /// The low bytes of a pattern, again and again.
    Fill {
        to: u64,
        pattern: u32,
        width: u8,
        count: u64,
    },
    Free {
        address: u64,
    },
    Record {
        event: Handle,
        generation: u64,
    },
    Wait {
        event: Handle,
        record: Record,
    },
    Call {
        function: Callback,
        argument: HostAddress,
    },
    /// A graph that is launched.
    Graph(Arc<[Work]>),
}

/// A piece of work that is in a queue.
pub(crate) struct Submitted {
    /// A number that increases with each submission to any stream.
    pub(crate) sequence: u64,
    pub(crate) work: Work,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "number {} of {:?}", self.sequence, self.stream)
    }
}

/// A failure while work is executed: the memory was given back meanwhile.
fn gone(_: MemoryError) -> Code {
    Code::IllegalAddress
}

impl Driver {
    /// Executes all work of a stream.
    pub(crate) fn complete(&mut self, stream: Handle) -> Outcome {
        self.execute_until(stream, u64::MAX)
    }

    /// Executes the work of a stream up to a number, and before each piece whatever it depends on.
    pub(crate) fn execute_until(&mut self, handle: Handle, last: u64) -> Outcome {
        loop {
            // A stream that was destroyed did its work before.
            let Ok(stream) = self.streams.get_mut(handle) else { return Ok(()) };
            let context = stream.context;
            self.check_context(context)?;
            let stream = self.streams.get_mut(handle)?;
            if stream.queue.front().is_none_or(|first| first.sequence > last) {
                return Ok(());
            }
            let Some(Submitted { sequence, work }) = stream.queue.pop_front() else { return Ok(()) };
            self.execute_dependences(handle, sequence, &work)?;
            if let Err(code) = self.execute(handle, &work) {
                self.fail(context, code);
                return Err(code);
            }
        }
    }

    /// Executes what has to happen before a piece of work. All of it was submitted earlier, so that this comes to an end.
    fn execute_dependences(&mut self, handle: Handle, sequence: u64, work: &Work) -> Outcome {
        let stream = self.streams.get(handle)?;
        let others = match stream.ordering {
            Ordering::Legacy => self.streams_with(stream.context, Ordering::Blocking),
            Ordering::Blocking => self.streams_with(stream.context, Ordering::Legacy),
            Ordering::NonBlocking => Vec::new(),
        };
        for other in others {
            self.execute_until(other, sequence)?;
            self.follow(handle, self.streams.get(other)?.time)?;
        }
        if let Work::Wait { event, record } = work {
            self.execute_until(record.stream, record.sequence)?;
            let known = self.events.get(*event).ok().and_then(|event| event.record);
            let time = known.filter(|known| known.sequence == record.sequence).and_then(|known| known.time);
            let stream_time = self.streams.get(record.stream).map_or(0.0, |stream| stream.time);
            self.follow(handle, time.unwrap_or(stream_time))?;
        }
        Ok(())
    }

    /// The work of a stream goes on no earlier than at a time.
    fn follow(&mut self, handle: Handle, time: f64) -> Outcome {
        let stream = self.streams.get_mut(handle)?;
        stream.time = stream.time.max(time);
        Ok(())
    }

    /// Ends a context: its streams do nothing more.
    fn fail(&mut self, context: Handle, code: Code) {
        if let Ok(context) = self.context_mut(context) {
            context.failure = Some(code);
        }
        for stream in self.streams.find(|stream| stream.context == context) {
            if let Ok(stream) = self.streams.get_mut(stream) {
                stream.queue.clear();
            }
        }
    }

    fn execute(&mut self, handle: Handle, work: &Work) -> Outcome {
        let device = self.context(self.streams.get(handle)?.context)?.device;
        let duration = match work {
            Work::Launch { module, kernel, launch } => {
                self.execute_launch(device, *module, kernel, launch)?
            }
            Work::Write { to, data } => {
                self.write_device(*to, data)?;
                cost::transfer(data.len() as u64)
            }
            Work::Upload { to, from, bytes } => {
                // SAFETY: the memory is page-locked and was looked up when the copy was submitted; giving it back waits.
                let data = unsafe { from.read(*bytes as usize) };
                self.write_device(*to, &data)?;
                cost::transfer(*bytes)
            }
            Work::Download { to, from, bytes } => {
                let data = self.read_device(*from, *bytes)?;
                // SAFETY: page-locked memory is given back after waiting; other memory is used before the call returns
                // whose caller promised that it is writable.
                unsafe { to.write(&data) };
                cost::transfer(*bytes)
            }
            Work::Copy { to, from, bytes } => {
                let data = self.read_device(*from, *bytes)?;
                self.write_device(*to, &data)?;
                cost::local(*bytes)
            }
            Work::Fill { to, pattern, width, count } => {
                let pattern = &pattern.to_le_bytes()[..usize::from(*width)];
                let data = pattern.repeat(*count as usize);
                self.write_device(*to, &data)?;
                cost::local(data.len() as u64)
            }
            Work::Free { address } => {
                self.memory_of(*address)?.free(*address).map_err(gone)?;
                0.0
            }
            Work::Record { event, generation } => return self.reach_event(handle, *event, *generation),
            Work::Wait { .. } => 0.0,
            Work::Call { function, argument } => {
                IN_CALLBACK.set(true);
                // SAFETY: who submitted the function promised that it may be called with this argument.
                unsafe { function(argument.to_pointer()) };
                IN_CALLBACK.set(false);
                0.0
            }
            Work::Graph(works) => {
                for work in &works[..] {
                    self.execute(handle, work)?;
                }
                return Ok(());
            }
        };
        self.streams.get_mut(handle)?.time += duration;
        self.devices[device].operations += u64::from(duration > 0.0);
        self.devices[device].check_present()
    }

    fn reach_event(&mut self, stream: Handle, event: Handle, generation: u64) -> Outcome {
        let time = self.streams.get(stream)?.time;
        if let Ok(event) = self.events.get_mut(event)
            && event.records == generation
            && let Some(record) = &mut event.record
        {
            record.time = Some(time);
        }
        Ok(())
    }

    /// The memory of the device that an address belongs to.
    pub(crate) fn memory_of(&mut self, address: u64) -> Outcome<&mut Memory> {
        let device = Memory::device_of(address).ok_or(Code::InvalidValue)?;
        self.devices.get_mut(device as usize).map(|device| &mut device.memory).ok_or(Code::InvalidValue)
    }

    fn read_device(&mut self, from: u64, bytes: u64) -> Outcome<Vec<u8>> {
        Ok(self.memory_of(from)?.read(from, bytes).map_err(gone)?.to_vec())
    }

    fn write_device(&mut self, to: u64, data: &[u8]) -> Outcome {
        self.memory_of(to)?.write(to, data).map_err(gone)
    }
}
