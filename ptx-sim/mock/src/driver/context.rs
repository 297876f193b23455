//! Contexts.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::Driver;
use super::stream::Ordering;
use super::table::Handle;
use crate::code::{Code, Outcome};

/// The streams, events and modules that belong together on a device.
pub(crate) struct Context {
    pub(crate) device: usize,
    /// The error that ended it. Nothing but a new context helps then.
    pub(crate) failure: Option<Code>,
    /// The stream that is meant where none is named, and the one that stands for a thread.
    pub(crate) legacy_stream: Handle,
    pub(crate) thread_stream: Handle,
    pub(crate) limits: FxHashMap<u32, usize>,
    pub(crate) cache: u32,
    pub(crate) flags: u32,
}

/// The number of limits in `CUlimit`.
const LIMITS: u32 = 10;

thread_local! {
    /// The contexts that this thread pushed, the current one last.
    static CURRENT: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

impl Driver {
    /// The current context of this thread, whatever its state is.
    pub(crate) fn current(&self) -> Option<Handle> {
        let top = CURRENT.with_borrow(|stack| stack.last().copied());
        top.filter(|handle| self.contexts.get(*handle).is_ok())
    }

    /// The current context of this thread, which can be used.
    pub(crate) fn usable(&self) -> Outcome<Handle> {
        let handle = self.current().ok_or(Code::InvalidContext)?;
        self.check_context(handle)?;
        Ok(handle)
    }

    /// Fails with the error that ended a context, if one did.
    pub(crate) fn check_context(&self, handle: Handle) -> Outcome {
        let context = self.context(handle)?;
        if let Some(code) = context.failure {
            return Err(code);
        }
        self.devices[context.device].check_present()
    }

    pub(crate) fn context(&self, handle: Handle) -> Outcome<&Context> {
        self.contexts.get(handle).map_err(|_| Code::InvalidContext)
    }

    pub(crate) fn context_mut(&mut self, handle: Handle) -> Outcome<&mut Context> {
        self.contexts.get_mut(handle).map_err(|_| Code::InvalidContext)
    }

    /// Makes a context current, or none.
    pub(crate) fn set_current(&mut self, handle: Option<Handle>) -> Outcome {
        if let Some(handle) = handle {
            self.context(handle)?;
        }
        CURRENT.with_borrow_mut(|stack| {
            stack.pop();
            stack.extend(handle);
        });
        Ok(())
    }

    pub(crate) fn push_current(&mut self, handle: Handle) -> Outcome {
        self.context(handle)?;
        CURRENT.with_borrow_mut(|stack| stack.push(handle));
        Ok(())
    }

    pub(crate) fn pop_current(&mut self) -> Outcome<Handle> {
        CURRENT.with_borrow_mut(Vec::pop).ok_or(Code::InvalidContext)
    }

    pub(crate) fn create_context(&mut self, device: i32, flags: u32) -> Outcome<Handle> {
        self.device(device)?.check_present()?;
        let device = device as usize;
        let context = Context {
            device,
            failure: None,
            legacy_stream: Handle(0),
            thread_stream: Handle(0),
            limits: FxHashMap::default(),
            cache: 0,
            flags,
        };
        let handle = self.contexts.insert(context);
        let legacy_stream = self.add_stream(handle, Ordering::Legacy, 0);
        let thread_stream = self.add_stream(handle, Ordering::Blocking, 0);
        let context = self.context_mut(handle)?;
        (context.legacy_stream, context.thread_stream) = (legacy_stream, thread_stream);
        Ok(handle)
    }

    /// Ends a context, with all that belongs to it. Work that was not executed is dropped.
    pub(crate) fn destroy_context(&mut self, handle: Handle) -> Outcome {
        let context = self.contexts.remove(handle).map_err(|_| Code::InvalidContext)?;
        for stream in self.streams.find(|stream| stream.context == handle) {
            self.streams.remove(stream)?;
        }
        for event in self.events.find(|event| event.context == handle) {
            self.events.remove(event)?;
        }
        for module in self.modules.find(|module| module.context == handle) {
            self.remove_module(module)?;
        }
        let is_last = self.contexts.find(|other| other.device == context.device).is_empty();
        if is_last {
            self.devices[context.device].memory.free_all();
        }
        Ok(())
    }

    pub(crate) fn retain_primary(&mut self, device: i32) -> Outcome<Handle> {
        self.device(device)?.check_present()?;
        if let Some((handle, count)) = self.devices[device as usize].primary {
            self.devices[device as usize].primary = Some((handle, count + 1));
            return Ok(handle);
        }
        let handle = self.create_context(device, 0)?;
        self.devices[device as usize].primary = Some((handle, 1));
        Ok(handle)
    }

    pub(crate) fn release_primary(&mut self, device: i32) -> Outcome {
        self.check_device(device)?;
        let (handle, count) = self.devices[device as usize].primary.ok_or(Code::InvalidContext)?;
        if count > 1 {
            self.devices[device as usize].primary = Some((handle, count - 1));
            return Ok(());
        }
        self.devices[device as usize].primary = None;
        self.destroy_context(handle)
    }

    /// Destroys the primary context of a device, whoever retains it.
    pub(crate) fn reset_primary(&mut self, device: i32) -> Outcome {
        self.check_device(device)?;
        match self.devices[device as usize].primary.take() {
            Some((handle, _)) => self.destroy_context(handle),
            None => Ok(()),
        }
    }

    /// The flags of the primary context of a device, and whether it is in use.
    pub(crate) fn primary_state(&self, device: i32) -> Outcome<(u32, bool)> {
        match self.device(device)?.primary {
            Some((handle, _)) => Ok((self.context(handle)?.flags, true)),
            None => Ok((0, false)),
        }
    }

    pub(crate) fn limit(&self, limit: u32) -> Outcome<usize> {
        let context = self.context(self.usable()?)?;
        if limit >= LIMITS {
            return Err(Code::UnsupportedLimit);
        }
        Ok(context.limits.get(&limit).copied().unwrap_or(1 << 10))
    }

    pub(crate) fn set_limit(&mut self, limit: u32, value: usize) -> Outcome {
        let handle = self.usable()?;
        if limit >= LIMITS {
            return Err(Code::UnsupportedLimit);
        }
        self.context_mut(handle)?.limits.insert(limit, value);
        Ok(())
    }

    pub(crate) fn context_device(&self, context: Handle) -> Outcome<usize> {
        Ok(self.context(context)?.device)
    }

    pub(crate) fn context_flags(&self, context: Handle) -> Outcome<u32> {
        Ok(self.context(context)?.flags)
    }

    /// Whether kernels would rather have cache or shared memory, by the numbers of `CUfunc_cache`. It changes nothing.
    pub(crate) fn cache_preference(&self, context: Handle) -> Outcome<u32> {
        Ok(self.context(context)?.cache)
    }

    pub(crate) fn set_cache_preference(&mut self, context: Handle, preference: u32) -> Outcome {
        self.context_mut(context)?.cache = preference;
        Ok(())
    }
}
